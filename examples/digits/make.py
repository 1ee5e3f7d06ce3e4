#!/usr/bin/env python3
"""Makes digits.npy, axes.npy and offset.npy from the data set's own table.

    make.py TABLE [OUT]

TABLE is the UCI test set, one image a line: 64 pixels, then the digit it
shows. Both `optdigits.tes` as UCI gives it and the copy that scikit-learn
ships (sklearn/datasets/data/digits.csv.gz) will do; a name ending in .gz is
unpacked. The files go to OUT, by default the folder of this script.

    digits.npy  X, 1797 x 64 float32: the pixels, whole numbers of 0 to 16
    axes.npy    W, 64 x 16 float32: the first 16 principal axes, one a column
    offset.npy  1 x 16 float32: -mean(X) W

The projection of the centred images, (X - mean) W, is then the one product
X W + offset: centring is the bias of the product.
"""

import gzip
import pathlib
import sys

import numpy as np

PIXELS = 64
AXES = 16


def read_images(table: pathlib.Path) -> np.ndarray:
    """The pixels of every image, n x 64 float64, without the labels."""
    opener = gzip.open if table.suffix == ".gz" else open
    with opener(table, "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",")
    if rows.ndim != 2 or rows.shape[1] != PIXELS + 1:
        raise SystemExit(f"{table}: rows of {PIXELS + 1} numbers expected, shape is {rows.shape}")
    return rows[:, :PIXELS]


def principal_axes(centred: np.ndarray, count: int) -> np.ndarray:
    """The first `count` eigenvectors of the covariance, 64 x count, largest variance first.

    An eigenvector's sign is free: here its largest component is positive, so
    that every run gives the same file.
    """
    covariance = centred.T @ centred / (len(centred) - 1)
    _, vectors = np.linalg.eigh(covariance)
    axes = vectors[:, ::-1][:, :count]
    largest = np.abs(axes).argmax(axis=0)
    return axes * np.sign(axes[largest, np.arange(count)])


def main(arguments: list[str]) -> None:
    if len(arguments) not in (1, 2):
        raise SystemExit(__doc__)
    table = pathlib.Path(arguments[0])
    out = pathlib.Path(arguments[1]) if len(arguments) == 2 else pathlib.Path(__file__).parent
    images = read_images(table)
    mean = images.mean(axis=0)
    axes = principal_axes(images - mean, AXES)
    offset = -(mean @ axes).reshape(1, AXES)
    for name, matrix in (("digits", images), ("axes", axes), ("offset", offset)):
        np.save(out / f"{name}.npy", np.ascontiguousarray(matrix, dtype=np.float32))
        print(f"{out / name}.npy: {matrix.shape[0]} x {matrix.shape[1]} float32")


if __name__ == "__main__":
    main(sys.argv[1:])
