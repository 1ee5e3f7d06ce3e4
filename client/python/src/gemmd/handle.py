"""A matrix on the server, as an operand."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from . import checks, dtypes, transfer
from .call import Call, Canceller
from .connection import Connection
from .contract import pb
from .errors import (
    ClientClosed,
    GemmdError,
    HandleError,
    InvalidArgument,
    InvalidType,
    LostHandle,
    NotFound,
)
from .janitor import Janitor, by_id
from .operands import Shape, is_torch
from .operators import Remote
from .progress import Meter
from .report import Report
from .results import Target, check_out
from .tables import html_table


class Owner(Protocol):
    """The client of a handle, as far as handles know it."""

    _connection: Connection
    _janitor: Janitor

    def _operator(
        self, left: Any, right: Any, *, out: Any = None, cancel: Canceller | None = None
    ) -> Any:
        """`left @ right`, of which one is a handle at least."""
        ...


def _text(shape: Shape) -> str:
    order = "" if shape.layout == pb.LAYOUT_ROW_MAJOR else ", column-major"
    return f"{shape.rows}x{shape.cols} {dtypes.short_name(shape.dtype)}{order}"


def _turned(out: Any) -> Any:
    """A caller's memory for the transposed matrix, as that of the matrix."""
    if out is None:
        return None
    check_out(out)
    return out.t() if is_torch(out) else out.T


class NoCopies:
    """A base of what the server keeps something for: copy, deepcopy and pickle are refused."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> str:
        kind = type(self).__name__
        raise InvalidType(
            f"a {kind} cannot be copied or pickled: the end of a copy would end what the {kind} "
            "itself still uses on the server"
        )


class Handle(Remote, NoCopies):
    """A matrix that stays on the server between calls.

    `x @ w`, `w @ x`, `np.matmul(x, w)` and `client.matmul(x, w)` multiply with it without sending
    it again. Of handles alone, `v @ w` gives a handle; with an array or a tensor among them, an array
    of its kind. `client.matmul` always gives an array, and with keep=True always a handle.
    `w[3]` and `w[2:7]` fetch those rows.
    A matrix without a name ends with its handle: at the end of a `with` block, when the handle
    is garbage, or when its client is closed. A matrix with a name stays, as others may use it,
    until `free()`, `Client.delete`, its `ttl` or a replacement deletes it.
    """

    def __init__(self, client: Owner, info: pb.MatrixInfo, name: str | None,
                 ref: pb.MatrixRef | None = None) -> None:  # fmt: skip
        """`ref`: how the server finds the matrix, if not by its id."""
        self._client = client
        self._life = client._connection.life
        self._matrix = Shape.of(info.shape)
        self._ref = ref or by_id(info.id)
        #: "" where the server was not asked for it: see `Client.matrix`.
        self.id: str = info.id
        #: The name that the caller gave, or None.
        self.name = name
        self.device: str = info.device
        #: Grows with each matrix that takes the same name. 0 if the server was not asked for it.
        self.version: int = info.version
        #: Whether the end of this handle deletes the matrix: where it has no name.
        self.owned = name is None
        #: Which kernel made it and how long that took, where it is the result of a product.
        self.report: Report | None = None
        self._freed = False

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.rows, self._matrix.cols

    @property
    def dtype(self) -> str:
        """Such as "f32"."""
        return dtypes.short_name(self._matrix.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes on the wire."""
        return self._matrix.nbytes

    @property
    def freed(self) -> bool:
        return self._freed

    @property
    def T(self) -> TransposedHandle:
        """The same matrix as a transposed operand: nothing is copied."""
        return TransposedHandle(self)

    def numpy(
        self, out: Any = None, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Any:
        """The elements as a numpy array, or in `out`."""
        return self._fetch("numpy", out, timeout, cancel)

    def torch(
        self, out: Any = None, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Any:
        """The elements as a torch tensor, or in `out`."""
        return self._fetch("torch", out, timeout, cancel)

    def __getitem__(self, index: Any) -> Any:
        """Rows as a numpy array: `w[3]`, `w[2:7]`. Nothing else of the matrix is sent."""
        return self._rows(index, self)

    def _rows(self, index: Any, seen: Handle | TransposedHandle) -> Any:
        """Of the matrix, or of the transposed one, whichever is `seen`."""
        lines, columns = seen.shape
        if isinstance(index, slice):
            first, last, step = index.indices(lines)
        else:
            first = checks.integer(index, "the index", -lines, lines - 1) % lines
            last, step = first + 1, 1
        if step != 1:
            raise InvalidArgument(f"the index has a step of {step}; it must be 1: rows that follow "
                                  "one another are fetched")  # fmt: skip
        by_columns = self._matrix.layout == pb.LAYOUT_COLUMN_MAJOR
        if by_columns != (seen is not self):
            turned = "h[i:j]" if seen is not self else "h.T[i:j]"
            raise InvalidArgument(
                f"the rows of {seen!r} do not lie together on the server; fetch it, as h.numpy(), "
                f"or its columns, as {turned}"
            )
        rows = Shape(max(0, last - first), columns, self._matrix.dtype)
        if rows.rows == 0:
            return np.empty((0, columns), dtypes.to_numpy(rows.dtype))
        target = Target(rows, "numpy")
        start = first * columns * dtypes.itemsize(rows.dtype)
        self._download("rows", target, (start, start + rows.nbytes), None, None)
        found = target.finish()
        return found if isinstance(index, slice) else found[0]

    def _fetch(self, kind: str, out: Any, timeout: float | None, cancel: Canceller | None) -> Any:
        self._check(self._client)
        if out is not None:
            check_out(out)
        target = Target(self._matrix, kind, out)
        self._download(kind, target, None, timeout, cancel)
        return target.finish()

    def _download(
        self, what: str, target: Target, part: tuple[int, int] | None, timeout: float | None,
        cancel: Canceller | None,
    ) -> None:  # fmt: skip
        """Into the target: all bytes, or a part of them."""
        self._check(self._client)
        connection = self._client._connection
        memory = target.memory
        with Call(connection, what, timeout, cancel) as call:

            def run() -> None:
                with Meter(call, "get", len(memory)) as meter:
                    found = None if self.id else self._check_found
                    if part is not None:
                        transfer.download_part(
                            call, self._ref, part, self.nbytes, memory, meter, found
                        )
                    elif found is None:
                        transfer.download(call, self._ref, memory, meter)
                    else:
                        transfer.download_named(call, self._ref, found, memory, meter)

            try:
                call.tried(run)
            except NotFound as error:
                raise explain_not_found(call, error, [self]) from None

    def _check_found(self, info: pb.MatrixInfo) -> None:
        """InvalidArgument where the matrix of the name is not as the handle was made for."""
        found = Shape.of(info.shape)
        if found != self._matrix:
            raise InvalidArgument(
                f"shape: {self.name!r} is {_text(found)} on the server, but the handle was made "
                f"for {_text(self._matrix)}",
                field="shape",
            )

    def free(self) -> None:
        """Deletes the matrix on the server. A matrix that is gone already is no error."""
        if self._freed:
            return
        connection = self._client._connection
        with Call(connection, "free", connection.options.connect_timeout) as call:
            request = pb.DeleteMatrixRequest(matrix=self._ref)
            try:
                call.tried(
                    lambda: call.unary(connection.stubs().delete, request),
                    # A name may mean another matrix by then.
                    repeatable=bool(self.id),
                )
            except NotFound:
                pass
            self._freed = True

    def detach(self) -> Handle:
        """Leaves a matrix without a name on the server when this handle ends, too.

        It is found by its id then: `Client.matrix(id=...)`, `Client.delete(id=...)`. Nobody renews
        it: without a `ttl` it stays for `Info.limits.unnamed_ttl` after its last use. Lists show it
        under a name that the package gave it, `python-` and hexadecimal digits.
        Returns the handle.
        """
        self.owned = False
        return self

    def _check(self, client: Owner) -> None:
        """HandleError where it cannot be an operand of this client's calls."""
        if self._client is not client:
            raise HandleError(
                f"{self._called()} belongs to another client, of "
                f"{self._client._connection.address}; put the matrix with this one, or fetch it"
            )
        if self._freed:
            raise HandleError(f"{self._called()} was freed; put the matrix again")

    def _called(self) -> str:
        return f"the handle of matrix '{self.name or self.id}'"

    def _explain(self, error: NotFound) -> GemmdError:
        """Why the server does not know the matrix any more."""
        if self._life != self._client._connection.life:
            return LostHandle(
                f"{self._called()} is of a former life of the server: it was started again, "
                "and its matrices are gone; put the matrix again"
            )
        return LostHandle(
            f"{self._called()} is gone: it expired, or was deleted or replaced: {error}"
        )

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.owned or self._freed:
            return
        if kind is None:
            self.free()
        else:  # an error of this must not hide the one that is on its way
            self._freed = True
            self._client._janitor.delete(self._ref)

    def __del__(self) -> None:
        # Anything may be half torn down here: nothing but a note for the janitor.
        if getattr(self, "owned", False) and not self._freed:
            self._client._janitor.delete(self._ref)

    def _state(self) -> str:
        return "freed" if self._freed else f"on {self.device}"

    def __repr__(self) -> str:
        name = f" '{self.name}'" if self.name else ""
        return f"<Handle{name} {self._matrix}, {self._state()}>"

    def _repr_html_(self) -> str:
        rows = [
            ("name", self.name or ""), ("id", self.id), ("version", self.version),
            ("shape", str(self._matrix)), ("bytes", self.nbytes), ("state", self._state()),
        ]  # fmt: skip
        return html_table(("", "matrix"), rows)


class TransposedHandle(Remote):
    """A handle as a transposed operand."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._client = handle._client

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self._handle.shape
        return cols, rows

    @property
    def T(self) -> Handle:
        return self._handle

    @property
    def dtype(self) -> str:
        """Such as "f32"."""
        return self._handle.dtype

    @property
    def nbytes(self) -> int:
        """Bytes on the wire."""
        return self._handle.nbytes

    def numpy(
        self, out: Any = None, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Any:
        """The elements as a numpy array, or in `out`."""
        return self._handle.numpy(_turned(out), timeout=timeout, cancel=cancel).T

    def torch(
        self, out: Any = None, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Any:
        """The elements as a torch tensor, or in `out`."""
        return self._handle.torch(_turned(out), timeout=timeout, cancel=cancel).t()

    def __getitem__(self, index: Any) -> Any:
        """As of a handle."""
        return self._handle._rows(index, self)

    def __repr__(self) -> str:
        return f"{self._handle!r}.T"


def explain_not_found(call: Call, error: NotFound, handles: Sequence[Handle]) -> GemmdError:
    """The server's error, or what became of the handle that it names."""
    named = [handle for handle in handles if handle.id and handle.id in str(error)]
    if not named:
        return error
    try:
        call.ask_server()
    except ClientClosed as closed:  # which has deleted them
        return closed
    except GemmdError:
        return error
    return named[0]._explain(error)
