"""What a caller hands over as a matrix, as the dense lines that the wire has.

A line is a row of a row-major matrix or a column of a column-major one. An array that is
contiguous in one of these orders is sent from its own memory. Any other is gathered piece by
piece as it is sent, so that no copy of the whole array is ever made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import dtypes
from .contract import pb
from .errors import InvalidArgument, InvalidType

Buffer = memoryview | bytes


class Shape(NamedTuple):
    """Shape, type and storage order of a matrix."""

    rows: int
    cols: int
    dtype: int
    layout: int = pb.LAYOUT_ROW_MAJOR

    @property
    def nbytes(self) -> int:
        return self.rows * self.cols * dtypes.itemsize(self.dtype)

    def write(self, proto: pb.MatrixShape) -> None:
        """Into a message's field, without a message between them."""
        proto.rows = self.rows
        proto.cols = self.cols
        proto.dtype = self.dtype  # type: ignore[assignment]
        proto.layout = self.layout  # type: ignore[assignment]

    def to_proto(self) -> pb.MatrixShape:
        return pb.MatrixShape(rows=self.rows, cols=self.cols, dtype=self.dtype, layout=self.layout)  # type: ignore[arg-type]

    @staticmethod
    def of(proto: pb.MatrixShape) -> Shape:
        layout = proto.layout or pb.LAYOUT_ROW_MAJOR
        return Shape(proto.rows, proto.cols, proto.dtype, layout)

    def __str__(self) -> str:
        order = "column" if self.layout == pb.LAYOUT_COLUMN_MAJOR else "row"
        return f"{self.rows} x {self.cols} {dtypes.short_name(self.dtype)} {order}-major"


class HostMatrix:
    """A matrix in this process's memory: read only, and not changed while a call runs."""

    __slots__ = ("_dense", "_lines", "kind", "nbytes", "owner", "shape")

    def __init__(self, lines: npt.NDArray[Any], shape: Shape, kind: str, owner: Any) -> None:
        self._lines = lines
        self.shape = shape
        self.nbytes = lines.nbytes
        #: "numpy" or "torch".
        self.kind = kind
        #: The caller's own object.
        self.owner = owner
        self._dense: memoryview | None = None
        if lines.flags.c_contiguous:
            self._dense = lines.data.cast("B")

    @property
    def dense(self) -> bool:
        """Whether the elements are sent from where they lie."""
        return self._dense is not None

    def may_share(self, lines: npt.NDArray[Any]) -> bool:
        """Whether bytes written to `lines` may be read as elements of this matrix."""
        return np.may_share_memory(self._lines, lines)

    def piece(self, start: int, end: int) -> Buffer:
        """Bytes [start, end) of the dense lines, both multiples of the element's size."""
        if self._dense is not None:
            return self._dense[start:end]
        line = self._lines.shape[1] * self._lines.itemsize
        first, last = start // line, (end - 1) // line
        if first == last:
            size = self._lines.itemsize
            return self._lines[
                first, (start - first * line) // size : (end - first * line) // size
            ].tobytes()
        whole = memoryview(self._lines[first : last + 1].tobytes())
        return whole[start - first * line : end - first * line]

    def pieces(self, start: int, end: int, chunk: int) -> Iterator[tuple[int, Buffer]]:
        """The offsets and bytes of the chunks of [start, end)."""
        for offset in range(start, end, chunk):
            yield offset, self.piece(offset, min(offset + chunk, end))


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def copied(value: Any) -> bool:
    """Whether `take` makes a copy of the elements, or an array of what is none."""
    if is_torch(value):
        return bool(value.device.type != "cpu" or value.is_neg())
    return not isinstance(value, np.ndarray) or not value.dtype.isnative


def check_kind(value: Any, field: str) -> None:
    """InvalidType where the elements of an array or tensor do not say all, or are not there."""
    if is_torch(value):
        import torch

        if value.layout != torch.strided or value.is_nested:
            kind = "is nested" if value.is_nested else f"has the layout {value.layout}"
            raise InvalidType(f"{field} {kind}; it must be a strided tensor", field=field)
        if value.device.type == "meta":
            raise InvalidType(
                f"{field} is on the device meta, where tensors have no elements", field=field
            )
    elif isinstance(value, np.ma.MaskedArray):
        raise InvalidType(
            f"{field} is a masked array, and the server knows no masks: give {field}.filled(...), "
            f"or {field}.data",
            field=field,
        )


def check_no_tangent(tensor: Any, field: str, name: str | None = None) -> None:
    """InvalidArgument where torch's forward mode would lose a derivative.

    As in torch, inference mode has none, and `no_grad` changes nothing. name: in the sentence.
    """
    import torch
    from torch.autograd import forward_ad

    if torch.is_inference_mode_enabled() or forward_ad.unpack_dual(tensor).tangent is None:
        return
    raise InvalidArgument(
        f"{name or field} has a tangent of torch's forward mode, and none flows through the server: "
        "give the primal of torch.autograd.forward_ad.unpack_dual",
        field=field,
    )


def _bits_of_torch(tensor: Any, field: str) -> tuple[npt.NDArray[Any], int]:
    import torch

    number = dtypes.of_torch(tensor.dtype, field)
    if tensor.requires_grad and torch.is_grad_enabled():
        raise InvalidArgument(
            f"{field} requires a gradient, and none flows through the server: "
            f"use torch.no_grad() or {field}.detach()",
            field=field,
        )
    check_no_tangent(tensor, field)
    tensor = tensor.detach().resolve_neg().cpu()
    views = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    try:
        array: npt.NDArray[Any] = tensor.view(views[dtypes.itemsize(number)]).numpy()
    except RuntimeError as error:
        raise InvalidType(
            f"{field} has no elements that can be sent, as tensors within torch.func.jvp or "
            f"torch.vmap: {error}",
            field=field,
        ) from None
    return array.view(dtypes.bits(number)), number


def array(value: Any, field: str) -> npt.NDArray[Any]:
    """A numpy array of what is none, such as a list. InvalidType names the field."""
    if not isinstance(value, np.ndarray):
        if isinstance(value, (str, bytes, bytearray)) or value is None:
            raise InvalidType(
                f"{field} is a {type(value).__name__}; it must be a matrix: a numpy array, "
                "a torch tensor or a handle",
                field=field,
            )
        try:
            value = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise InvalidType(
                f"{field} is a {type(value).__name__}, of which numpy makes no array: {error}",
                field=field,
            ) from None
    return value  # type: ignore[no-any-return]


def _bits_of_numpy(value: Any, field: str) -> tuple[npt.NDArray[Any], int]:
    value = array(value, field)
    number = dtypes.of_numpy(value.dtype, field)
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    return value.view(dtypes.bits(number), np.ndarray), number


def take(value: Any, field: str, *, layout: int | None = None, bias: bool = False) -> HostMatrix:
    """The matrix that a caller handed over as `field`.

    With `layout`, its lines are of that order; otherwise of the order in which they lie. A
    bias may have one dimension. InvalidArgument and InvalidType name the field.
    """
    check_kind(value, field)
    torch_kind = is_torch(value)
    array, number = (_bits_of_torch if torch_kind else _bits_of_numpy)(value, field)
    if bias and array.ndim == 1:
        array = array[np.newaxis, :]
    if array.ndim != 2:
        wanted = "one dimension or two" if bias else "two dimensions"
        raise InvalidArgument(
            f"{field} has shape {tuple(array.shape)}; it must have {wanted}", field=field
        )
    rows, cols = array.shape
    if rows == 0 or cols == 0:
        raise InvalidArgument(
            f"{field} has shape {(rows, cols)}; both dimensions must be at least 1", field=field
        )
    if bias or layout == pb.LAYOUT_ROW_MAJOR:
        column = False
    elif layout == pb.LAYOUT_COLUMN_MAJOR:
        column = True
    elif array.flags.c_contiguous:
        column = False
    else:
        column = array.flags.f_contiguous or abs(array.strides[0]) < abs(array.strides[1])
    shape = Shape(rows, cols, number, pb.LAYOUT_COLUMN_MAJOR if column else pb.LAYOUT_ROW_MAJOR)
    kind = "torch" if torch_kind else "numpy"
    return HostMatrix(array.T if column else array, shape, kind, value)
