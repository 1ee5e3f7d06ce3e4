"""The memory that a result is received into, and what the caller gets back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import dtypes
from .contract import pb
from .errors import InvalidArgument, InvalidType
from .operands import HostMatrix, Shape, check_kind, check_no_tangent, copied, is_torch


def layout_of(value: Any) -> int | None:
    """The storage order of a caller's `out`; None where it is not contiguous in one."""
    if is_torch(value):
        if value.is_contiguous():
            return pb.LAYOUT_ROW_MAJOR
        return pb.LAYOUT_COLUMN_MAJOR if value.t().is_contiguous() else None
    if value.flags.c_contiguous:
        return pb.LAYOUT_ROW_MAJOR
    return pb.LAYOUT_COLUMN_MAJOR if value.flags.f_contiguous else None


def check_out(out: Any) -> None:
    """InvalidType or InvalidArgument where no result can be received into `out`."""
    check_kind(out, "out")
    if is_torch(out):
        dtypes.of_torch(out.dtype, "out")
        if out.requires_grad:
            raise InvalidArgument("out requires a gradient; it must be a plain tensor", field="out")
        check_no_tangent(out, "out")
        strides, itemsize = out.stride(), 1
    elif isinstance(out, np.ndarray):
        if out.dtype.kind not in "biu":  # those get the result of a product of integers
            dtypes.of_numpy(out.dtype, "out")
        if not out.flags.writeable:
            raise InvalidArgument("out is read-only; it must be writable", field="out")
        strides, itemsize = out.strides, out.itemsize
    else:
        raise InvalidType(
            f"out is a {type(out).__name__}; it must be a numpy array or a torch tensor",
            field="out",
        )
    if _overlaps(out.shape, strides, itemsize):
        raise InvalidArgument(
            f"out has shape {tuple(out.shape)} and strides {tuple(strides)}, where elements share "
            "memory; each must have its own",
            field="out",
        )


def _overlaps(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether two elements have memory in common; strides and itemsize in one unit.

    Also where they lie between one another without that, which nobody's arrays do.
    """
    if 0 in shape:
        return False
    reach = itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(strides, shape)):
        if size > 1 and stride < reach:
            return True
        reach += stride * (size - 1)
    return False


def dtype_of(out: Any) -> int | None:
    """The contract's number of a type; None for numpy's other integers."""
    if is_torch(out):
        return dtypes.of_torch(out.dtype, "out")
    return dtypes.number_of(out.dtype)


def _bits(value: Any, number: int) -> npt.NDArray[Any]:
    """The elements as unsigned integers, in the same memory."""
    if is_torch(value):
        import torch

        views = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        array: npt.NDArray[Any] = value.detach().view(views[dtypes.itemsize(number)]).numpy()
        return array.view(dtypes.bits(number))
    return np.asarray(value).view(dtypes.bits(number))


def _allocate(shape: Shape, kind: str) -> tuple[Any, npt.NDArray[Any]]:
    """A matrix, and its lines as unsigned integers in the same memory."""
    column = shape.layout == pb.LAYOUT_COLUMN_MAJOR
    size = (shape.cols, shape.rows) if column else (shape.rows, shape.cols)
    if kind == "torch":
        import torch

        tensor = torch.empty(size, dtype=dtypes.to_torch(shape.dtype))
        return (tensor.t() if column else tensor), _bits(tensor, shape.dtype)
    lines = np.empty(size, dtypes.bits(shape.dtype))
    array = lines.view(dtypes.to_numpy(shape.dtype))
    return (array.T if column else array), lines


class Target:
    """Memory for one result, and the object to give to the caller when it has arrived.

    Received in place where `out` is contiguous, its bytes are of this machine, and none of `sent`
    may share them: another attempt reads the operands again. Otherwise received beside it, with one
    copy at the end.
    """

    __slots__ = ("_final", "_received", "memory")

    def __init__(
        self,
        shape: Shape,
        kind: str,
        out: Any = None,
        device: Any = None,
        sent: Sequence[HostMatrix] = (),
    ) -> None:
        self._final = out
        if out is None:
            self._received, lines = _allocate(shape, kind)
            if device is not None and device.type != "cpu":
                self._final = device
        else:
            self._check(out, shape)
            as_stored = not copied(out)  # no other machine's or device's bytes
            in_place = as_stored and layout_of(out) == shape.layout
            kind = "torch" if is_torch(out) else "numpy"
            if in_place:
                self._received, lines = out, _bits(out, shape.dtype)
                in_place = not any(matrix.may_share(lines) for matrix in sent)
                if shape.layout == pb.LAYOUT_COLUMN_MAJOR:
                    lines = lines.T
            if not in_place:
                self._received, lines = _allocate(shape, kind)
        #: The dense bytes to receive into.
        self.memory: memoryview = lines.data.cast("B")

    @staticmethod
    def _check(out: Any, shape: Shape) -> None:
        if tuple(out.shape) != (shape.rows, shape.cols):
            raise InvalidArgument(
                f"out has shape {tuple(out.shape)}; the result has {(shape.rows, shape.cols)}",
                field="out",
            )
        if dtype_of(out) != shape.dtype:
            raise InvalidType(
                f"out has dtype {out.dtype}; the result has {dtypes.short_name(shape.dtype)}",
                field="out",
            )

    def finish(self) -> Any:
        """What the caller gets, once `memory` is full."""
        result = self._received
        final = self._final
        if final is not None and final is not result:
            if is_torch(final):
                final.copy_(result)
                result = final
            elif isinstance(final, np.ndarray):
                final[...] = result
                result = final
            else:
                result = result.to(final)
        return result
