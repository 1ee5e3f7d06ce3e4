"""One tile of the result: which server computes it, its steps along k, and another server where
that one fails."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes, errors
from . import panels, servers, tasks
from .panels import Block, Panel
from .servers import Server, State, Use

#: How often a tile is begun before its failure is raised.
MOST_TRIES = 6
# A panel that is not where the tile runs has to be fetched: as long as so many tiles take.
_ABROAD_TILES = 1.0


@dataclass(frozen=True)
class Job:
    """What the tiles of a product share."""

    servers: tuple[Server, ...]
    #: numpy's names.
    accumulator: str
    result: str
    compute: str | None
    #: First part of the names of tiles under way.
    folder: str
    patience: float
    ttl: float


def tile(a: Panel, b: Panel, job: Job) -> Any:
    """Task: the product of a row of x and a column of y."""
    shape = (a.blocks[0].shape[0], b.blocks[0].shape[1])
    result = dtypes.to_numpy(dtypes.parse(job.result, "dtype"))
    steps = [(left, right) for left, right in zip(a.blocks, b.blocks) if left.shape[1]]
    if 0 in shape or not steps:
        return np.zeros(shape, result)
    a.own()
    b.own()
    try:
        return _Run(a, b, job, steps).somewhere().astype(result, copy=False)
    except panels.Lost as error:
        lost = error.panel
    if lost.key is None:
        raise errors.Unavailable(f"{lost.folder}: its blocks are on no server that answers")
    if not _losses.another(lost.key, lost.making):
        raise errors.Unavailable(
            f"{lost.folder}: its blocks were put {MOST_TRIES} times, and each time they were on no "
            f"server when a tile came; they live for ttl={job.ttl:g} s after their last use: give "
            "a longer ttl"
        )
    tasks.make_again(lost.key)


class _Losses:
    """How often each panel of late was lost, as this process knows. Thread-safe."""

    _PANELS = 4096

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._makings: dict[Any, set[str]] = {}

    def another(self, key: Any, making: str) -> bool:
        """Whether the panel may be made again, after it was lost as made this time."""
        with self._lock:
            makings = self._makings.pop(key, set())
            makings.add(making)
            self._makings[key] = makings  # the latest is the last
            if len(self._makings) > self._PANELS:
                del self._makings[next(iter(self._makings))]
            return len(makings) < MOST_TRIES


_losses = _Losses()


class _Run:
    """A tile under way."""

    def __init__(self, a: Panel, b: Panel, job: Job, steps: list[tuple[Block, Block]]) -> None:
        self._a = a
        self._b = b
        self._job = job
        self._steps = steps
        self._place = (a.index, b.index)
        self._wanted = tasks.wanted()

    def somewhere(self) -> Any:
        """The tile, in the accumulator's type, from whichever server has made it."""
        patience = servers.Patience(self._job.servers)
        tries = 0
        while True:
            one = self._choose()
            if one is None:
                patience.wait()
                continue
            start = time.monotonic()
            event = {"tile": self._place, "server": one.server.address, "steps": 0}
            try:
                with one.use(self._job.patience) as use:
                    product = self._on(use, one, event)
                    one.took(time.monotonic() - start)
                event["failure"] = None
                return product
            except servers.FAILURES as error:
                event["failure"] = f"{error.code}: {error}"
                self._check_wanted()
                patience.failed(one, error)
                tries += 1
                if tries == MOST_TRIES:
                    raise
            except panels.Lost:
                event["failure"] = "a panel was lost"
                raise
            finally:
                event["seconds"] = time.monotonic() - start
                tasks.record(event)

    def _choose(self) -> State | None:
        """The server that would have it first."""
        best, least = None, float("inf")
        for one in servers.usable(self._job.servers):
            abroad = sum(
                not panel.at_home(one.server) and panel.folder not in one.held
                for panel in (self._a, self._b)
            )
            # A panel at home decides as long as no tile has ended.
            seconds = one.wait_seconds(1 + abroad * _ABROAD_TILES) + abroad * 1e-3
            if seconds < least:
                best, least = one, seconds
        return best

    def _on(self, use: Use, one: State, event: dict[str, Any]) -> Any:
        """On this server. Where it has dropped a panel's block, that is put again."""
        name = f"{self._job.folder}/{secrets.token_hex(8)}"
        addend = None
        place, tries = 0, 0
        try:
            while True:
                put = time.monotonic()
                panels.ensure(self._a, use, one)
                panels.ensure(self._b, use, one)
                try:
                    for step in range(place, len(self._steps)):
                        place = step
                        addend = self._step(use, step, name, addend)
                        event["steps"] += 1
                    return addend
                except errors.NotFound as error:
                    for panel in (self._a, self._b):
                        one.held.discard(panel.folder)
                    if not event["steps"] and time.monotonic() - put > self._job.ttl:
                        raise errors.FailedPrecondition(
                            f"ttl is {self._job.ttl:g} s; to put the panels of a tile on "
                            f"{one.server.address} took longer, and the first of their blocks was "
                            "gone: give a longer ttl"
                        ) from None
                    tries += 1
                    if tries == MOST_TRIES:
                        raise errors.Unavailable(
                            f"{one.server.address} drops what is put there: {error}"
                        ) from None
                    if place and not use.client.exists(name, cancel=use.cancel):
                        place, addend = 0, None
        finally:
            if len(self._steps) > 1 and event["steps"]:
                self._forget(use, name)

    def _step(self, use: Use, step: int, name: str, addend: Any) -> Any:
        """The product of two blocks, added to what is there: a handle, or the last one's array."""
        self._check_wanted()
        job = self._job
        left, right = (
            panels.handle(block, use, self._a.place.dtype) for block in self._steps[step]
        )
        options = {
            "c": addend, "dtype": job.accumulator, "compute": job.compute, "cancel": use.cancel,
        }  # fmt: skip
        if step + 1 == len(self._steps):
            if step == 0:  # the server rounds it
                options["dtype"] = job.result
            return use.client.matmul(left, right, **options)
        use.client.keep(left, right, name=name, replace=True, ttl=job.ttl, **options)
        shape = (left.shape[0], right.shape[1])
        return use.client.matrix(name, shape=shape, dtype=job.accumulator)

    def _check_wanted(self) -> None:
        if not self._wanted():
            raise _NotWanted(self._place)

    @staticmethod
    def _forget(use: Use, name: str) -> None:
        try:
            use.client.delete(name, timeout=5)
        except errors.GemmdError:  # it expires
            pass


class _NotWanted(Exception):
    """Dask has cancelled this tile, and looks at no result of it."""
