"""What an attack is."""

import collections
import dataclasses
import itertools
import math
import random
import threading
import time
from collections.abc import Callable

import grpc

# How the counts begin that are no part of the attack: what strangers tried before it, and what
# of the server's doing ended it.
BEFOREHAND = "tried beforehand: "
ENDED_BY = "ended by "
# A file or a program that is not there is a mistake of the attack.
OWN_MISTAKES = (FileNotFoundError, PermissionError)
HOLDING_SECONDS = 8.5
# What was announced and did not come is given up by then: server.SHORT_TIMEOUTS are 2 s.
GIVEN_UP_SECONDS = 6.0


@dataclasses.dataclass(frozen=True)
class Target:
    """The server under attack, and until when; every attack is over soon after."""
    attackers: list  # of Access: who attacks, in turn
    metrics: str     # HOST:PORT of /metrics
    until: float     # time.monotonic
    seed: int
    _turn: itertools.count = dataclasses.field(default_factory=itertools.count)

    @property
    def server(self):
        """HOST:PORT of gRPC."""
        return self.attackers[0].address

    def attacker(self):
        """The access of the next connection."""
        return self.attackers[next(self._turn) % len(self.attackers)]

    def rng(self, worker=0):
        return random.Random(self.seed * 1000 + worker)

    def left(self):
        return max(0.0, self.until - time.monotonic())

    def wait(self):
        time.sleep(self.left())


class Outcome:
    """What an attack saw: counts by what happened, faults of the server, and its own mistakes."""

    def __init__(self):
        self.counts = collections.Counter()
        self.faults, self.mistakes = [], []
        self._lock = threading.Lock()

    def count(self, what, times=1):
        with self._lock:
            self.counts[what] += times

    def fault(self, text):
        with self._lock:
            if len(self.faults) < 10:
                self.faults.append(text)

    def mistake(self, text):
        with self._lock:
            if text not in self.mistakes and len(self.mistakes) < 10:
                self.mistakes.append(text)

    def ended(self, error):
        """Counts an end that a server may cause. Any other is a mistake of the attack."""
        text = f"{type(error).__name__}: {str(error)[:200]}"
        if isinstance(error, (OSError, grpc.RpcError)) and not isinstance(error, OWN_MISTAKES):
            self.count(ENDED_BY + text)
        else:
            self.mistake(text)


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    subject: str  # what is done, for the report
    run: Callable[[Target, Outcome], None]
    # Kinds of bystander calls that the server may refuse meanwhile, as documented, with
    # RESOURCE_EXHAUSTED or by closing the connection; and for how long from its begin.
    refused: frozenset = frozenset()
    refused_seconds: float = math.inf
    # Descriptors that the server may have; it is then a server of its own. 0: as it comes.
    descriptors: int = 0
    # How long it lasts at the least: where callers would be stopped, longer than the bound on
    # their calls, so that a stop is told from a delay.
    seconds: float = 2.0
    # How far the server's memory may rise meanwhile. 0: as far as it likes.
    peak_mib: int = 0
    # Whose attack it is on a server that asks who calls: guard.STRANGER, guard.FORGED or a
    # caller of guard.CALLERS. On a plain server it is anybody's.
    by: tuple = ("call",)
    # Not on a plain server.
    guarded_only: bool = False


@dataclasses.dataclass(frozen=True)
class Case:
    """An attack and whose it is."""
    attack: Attack
    by: str = ""  # of attack.by; empty on a plain server

    @property
    def title(self):
        return f"{self.attack.name} by {self.by}" if self.by else self.attack.name


def in_threads(count, work, target, outcome):
    """work(target, outcome, worker) in `count` threads; what ends one is told."""
    def one(worker):
        try:
            work(target, outcome, worker)
        except Exception as error:  # noqa: BLE001  (an attacker sees all sorts of ends)
            outcome.ended(error)

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(target.left() + 10)
