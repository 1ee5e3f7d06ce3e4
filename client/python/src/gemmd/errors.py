"""The exceptions of this package.

Every one is a GemmdError with the sentence to show (`str(error)`), the canonical code and,
where the sentence names one, the field. Those that Python has a word for are also of that
kind: InvalidArgument is a ValueError, NotFound a LookupError, DeadlineExceeded a
TimeoutError, Unavailable a ConnectionError, PermissionDenied a PermissionError.
"""

from __future__ import annotations

import re

# A sentence about a field begins with its path: "product.a.shape: 0 rows".
_FIELD = re.compile(r"^([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?=:| is | has | must )")


class GemmdError(Exception):
    """An error of the server or of this package."""

    code = "UNKNOWN"

    def __init__(self, message: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        match = _FIELD.match(message)
        #: Seconds after which the server says to try again; None if it does not say. With
        #: ResourceExhausted, the server has done nothing of the call.
        self.retry_after: float | None = None
        #: The field that the sentence is about, such as "product.alpha"; None if it names none.
        self.field: str | None = field or (match.group(1) if match else None)

    def __str__(self) -> str:
        return self.message


class InvalidArgument(GemmdError, ValueError):
    """A value that cannot be: it names the field, the value and the bound."""

    code = "INVALID_ARGUMENT"


class InvalidType(InvalidArgument, TypeError):
    """An operand, or an option, of a type that cannot be taken."""


class NotFound(GemmdError, LookupError):
    """No such matrix, kernel, family or suite."""

    code = "NOT_FOUND"


class AlreadyExists(GemmdError, ValueError):
    """Another matrix has the name."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(GemmdError):
    """The device cannot run the kernel, or the server does not do this."""

    code = "FAILED_PRECONDITION"


class Unimplemented(GemmdError, NotImplementedError):
    """The server does not do this, or is older than this package."""

    code = "UNIMPLEMENTED"


class Unauthenticated(GemmdError):
    """No token and no certificate that the server knows."""

    code = "UNAUTHENTICATED"


class PermissionDenied(GemmdError, PermissionError):
    """The server knows the caller, who lacks the role that the sentence names."""

    code = "PERMISSION_DENIED"


class ResourceExhausted(GemmdError):
    """A bound of the server: its memory, its store, its queue, its messages."""

    code = "RESOURCE_EXHAUSTED"


class DeadlineExceeded(GemmdError, TimeoutError):
    """The call did not end in time."""

    code = "DEADLINE_EXCEEDED"


class DataLoss(GemmdError):
    """The matrix went with its device, or a product failed its check twice."""

    code = "DATA_LOSS"


class Unavailable(GemmdError, ConnectionError):
    """The server could not be reached or went away, or it lost the device; the call may or may
    not have run."""

    code = "UNAVAILABLE"


class Cancelled(GemmdError):
    """The call was ended by its caller."""

    code = "CANCELLED"


class Aborted(GemmdError):
    """Another part of the same transfer failed, or a matrix has another version than asked for."""

    code = "ABORTED"


class Internal(GemmdError):
    """The server or this package broke a promise."""

    code = "INTERNAL"


class HandleError(GemmdError, ValueError):
    """A handle that cannot be used: it was freed, or it is another client's."""

    code = "FAILED_PRECONDITION"


class LostHandle(HandleError, LookupError):
    """A handle whose matrix is gone: the server was restarted, or the matrix expired."""

    code = "NOT_FOUND"


class ClientClosed(GemmdError):
    """The client was closed, or belongs to the process that this one was forked from."""

    code = "FAILED_PRECONDITION"


_BY_CODE: dict[str, type[GemmdError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        NotFound,
        AlreadyExists,
        FailedPrecondition,
        Unimplemented,
        Unauthenticated,
        PermissionDenied,
        ResourceExhausted,
        DeadlineExceeded,
        DataLoss,
        Unavailable,
        Cancelled,
        Aborted,
        Internal,
    )
}

# The numbers of google.rpc.Code.
_NUMBERS = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE "
    "UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()


def make(code: str, message: str) -> GemmdError:
    """The exception of a canonical code, such as "NOT_FOUND"."""
    kind = _BY_CODE.get(code)
    return GemmdError(message, code=code) if kind is None else kind(message)


def from_number(code: int, message: str) -> GemmdError:
    """The exception of a google.rpc.Code, as a job's error has it."""
    known = 0 < code < len(_NUMBERS)
    return make(_NUMBERS[code] if known else "UNKNOWN", message)
