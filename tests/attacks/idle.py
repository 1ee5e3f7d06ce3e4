"""Connections by the thousand, that have done their handshakes and do nothing more."""

import pathlib
import resource
import time

import http2
import sockets
import watcher
from attack import Attack, in_threads
from guard import STRANGER

CONNECTIONS = 10_000
THREADS = 16  # a handshake waits for the server most of its time
# Connections, descriptors and ports that the attack leaves free: the bystander needs some.
FREE_CONNECTIONS, FREE_DESCRIPTORS, FREE_PORTS = 200, 100, 1000
PORTS = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
LEAST_OPENED = 0.5   # of the connections that the limits allow; with fewer it is no attack
# At most. Longer does not help: a connection that was silent for 60 s gets a ping, which nobody here
# answers, and is closed (--send-timeout).
SECONDS = 72.0
OPENING = 0.85       # of that time, at most; two cores open some 150 a second
HOLDING_SECONDS = 5  # once they are open


def _limits(target):
    """{what bounds the connections: how many it allows}"""
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = watcher.series(target.metrics).get('gemmd_connections_limit{listener="grpc"}', 0)
    first, last = map(int, PORTS.read_text(encoding="ascii").split())
    limits = {"the attack itself": CONNECTIONS, "--max-connections": int(server) - FREE_CONNECTIONS,
              "ephemeral ports": last - first + 1 - FREE_PORTS}
    if own != resource.RLIM_INFINITY:
        limits["ulimit -n of the attacker"] = own - FREE_DESCRIPTORS
    return limits


def idle(target, outcome):
    limits, total = _limits(target), target.left()
    bound = min(limits, key=limits.get)
    count = max(0, limits[bound])
    outcome.count(f"connections that {bound} allows", count)
    crowd = []

    def work(target, outcome, worker):
        for _ in range(worker, count, THREADS):
            if target.left() < (1 - OPENING) * total:
                outcome.count("threads whose time was over before all were open")
                return
            try:
                crowd.append(http2.Connection(target.attacker()))
            except OSError as error:
                outcome.count(f"connections that failed with {type(error).__name__}")

    in_threads(THREADS, work, target, outcome)
    outcome.count("connections opened", len(crowd))
    if len(crowd) < LEAST_OPENED * count or not count:
        outcome.fault(f"connections opened: {len(crowd)}, at least {LEAST_OPENED:.0%} of the "
                      f"{count} that {bound} allows needed")
    time.sleep(min(HOLDING_SECONDS, target.left()))
    outcome.count("connections ended by the server",
                  sum(not sockets.is_open(c.socket) for c in crowd))


ATTACKS = [
    Attack("idle", f"up to {CONNECTIONS:,} connections that do nothing after their handshakes", idle,
           by=(STRANGER,), guarded_only=True, seconds=SECONDS),
]
