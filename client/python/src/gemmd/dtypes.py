"""Element types: the contract's, numpy's and torch's names for the same thing."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from .contract import pb
from .errors import InvalidType

# The contract's number, its short name, numpy's and torch's.
_ROWS: tuple[tuple[int, str, str, str], ...] = (
    (pb.DATA_TYPE_F64, "f64", "float64", "float64"),
    (pb.DATA_TYPE_F32, "f32", "float32", "float32"),
    (pb.DATA_TYPE_F16, "f16", "float16", "float16"),
    (pb.DATA_TYPE_BF16, "bf16", "bfloat16", "bfloat16"),
    (pb.DATA_TYPE_F8E4M3, "e4m3", "float8_e4m3fn", "float8_e4m3fn"),
    (pb.DATA_TYPE_F8E5M2, "e5m2", "float8_e5m2", "float8_e5m2"),
    (pb.DATA_TYPE_S8, "s8", "int8", "int8"),
    (pb.DATA_TYPE_S32, "s32", "int32", "int32"),
)
_SHORT = {number: short for number, short, _, _ in _ROWS}
_NUMPY_NAME = {number: name for number, _, name, _ in _ROWS}
_TORCH_NAME = {number: name for number, _, _, name in _ROWS}
_BY_NAME = {name: row[0] for row in _ROWS for name in row[1:]}
_ITEMSIZE = {
    number: {"f64": 8, "f32": 4, "s32": 4, "f16": 2, "bf16": 2}.get(short, 1)
    for number, short, _, _ in _ROWS
}
_BIT_TYPES = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
# numpy's own types; the others are of ml_dtypes.
_PLAIN = {"float64", "float32", "float16", "int8", "int32"}

#: numpy's names of the types that are multiplied.
OPERANDS = frozenset(_NUMPY_NAME.values()) - {"int32"}
SHORT_NAMES = tuple(_SHORT.values())
ALLOWED = ", ".join(row[2] for row in _ROWS)


def itemsize(number: int) -> int:
    """Bytes of an element."""
    return _ITEMSIZE[number]


def short_name(number: int) -> str:
    """Such as "f32"; "?" for a type that this package does not know."""
    return _SHORT.get(number, "?")


def bits(number: int) -> np.dtype[Any]:
    """The unsigned integer as wide as an element."""
    return _BIT_TYPES[_ITEMSIZE[number]]


@functools.lru_cache(64)  # a dtype's name is put together anew whenever it is asked for
def number_of(dtype: np.dtype[Any]) -> int | None:
    """The contract's number of a numpy type; None where it has none."""
    return _BY_NAME.get(dtype.name)


def of_numpy(dtype: np.dtype[Any], field: str) -> int:
    """The contract's number of a numpy type. InvalidType names the field."""
    number = number_of(dtype)
    if number is None:
        how = (
            f"multiply {field}.real and {field}.imag apart"
            if dtype.kind == "c"
            else f"give {field}.astype(np.float64), or another of them"
        )
        raise InvalidType(
            f"{field} has dtype {dtype}; it must be one of {ALLOWED}: {how}", field=field
        )
    return number


def of_torch(dtype: Any, field: str) -> int:
    """The contract's number of a torch type. InvalidType names the field."""
    number = _BY_NAME.get(str(dtype).removeprefix("torch."))
    if number is None:
        raise InvalidType(
            f"{field} has dtype {dtype}; it must be one of {ALLOWED}: give {field}.to(...)",
            field=field,
        )
    return number


def parse(value: Any, field: str) -> int:
    """A type as a caller may give it: "f16", "float16", numpy.float16, torch.float16."""
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.dtype):
        return of_torch(value, field)
    try:
        return of_numpy(np.dtype(value), field)
    except TypeError:
        raise InvalidType(
            f"{field} is {value!r}; it must be one of {ALLOWED}", field=field
        ) from None


def to_name(number: int) -> str:
    """numpy's name."""
    return _NUMPY_NAME[number]


@functools.cache
def to_numpy(number: int) -> np.dtype[Any]:
    """The numpy type; of ml_dtypes for bf16 and fp8."""
    name = _NUMPY_NAME[number]
    if name in _PLAIN:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise InvalidType(
            f"a numpy array of {name} needs the package ml_dtypes: pip install ml_dtypes"
        ) from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def to_torch(number: int) -> Any:
    """The torch type."""
    import torch

    return getattr(torch, _TORCH_NAME[number])
