"""Connections by the thousand, that have done their handshakes and do nothing more."""

import resource
import time

import http2
import sockets
import watcher
from attack import Attack, in_threads
from guard import STRANGER

CONNECTIONS = 10_000
THREADS = 16  # a handshake waits for the server most of its time
# Connections and descriptors that the attack leaves free: the bystander needs some.
FREE_CONNECTIONS, FREE_DESCRIPTORS = 200, 100
LEAST_OPENED = 0.5   # of the connections that the limits allow; with fewer it is no attack
SECONDS = 60.0       # at most
OPENING = 0.85       # of that time, at most
HOLDING_SECONDS = 5  # once they are open


def _how_many(target):
    """As many as the server and this process may have."""
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = watcher.series(target.metrics).get('gemmd_connections_limit{listener="grpc"}', 0)
    return max(0, min(CONNECTIONS, int(limit) - FREE_CONNECTIONS, own - FREE_DESCRIPTORS))


def idle(target, outcome):
    count, total = _how_many(target), target.left()
    outcome.count("connections that the limits on descriptors allow", count)
    crowd = []

    def work(target, outcome, worker):
        for _ in range(worker, count, THREADS):
            if target.left() < (1 - OPENING) * total:
                return
            try:
                crowd.append(http2.Connection(target.attacker()))
            except OSError as error:
                outcome.count(f"connections that failed with {type(error).__name__}")

    in_threads(THREADS, work, target, outcome)
    outcome.count("connections opened", len(crowd))
    if len(crowd) < LEAST_OPENED * count or not count:
        outcome.fault(f"connections opened: {len(crowd)}, at least {LEAST_OPENED:.0%} of the "
                      f"{count} that the limits on descriptors allow needed")
    time.sleep(min(HOLDING_SECONDS, target.left()))
    outcome.count("connections ended by the server",
                  sum(not sockets.is_open(c.socket) for c in crowd))


ATTACKS = [
    Attack("idle", f"up to {CONNECTIONS:,} connections that do nothing after their handshakes", idle,
           by=(STRANGER,), guarded_only=True, seconds=SECONDS),
]
