#!/usr/bin/env python3
"""Draws the errors of the rows of f32x3 beside cuBLAS's in f32.

  gpu_kernels_test --gtest_filter='GpuF32x3*' | scripts/f32x3_errors.py > errors.svg

Each column is a product, each dot a row of the catalogue: the root mean square of its errors, as a
multiple of cuBLAS's on the same operands. The scale is logarithmic.
"""

import html
import math
import re
import sys

CASE = re.compile(r"^(.+), m and n (\d+), k (\d+): cublas_f32 rms")
ROW = re.compile(r"^\s+(\S+)\s+([\d.]+) of the rms")
COLORS = ("#3366aa", "#cc6633", "#339966", "#993399", "#777777")
LEFT, TOP, STEP, HEIGHT, BELOW = 62, 84, 34, 300, 118
LEAST, MOST = 0.1, 4.0
BOUND = 1.5  # of cuBLAS's, which a kernel that `auto` takes may have


def read(lines):
    """[(distribution, extent, k, {row: multiple})] of the test's output."""
    cases = []
    for line in lines:
        if case := CASE.match(line):
            cases.append((case[1], int(case[2]), int(case[3]), {}))
        elif cases and (row := ROW.match(line)):
            cases[-1][3][row[1]] = float(row[2])
    return cases


def height(multiple):
    share = math.log(multiple / LEAST) / math.log(MOST / LEAST)
    return TOP + HEIGHT * (1 - share)


def text(x, y, words, anchor="start", turn=0):
    turned = f' transform="rotate({turn} {x} {y})"' if turn else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{turned}>{html.escape(words)}</text>'


def draw(cases):
    names = sorted({name for case in cases for name in case[3]})
    width = LEFT + STEP * len(cases) + 24
    total = TOP + HEIGHT + BELOW
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" '
           f'font-family="sans-serif" font-size="11">')
    yield f'<rect width="{width}" height="{total}" fill="white"/>'
    for at, name in enumerate(names):
        x, y = LEFT + at % 2 * 330, 16 + at // 2 * 16
        yield f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{COLORS[at % len(COLORS)]}"/>'
        yield text(x + 9, y, name)
    for multiple in (0.1, 0.2, 0.5, 1, 1.5, 2, 4):
        y = round(height(multiple), 1)
        stroke = {1: "#333333", BOUND: "#cc3333"}.get(multiple, "#dddddd")
        yield f'<path d="M{LEFT} {y}H{width - 24}" stroke="{stroke}"/>'
        yield text(LEFT - 6, y + 4, f"{multiple:g}", "end")
    yield text(14, TOP + HEIGHT / 2, "root mean square error, of cuBLAS's in f32", "middle", -90)
    before = None
    for at, (distribution, extent, k, rows) in enumerate(cases):
        x = LEFT + STEP * (at + 0.5)
        if distribution != before:
            yield text(x - STEP / 3, TOP - 8, distribution)
            if before is not None:
                yield f'<path d="M{x - STEP / 2} {TOP}v{HEIGHT}" stroke="#999999"/>'
            before = distribution
        yield text(x + 4, TOP + HEIGHT + 10, f"{extent} x {extent} x {k}", "end", -60)
        for name, multiple in rows.items():
            shown = min(max(multiple, LEAST), MOST)
            yield (f'<circle cx="{x}" cy="{height(shown):.1f}" r="4" fill-opacity="0.75" '
                   f'fill="{COLORS[names.index(name) % len(COLORS)]}"/>')
    yield "</svg>"


def main():
    if len(sys.argv) > 1:
        print(__doc__.strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    cases = read(sys.stdin)
    if not any(rows for *_, rows in cases):
        print("f32x3_errors.py: no case of GpuF32x3 on standard input", file=sys.stderr)
        return 1
    print("\n".join(draw(cases)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
