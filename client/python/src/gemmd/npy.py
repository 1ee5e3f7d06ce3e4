"""Reads and writes .npy files, also those with types that numpy does not know: bf16 and fp8.

numpy's own reader refuses what ml_dtypes writes for e5m2, and does not say which file is wrong.

`gemmctl` reads the same files with these types: <f8, <f4, <f2, |i1, <i4, <V2 (bf16), <f1 (e5m2) and
<V1 (which e4m3 shares with others, so that it has to be said), also with = or | or without an order; big-endian >f8, >f4, >f2 and >i4; and of them
matrices, (n,) as 1 x n and () as 1 x 1. Two things are read here and by numpy alone: a type by its
other names, such as float32 or <d, and what Python's own syntax allows in the header beside that
of numpy, such as a comment, or u'descr'.
"""

from __future__ import annotations

import ast
import math
import os
import stat
import struct
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from . import dtypes
from .errors import InvalidArgument, InvalidType
from .output import Output

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 64 << 10
_KEYS = ("descr", "fortran_order", "shape")
# How ml_dtypes and gemmctl write types that numpy has no name for, without the byte order.
# ml_dtypes writes V1 for a dozen types of one byte.
_OTHERS = {"V2": "bf16", "V1": "e4m3", "f1": "e5m2"}


def read(path: str, dtype: str | None = None) -> npt.NDArray[Any]:
    """The array of a file, which is mapped. Errors name the file.

    dtype: the type of the elements, where the file leaves it open.
    """
    try:
        # A FIFO is opened without waiting for its writer, so that it can be refused.
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            return _array(file, dtype)
    except InvalidArgument as error:
        raise type(error)(f"{path}: {error}", field=error.field) from None


def write(file: Output, array: npt.NDArray[Any]) -> None:
    """Also into a pipe, in which numpy would seek if it saw the descriptor."""
    np.save(_Writer(file.write), array, allow_pickle=False)


class _Writer(NamedTuple):
    write: Callable[[bytes], int]


def _array(file: BinaryIO, dtype: str | None) -> npt.NDArray[Any]:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise InvalidArgument("not a regular file, and a .npy file must be one")
    header = _header(file)
    descr, order, shape = (header[key] for key in _KEYS)
    kind = _type(descr, dtype)
    if not isinstance(order, bool):
        raise InvalidArgument(f"fortran_order is {order!r}; it must be True or False")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 1 for n in shape):
        raise InvalidArgument(f"shape is {shape}; it must be a tuple of integers of at least 1")
    begin, expected = file.tell(), math.prod(shape, start=kind.itemsize)
    if status.st_size - begin != expected:
        raise InvalidArgument(
            f"the file has {status.st_size - begin} bytes of elements; its header asks for "
            f"{expected}: shape {shape} of {kind}"
        )
    mapped: npt.NDArray[Any] = np.memmap(file, np.uint8, "r", begin, (expected,)).view(kind)
    return mapped.reshape(shape, order="F" if order else "C")


def _header(file: BinaryIO) -> dict[str, Any]:
    magic = file.read(8)
    if magic.startswith(b"PK"):
        raise InvalidArgument("a .npz archive, and not a .npy file; save one of its arrays by itself")
    if len(magic) < 8 or not magic.startswith(_MAGIC):
        raise InvalidArgument("not a .npy file: it must begin with \\x93NUMPY and a version")
    if magic[6:] not in (b"\1\0", b"\2\0", b"\3\0"):
        raise InvalidArgument(
            f"format version {magic[6]}.{magic[7]}; it must be 1.0, 2.0 or 3.0"
        )
    form = "<H" if magic[6] == 1 else "<I"
    size = file.read(struct.calcsize(form))
    length = struct.unpack(form, size)[0] if len(size) == struct.calcsize(form) else 1
    if length > _LONGEST_HEADER:
        raise InvalidArgument(f"the header has {length} bytes; it must be at most {_LONGEST_HEADER}")
    text = file.read(length)
    if len(text) < length:
        raise InvalidArgument("the file ends inside its header")
    try:
        header = ast.literal_eval(text.decode("utf-8" if magic[6] == 3 else "latin1").strip())
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        header = None
    if not isinstance(header, dict):
        raise InvalidArgument("the header is no dictionary of descr, fortran_order and shape")
    for key in _KEYS:
        if key not in header:
            raise InvalidArgument(f"the header has no {key!r}")
    for key in header:
        if key not in _KEYS:
            raise InvalidArgument(
                f"the header has the key {key!r}; it must have descr, fortran_order and shape"
            )
    return header


def _type(descr: Any, hint: str | None) -> np.dtype[Any]:
    wrong = f"descr is {descr!r}; it must be one of {dtypes.ALLOWED}"
    if not isinstance(descr, str):
        raise InvalidType(wrong)
    code = descr[1:] if descr[:1] in ("<", ">", "=", "|") else descr
    if code == "V2" and descr[0] == ">":  # numpy reads the bytes as they are
        raise InvalidType(f"descr is {descr!r}, which is big-endian; bf16 must be <V2")
    if code not in _OTHERS:
        try:
            kind: np.dtype[Any] = np.dtype(descr)
            dtypes.of_numpy(kind, "descr")
        except (TypeError, ValueError, SyntaxError):
            raise InvalidType(wrong) from None
        return kind
    own = dtypes.parse(_OTHERS[code], "descr")
    wanted = None if hint is None else dtypes.parse(hint, "npy_dtype")
    fits = wanted is not None and dtypes.itemsize(wanted) == dtypes.itemsize(own)
    if code == "V1" and not fits:
        asked = "" if wanted is None else f" and cannot be read as {dtypes.short_name(wanted)}"
        raise InvalidType(
            f"descr is {descr!r}, which is written for every type of one byte that numpy does not "
            f"know{asked}: say which it is, e4m3, e5m2 or s8 (--npy-dtype)"
        )
    # f1 stands for one type alone.
    return dtypes.to_numpy(wanted if wanted is not None and fits and code != "f1" else own)
