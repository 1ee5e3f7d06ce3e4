#!/usr/bin/env python3
"""Makes small tables of what scripts/measure-timings.sh measured.

    scripts/pack_timings.py [--algorithms] FOLDER OUT

FOLDER has the files of gemm_bench, CLASS.csv; OUT gets a table of each: a line a shape, a column a
kernel, microseconds; empty where a kernel was not measured. A result that was wrong ends it. With
--algorithms each of cuBLASLt's algorithms is a column, NAME:ALGORITHM; else its first answer alone.
"""

import argparse
import csv
import pathlib
import sys


def table_of(path, with_algorithms):
    kernels, shapes = [], {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if not row["ms"]:
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
            if name not in kernels:
                kernels.append(name)
            shape = shapes.setdefault((row["m"], row["n"], row["k"]), {})
            shape[name] = f"{float(row['ms']) * 1000:.4g}"
    return kernels, shapes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    words = parser.parse_args()
    words.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(words.folder.glob("*.csv")):
        kernels, shapes = table_of(path, words.algorithms)
        with (words.out / path.name).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["m", "n", "k", *kernels])
            for shape, times in shapes.items():
                writer.writerow([*shape, *(times.get(kernel, "") for kernel in kernels)])


if __name__ == "__main__":
    main()
