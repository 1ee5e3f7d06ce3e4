"""Products that differ in one dimension: a group, whose matrices lie in one.

Which dimension it is shows in those of the operands, as in `torch._grouped_mm`. What each
product has of it are the group sizes of `jax.lax.ragged_dot`.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import batches, operands
from .contract import pb
from .errors import InvalidArgument, InvalidType, Unimplemented
from .handle import Handle, TransposedHandle
from .operands import Shape
from .product import Options, write_shared

_OF_EACH = "a matrix of each product"
_ROW, _COLUMN = pb.LAYOUT_ROW_MAJOR, pb.LAYOUT_COLUMN_MAJOR


@dataclass(frozen=True)
class Group:
    """The products' extents in the dimension `by`, and the names of the operands they share."""

    by: str
    sizes: tuple[int, ...]
    shared: frozenset[str]

    @property
    def count(self) -> int:
        return len(self.sizes)

    @property
    def layout(self) -> int:
        return _COLUMN if self.by == "n" else _ROW

    def layouts(self, options: Options) -> tuple[int, int]:
        """The orders of a and b in which the dimension is their lines."""
        a = _COLUMN if (self.by == "k") != bool(options.transpose_a) else _ROW
        b = _COLUMN if (self.by == "n") != bool(options.transpose_b) else _ROW
        return (_ROW if self.by == "n" else a), (_ROW if self.by == "m" else b)

    def of_one(self, shape: Shape, name: str) -> Shape:
        """One product's part of an operand that has not the dimension, else all of it."""
        if self.by != {"a": "n", "b": "m"}[name]:
            return shape
        row_major = shape.layout == _ROW
        lines, over = divmod(shape.rows if row_major else shape.cols, self.count)
        if over != 0:
            raise InvalidArgument(
                f"{name} is {shape}; with {self.count} products its "
                f"{'rows' if row_major else 'columns'} must be a multiple of that",
                field=name,
            )
        return shape._replace(rows=lines) if row_major else shape._replace(cols=lines)

    def times(self, name: str) -> int:
        """How many matrices an addend or the result has, of one product's size or of the sum."""
        per_product = self.by == "k" if name in ("c", "d") else self.by != "n"
        return self.count if per_product and name not in self.shared else 1

    def write(self, proto: pb.Product, limits: Any, result: Shape, inner: int) -> None:
        """Says what the sizes are; `result` and `inner` have the sum of them."""
        most = limits.max_group_count
        if most == 0:  # it would leave the field out, and multiply the stacked matrices
            raise Unimplemented("the server takes no groups", field="group_sizes")
        if self.count > most:
            raise InvalidArgument(
                f"group_sizes has {self.count} sizes; it may have {most}", field="group_sizes"
            )
        summed = {"m": result.rows, "n": result.cols, "k": inner}[self.by]
        if sum(self.sizes) != summed:
            what = {"m": "op(a) has {} rows", "n": "op(b) has {} columns",
                    "k": "op(a) has {} columns"}[self.by]  # fmt: skip
            raise InvalidArgument(
                f"group_sizes sum to {sum(self.sizes)} and {what.format(summed)}; "
                "they must be the same",
                field="group_sizes",
            )
        for size in self.sizes:
            one = {"m": result.rows, "n": result.cols, "k": inner, self.by: size}
            proto.group.add(**one)
        write_shared(proto, self.shared)


def _sizes(group_sizes: Any) -> tuple[int, ...]:
    if isinstance(group_sizes, (str, bytes)) or not isinstance(group_sizes, Iterable):
        raise InvalidType(
            f"group_sizes is a {type(group_sizes).__name__}; it must be a sequence of integers",
            field="group_sizes",
        )
    given = group_sizes.tolist() if hasattr(group_sizes, "tolist") else list(group_sizes)
    if not given:
        raise InvalidArgument("group_sizes is empty; it must have a size", field="group_sizes")
    sizes = []
    for place, size in enumerate(given):
        try:
            sizes.append(operator.index(size))
        except TypeError:
            raise InvalidType(
                f"group_sizes[{place}] is {size!r}; it must be an integer", field="group_sizes"
            ) from None
        if not 0 <= sizes[-1] <= 2**48:
            raise InvalidArgument(
                f"group_sizes[{place}] is {size}; it must be from 0 to 2^48", field="group_sizes"
            )
    return tuple(sizes)


def _by(a: Any, b: Any, by: str | None) -> str:
    """The dimension, by the dimensions of the operands where the caller leaves it open."""
    for name, value in (("a", a), ("b", b)):
        batches.check_ndim(value, name, _OF_EACH)
    three = batches.ndim(a) == 3, batches.ndim(b) == 3
    if three == (True, True):
        raise InvalidArgument(
            "a and b have three dimensions: that is a batch of one size, for matmul", field="b"
        )
    seen = {(False, True): "m", (True, False): "n"}.get(three)
    if by is None:
        if seen is None and any(isinstance(x, (Handle, TransposedHandle)) for x in (a, b)):
            raise InvalidArgument(
                'by is left out, and a handle has two dimensions in any case: give by="m", "n" '
                'or "k"',
                field="by",
            )
        return seen or "k"
    if by not in ("m", "n", "k"):
        raise InvalidArgument(f"by is {by!r}; it must be 'm', 'n' or 'k'", field="by")
    if seen is not None and by != seen:
        raise InvalidArgument(
            f"by is {by!r}, but {'b' if seen == 'm' else 'a'} has three dimensions, as for "
            f"{seen!r}",
            field="by",
        )
    name, value = {"m": ("b", b), "n": ("a", a)}.get(by, ("", None))
    if seen is None and name and not isinstance(value, (Handle, TransposedHandle)):
        raise InvalidArgument(
            f"by is {by!r} and {name} has shape {tuple(getattr(value, 'shape', ()))}; it must have "
            "three dimensions, a matrix for each product, or be a handle of their rows",
            field=name,
        )
    return by


def stack(
    a: Any, b: Any, group_sizes: Any, by: str | None, options: Options
) -> tuple[Any, Any, Options, Group]:
    """The operands and options with stacked matrices. Errors name the operand."""
    sizes = _sizes(group_sizes)
    by = _by(a, b, by)
    three = {"m": ("b",), "n": ("a",), "k": ("c",)}[by]
    flat = {"a": a, "b": b, "c": options.c}
    for name, value in flat.items():
        if name in three:
            batches.check_ndim(value, name, _OF_EACH)
        if batches.ndim(value) != 3:
            continue
        if name not in three:
            raise InvalidArgument(
                f"{name} has shape {tuple(value.shape)}; it must have two dimensions", field=name
            )
        operands.check_kind(value, name)
        batches.check_matrices(value, name, len(sizes), "group_sizes")
        flat[name] = batches.stacked(value)
    shared = set()
    if by == "k" and options.c is not None and batches.ndim(options.c) == 2:
        shared.add("c")
    if by != "n" and options.bias is not None and batches.rows(options.bias) == 1:
        shared.add("bias")
    changes: dict[str, Any] = {"c": flat["c"]}
    if by == "k" and options.out is not None:
        batches.check_out(options.out, len(sizes))
        changes["out"] = batches.stacked(options.out)
    options = dataclasses.replace(options, **changes)
    return flat["a"], flat["b"], options, Group(by, sizes, frozenset(shared))


def unstack(result: Any, group: Group, out: Any) -> Any:
    """By k a matrix for each product, else the result as it is."""
    return batches.unstack(result, group.count, out) if group.by == "k" else result
