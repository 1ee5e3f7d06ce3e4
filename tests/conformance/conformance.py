#!/usr/bin/env python3
"""Checks a gemmd server against the contract and a float64 oracle.

Uses grpcio, stubs generated from gemm.proto and numpy; torch, where it is there, computes the
oracle. Every element of every answer is compared: with exact integers, or within a bound that
follows from k and the types (oracle.py).

  conformance.py --address 127.0.0.1:50051 --stubs build/tests/conformance/stubs
"""

import argparse
import json
import pathlib
import random
import sys
import time


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True, help="host:port of the server")
    parser.add_argument("--stubs", type=pathlib.Path, help="folder of gemm/v1/gemm_pb2.py")
    parser.add_argument("--quick", action="store_true", help="small shapes, for a CPU")
    parser.add_argument("--device-kind", choices=["any", "host", "cuda"], default="any",
                        help="fail where the server's devices are of another kind")
    parser.add_argument("--oracle", choices=["auto", "torch-cuda", "torch-cpu", "numpy"],
                        default="auto")
    parser.add_argument("--only", help="comma-separated groups to run; all when left out")
    parser.add_argument("--seed", type=int, help="random when left out; always printed")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent)]
if ARGUMENTS.stubs:
    sys.path[:0] = [str(ARGUMENTS.stubs)]

import cases  # noqa: E402  (the stubs' path comes first)
import checks  # noqa: E402
import client as wire  # noqa: E402
import oracle  # noqa: E402
from block_scales import block_scales  # noqa: E402
from row_blocks import row_blocks  # noqa: E402
from runner import Runner, Tally  # noqa: E402


def groups(quick, rng, run, server, backend):
    """(name, function of a Tally) of everything there is to check, in order."""
    limit = 48 if quick else 300
    count, extent = (60, 200) if quick else (240, 2000)

    def of(problems):
        return lambda tally: run.run(tally, problems)

    return [
        ("layouts", of(cases.layouts_and_transposes(rng, (37, 29, 53) if quick else (137, 93, 211)))),
        ("epilogues", of(cases.epilogues(rng, limit))),
        ("sources", of(cases.sources(rng, limit))),
        ("special", of(cases.special_shapes(rng, 10 if quick else 200))),
        ("large", of(cases.large(rng, (257, 255, 259) if quick else (4097, 4095, 4099)))),
        ("random", of(cases.random_shapes(rng, count, extent))),
        ("kernels", of(cases.kernels_by_name(
            rng, checks.named_kernels(server),
            [(33, 65, 17)] if quick else [(128, 256, 192), (257, 129, 77), (1, 300, 513)]))),
        ("special-values", of(cases.special_values(
            rng, checks.named_kernels(server),
            [(9, 12, 7)] if quick else [(33, 24, 17), (129, 77, 65)]))),
        ("batches", lambda tally: run.run_batches(
            tally, cases.batches(rng, checks.batched_kernels(server), quick))),
        ("block-scales", lambda tally: block_scales(tally, server, rng, quick, backend)),
        ("row-blocks", lambda tally: row_blocks(tally, server, rng, quick)),
        ("groups", lambda tally: run.run_batches(
            tally, cases.groups(rng, checks.grouped_kernels(server), quick))),
        ("generator", lambda tally: checks.generator(tally, server, rng)),
        ("transfers", lambda tally: checks.transfers(tally, server, rng, quick)),
        ("ranking", lambda tally: checks.ranking(tally, server, rng, 20 if quick else 100)),
        ("traffic", lambda tally: checks.traffic(tally, server, 5 if quick else 20)),
        ("one-stream", lambda tally: checks.one_stream(tally, server, rng, 60 if quick else 300)),
    ]


def print_header():
    print(f"{'group':<15}{'cases':>7}{'exact':>7}{'elements':>13}{'worst/bound':>13}"
          f"{'reordered':>11}{'failed':>8}{'s':>8}", flush=True)


def print_row(name, tallies):
    """The line of one group as it ends, or that of all of them."""
    print(f"{name:<15}{sum(t.cases for t in tallies):>7}{sum(t.exact for t in tallies):>7}"
          f"{sum(t.elements for t in tallies):>13}{max(t.worst_ratio for t in tallies):>13.3f}"
          f"{sum(t.out_of_order for t in tallies):>11}{sum(len(t.failures) for t in tallies):>8}"
          f"{sum(t.seconds for t in tallies):>8.1f}", flush=True)


def wanted_of(every, only):
    """The (name, function) of `every` that `only` names, or all of them."""
    names = only.split(",") if only else [name for name, _ in every]
    unknown = sorted(set(names) - {name for name, _ in every})
    if unknown:
        sys.exit(f"--only names {', '.join(unknown)}: there are "
                 f"{', '.join(name for name, _ in every)}")
    return [(name, function) for name, function in every if name in names]


def write_json(path, seed, backend, info, tallies):
    path.write_text(json.dumps({
        "seed": seed, "oracle": backend.describe(), "quick": ARGUMENTS.quick,
        "server": {"version": info.version, "commit": info.commit},
        "devices": [{"name": d.name, "model": d.model} for d in info.devices],
        "groups": [{
            "name": t.name, "cases": t.cases, "exact": t.exact, "elements": t.elements,
            "worst_ratio": t.worst_ratio, "worst_case": t.worst_case,
            "out_of_order": t.out_of_order, "seconds": round(t.seconds, 2),
            "kernels": dict(t.kernels), "failures": t.failures} for t in tallies],
    }, indent=1) + "\n")


def main():
    seed = ARGUMENTS.seed if ARGUMENTS.seed is not None else random.SystemRandom().getrandbits(32)
    rng = random.Random(seed)
    server = wire.Client(ARGUMENTS.address)
    backend = oracle.Backend(ARGUMENTS.oracle)
    info = server.info()
    devices = ", ".join(f"{d.name} ({d.model})" for d in info.devices)
    print(f"seed {seed}; server {info.version} on {devices}; oracle {backend.describe()}",
          flush=True)
    if not info.devices:
        sys.exit("the server names no device")
    if ARGUMENTS.device_kind != "any":
        for device in info.devices:
            if device.name.split(":")[0] != ARGUMENTS.device_kind:
                sys.exit(f"device {device.name} is not of kind {ARGUMENTS.device_kind}")
    resident_before = info.load.matrices
    tallies = []
    every = groups(ARGUMENTS.quick, rng, Runner(server, backend, rng), server, backend)
    wanted = wanted_of(every, ARGUMENTS.only)
    print_header()
    for name, function in wanted:
        tally = Tally(name)
        begin = time.monotonic()
        function(tally)
        tally.seconds = time.monotonic() - begin
        if not tally.cases:
            tally.failures.append("cases: 0, at least 1 needed")
        tallies.append(tally)
        for failure in tally.failures[:10]:
            print(f"FAIL {name}: {failure}", flush=True)
        print_row(name, [tally])
    leftover = Tally("leftovers", cases=1)
    checks.nothing_left(leftover, server, resident_before)
    tallies.append(leftover)
    for failure in leftover.failures:
        print(f"FAIL leftovers: {failure}")
    print_row("leftovers", [leftover])
    print_row("total", tallies)
    if ARGUMENTS.json:
        write_json(ARGUMENTS.json, seed, backend, info, tallies)
    server.close()
    sys.exit(1 if any(t.failures for t in tallies) else 0)


if __name__ == "__main__":
    main()
