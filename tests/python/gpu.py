#!/usr/bin/env python3
"""What the Python package must show beside a GPU; also runs on the host device, with less.

    gpu.py --address HOST:PORT [--torch HOST:PORT] [--gemmctl PROGRAM] [--sentences FILE]

Measures the package beside bare grpcio, gemmctl and a plain Python server around torch, checks
random products against torch, and runs the sentence transformer. Prints a table; the exit
status is 1 where a product is wrong, or with --check where a bound is not kept. Needs the
package, torch, grpcio and numpy.
"""

import argparse
import json
import os
import pathlib
import sys

import grpc
import numpy as np
from gemmd.contract import MIB

import gpu_times

HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", required=True)
    parser.add_argument("--torch", help="address of torch_server.py; left out: not measured")
    parser.add_argument("--gemmctl", help="the program; left out: not measured")
    parser.add_argument("--sentences", help="a file of minilm.py; left out: no transformer")
    parser.add_argument("--examples", default=str(HERE.parents[1] / "client/python/examples"))
    parser.add_argument("--extent", type=int, default=4096, help="of the large product")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=500, help="of each kind in a round")
    parser.add_argument("--put-mib", type=int, default=1024)
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=1000, help="sentences")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json")
    return parser.parse_args()


class Table:
    """Lines of a name, a value and its bound."""

    def __init__(self):
        self.rows = []
        self.kept = True

    def add(self, name, value, unit, least=None, most=None):
        good = (least is None or value >= least) and (most is None or value <= most)
        bound = f"at least {least:g}" if least is not None else (
            f"at most {most:g}" if most is not None else "")  # fmt: skip
        self.kept = self.kept and good
        self.rows.append({"name": name, "value": value, "unit": unit, "bound": bound, "good": good})
        print(f"{name:<58} {value:10.4g} {unit:<9} {bound:<15} {'' if good else 'NOT KEPT'}",
              flush=True)  # fmt: skip


def times(args, table):
    found = gpu_times.large(args.address, args.torch, args.gemmctl, args.extent, args.rounds)
    size = f"f16 {args.extent} cubed"
    names = {"ours": "gemmd.matmul", "bare": "bare grpcio, the same bytes",
             "gemmctl": "gemmctl", "torch": "plain Python server"}  # fmt: skip
    for name, seconds in found.items():
        table.add(f"{size}: {names[name]}", seconds * 1e3, "ms")
    table.add(f"{size}: of bare grpcio", found["ours"] / found["bare"], "times", most=1.2)
    if "torch" in found:
        table.add(f"{size}: faster than a plain Python server", found["torch"] / found["ours"],
                  "times", least=10)  # fmt: skip
    rates = gpu_times.small(args.address, args.calls, args.rounds)
    for name, label in (("ours", "gemmd.matmul"), ("bare", "bare grpcio"),
                        ("pipeline", "pipeline of 256"), ("bare_stream", "bare stream of 256")):  # fmt: skip
        table.add(f"f32 64 cubed: {label}", rates[name], "a second")
    table.add("f32 64 cubed: of bare grpcio", rates["ours"] / rates["bare"], "times", least=0.8)
    table.add("f32 64 cubed: pipeline, of single calls", rates["pipeline"] / rates["ours"],
              "times", least=3)  # fmt: skip
    table.add("f32 64 cubed: bare stream, of bare single calls",
              rates["bare_stream"] / rates["bare"], "times")  # fmt: skip
    peak = gpu_times.put_memory(args.address, args.put_mib * MIB)
    table.add(f"put of {args.put_mib} MiB: memory beside the array", peak / MIB, "MiB",
              most=1.1 * args.put_mib)  # fmt: skip


def products(args, table):
    import gpu_cases

    wrong, seconds = gpu_cases.check(args.address, args.cases, args.seed)
    table.add(f"{args.cases} random products against torch, {seconds:.0f} s: wrong", wrong, "", most=0)
    return wrong == 0


def transformer(args, table):
    sys.path.insert(0, args.examples)
    import sentence_transformer

    found = pathlib.Path(f"{args.sentences}.{os.getpid()}.json")
    options = ["--load", args.sentences, "--limit", str(args.limit), "--json", str(found)]
    sentence_transformer.main([args.address, *options])
    rows = json.loads(found.read_text())
    found.unlink()
    for row in rows:
        name = f"{row['sentences']} sentences, {row['layers']} layers, {row['type']}"
        least = sentence_transformer.LEAST_COSINE[row["type"]]
        table.add(f"{name}: least cosine", row["cosine"], "", least=least)
        table.add(f"{name}: on the server", row["seconds"], "s")
        table.add(f"{name}: torch on {row['device']}", row["torch_seconds"], "s")
    return all(row["good"] for row in rows)


def main():
    args = arguments()
    table = Table()
    print(f"Python {sys.version.split()[0]}, grpcio {grpc.__version__}, numpy {np.__version__}")
    times(args, table)
    right = products(args, table)
    if args.sentences:
        right = transformer(args, table) and right
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(table.rows, indent=1) + "\n")
    return 0 if right and (table.kept or not args.check) else 1


if __name__ == "__main__":
    sys.exit(main())
