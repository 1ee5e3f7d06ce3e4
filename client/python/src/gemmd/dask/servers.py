"""The servers of a product, as each process that runs tasks sees them: their connections, who of
them answers, and how fast they are."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .. import address as addresses
from .. import checks, errors
from ..call import Canceller
from ..client import Client
from ..options import Options, Retry

_NAMES = [one.name for one in fields(Options)]
# How long a server that failed is left alone: at first, and at most.
_FIRST_REST_SECONDS = 5.0
_LONGEST_REST_SECONDS = 120.0
# How much of the last tile counts in the mean of a server's times.
_NEWEST = 0.4
# A server that is not used may be faster by now: its time halves so often until it is tried again.
_HALF_SECONDS = 60.0

#: After these, a server may be well again later, and another one does the work meanwhile.
FAILURES = (
    errors.Unavailable, errors.DeadlineExceeded, errors.Cancelled, errors.ClientClosed,
    errors.DataLoss, errors.ResourceExhausted,
)  # fmt: skip


@dataclass(frozen=True)
class Server:
    """Where a server is and how workers connect to it: an address and options of `gemmd.connect`.

    It travels with the tasks. Credentials travel better as `token_file`, a path of the workers.
    """

    address: str
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @staticmethod
    def of(value: Any) -> Server:
        """Of an address, or of a mapping that has "address" and options of `gemmd.connect`."""
        if isinstance(value, Server):
            return value
        if isinstance(value, Mapping):
            options = dict(value)
            if "address" not in options:
                raise errors.InvalidArgument(
                    "servers: an entry has no \"address\"", field="servers"
                )
            where = options.pop("address")
            checks.keywords(options, _NAMES, "an entry of servers")
        else:
            where, options = value, {}
        server = Server(addresses.check(where, "servers"), tuple(sorted(options.items())))
        server.connect_options(1.0).check()
        return server

    def connect_options(self, patience: float) -> Options:
        given = {
            "progress": False, "connect_timeout": patience, "retry": Retry(attempts=3),
            "idle_timeout": math.inf,  # `_watch` asks a server that computes for long
        }  # fmt: skip
        return Options(**{**given, **dict(self.options)})


def parse(servers: Any) -> tuple[Server, ...]:
    """Each once. InvalidArgument where there is none."""
    given = [servers] if isinstance(servers, str | Mapping | Server) else list(servers)
    found = tuple(dict.fromkeys(map(Server.of, given)))
    if not found:
        raise errors.InvalidArgument("servers is empty; it must have one", field="servers")
    return found


class Use:
    """A server during one tile or one upload."""

    def __init__(self, client: Client, cancel: Canceller) -> None:
        self.client = client
        #: Ends the calls where the server answers no more.
        self.cancel = cancel


class State:
    """A server as this process knows it. Thread-safe."""

    def __init__(self, server: Server) -> None:
        self.server = server
        #: Folders of panels that are known to be there, whole.
        self.held: set[str] = set()
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._cancel = Canceller()
        self._users = 0
        self._watched = False
        self._rests_until = 0.0
        self._rest = _FIRST_REST_SECONDS
        # Mean seconds of a tile that it has for itself, as of the last one's end.
        self._pace: float | None = None
        self._last = 0.0

    def rests(self) -> float:
        """Seconds for which it is left alone; 0: it may be used."""
        return max(0.0, self._rests_until - time.monotonic())

    def wait_seconds(self, tiles: float = 1.0) -> float:
        """How long `tiles` more would take, by the ones before and those under way."""
        with self._lock:
            unused = 0.0 if self._users else time.monotonic() - self._last
            pace = (self._pace or 0.0) * math.pow(0.5, unused / _HALF_SECONDS)
            return (self._users + tiles) * pace

    def took(self, seconds: float) -> None:
        """A tile did, beside the others that are under way."""
        with self._lock:
            alone = seconds / max(1, self._users)
            old = alone if self._pace is None else self._pace
            self._pace = old + _NEWEST * (alone - old)
            self._last = time.monotonic()
            self._rest = _FIRST_REST_SECONDS

    @contextlib.contextmanager
    def use(self, patience: float) -> Iterator[Use]:
        """The server, watched meanwhile. One of FAILURES out of the block lets it rest."""
        try:
            with self._lock:
                cancel = self._cancel
                self._users += 1
                if not self._watched:
                    self._watched = True
                    threading.Thread(
                        target=self._watch, args=(patience,), daemon=True, name="gemmd-watch"
                    ).start()
            yield Use(self._connected(patience), cancel)
        except FAILURES as error:
            self._failed(error)
            raise
        finally:
            with self._lock:
                self._users -= 1

    def _connected(self, patience: float) -> Client:
        with self._lock:
            if self._client is not None:
                return self._client
        # Outside the lock: it may take `patience`.
        opened = Client(self.server.address, self.server.connect_options(patience))
        with self._lock:
            if self._client is None:
                self._client = opened
                return opened
            kept = self._client
        opened.close()
        return kept

    def _failed(self, error: errors.GemmdError) -> None:
        full = isinstance(error, errors.ResourceExhausted)
        with self._lock:
            if self.rests() == 0:  # the first of the calls that failed together
                self._rests_until = time.monotonic() + self._rest
                if not full:
                    self._rest = min(2 * self._rest, _LONGEST_REST_SECONDS)
            if full:
                return
            self.held.clear()
            client, self._client = self._client, None
            cancel, self._cancel = self._cancel, Canceller()
        cancel.cancel()
        if client is not None:  # it may wait for a server that does not answer
            threading.Thread(target=client.close, daemon=True, name="gemmd-close").start()

    def _watch(self, patience: float) -> None:
        """While it is used: asks it something small, which a server that works answers at once."""
        while True:
            end = time.monotonic() + patience / 2
            while time.monotonic() < end:
                time.sleep(min(0.2, patience / 4))
                with self._lock:
                    if self._users == 0:
                        self._watched = False
                        return
                    client = self._client
            if client is None:
                continue
            try:
                client.info(timeout=patience)
            except errors.GemmdError as error:
                if isinstance(error, errors.ResourceExhausted):
                    continue
                with self._lock:
                    current = client is self._client
                if current:
                    self._failed(error)


_states: dict[Server, State] = {}
_states_lock = threading.Lock()


def state(server: Server) -> State:
    """Of this process: one for each server."""
    with _states_lock:
        return _states.setdefault(server, State(server))


def usable(servers: Iterable[Server]) -> list[State]:
    return [one for one in map(state, servers) if one.rests() == 0]


class Patience:
    """How long a task waits while no server may be used."""

    #: Longer than the longest rest, so that each is tried again once.
    _SECONDS = 1.5 * _LONGEST_REST_SECONDS

    def __init__(self, servers: Iterable[Server]) -> None:
        self._states = [state(server) for server in servers]
        self._end: float | None = None
        self._last: dict[str, str] = {}

    def failed(self, one: State, error: errors.GemmdError) -> None:
        self._last[one.server.address] = f"{error.code}: {error}"

    def wait(self) -> None:
        """Until one may be used again. Unavailable names them all where that takes too long."""
        now = time.monotonic()
        self._end = self._end or now + self._SECONDS
        if now > self._end:
            each = "; ".join(f"{address}: {text}" for address, text in self._last.items())
            raise errors.Unavailable(
                f"servers: none of {len(self._states)} could be used for {self._SECONDS:g} s: {each}"
            )
        time.sleep(min(1.0, max(0.05, min(one.rests() for one in self._states))))
