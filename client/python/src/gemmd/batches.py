"""Products of 3-D arrays: a batch, whose matrices the wire has stacked in one.

An array of shape (b, m, k) is b matrices. Their rows, one matrix after the other, are those of
one row-major matrix of b * m rows. An operand of two dimensions, or of shape (1, m, k), is shared by
all products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import operands
from .contract import pb
from .errors import InvalidArgument, Unimplemented
from .handle import Handle
from .operands import Shape
from .product import Options, write_shared


@dataclass(frozen=True)
class Batch:
    """How many products there are, and the names of the operands that they share."""

    count: int
    shared: frozenset[str]

    @property
    def layout(self) -> int:
        return pb.LAYOUT_ROW_MAJOR

    def layouts(self, options: Options) -> tuple[int, int]:
        return pb.LAYOUT_ROW_MAJOR, pb.LAYOUT_ROW_MAJOR

    def of_one(self, shape: Shape, name: str) -> Shape:
        if name in self.shared:
            return shape
        return shape._replace(rows=shape.rows // self.count)

    def times(self, name: str) -> int:
        return 1 if name in self.shared else self.count

    def write(self, proto: pb.Product, limits: Any, result: Shape, inner: int) -> None:
        most = limits.max_batch_count
        if most == 0:  # it would leave the field out, and multiply the stacked matrices
            raise Unimplemented("the server takes no batches; give two dimensions", field="a")
        if self.count > most:
            raise InvalidArgument(
                f"a batch has {self.count} products; it may have {most}", field="a"
            )
        proto.batch_count = self.count
        write_shared(proto, self.shared)


def ndim(value: Any) -> int:
    """2 for what has no dimensions of its own, as a handle."""
    number = getattr(value, "ndim", 2)
    return number if isinstance(number, int) else 2


def check_ndim(value: Any, name: str, third: str) -> None:
    """InvalidArgument where it has neither two dimensions nor three, which are for `third`."""
    if ndim(value) not in (2, 3):
        raise InvalidArgument(
            f"{name} has shape {tuple(value.shape)}; it must have two dimensions, or three for "
            f"{third}",
            field=name,
        )


def stacked(value: Any) -> Any:
    """A 3-D array as its matrices' rows; a view where they lie dense."""
    count, height, cols = value.shape
    return value.reshape(count * height, cols)


def rows(value: Any) -> int:
    """Of a bias: an array, a tensor or a handle."""
    if isinstance(value, Handle):
        return value._matrix.rows
    return int(value.shape[0]) if ndim(value) == 2 and hasattr(value, "shape") else 1


def check_out(out: Any, count: int) -> None:
    if ndim(out) != 3 or out.shape[0] != count:
        raise InvalidArgument(
            f"out has shape {tuple(getattr(out, 'shape', ()))}; the result is "
            f"{count} matrices in three dimensions",
            field="out",
        )
    dense = out.is_contiguous() if operands.is_torch(out) else out.flags.c_contiguous
    if not dense:
        raise InvalidArgument("out is not contiguous; that of a batch must be", field="out")


def check_matrices(value: Any, name: str, count: int, other: str) -> None:
    """Whether a 3-D operand has as many matrices as `other` says, and no empty ones."""
    if value.shape[0] != count:
        raise InvalidArgument(
            f"{name} has {value.shape[0]} matrices and {other} has {count}; they must be as many",
            field=name,
        )
    if 0 in tuple(value.shape):
        raise InvalidArgument(
            f"{name} has shape {tuple(value.shape)}; every dimension must be at least 1",
            field=name,
        )


def unstack(result: Any, count: int, out: Any) -> Any:
    """The result in three dimensions."""
    if out is not None:
        return out
    lines, cols = result.shape
    return result.reshape(count, lines // count, cols)
