#!/usr/bin/env python3
"""Principal components of 1797 handwritten digits, with every product on the server.

    digits_pca.py [HOST:PORT] [--picture FILE]

The images are sent once. Their covariance, the projection and the reconstruction are made of
the copy on the server; only the 64 x 64 eigenvalue problem is solved here. With matplotlib,
--picture draws the digits on the first two axes.
"""

import argparse
import pathlib

import gemmd
import numpy as np

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "examples/digits"
AXES = 16


def principal_axes(g: gemmd.Client, images: gemmd.Handle, mean: np.ndarray) -> np.ndarray:
    """The axes of the largest variance, one a column, and the variance of all axes."""
    count = images.shape[0]
    # The covariance of centred images is XᵀX / n - mean meanᵀ: a product with c and beta.
    outer = np.outer(mean, mean).astype(np.float32)
    covariance = g.matmul(images.T, images, alpha=1 / count, c=outer, beta=-1)
    variances, axes = np.linalg.eigh(np.asarray(covariance, float))
    return axes[:, ::-1], variances[::-1]


def draw(points: np.ndarray, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 5))
    axes.scatter(points[:, 0], points[:, 1], s=4)
    axes.set_xlabel("first axis")
    axes.set_ylabel("second axis")
    axes.set_title("1797 digits on their first two principal axes")
    figure.savefig(path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", nargs="?", default="127.0.0.1:50051")
    parser.add_argument("--picture", help="an image file to draw")
    args = parser.parse_args(argv)
    digits = np.load(DIGITS / "digits.npy")
    mean = digits.mean(axis=0, dtype=float)
    with gemmd.connect(args.address) as g, g.put(digits) as images:
        axes, variances = principal_axes(g, images, mean)
        axes = np.ascontiguousarray(axes[:, :AXES], np.float32)
        # Centring is the bias of the product: (X - mean) W = X W - mean W.
        offset = (-mean @ axes).astype(np.float32)
        with g.keep(images, axes, bias=offset) as points:
            back = g.matmul(points, axes, transpose_b=True, bias=mean.astype(np.float32))
            projected = points.numpy()
            kernel = points.report.kernel
    held = variances[:AXES].sum() / variances.sum()
    lost = ((digits - back) ** 2).sum() / ((digits - mean) ** 2).sum()
    print(f"{digits.shape[0]} images of {digits.shape[1]} pixels, {kernel}")
    print(f"{AXES} axes hold {held:.1%} of the variance; the images made of them lose {lost:.1%}")
    known = np.load(DIGITS / "axes.npy")
    agreement = abs((known * axes).sum(axis=0)).min()
    print(f"least agreement with the axes of the repository: {agreement:.6f}")
    if args.picture:
        draw(projected, args.picture)
    return 0 if agreement > 0.999 and abs(held + lost - 1) < 1e-3 else 1


if __name__ == "__main__":
    raise SystemExit(main())
