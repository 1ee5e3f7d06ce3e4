"""Panels: rows of blocks of x, or columns of blocks of y, that lie on servers under names.

A panel is a small object among Dask's results, and stands for blocks that are on servers. Dask
itself counts its uses: when the last tile that needs it is done, Dask drops the object, and then
the blocks are deleted. What nobody deletes, as where a worker was killed, expires by its ttl.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes, errors
from ..handle import Handle
from . import servers, tasks
from .servers import Server, State, Use

_log = logging.getLogger("gemmd")


@dataclass(frozen=True)
class Place:
    """Where the panels of one operand go, and how."""

    servers: tuple[Server, ...]
    #: "a": x, whose panels are rows; "b": y, whose panels are columns.
    side: str
    #: numpy's name of the type that the elements have on the servers.
    dtype: str
    #: First part of the blocks' names. It has Dask's name of the array, which stands for its content.
    folder: str
    #: Dask's name of the panels' tasks.
    task: str
    patience: float
    ttl: float

    def home(self, index: int) -> int | None:
        """Which server has a panel first; None: all of them. The tiles of a row run on all servers,
        by their columns, so that rows of x are wanted everywhere."""
        return None if self.side == "a" else index % len(self.servers)


class Block:
    """A block that was put. Until it is part of a panel, its end is that of the matrix: the graph may
    fail before."""

    def __init__(self, name: str, shape: tuple[int, int], elements: Any = None) -> None:
        self.name = name
        self.shape = shape
        #: The elements, where no scheduler could have them made again.
        self.elements = elements
        self._end: weakref.finalize[Any, Any] | None = None

    def __reduce__(self) -> Any:
        return Block, (self.name, self.shape, self.elements)

    def own(self, place: Place, index: int) -> None:
        """Here it was put."""
        ended = _Ended(self.name, (tasks.key(), (place.task, index)), place, tasks.client())
        self._end = weakref.finalize(self, _ended.put, ended)
        self._end.atexit = False
        _start_deleter()

    def taken(self) -> None:
        """By a panel."""
        if self._end is not None:
            self._end.detach()


class Panel:
    """The blocks of a row of x, or of a column of y."""

    def __init__(
        self, place: Place, index: int, blocks: Sequence[Block], key: Any, making: str
    ) -> None:
        self.place = place
        self.index = index
        self.blocks = list(blocks)
        self.folder = folder(place, index)
        #: Dask's key of the task that makes it again; None without `distributed`.
        self.key = key
        #: Another one each time that task runs.
        self.making = making
        self._owned = False

    def __reduce__(self) -> Any:
        return Panel, (self.place, self.index, self.blocks, self.key, self.making)

    def at_home(self, server: Server) -> bool:
        """Whether that is where its blocks were put."""
        home = self.place.home(self.index)
        return home is None or self.place.servers[home] == server

    def own(self) -> None:
        """From now on, the end of this object may be the end of the panel."""
        if not self._owned:
            self._owned = True
            ended = _Ended(self.folder, (self.key,), self.place, tasks.client())
            weakref.finalize(self, _ended.put, ended).atexit = False
            _start_deleter()


class Lost(Exception):
    """Blocks of this panel are on no server that answers, and nobody here has their elements."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel.folder)
        self.panel = panel


def folder(place: Place, index: int) -> str:
    return f"{place.folder}/{index}/"


def put(block: Any, place: Place, block_id: tuple[int, int] = (0, 0)) -> Block:
    """Task: puts a block of x on every server, one of y on its home, or the next that answers."""
    index, k = block_id if place.side == "a" else block_id[::-1]
    dtype = dtypes.to_numpy(dtypes.parse(place.dtype, "dtype"))
    # In one order, so that tiles know how a block lies without asking.
    elements = np.asarray(block, dtype, order="C")
    name = f"{folder(place, index)}{k}"
    if elements.size:
        home = place.home(index)
        count = len(place.servers)
        order = [place.servers[((home or 0) + step) % count] for step in range(count)]
        patience = servers.Patience(order)
        while not _put_on(order, name, elements, place, home is None, patience):
            patience.wait()
    if tasks.worker() is None:
        made = Block(name, elements.shape, elements)
    else:
        tasks.warn_of_profiler()
        made = Block(name, elements.shape)
    if elements.size:
        made.own(place, index)
    return made


def _put_on(
    order: Sequence[Server], name: str, elements: Any, place: Place, everywhere: bool,
    patience: servers.Patience,
) -> bool:  # fmt: skip
    """Whether one server has it at least."""
    placed = False
    for one in servers.usable(order):
        try:
            with one.use(place.patience) as use:
                # Whatever has this name: a run that failed may have left what its source was.
                _send(use, name, elements, place)
        except servers.FAILURES as error:
            patience.failed(one, error)
            continue
        placed = True
        if not everywhere:
            break
    return placed


def _names(prefix: str, use: Use) -> set[str]:
    """Of the matrices there whose names begin so. A list, as the answer that there is none is an
    error, and errors of gRPC are garbage in cycles: see `tasks.warn_of_profiler`."""
    return {matrix.name for matrix in use.client.matrices(prefix, cancel=use.cancel)}


def _send(use: Use, name: str, elements: Any, place: Place) -> None:
    use.client.put(elements, name=name, ttl=place.ttl, replace=True, cancel=use.cancel)


def gather(blocks: Sequence[Block], place: Place, index: int) -> Panel:
    """Task: a panel of its blocks."""
    panel = Panel(place, index, blocks, tasks.key(), secrets.token_hex(8))
    panel.own()
    for block in blocks:
        block.taken()
    return panel


def ensure(panel: Panel, use: Use, there: State) -> None:
    """Has all blocks of the panel on that server: from another server, or from their elements.
    Lost where neither has them."""
    if panel.folder in there.held:
        return
    present = _names(panel.folder, use)
    for block in panel.blocks:
        if block.name in present or 0 in block.shape:
            continue
        elements = block.elements
        if elements is None:
            elements = _from_another(block, there, panel.place)
        if elements is None:
            raise Lost(panel)
        _send(use, block.name, elements, panel.place)
    there.held.add(panel.folder)


def _from_another(block: Block, there: State, place: Place) -> Any:
    for other in servers.usable(place.servers):
        if other is there:
            continue
        try:
            with other.use(place.patience) as use:
                if block.name in _names(block.name, use):
                    return handle(block, use, place.dtype).numpy(cancel=use.cancel)
        except (errors.NotFound, *servers.FAILURES):
            continue
    return None


def handle(block: Block, use: Use, dtype: str) -> Handle:
    """Without asking the server."""
    return use.client.matrix(block.name, shape=block.shape, dtype=dtype)


class _Ended(NamedTuple):
    """A panel, or a block that was part of none, whose object is gone from this process."""

    #: The block's name, or the panel's folder, which ends with a slash.
    name: str
    #: Dask's keys of the tasks whose results stand for the same.
    keys: tuple[Any, ...]
    place: Place
    client: Any


# Objects end on any thread, and so a thread of its own deletes.
_ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
_deleter_lock = threading.Lock()
_deleter: threading.Thread | None = None


def _start_deleter() -> None:
    global _deleter
    with _deleter_lock:
        if _deleter is None or not _deleter.is_alive():
            _deleter = threading.Thread(target=_delete, daemon=True, name="gemmd-panels")
            _deleter.start()


def _delete() -> None:
    while True:
        ended = _ended.get()
        # Another worker may have a copy, or the task runs again and may have put blocks of the same
        # names: then that one's end counts.
        if ended.client is not None and tasks.wanted_by_any(ended.client, ended.keys):
            continue
        for one in map(servers.state, ended.place.servers):
            one.held.discard(ended.name)
            if one.rests() > 0:  # what it has expires
                continue
            try:
                with one.use(ended.place.patience) as use:
                    _delete_from(use, ended.name)
            except errors.GemmdError as error:
                _log.info("gemmd: %s not deleted from %s: %s", ended.name, one.server.address, error)


def _delete_from(use: Use, name: str) -> None:
    if name.endswith("/"):
        use.client.delete(prefix=name, cancel=use.cancel)
    elif name in _names(name, use):
        use.client.delete(name, cancel=use.cancel)
