#!/usr/bin/env python3
"""Makes small tables of what scripts/measure-timings.sh measured.

    scripts/pack_timings.py [--algorithms] FOLDER OUT

FOLDER has files of gemm_bench; OUT gets a table of each class of types and layout: a line a shape, a
column a kernel, microseconds; empty where a kernel was not measured. A shape without a library's
first answer is left out. A result that was wrong ends it. With --algorithms each of cuBLASLt's
algorithms is a column, NAME:ALGORITHM; else its first answer alone.
"""

import argparse
import csv
import pathlib
import sys


def class_of(row):
    """The types' name in those of kernels, and the layout: "tf32-nt"."""
    first, *_, compute = row["types"].split(":")
    return f"{compute if compute in ('tf32', 'f32x3') else first}-{row['layout']}"


def add_file(path, with_algorithms, tables):
    """Adds the file's times to `tables`: of each class the times of each shape by kernel."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if not row["ms"] or row["kernel"] == "auto":
                continue
            if row["right"] != "true":
                sys.exit(f"{path}: {row['kernel']} is wrong for {row['m']}x{row['n']}x{row['k']}")
            name = row["kernel"]
            if row["parameters"].startswith("algorithm="):
                algorithm = row["parameters"].removeprefix("algorithm=")
                if with_algorithms:
                    name += f":{algorithm}"
                elif algorithm != "0":
                    continue
            shapes = tables.setdefault(class_of(row), {})
            times = shapes.setdefault((row["m"], row["n"], row["k"]), {})
            times[name] = f"{float(row['ms']) * 1000:.4g}"


def is_first_answer(kernel):
    return kernel.startswith("cublas") and (":" not in kernel or kernel.endswith(":0"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    tables = {}
    for path in sorted(words.folder.glob("*.csv")):
        add_file(path, words.algorithms, tables)
    for name, shapes in tables.items():
        firsts = {kernel for times in shapes.values() for kernel in times if is_first_answer(kernel)}
        shapes = {shape: times for shape, times in shapes.items() if firsts <= times.keys()}
        kernels = list(dict.fromkeys(kernel for times in shapes.values() for kernel in times))
        with (words.out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["m", "n", "k", *kernels])
            for shape, times in shapes.items():
                writer.writerow([*shape, *(times.get(kernel, "") for kernel in kernels)])


if __name__ == "__main__":
    main()
