"""Handles whose calls are awaited: of `gemmd.aio`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from . import handle as blocking
from .client import Client
from .errors import InvalidType
from .report import Report


class Owner(Protocol):
    """The client of a handle or of a pipeline, as far as those know it."""

    _blocking: Client

    async def _run(self, call: Callable[..., Any], *args: Any) -> Any: ...
    async def _run_cancellable(
        self, call: Callable[..., Any], *args: Any, **options: Any
    ) -> Any: ...
    async def _operator(self, left: Any, right: Any) -> Any: ...


class Operand:
    """What is on the server, as an operand."""

    # numpy leaves `array @ handle` to this class.
    __array_ufunc__ = None
    ndim = 2

    def __init__(
        self, client: Owner, blocking: blocking.Handle | blocking.TransposedHandle
    ) -> None:
        self._client = client
        self._blocking: Any = blocking

    @property
    def shape(self) -> tuple[int, int]:
        return self._blocking.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> str:
        """Such as "f32"."""
        return self._blocking.dtype  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes on the wire."""
        return self._blocking.nbytes  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Elements."""
        return self._blocking.size  # type: ignore[no-any-return]

    async def numpy(self, out: Any = None, **options: Any) -> Any:
        """As `gemmd.Handle.numpy`."""
        return await self._client._run_cancellable(self._blocking.numpy, out, **options)

    async def torch(self, out: Any = None, **options: Any) -> Any:
        """As `gemmd.Handle.torch`."""
        return await self._client._run_cancellable(self._blocking.torch, out, **options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise InvalidType("a handle of gemmd.aio is no array; its elements are `await w.numpy()`")

    async def __matmul__(self, other: Any) -> Any:
        return await self._client._operator(self, other)

    async def __rmatmul__(self, other: Any) -> Any:
        return await self._client._operator(other, self)


class Handle(Operand):
    """As `gemmd.Handle`, with calls to await.

    `await (x @ w)` gives an array of x's kind; `await (v @ w)` of two handles gives a handle.
    """

    _blocking: blocking.Handle

    @property
    def id(self) -> str:
        return self._blocking.id

    @property
    def name(self) -> str | None:
        return self._blocking.name

    @property
    def device(self) -> str:
        return self._blocking.device

    @property
    def version(self) -> int:
        return self._blocking.version

    @property
    def owned(self) -> bool:
        return self._blocking.owned

    @property
    def freed(self) -> bool:
        return self._blocking.freed

    @property
    def report(self) -> Report | None:
        return self._blocking.report

    @property
    def T(self) -> TransposedHandle:
        """The same matrix as a transposed operand: nothing is copied."""
        return TransposedHandle(self)

    async def free(self) -> None:
        """As `gemmd.Handle.free`."""
        await self._client._run(self._blocking.free)

    def detach(self) -> Handle:
        """As `gemmd.Handle.detach`."""
        self._blocking.detach()
        return self

    async def __aenter__(self) -> Handle:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client._run(self._blocking.__exit__, kind, error, trace)

    def __repr__(self) -> str:
        return f"<aio {self._blocking!r}>"


class TransposedHandle(Operand):
    """A handle as a transposed operand."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle._client, handle._blocking.T)
        self._handle = handle

    @property
    def T(self) -> Handle:
        return self._handle

    def __repr__(self) -> str:
        return f"{self._handle!r}.T"


def plain(value: Any) -> Any:
    """An operand as the blocking client takes it."""
    return value._blocking if isinstance(value, Operand) else value


def plain_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in options.items()}
