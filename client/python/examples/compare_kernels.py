#!/usr/bin/env python3
"""Measures kernels of the server against each other, and draws them with matplotlib.

compare_kernels.py [HOST:PORT] [--kernel NAME]... [--size N]... [--picture FILE]
"""

import argparse

import gemmd


def draw(found: gemmd.Benchmark, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for kernel in dict.fromkeys(row.kernel for row in found.rows):
        rows = [row for row in found.rows if row.kernel == kernel and row.tflops]
        axes.plot([row.n for row in rows], [row.tflops for row in rows], marker="o", label=kernel)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("m = n = k")
    axes.set_ylabel("TFLOPS")
    axes.set_title(f"kernels on {found.metadata.get('device', found.device)}")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", nargs="?", default="127.0.0.1:50051")
    parser.add_argument("--kernel", action="append", help="a name or pattern; default: all")
    parser.add_argument("--size", type=int, action="append", help="default: 64 to 512")
    parser.add_argument("--types", default="f32")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds")
    parser.add_argument("--picture", help="an image file to draw")
    args = parser.parse_args(argv)
    with gemmd.connect(args.address) as g:
        found = g.bench(
            args.size or [64, 128, 256, 512],
            kernels=args.kernel or (),
            types=[args.types],
            iterations=5,
            budget=args.budget,
            baseline=False,
        )
    print(found)
    if args.picture:
        draw(found, args.picture)
    return 0 if all((row.error_of_bound or 0) <= 1 for row in found.rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
