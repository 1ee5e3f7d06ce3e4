"""numpy's rules for the shapes of a product: vectors, broadcasting and empty matrices.

The server multiplies two matrices, or a batch of them that are stacked in one. So a vector becomes
a row or a column, the dimensions before the last two become a batch, and a dimension of 0 becomes
one of 1 with zeros: `Ending` makes what numpy gives of the result.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import batches, dtypes, operands, product, promotion, results
from .batches import Batch
from .errors import InvalidArgument
from .handle import Owner
from .product import Options, Plan
from .promotion import is_handle

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Ending:
    """What the caller gets of a result that the server gave."""

    #: The result's, without dimensions of 0; of numpy's result before vectors are taken out; and of
    #: that.
    sent: Dims
    full: Dims
    shape: Dims
    #: numpy's type, where it is not the result's.
    dtype: npt.DTypeLike
    out: Any
    #: It was received into `out`.
    in_place: bool

    def __call__(self, result: Any) -> Any:
        if self.in_place:
            return self.out
        if self.sent != tuple(result.shape):
            result = result.reshape(self.sent)
        if self.full != self.sent:
            result = result[tuple(slice(0, size) for size in self.full)]
        if self.shape != self.full:
            result = result.reshape(self.shape)
        if self.dtype is not None:
            result = _as_type(result, np.dtype(self.dtype))
        if self.out is not None:
            if operands.is_torch(self.out):
                self.out.copy_(result)
            else:
                self.out[...] = result
            return self.out
        return result if self.shape or operands.is_torch(result) else result[()]


    def check_kept(self) -> None:
        """InvalidArgument where the server's matrix would not be numpy's result."""
        if len(self.shape) < 2 or self.full != self.sent or self.dtype is not None:
            what = "of integers" if self.dtype is not None else f"of shape {self.shape}"
            raise InvalidArgument(
                f"the result is {what}; what stays on the server has two dimensions of at least 1, "
                "and floats: give a vector as v[None, :] or v[:, None], and integers as "
                ".astype(...)",
                field="keep",
            )


def _as_type(result: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return result != 0
    if dtype.kind in "iu":  # wrapped, where floats would be out of bounds
        return result.astype(np.int64).astype(dtype)
    return result.astype(dtype)


def _taken(value: Any, name: str) -> Any:
    """A handle, a tensor or an array, of one dimension at least."""
    if is_handle(value):
        return value
    operands.check_kind(value, name)
    if not operands.is_torch(value):
        value = operands.array(value, name)
    if value.ndim == 0:
        raise InvalidArgument(
            f"{name} is a scalar; it must have one dimension or more: multiply with * instead",
            field=name,
        )
    return value


def _expanded(value: Any, shape: Dims) -> Any:
    return value.expand(shape) if operands.is_torch(value) else np.broadcast_to(value, shape)


def _fits(shape: Dims, wanted: Dims) -> bool:
    """Whether an array of `shape` is broadcast to `wanted`."""
    padded = (1,) * (len(wanted) - len(shape)) + shape
    return len(shape) <= len(wanted) and all(x in (1, y) for x, y in zip(padded, wanted))


def _without_zeros(shape: Dims) -> Dims:
    return tuple(max(1, size) for size in shape)


def _filled(value: Any) -> Any:
    """Zeros, with dimensions of 1 in place of 0."""
    if is_handle(value) or 0 not in tuple(value.shape):
        return value
    shape = _without_zeros(tuple(value.shape))
    return value.new_zeros(shape) if operands.is_torch(value) else np.zeros(shape, value.dtype)


def _stacked(value: Any, lead: Dims) -> tuple[Any, bool]:
    """A batch's matrices in one, and whether they are transposed: as they lie, where they can."""
    value = _expanded(value, (*lead, *value.shape[-2:]))
    turned = value.swapaxes(-1, -2)
    if operands.is_torch(value):
        dense, dense_turned = value.is_contiguous(), turned.is_contiguous()
    else:
        dense, dense_turned = value.flags.c_contiguous, turned.flags.c_contiguous
    if not dense and dense_turned:
        return turned.reshape(-1, turned.shape[-1]), True
    return value.reshape(-1, value.shape[-1]), False


def _is_plain(a: Any, b: Any, options: Options) -> bool:
    """Whether it is a product of two matrices, as the server has it, and nothing else."""
    if options.c is not None or options.bias is not None or options.out is not None:
        return False
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.ndim != 2 or b.ndim != 2:
        return False
    number = dtypes.number_of(a.dtype)
    return (
        a.size > 0
        and b.size > 0
        and number is not None
        and number == dtypes.number_of(b.dtype)
        and dtypes.to_name(number) in dtypes.OPERANDS
    )


def prepare(
    a: Any, b: Any, options: Options
) -> tuple[Any, Any, Options, Batch | None, Ending | None]:
    """Operands and options for `product.make`, and how its result becomes numpy's.

    Errors name the operand and its shape or type.
    """
    if _is_plain(a, b, options):
        return a, b, options, None, None
    a, b = _taken(a, "a"), _taken(b, "b")
    a, b, options, dtype = promotion.unify(a, b, options)
    return _Shapes(a, b, options, dtype).prepared()


def plan(client: Owner, a: Any, b: Any, options: Options) -> Plan:
    """The plan of a product by numpy's rules."""
    a, b, options, batch, ending = prepare(a, b, options)
    made = product.make(client, a, b, options, batch)
    made.ending = ending
    return made


class _Shapes:
    def __init__(self, a: Any, b: Any, options: Options, dtype: npt.DTypeLike) -> None:
        """dtype: of numpy's result, where that is made of the server's."""
        self.dtype = dtype
        self.of_vectors = batches.ndim(a) == 1, batches.ndim(b) == 1
        if self.of_vectors[0]:  # whose transpose is itself
            a, options = a[None, :], dataclasses.replace(options, transpose_a=False)
        if self.of_vectors[1]:
            b, options = b[:, None], dataclasses.replace(options, transpose_b=False)
        self.a, self.b, self.options = a, b, options
        rows, inner = _op(a, options.transpose_a)
        inner_b, cols = _op(b, options.transpose_b)
        if inner != inner_b:
            raise InvalidArgument(
                f"op(a) has {inner} columns and op(b) has {inner_b} rows; they must be the same",
                field="b",
            )
        try:
            self.lead: Dims = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
        except ValueError:
            raise InvalidArgument(
                f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}; the dimensions before the "
                "last two must be the same, or 1",
                field="b",
            ) from None
        self.full: Dims = (*self.lead, rows, cols)
        #: numpy's result has it.
        self.shape: Dims = (
            *self.lead, *(() if self.of_vectors[0] else (rows,)),
            *(() if self.of_vectors[1] else (cols,)),
        )  # fmt: skip
        self.sent = _without_zeros(self.full)
        self.count = math.prod(self.sent[:-2])

    def prepared(self) -> tuple[Any, Any, Options, Batch | None, Ending | None]:
        options = self.options
        number = self._result_type()
        shared: set[str] = set()
        changes: dict[str, Any] = {}
        for name, value in (("a", self.a), ("b", self.b)):
            value = _filled(value)
            lead = tuple(value.shape[:-2])
            if math.prod(lead) == 1:
                shared.add(name)
                changes[name] = value.reshape(value.shape[-2:]) if lead else value
                continue
            changes[name], turned = _stacked(value, self.sent[:-2])
            if turned:
                flag = f"transpose_{name}"
                changes[flag] = not getattr(options, flag)
        self._addends(number, shared, changes)
        a, b = changes.pop("a"), changes.pop("b")
        out, in_place = self._out(number)
        changes["out"] = out
        stack = Batch(self.count, frozenset(shared)) if self.count > 1 else None
        ending = Ending(self.sent, self.full, self.shape, self.dtype, options.out, in_place)
        return a, b, dataclasses.replace(options, **changes), stack, ending

    def _result_type(self) -> int:
        """Of the server's result."""
        a, options = self.a, self.options
        number = (
            dtypes.parse(a.dtype, "dtype") if is_handle(a) or operands.is_torch(a)
            else dtypes.of_numpy(a.dtype, "a")
        )  # fmt: skip
        natural = product.natural(number)
        if options.dtype is not None:
            return dtypes.parse(options.dtype, "dtype")
        if options.out is None or self.dtype is not None:
            return natural
        results.check_out(options.out)
        wanted = results.dtype_of(options.out)
        return wanted if wanted in product.outputs(number) else natural

    def _addends(self, number: int, shared: set[str], changes: dict[str, Any]) -> None:
        """c and the bias, broadcast to the result. A bias that is no row becomes c."""
        options = self.options
        if options.c is not None:
            c = options.c if is_handle(options.c) else self._broadcast("c", options.c, number)
            changes["c"] = self._addend(c, shared)
        bias = options.bias
        if bias is None:
            return
        if is_handle(bias):
            if bias.shape[0] == 1:
                shared.add("bias")
            return
        bias = self._broadcast("bias", bias, number)
        shape = tuple(bias.shape)
        if shape[-2:-1] not in ((), (1,)):
            if options.c is not None:
                raise InvalidArgument(
                    f"bias has shape {shape}, which is no row for all rows of the result, and c is "
                    "given too; add the two before",
                    field="bias",
                )
            changes["c"], changes["bias"] = self._addend(bias, shared), None
            return
        lead = shape[:-2]
        if math.prod(lead) == 1:
            shared.add("bias")
            lead = ()
        else:
            lead = self.sent[:-2]
        changes["bias"] = _expanded(bias, (*lead, 1, self.sent[-1])).reshape(-1, self.sent[-1])

    def _broadcast(self, name: str, value: Any, number: int) -> Any:
        """In the result's type, with rows and columns where the result has them, and no zeros."""
        operands.check_kind(value, name)
        if not operands.is_torch(value):
            value = promotion.addend(operands.array(value, name), name, number)
        if not _fits(tuple(value.shape), self.shape):
            raise InvalidArgument(
                f"{name} has shape {tuple(value.shape)}; it must have the result's, {self.shape}, "
                "or broadcast to it",
                field=name,
            )
        row, column = self.of_vectors
        if column:
            value = value.reshape((*value.shape, 1))
        if row and value.ndim > 1:
            value = value.reshape((*value.shape[:-1], 1, value.shape[-1]))
        return _filled(value)

    def _addend(self, value: Any, shared: set[str]) -> Any:
        """c: one for all products, or one for each."""
        if is_handle(value):
            shared.add("c")
            return value
        if tuple(value.shape) == self.sent and self.count == 1:
            return value.reshape(self.sent[-2:]) if self.lead else value
        lead = tuple(value.shape[:-2])
        if math.prod(lead) == 1:
            shared.add("c")
            value = value.reshape(value.shape[len(lead) :])
            lead = ()
        else:
            lead = self.sent[:-2]
        value = _expanded(value, (*lead, *self.sent[-2:]))
        if not operands.is_torch(value):
            value = np.ascontiguousarray(value)
        return value.reshape(-1, self.sent[-1])

    def _out(self, number: int) -> tuple[Any, bool]:
        """Where the server's result is received, and whether that is the caller's `out`."""
        out = self.options.out
        if out is None:
            return None, False
        results.check_out(out)
        if tuple(out.shape) != self.shape:
            raise InvalidArgument(
                f"out has shape {tuple(out.shape)}; the result has {self.shape}", field="out"
            )
        if self.dtype is not None or results.dtype_of(out) != number:
            promotion.check_out(out, self.dtype or dtypes.to_numpy(number), self.options.dtype)
            return None, False
        if 0 in self.full:
            return None, False
        if len(self.full) == 2:
            row, column = self.of_vectors
            view = out.reshape(1, 1) if row and column else out
            if row != column:
                view = out[None, :] if row else out[:, None]
            return view, True
        dense = out.is_contiguous() if operands.is_torch(out) else out.flags.c_contiguous
        return (out.reshape(-1, self.sent[-1]), True) if dense else (None, False)


def _op(value: Any, transpose: bool) -> tuple[int, int]:
    rows, cols = value.shape[-2:]
    return (cols, rows) if transpose else (rows, cols)
