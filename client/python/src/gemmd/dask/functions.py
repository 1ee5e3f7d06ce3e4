"""Products of Dask arrays: `matmul`, `plan`, and `offload`, under which Dask's own are these."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import logging
import operator
import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array import routines
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .. import checks, errors
from . import panels, servers, tiles
from . import plan as plans
from .plan import Plan
from .servers import Server

_log = logging.getLogger("gemmd")
# Names of this process's matrices are its own: two processes with the same arrays share nothing.
_SESSION = secrets.token_hex(6)


@dataclass(frozen=True)
class _Settings:
    servers: tuple[Server, ...]
    compute: str | None
    patience: float
    ttl: float
    check: bool


def _settings(
    given: Any, compute: str | None, patience: float, ttl: float, check: bool
) -> _Settings:
    checks.between(patience, "patience", 0.1, 3600)
    checks.between(ttl, "ttl", 1, 1e9)
    return _Settings(servers.parse(given), compute, patience, ttl, checks.flag(check, "check"))


def matmul(
    x: Any,
    y: Any,
    servers: Any,
    *,
    compute: str | None = None,
    patience: float = 20.0,
    ttl: float = 1800.0,
    check: bool = True,
) -> da.Array:
    """x @ y as a Dask array, each tile of which a gemmd server computes.

    x, y: Dask arrays of two dimensions and of one type: float16, bfloat16 (both with accumulators
        of float32), float32, float64, or int8, which gives int32. Floats of different types are
        widened to numpy's common type. A tile of the result has the rows of a chunk of x and the
        columns of one of y.
    servers: addresses, such as "host:50051", or mappings with "address" and options of
        `gemmd.connect`, such as `token_file` and `ca`, whose paths are those of the workers.
    compute: "f32x3", "tf32" or another mode of `gemmd.Client.matmul`.
    patience: seconds after which a server that answers nothing is left alone for a while, and
        others take its tiles.
    ttl: seconds after whose last use a server drops a matrix. Tiles put it again.
    check: whether the servers are asked for their room, and the product is refused where it cannot
        fit: `plan`. Off where this process cannot reach them.
    """
    return _product(x, y, _settings(servers, compute, patience, ttl, check))


def plan(x: Any, y: Any, servers: Any, *, compute: str | None = None,
         patience: float = 20.0) -> Plan:  # fmt: skip
    """What `matmul` of the same will take. Nothing starts; the servers are asked for their room."""
    left, right, found = _operands(x, y, compute)
    return _plan(left, right, found, _settings(servers, compute, patience, 1.0, True))


def _operands(x: Any, y: Any, compute: str | None) -> tuple[Any, Any, plans.Types]:
    """As the product takes them: with the same chunks along k."""
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, da.Array):
            raise errors.InvalidType(
                f"{name} is a {type(value).__name__}; it must be a Dask array: "
                f"give dask.array.from_array({name})",
                field=name,
            )
        if type(value._meta) is not np.ndarray:
            raise errors.InvalidType(
                f"{name} has blocks of {type(value._meta).__name__}; they must be numpy arrays",
                field=name,
            )
        if value.ndim != 2:
            raise errors.InvalidArgument(
                f"{name} has {value.ndim} dimensions; it must have 2", field=name
            )
        if any(np.isnan(size) for size in value.shape):
            raise errors.InvalidArgument(
                f"{name} has chunks of unknown size; give {name}.compute_chunk_sizes()", field=name
            )
    if x.shape[1] != y.shape[0]:
        raise errors.InvalidArgument(
            f"x has {x.shape[1]} columns and y has {y.shape[0]} rows; they must be the same",
            field="y",
        )
    found = plans.types(x.dtype, y.dtype, compute)
    _, (left, right) = da.core.unify_chunks(x, "ik", y, "kj", warn=False)
    return left, right, found


def _plan(x: Any, y: Any, found: plans.Types, settings: _Settings) -> Plan:
    rooms = [_room(one, settings) for one in settings.servers]
    return plans.make(x, y, found, settings.servers, rooms, _workers())


def _room(server: Server, settings: _Settings) -> plans.Room:
    if not settings.check:
        return plans.Room(0, 0, 0)
    try:
        with servers.state(server).use(settings.patience) as use:
            return plans.room(use.client)
    except (errors.Unavailable, errors.DeadlineExceeded) as error:
        raise type(error)(
            f"{error}; start it, take {server.address} out of servers, or give matmul check=False, "
            "which asks no server for its room"
        ) from None


def _workers() -> plans.Workers:
    """Of `distributed`'s client in this process, else Dask's threads."""
    try:
        from distributed import default_client

        found = default_client().scheduler_info(n_workers=-1)["workers"].values()
    except (ImportError, ValueError):
        threads = dask.config.get("num_workers", None) or os.cpu_count() or 1
        return plans.Workers(1, threads, distributed=False)
    limits = [one["memory_limit"] for one in found if one["memory_limit"]]
    threads = sum(one["nthreads"] for one in found)
    return plans.Workers(len(found), threads, min(limits, default=None))


def _product(x: Any, y: Any, settings: _Settings) -> da.Array:
    x, y, found = _operands(x, y, settings.compute)
    if settings.check:
        announced = _plan(x, y, found, settings)
        _log.info("gemmd.dask: %s", announced)
        announced.check()
    rows = _panels(x, "a", found.operand, settings)
    columns = _panels(y, "b", found.operand, settings)
    job = tiles.Job(
        settings.servers, found.accumulator, found.result, settings.compute,
        f"dask/{_SESSION}/c", settings.patience, settings.ttl,
    )  # fmt: skip
    dtype = plans.numpy_type(found.result)
    product: da.Array = da.blockwise(
        functools.partial(tiles.tile, job=job), "ij", rows, "i", columns, "j",
        name=f"gemmd-tile-{tokenize(rows.name, columns.name, job)}",
        adjust_chunks={"i": x.chunks[0], "j": y.chunks[1]}, align_arrays=False,
        dtype=dtype, meta=np.empty((0, 0), dtype),
    )  # fmt: skip
    return product


def _panels(array: Any, side: str, dtype: str, settings: _Settings) -> da.Array:
    """An array of one Panel for each row of x, or column of y: a task each, behind one for each
    block. Its layer is none that Dask fuses with the tiles: a panel is made once."""
    token = tokenize(array.name, array.chunks, side, dtype, settings.servers, settings.ttl)
    name = f"gemmd-panel-{token}"
    place = panels.Place(
        settings.servers, side, dtype, f"dask/{_SESSION}/{token}", name, settings.patience,
        settings.ttl,
    )  # fmt: skip
    blocks = da.map_blocks(
        functools.partial(panels.put, place=place), array, name=f"gemmd-put-{token}",
        chunks=array.chunks, dtype=object, meta=np.empty((0, 0), object),
    )  # fmt: skip
    count, steps = blocks.numblocks if side == "a" else blocks.numblocks[::-1]
    graph: dict[Any, Any] = {}
    for index in range(count):
        keys = [
            (blocks.name, index, k) if side == "a" else (blocks.name, k, index)
            for k in range(steps)
        ]
        graph[(name, index)] = (panels.gather, keys, place, index)
    return da.Array(
        HighLevelGraph.from_collections(name, graph, dependencies=[blocks]), name,
        ((1,) * count,), meta=np.empty(0, object),
    )  # fmt: skip


# Under `offload`. The settings are those of the block that this thread, or task, is in.
_active: contextvars.ContextVar[_Settings | None] = contextvars.ContextVar("gemmd", default=None)
_patched_lock = threading.Lock()
_patched = 0
_OWN = {"matmul": da.matmul, "tensordot": da.tensordot}


@contextlib.contextmanager
def offload(
    servers: Any,
    *,
    compute: str | None = None,
    patience: float = 20.0,
    ttl: float = 1800.0,
    check: bool = True,
) -> Iterator[None]:
    """Within a `with` block, `x @ y`, `x.dot(y)` and Dask's `matmul`, `dot` and `tensordot` are
    computed by servers where both are matrices of float16, bfloat16, float32 or float64. Other
    products are Dask's own. The options are those of `matmul`.

    It counts where a product is written, not where it is computed, and for this thread alone.
    """
    settings = _settings(servers, compute, patience, ttl, check)
    global _patched
    with _patched_lock:
        _patched += 1
        if _patched == 1:
            _set(matmul=_matmul, tensordot=_tensordot)
    before = _active.set(settings)
    try:
        yield
    finally:
        _active.reset(before)
        with _patched_lock:
            _patched -= 1
            if _patched == 0:
                _set(**_OWN)


def _set(**functions: Any) -> None:
    for module in (da, routines):
        for name, function in functions.items():
            setattr(module, name, function)


def _takes(x: Any, y: Any) -> bool:
    """Whether servers compute this product, with the type that it has in Dask."""
    for value in (x, y):
        if not isinstance(value, da.Array) or value.ndim != 2:
            return False
        if type(value._meta) is not np.ndarray or any(np.isnan(size) for size in value.shape):
            return False
    if x.shape[1] != y.shape[0] or np.dtype(np.int8) in (x.dtype, y.dtype):
        return False
    try:
        plans.types(x.dtype, y.dtype, None)
    except (errors.InvalidType, TypeError):
        return False
    return True


@functools.wraps(_OWN["matmul"])
def _matmul(a: Any, b: Any) -> Any:
    settings = _active.get()
    if settings is not None:
        x, y = da.asanyarray(a), da.asanyarray(b)
        if _takes(x, y):
            return _product(x, y, settings)
    return _OWN["matmul"](a, b)


@functools.wraps(_OWN["tensordot"])
def _tensordot(lhs: Any, rhs: Any, axes: Any = 2) -> Any:
    settings = _active.get()
    if settings is not None and isinstance(lhs, da.Array) and isinstance(rhs, da.Array):
        contracted = _one_axis(axes) if lhs.ndim == rhs.ndim == 2 else None
        if contracted is not None:
            left, right = contracted
            x, y = (lhs if left == 1 else lhs.T), (rhs if right == 0 else rhs.T)
            if _takes(x, y):
                return _product(x, y, settings)
    return _OWN["tensordot"](lhs, rhs, axes=axes)


def _one_axis(axes: Any) -> tuple[int, int] | None:
    """Which axis of each matrix is contracted, where it is one."""
    try:
        pair = (1, 0) if operator.index(axes) == 1 else None
    except TypeError:
        sides = [tuple(side) if isinstance(side, tuple | list) else (side,) for side in axes]
        if len(sides) != 2 or any(len(side) != 1 for side in sides):
            return None
        pair = (sides[0][0], sides[1][0])
    if pair is None or not all(isinstance(axis, int) and -2 <= axis < 2 for axis in pair):
        return None
    return pair[0] % 2, pair[1] % 2
