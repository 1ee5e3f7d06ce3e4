"""What a matrix on the server is to Python's `@`, to numpy's functions and to torch's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgument, InvalidType

#: numpy's functions that ask for a shape alone, or that turn a matrix.
_FREE: dict[Any, Callable[[Any], Any]] = {
    np.shape: lambda handle: handle.shape,
    np.ndim: lambda handle: handle.ndim,
    np.size: lambda handle: handle.size,
    np.transpose: lambda handle: handle.T,
}
_PRODUCTS = {np.dot, getattr(np.linalg, "matmul", np.dot)}


class Remote:
    """A matrix on the server, of two dimensions.

    `@`, `np.matmul`, `np.dot` and `torch.matmul` are one thing: of handles alone they give a
    handle, and with an array or a tensor among the operands an array or a tensor. No other
    function of numpy's takes one: `numpy()`, and `np.asarray`, fetch the elements.
    """

    ndim = 2
    __iter__ = None  # not by one download for each row

    shape: Any
    _client: Any

    @property
    def size(self) -> int:
        """Elements."""
        rows, cols = self.shape
        return int(rows * cols)

    def numpy(self) -> npt.NDArray[Any]:
        raise NotImplementedError

    def torch(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """`np.asarray` of it is what `numpy()` gives."""
        if copy is False:
            raise InvalidArgument("copy is False; a matrix on the server is had as a copy alone")
        return np.asarray(self.numpy(), dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """`torch.as_tensor` of it is what `torch()` gives."""
        fetched = self.numpy() if sys.modules.get("torch") is None else self.torch()
        return fetched.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # memory of the host

    def __matmul__(self, other: Any) -> Any:
        return self._client._operator(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._client._operator(other, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """numpy leaves `array @ handle` and `np.matmul` to this."""
        if ufunc is not np.matmul or method != "__call__":
            raise _no_function(f"np.{ufunc.__name__}")
        (out,) = options.pop("out", (None,))
        return _multiply("np.matmul", *inputs, out=out, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in _FREE and len(args) == 1 and not options:
            return _FREE[function](args[0])
        if function in _PRODUCTS:
            if function is np.dot and max(np.ndim(operand) for operand in args[:2]) > 2:
                raise InvalidArgument(
                    "np.dot of a handle and an array of more than two dimensions: it has no batches; "
                    "give np.matmul or @"
                )
            return _multiply(f"np.{function.__name__}", *args, **options)
        raise _no_function(f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """torch leaves `tensor @ handle` and `torch.matmul` to this class."""
        if func.__name__ not in ("matmul", "__matmul__", "__rmatmul__", "mm") or kwargs:
            return NotImplemented
        left, right = args
        if func.__name__ == "__rmatmul__":
            left, right = right, left
        return _multiply("torch.matmul", left, right)


def _no_function(name: str) -> InvalidType:
    return InvalidType(
        f"{name} of a handle, whose elements are on the server: only products are computed there; "
        "fetch it, as h.numpy()"
    )


def _multiply(name: str, left: Any, right: Any, *, out: Any = None, **options: Any) -> Any:
    """left @ right, one of which is a handle at least."""
    given = [key for key, value in options.items() if value is not None]
    if given:
        raise InvalidArgument(
            f"{given[0]} is given to {name} of a handle; give it to Client.matmul, which has "
            "options of its own",
            field=given[0],
        )
    handle = left if isinstance(left, Remote) else right
    if not isinstance(handle, Remote):
        raise InvalidType(
            "out is a handle; a result is received into an array. With keep=True, Client.matmul "
            "leaves it on the server",
            field="out",
        )
    return handle._client._operator(left, right, out=out)
