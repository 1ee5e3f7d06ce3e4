"""What a product will take: tasks, and memory of servers, workers and the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes, errors
from ..client import Client
from .servers import Server

#: Memory of the scheduler for each task. Measured: docs/results/dask.md.
SCHEDULER_BYTES_PER_TASK = 12_000
# A tile under way on a server takes three: the sum so far, the next sum, and the answer.
_TILES_OF_ONE = 3
# Messages on their way, for each thread of a worker and each server that it sends to.
_WIRE_BYTES = 16 << 20
# Lines of a matrix on a server begin at such addresses.
_ALIGNMENT = 16


class Types(NamedTuple):
    """Of a product's operands on the servers, of its accumulator and of its result."""

    operand: str
    accumulator: str
    result: str


# Modes by the type of the operands.
_COMPUTE = {
    "float16": ("f32",),
    "bfloat16": ("f32",),
    "float32": ("f32", "tf32", "f32x3"),
    "float64": ("f64",),
    "int8": ("s32",),
}


def types(x: np.dtype[Any], y: np.dtype[Any], compute: str | None) -> Types:
    """InvalidType where the servers have no product of the two, InvalidArgument where they have
    none in this mode. Floats are widened to numpy's common type; int8 by int8 gives int32."""
    try:
        name = (x if x == y else np.result_type(x, y)).name
    except TypeError:  # numpy has no common type of float16 and bfloat16
        name = ""
    if name in ("float16", "bfloat16"):
        found = Types(name, "float32", name)
    elif name in ("float32", "float64"):
        found = Types(name, name, name)
    elif x.name == y.name == "int8":
        found = Types("int8", "int32", "int32")
    else:
        raise errors.InvalidType(
            f"x has dtype {x} and y has {y}; both must be float16, bfloat16, float32 or float64, "
            "or int8: give them as .astype(...)",
            field="x",
        )
    modes = _COMPUTE[found.operand]
    if compute is not None and compute not in modes:
        raise errors.InvalidArgument(
            f"compute is {compute!r}; products of {found.operand} take {' or '.join(modes)} here: "
            f"their tiles are added up in {found.accumulator}",
            field="compute",
        )
    return found


class Room(NamedTuple):
    """What a server has."""

    #: For matrices, on all devices; 0: unknown.
    store_bytes: int
    used_bytes: int
    matrices: int


def room(client: Client) -> Room:
    info = client.info()
    devices = sum(device.healthy for device in info.devices)
    left = max(0, info.limits.max_matrices - info.matrices)
    return Room(info.limits.store_bytes * devices, info.store_used_bytes, left)


@dataclass(frozen=True)
class Workers:
    """The workers, as the scheduler counts them."""

    count: int
    #: All their threads together.
    threads: int
    #: The smallest limit of one of them; None: it has none.
    memory_limit: int | None = None
    distributed: bool = True


def _bytes(rows: int, columns: int, name: str) -> int:
    """The bytes that a matrix takes on a server."""
    line = columns * dtypes.itemsize(dtypes.parse(name, "dtype"))
    return int(rows * -(-line // _ALIGNMENT) * _ALIGNMENT)


def numpy_type(name: str) -> np.dtype[Any]:
    return dtypes.to_numpy(dtypes.parse(name, "dtype"))


def _text(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


@dataclass(frozen=True)
class Plan:
    """A product before it starts. `str()` says it in words, `check()` refuses what cannot fit.

    The bounds hold whatever order Dask runs the tasks in: usually a row of x leaves the servers
    long before the last one comes.
    """

    shape: tuple[int, int, int]
    types: Types
    #: Tiles down, tiles across, and steps of each.
    grid: tuple[int, int, int]
    servers: tuple[Server, ...]
    rooms: tuple[Room, ...]
    workers: Workers
    #: The most bytes of matrices on each server while all servers serve.
    server_bytes: tuple[int, ...]
    #: The same on the last server that is left.
    last_server_bytes: int
    #: The most matrices that a server has at a time.
    server_matrices: int
    #: Blocks and tiles in the hands of all workers' threads.
    working_bytes: int
    #: The result, which stays on the workers until it is used.
    result_bytes: int
    #: x and y on the workers, if no scheduler could have them made again.
    input_bytes: int

    @property
    def tiles(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def tasks(self) -> int:
        """Tiles, panels, and blocks to put. Dask makes one of the last and what makes the block."""
        down, across, steps = self.grid
        return self.tiles + down + across + (down + across) * steps

    @property
    def worker_bytes(self) -> int:
        """Of all workers, beside Python itself."""
        return self.working_bytes + self.result_bytes + self.input_bytes

    @property
    def scheduler_bytes(self) -> int:
        return self.tasks * SCHEDULER_BYTES_PER_TASK

    def check(self) -> None:
        """ResourceExhausted where a server or the workers have too little memory."""
        for server, has, needs in zip(self.servers, self.rooms, self.server_bytes):
            free = has.store_bytes - has.used_bytes
            if has.store_bytes and needs > free:
                raise errors.ResourceExhausted(
                    f"{server.address}: the product needs {_text(needs)} of its store, and "
                    f"{_text(max(0, free))} of {_text(has.store_bytes)} are free (--store-bytes); "
                    "give more servers, or multiply rows of x, x[i:j] @ y"
                )
            if has.store_bytes and self.server_matrices > has.matrices:
                raise errors.ResourceExhausted(
                    f"{server.address}: the product needs {self.server_matrices} matrices, and "
                    f"{has.matrices} more are allowed (--max-matrices); give larger chunks"
                )
        limit = self.workers.memory_limit
        needs = -(-self.working_bytes // max(1, self.workers.count))
        if limit is not None and needs > limit:
            raise errors.ResourceExhausted(
                f"each worker needs {_text(needs)} for the blocks and tiles in its hands, and may "
                f"use {_text(limit)} (memory_limit); give smaller chunks or fewer threads"
            )

    def __str__(self) -> str:
        (m, n, k), (down, across, steps) = self.shape, self.grid
        workers = self.workers
        lines = [
            f"{m} x {k} by {k} x {n} in {self.types.operand}: {down} x {across} tiles of {steps} "
            f"steps, {self.tasks} tasks (Dask's own: {self.tiles * steps} products and their sums)",
        ]
        for server, has, needs in zip(self.servers, self.rooms, self.server_bytes):
            free = f" of {_text(has.store_bytes - has.used_bytes)} free" if has.store_bytes else ""
            lines.append(f"server {server.address}: up to {_text(needs)} of matrices{free}")
        if len(self.servers) > 1:
            lines.append(f"the last server left: up to {_text(self.last_server_bytes)}")
        inputs = f", x and y {_text(self.input_bytes)}" if self.input_bytes else ""
        lines.append(
            f"workers ({workers.count}, {workers.threads} threads): up to {_text(self.worker_bytes)}"
            f" beside Python itself: the result {_text(self.result_bytes)}{inputs}, "
            f"in hand {_text(self.working_bytes)}"
        )
        if workers.distributed:
            lines.append(f"scheduler: about {_text(self.scheduler_bytes)}")
        return "\n".join(lines)

    __repr__ = __str__


def make(
    x: Any, y: Any, found: Types, servers: Sequence[Server], rooms: Sequence[Room], workers: Workers
) -> Plan:
    """Of arrays whose chunks along k are the same."""
    rows, inner = x.chunks
    columns = y.chunks[1]
    (m, k), n = x.shape, y.shape[1]
    count = len(servers)
    all_a = sum(_bytes(row, step, found.operand) for row in rows for step in inner)
    share = [
        sum(_bytes(step, column, found.operand) for column in columns[at::count] for step in inner)
        for at in range(count)
    ]
    largest = _bytes(max(rows), max(columns), found.accumulator)
    under_way = _TILES_OF_ONE * largest * min(workers.threads, len(rows) * len(columns))
    block = max(
        max(rows) * max(inner) * x.dtype.itemsize, max(inner) * max(columns) * y.dtype.itemsize
    )
    sent = max(inner) * max(*rows, *columns) * dtypes.itemsize(dtypes.parse(found.operand, "dtype"))
    tile = largest + _bytes(max(rows), max(columns), found.result)
    hand = workers.threads * (max(block + sent, tile) + _WIRE_BYTES * count)
    return Plan(
        shape=(m, n, k),
        types=found,
        grid=(len(rows), len(columns), len(inner)),
        servers=tuple(servers),
        rooms=tuple(rooms),
        workers=workers,
        server_bytes=tuple(all_a + one + under_way for one in share),
        last_server_bytes=all_a + sum(share) + under_way,
        server_matrices=(len(rows) + len(columns)) * len(inner) + 2 * workers.threads,
        working_bytes=hand,
        result_bytes=m * n * dtypes.itemsize(dtypes.parse(found.result, "dtype")),
        input_bytes=0 if workers.distributed else all_a + sum(share),
    )
