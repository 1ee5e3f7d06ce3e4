"""Matrix products on a gemmd server, for numpy arrays and torch tensors.

    with gemmd.connect("127.0.0.1:50051") as g:
        c = g.matmul(a, b)
        w = g.put(b, name="weights", ttl=600)
        c = a @ w

`gemmd.aio` has the same for asyncio, `gemmd.nn` linear layers of torch.
"""

from __future__ import annotations

import dataclasses
import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from . import address as _address
from . import checks as _checks
from .bench import Benchmark
from .call import Canceller
from .client import Client
from .errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    ClientClosed,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    GemmdError,
    HandleError,
    Internal,
    InvalidArgument,
    InvalidType,
    LostHandle,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from .handle import Handle
from .options import Options, Retry
from .pipeline import Pipeline
from .report import Report
from .tables import Table

try:
    __version__ = version("gemmd-client")
except PackageNotFoundError:  # run from its source, without being installed
    __version__ = "0+unknown"


def connect(address: str | None = None, **options: Any) -> Client:
    """A client of the server at `address`: "host:port" or "unix:PATH". Left out: that of
    GEMMD_ADDRESS in the environment, the first where it has several, else 127.0.0.1:50051.

    The options are those of `Options`. Where no server answers, it is tried again as `Retry`
    says, within `connect_timeout`; then Unavailable or DeadlineExceeded name the address.
    """
    chosen = _address.chosen(address)
    _checks.keywords(options, [field.name for field in dataclasses.fields(Options)], "connect")
    return Client(chosen, Options(**options))


def offload(client: Client, model: Any, modules: Any = None, **options: Any) -> Any:
    """Within a `with` block, linear layers of a torch model run on the server: `nn.offload`."""
    from . import nn

    return nn.offload(client, model, modules, **options)


if TYPE_CHECKING:
    from . import aio as aio
    from . import dask as dask
    from . import nn as nn
else:

    def __getattr__(name: str) -> Any:
        """`gemmd.aio`, `gemmd.nn` and `gemmd.dask` without an import of their own; the second needs
        torch, and the third Dask."""
        if name in ("aio", "dask", "nn"):
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What the package is used by, and not its modules. `gemmd.nn` is loaded by name: it needs
    torch, which `from gemmd import *` shall not."""
    return __all__


__all__ = [
    "Aborted",
    "AlreadyExists",
    "Benchmark",
    "Cancelled",
    "Canceller",
    "Client",
    "ClientClosed",
    "DataLoss",
    "DeadlineExceeded",
    "FailedPrecondition",
    "GemmdError",
    "Handle",
    "HandleError",
    "Internal",
    "InvalidArgument",
    "InvalidType",
    "LostHandle",
    "NotFound",
    "Options",
    "PermissionDenied",
    "Pipeline",
    "Report",
    "ResourceExhausted",
    "Retry",
    "Table",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "__version__",
    "aio",
    "connect",
    "offload",
]
