#!/usr/bin/env python3
"""Checks what the documentation says of our kernels beside the vendor's libraries.

docs/results/baselines.md has a line for each file of measured rows, docs/results/*-rows/*.csv:
the best of our rows of each shape beside the fastest that was measured of cuBLAS and cuBLASLt.
Every such line is computed anew from its file, there and where a page in QUOTING repeats one.
Exits with 1 and a sentence for each line that disagrees. --write makes the table of
docs/results/baselines.md anew; other pages are written by hand.
"""

import argparse
import csv
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/results"
PAGE = RESULTS / "baselines.md"
# Pages that repeat lines, each with at least those of hgemm-125 in f16 and bf16.
QUOTING = (ROOT / "docs/kernels.in.md", ROOT / "docs/kernels.md")
QUOTED = ("h200-rows/f16-nn-hgemm-125.csv", "h200-rows/bf16-nn-hgemm-125.csv")
# As kernels/bench/result/summary.h has it.
LOST = 0.97
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"
LINE = re.compile(r"^\| \[([\w/.-]+?\.csv)\]\([^)]*\) \|(.*)\|$", re.MULTILINE)


def is_library(column):
    return column.startswith(("cublas", "cublaslt"))


def times(path):
    """{shape: (the least time of ours, the least of the libraries)} of a file.

    Either a line a shape with a column for each kernel, or as gemm_bench --csv writes it: a line
    for each kernel on each shape.
    """
    shapes = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            shape = (row["m"], row["n"], row["k"], row.get("types"), row.get("layout"))
            if "kernel" in row:
                found = {row["kernel"]: row["ms"]}
            else:
                found = {name: row[name] for name in row if name not in ("m", "n", "k")}
            least = shapes.setdefault(shape, [math.inf, math.inf])
            for name, time in found.items():
                if time:
                    side = is_library(name)
                    least[side] = min(least[side], float(time))
    both = [tuple(pair) for pair in shapes.values() if math.inf not in pair]
    if not both:
        raise SystemExit(f"{path.relative_to(ROOT)}: no shape has times of ours and of a library")
    return both


def figures(path):
    """The cells of a file's line: geometric mean, ratio of summed times, shapes below LOST."""
    both = times(path)
    shares = [library / ours for ours, library in both]
    mean = math.exp(sum(map(math.log, shares)) / len(shares))
    by_time = sum(library for _, library in both) / sum(ours for ours, _ in both)
    lost = sum(share < LOST for share in shares)
    return f"{mean:.3f} | {by_time:.3f} | {lost} of {len(shares)}"


def files():
    return sorted(RESULTS.glob("*-rows/*.csv"))


def name_of(path):
    return path.relative_to(RESULTS).as_posix()


def table():
    lines = [
        f"| rows | mean | by time | below {LOST} |",
        "| --- | ---: | ---: | ---: |",
        *(f"| [{name_of(path)}]({name_of(path)}) | {figures(path)} |" for path in files()),
    ]
    return "\n".join(lines)


def disagreements(page, needed):
    """A sentence for each line of a page that its file contradicts, and for each that it lacks."""
    label = page.relative_to(ROOT)
    found = dict(LINE.findall(page.read_text()))
    for name, cells in found.items():
        path = RESULTS / name
        if not path.is_file():
            yield f"{label}: there is no docs/results/{name}"
        elif cells.strip() != (right := figures(path)):
            yield f"{label}: {name} has {right}, not {cells.strip()}"
    for name in needed:
        if name not in found:
            yield f"{label}: no line for {name}: it has {figures(RESULTS / name)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"make {PAGE.name} anew")
    if parser.parse_args().write:
        before, rest = PAGE.read_text().split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")
    found = list(disagreements(PAGE, map(name_of, files())))
    for page in QUOTING:
        found += disagreements(page, QUOTED)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
