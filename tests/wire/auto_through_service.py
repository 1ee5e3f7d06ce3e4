#!/usr/bin/env python3
"""Compares what `auto` takes with the fastest kernels by name, through a server.

  auto_through_service.py --address localhost:50051 --timings docs/results/timings/h200-judge-3
                          [--shapes 200]

The shapes are those of the folder's tables, as many of each class. For each the three kernels that
were the fastest there are called by name, and `auto`, in turns, on matrices that the server
generates. What counts is the kernel phase of the report, the median of --rounds. Prints a line a
class; --csv takes every shape.
"""

import argparse
import csv
import math
import pathlib
import statistics
import sys

import gemmd

TYPES = {
    "f16": ("f16", "f16", None),
    "bf16": ("bf16", "bf16", None),
    "e4m3": ("e4m3", "f16", None),
    "tf32": ("f32", "f32", "tf32"),
    "f32x3": ("f32", "f32", "f32x3"),
    "f32": ("f32", "f32", None),
    "f64": ("f64", "f64", None),
    "s8": ("s8", "s32", None),
}
FASTEST = 3


def shapes_of(path):
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            shape = tuple(int(row[key]) for key in "mnk")
            times = {name: float(text) for name, text in row.items() if name not in "mnk" and text}
            yield shape, sorted(times, key=times.get)[:FASTEST]


def kernel_phase(server, a, b, options):
    product = server.matmul(a, b, keep=True, **options)
    report = product.report
    product.free()
    return report.phases["kernel"], report.kernel


def measure(server, name, shape, fastest, rounds):
    """Seconds by what was asked for, and the kernel that `auto` took."""
    of_class, layout = name.rsplit("-", 1)
    operand, result, compute = TYPES[of_class]
    m, n, k = shape
    transposed = [letter == "t" for letter in layout]
    a = server.random((k, m) if transposed[0] else (m, k), dtype=operand)
    b = server.random((n, k) if transposed[1] else (k, n), dtype=operand)
    fixed = {"transpose_a": transposed[0], "transpose_b": transposed[1], "dtype": result}
    if compute:
        fixed["compute"] = compute
    asked = {"auto": {}}
    for kernel in fastest:
        kernel, _, algorithm = kernel.partition(":")
        params = {"params": {"algorithm": int(algorithm)}} if algorithm else {}
        asked[f"{kernel}:{algorithm}"] = {"kernel": kernel, **params}
    seconds, taken = {who: [] for who in asked}, None
    for _ in range(rounds + 1):
        for who, options in asked.items():
            phase, kernel = kernel_phase(server, a, b, {**fixed, **options})
            seconds[who].append(phase)
            taken = kernel if who == "auto" else taken
    a.free()
    b.free()
    return {who: statistics.median(phases[1:]) for who, phases in seconds.items()}, taken


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", required=True)
    parser.add_argument("--timings", required=True, type=pathlib.Path)
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--csv", type=pathlib.Path)
    words = parser.parse_args()
    tables = sorted(words.timings.glob("*.csv"))
    each = math.ceil(words.shapes / len(tables))
    lines, logs = [], []
    print("| class | shapes | auto, of the best by name | by time | worst |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with gemmd.connect(words.address) as server:
        for path in tables:
            shares, auto_sum, best_sum = [], 0.0, 0.0
            all_shapes = list(shapes_of(path))
            for shape, fastest in all_shapes[:: max(1, len(all_shapes) // each)][:each]:
                seconds, taken = measure(server, path.stem, shape, fastest, words.rounds)
                auto = seconds.pop("auto")
                best = min(seconds, key=seconds.get)
                shares.append(seconds[best] / auto)
                auto_sum, best_sum = auto_sum + auto, best_sum + seconds[best]
                lines.append([path.stem, *shape, taken, f"{auto:.3g}", best, f"{seconds[best]:.3g}"])
            logs += [math.log(share) for share in shares]
            mean = math.exp(statistics.fmean(map(math.log, shares)))
            print(f"| {path.stem} | {len(shares)} | {mean:.3f} | {best_sum / auto_sum:.3f} "
                  f"| {min(shares):.2f} |", flush=True)
    print(f"all: {len(logs)} shapes, {math.exp(statistics.fmean(logs)):.3f}")
    if words.csv:
        with words.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["class", "m", "n", "k", "auto", "seconds", "best", "best_seconds"])
            writer.writerows(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
