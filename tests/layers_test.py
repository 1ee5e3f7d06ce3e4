#!/usr/bin/env python3
"""Which folder may include which, and that no two files include each other in a ring.

    tests/layers_test.py [ROOT] [--print]

--print  the picture of the folders, which docs/folders.md has to show

A folder without a line of its own belongs to the nearest one above it that has one; a kind of
device, a folder of server/engine/device, needs its own.
"""
import argparse
import collections
import pathlib
import re
import sys

DEVICE = ["server/base", "server/engine/bounds", "kernels/include"]
STORE = DEVICE + ["server/engine/device"]
CORE = STORE + ["server/engine/store", "server/engine/policy"]
TRANSFER = CORE + ["server/engine/core"]
JOB = TRANSFER + ["server/engine/transfer"]
ENGINE = JOB + ["server/engine/job"]
# What serves: it knows the engine by those of its headers that are PUBLIC.
SERVICE = ENGINE + ["server/engine"]
RPC_CONTEXT = SERVICE + ["server/benchmark", "server/identity", "proto"]
RPC_CALLS = RPC_CONTEXT + ["server/rpc/context", "server/rpc/codec", "server/rpc/watch", "server/rpc/life"]

BENCH_SPEC = ["kernels/include", "kernels", "kernels/bench/spec", "files"]
BENCH_RESULT = BENCH_SPEC + ["kernels/bench/result"]
BENCH_REPORT = BENCH_RESULT + ["kernels/bench/report"]
BENCH_MEASURE = BENCH_RESULT + ["kernels/bench/backend", "kernels/bench/measure"]

# Folder: what it may include beside itself. From the bottom up.
LAYERS = {
    "proto": [],
    "files": [],
    "kernels/include": [],
    "kernels": ["kernels/include"],
    "kernels/bench/spec": ["kernels/include", "kernels"],
    "kernels/bench/result": BENCH_SPEC,
    "kernels/bench/report": BENCH_RESULT,
    "kernels/bench/backend": BENCH_RESULT,
    "kernels/bench/measure": BENCH_MEASURE,
    "kernels/bench": BENCH_REPORT + BENCH_MEASURE,
    "server/base": [],
    "server/net": ["server/base"],
    "server/engine/bounds": ["server/base"],
    "server/identity": ["files", "server/base", "server/engine/bounds", "kernels/include"],
    "server/engine/device": DEVICE,
    "server/engine/device/host": STORE,
    "server/engine/device/cuda": STORE,
    "server/engine/policy": STORE,
    "server/engine/store": STORE,
    "server/engine/core": CORE,
    "server/engine/transfer": TRANSFER,
    "server/engine/job": JOB,
    "server/engine": ENGINE,
    "server/benchmark": SERVICE + BENCH_MEASURE,
    "server/rpc/context": RPC_CONTEXT,
    "server/rpc/codec": RPC_CONTEXT + ["server/rpc/context", *BENCH_MEASURE],
    "server/rpc/watch": RPC_CONTEXT + ["server/rpc/context"],
    "server/rpc/life": RPC_CONTEXT + ["server/rpc/context", "server/rpc/watch"],
    "server/rpc/calls": RPC_CALLS,
    "server/rpc/inference": RPC_CALLS + ["server/rpc/calls"],
    "server/rpc": RPC_CALLS + ["server/rpc/calls", "server/rpc/inference"],
    "server/telemetry": SERVICE + ["server/net"],
    "server/status": SERVICE + ["server/base", "server/net", "server/benchmark", "server/telemetry"],
    "server/logs": SERVICE + ["server/benchmark", "server/identity", "server/telemetry"],
    "server/process": ["server/base", "server/logs"],
    "server/floods": ["server/base", "server/net", "server/identity"],
    "server/listening": ["server/base", "server/net", "server/identity", "server/floods", "server/rpc/context"],
    "server": SERVICE + ["server/net", "server/identity", "server/benchmark", "server/rpc", "server/rpc/context", "server/rpc/watch",
                         "server/telemetry", "server/status", "server/logs", "server/process", "server/floods", "server/listening", "proto"],
    "server/flags": ["files", "kernels/include", "server/base", "server/net", "server/identity", "server/engine/device", "server", "server/logs", "server/process"],
    "client/cpp/include": ["proto"],
    "client/cpp/calls": ["client/cpp/include", "proto", "files"],
    "client/cpp/transfers": ["client/cpp/include", "proto", "client/cpp/calls"],
    "client/cpp/products": ["client/cpp/include", "proto", "client/cpp/calls", "client/cpp/transfers"],
    "client/cpp": ["client/cpp/include", "proto", "files", "client/cpp/calls", "client/cpp/transfers", "client/cpp/products"],
    "client/ctl": BENCH_REPORT + ["kernels/bench", "client/cpp/include"],
    "examples": ["client/cpp/include"],
}
# Files that may include what the rest of their folder may not.
EXCEPTIONS = {
    # The table of the kinds of devices.
    "server/engine/device/device_kinds.cc": ["server/engine/device/host", "server/engine/device/cuda"],
    # The program: it reads the flags that say what the server is.
    "server/main.cc": ["server/flags", "files"],
    # What a program that calls gRPC does at its start.
    "client/ctl/main.cc": ["proto"],
}
# Two halves of one thing, which know each other. No third may join them.
HALVES = [
    {"client/cpp/calls/connection", "client/cpp/calls/task"},
    {"server/engine/device/cuda/cuda_device", "server/engine/device/cuda/cuda_stream"},
    {"server/flags/flag_table", "server/flags/flags"},
]
# Below server/engine, only these are for the layers above it.
PUBLIC = re.compile(
    r"server/engine/(engine\.h|bounds/.*|core/(report|tuning)\.h|device/(device|device_kinds|staging)\.h|job/(job|ranking)\.h"
    r"|store/matrix\.h|transfer/(download|upload)\.h)$")
KINDS = "server/engine/device"
PAGE = "docs/folders.md"
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def layer_of(path):
    """The longest line of LAYERS that the path is in, or None."""
    lines = [line for line in LAYERS if inside(path, line)]
    return max(lines, key=len) if lines else None


def resolve(root, name):
    """The file that an include means, from the root; None for other people's."""
    if name.startswith("gemm/v1/"):
        return "proto/gemm/v1/gemm.proto"
    for folder in ("", "kernels/include/", "client/cpp/include/"):
        if (root / (folder + name)).is_file():
            return folder + name
    return None


def includes(root):
    """{file: [file]} of the product's sources."""
    graph = {}
    for top in ("proto", "files", "kernels", "server", "client", "examples"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            names = INCLUDE.findall(path.read_text(encoding="utf-8"))
            found = (resolve(root, name) for name in names)
            graph[str(path.relative_to(root))] = [one for one in found if one is not None]
    return graph


def allowed(source, target):
    layer, other = layer_of(source), layer_of(target)
    return layer is not None and other in [layer] + LAYERS[layer] + EXCEPTIONS.get(source, [])


def violations(graph):
    for source, targets in graph.items():
        for target in targets:
            if not allowed(source, target):
                below = ", ".join(LAYERS.get(layer_of(source), []))
                yield f"{source} includes {target}: {layer_of(source)} may include {below or 'nothing'}"
            elif inside(target, "server/engine") and not inside(source, "server/engine") and not PUBLIC.match(target):
                yield f"{source} includes {target}, which is the engine's own"


def unnamed_kinds(root):
    """Kinds of device without a line: they would count as the layer that must not know them."""
    for folder in sorted((root / KINDS).iterdir()):
        if folder.is_dir() and f"{KINDS}/{folder.name}" not in LAYERS:
            yield f"{KINDS}/{folder.name}: a kind of device without a line of LAYERS"


def component(path):
    """A header and its source are one: what one of them includes, the other may not need."""
    return re.sub(r"\.(h|cc|cuh|cu)$", "", path)


def rings(graph):
    """Components that include each other in a ring, each ring once."""
    edges = collections.defaultdict(set)
    for source, targets in graph.items():
        own = component(source)
        edges[own].update(one for one in map(component, targets) if one != own and {own, one} not in HALVES)
    state, path = {}, []

    def visit(node):
        state[node] = "open"
        path.append(node)
        for following in sorted(edges[node]):
            if state.get(following) == "open":
                yield " -> ".join(path[path.index(following):] + [following])
            elif following not in state:
                yield from visit(following)
        path.pop()
        state[node] = "done"

    for node in sorted(edges):
        if node not in state:
            yield from visit(node)


def below(layer):
    """Every folder that can be reached from this one."""
    found, left = set(), list(LAYERS[layer])
    while left:
        folder = left.pop()
        if folder != layer and folder not in found:
            found.add(folder)
            left.extend(LAYERS[folder])
    return found


def picture():
    """LAYERS as a diagram of Mermaid, without the arrows that follow from others."""
    lines = ["```mermaid", "graph TD"]
    lines += [f'  {layer.replace("/", "_")}["{layer}/"]' for layer in LAYERS]
    for layer in LAYERS:
        others = set(LAYERS[layer]) - {layer}
        direct = [one for one in LAYERS if one in others and not any(one in below(other) for other in others)]
        lines += [f'  {layer.replace("/", "_")} --> {one.replace("/", "_")}' for one in direct]
    return "\n".join([*lines, "```"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--print", action="store_true")
    arguments = parser.parse_args()
    if arguments.print:
        print(picture())
        return 0
    graph = includes(arguments.root)
    found = [*violations(graph), *unnamed_kinds(arguments.root)] + [f"a ring: {ring}" for ring in rings(graph)]
    if picture() not in (arguments.root / PAGE).read_text(encoding="utf-8"):
        found.append(f"{PAGE}: not the picture that {pathlib.Path(__file__).name} --print makes")
    for line in found:
        print(line)
    print(f"{len(graph)} files, {sum(map(len, graph.values()))} includes, {len(found)} against the layers")
    # A root without sources proves nothing.
    return 1 if found or len(graph) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
