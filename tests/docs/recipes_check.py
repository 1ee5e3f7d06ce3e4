#!/usr/bin/env python3
"""Finds additions that were made in part: places of CONTRIBUTING.md's recipes that no other test asks for.

Exceptions have a reason, and leave their list when they are no longer true.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Of each RPC of gemm.v1: where its name must be, and which have none there.
RPC_PLACES = {
    "client/cpp": {},
    "client/ctl": {"MultiplyUnary": "gemmctl sends products by Multiply"},
    "client/python": {},
    "tests/rpc": {},
    "tests/client": {},
    "tests/conformance": {
        "Benchmark": "its figures are the machine's",
        "ReloadTuning": "it needs the server's files",
    },
    "tests/attacks": {
        "ReloadTuning": "it takes nothing of its caller",
        "ListTraffic": "it takes one number",
    },
}

# Flags of gemmd that no test names, since tests of the server set their fields.
UNNAMED_FLAGS = {"max-coalesced-jobs", "read-window-bytes", "reflection-access"}

# Metrics in no panel and no alert: for whoever looks into a trouble.
UNSHOWN_METRICS = {
    "gemmd_coalesced_jobs_total",
    "gemmd_connections_accepted_total",
    "gemmd_connections_refused_for_calls_total",
    "gemmd_connections_refused_for_user_total",
    "gemmd_device_hangs_total",
    "gemmd_handshakes_limit",
    "gemmd_identity_reloads_total",
    "gemmd_idle_tuning_products_total",
    "gemmd_matrices_expired_total",
    "gemmd_matrices_moved_total",
    "gemmd_matrix_transfer_duration_seconds",
    "gemmd_replica_copied_bytes_total",
    "gemmd_replica_reuses_total",
    "gemmd_replicas_dropped_total",
    "gemmd_replicas_total",
    "gemmd_shared_memory_regions",
    "gemmd_shared_memory_regions_limit",
    "gemmd_traffic_dropped_total",
    "gemmd_traffic_entries",
    "gemmd_traffic_entries_limit",
    "gemmd_unfinished_calls",
    "gemmd_unfinished_calls_limit",
    "gemmd_unproven_connections_closed_total",
}

SOURCES = {".cc", ".h", ".py", ".sh", ".yml"}


def text(*paths):
    """All sources below these folders, and these files."""
    files = []
    for path in (ROOT / path for path in paths):
        files += [path] if path.is_file() else sorted(path.rglob("*"))
    return "\n".join(f.read_text(encoding="utf-8") for f in files
                     if f.is_file() and f.suffix in SOURCES and f != pathlib.Path(__file__).resolve())


def named(name, where):
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", where) is not None


def rpc_problems(names):
    for folder, exceptions in RPC_PLACES.items():
        where = text(folder)
        for name in names:
            if named(name, where) == (name in exceptions):
                yield (f"{folder} names {name}: take it off RPC_PLACES" if name in exceptions
                       else f"RPC {name}: nothing in {folder} names it")


def flag_problems(flags):
    where = text("tests")
    for flag in flags:
        if named(flag, where.replace("--", " ")) == (flag in UNNAMED_FLAGS):
            yield (f"a test names --{flag}: take it off UNNAMED_FLAGS" if flag in UNNAMED_FLAGS
                   else f"flag --{flag}: no test names it")


def metric_problems(metrics):
    shown = ((ROOT / "deploy/grafana/dashboards/gemmd.json").read_text(encoding="utf-8")
             + text("deploy/prometheus"))
    for metric in metrics:
        found = re.search(rf"{metric}(_bucket|_sum|_count)?(?![a-z_])", shown) is not None
        if found == (metric in UNSHOWN_METRICS):
            yield (f"{metric} is shown: take it off UNSHOWN_METRICS" if found else
                   f"metric {metric}: no panel and no alert has it")


def event_problems():
    events = re.findall(r"void (On\w+)\(", text("server/telemetry/metrics.h"))
    callers = text("server/server.cc", "server/logs", "server/engine")
    for event in events:
        if not re.search(rf"\b{event}\(", callers):
            yield f"Metrics::{event}: nothing in the server calls it"


def main():
    contract = (ROOT / "proto/gemm/v1/gemm.proto").read_text(encoding="utf-8")
    reference = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    rpcs = re.findall(r"^\s*rpc (\w+)\(", contract, re.M)
    flags = re.findall(r"^\| `--([a-z0-9-]+)` \|", reference, re.M)
    metrics = re.findall(r"^\| `(gemmd_[a-z0-9_]+)` \|", reference, re.M)
    found = []
    for kind, names in (("RPCs", rpcs), ("flags", flags), ("metrics", metrics)):
        if len(names) < 10:
            found.append(f"only {len(names)} {kind} found: this check no longer reads them")
    found += [*rpc_problems(rpcs), *flag_problems(flags), *metric_problems(metrics),
              *event_problems()]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
