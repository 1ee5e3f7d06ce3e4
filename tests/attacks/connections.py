"""More connections than the server can have, and connections that come and go."""

import contextlib
import time

import http2
import sockets
from attack import Attack, in_threads
from guard import NOBODY, STRANGER

DESCRIPTORS = 256
CONNECTIONS = 700
ALONE_SECONDS = 8.0
CHURN_THREADS = 4
CHURN_LIMIT = 1000  # connections a thread


def _crowd(address, outcome, count):
    """So many connections at once, those that the server or the kernel lets be."""
    crowd = []
    for _ in range(count):
        try:
            crowd.append(sockets.connect(address, timeout=0.2))
        except OSError:
            outcome.count("connections refused")
            break  # the backlog is full, and would be for the rest
    outcome.count("connections opened", len(crowd))
    return crowd


def beyond_descriptors(target, outcome):
    """Both ports in turn, then both at once: hold the crowd, let go, and begin again."""
    begin, total = time.monotonic(), target.left()
    for share, addresses in ((0.3, [target.server]), (0.6, [target.metrics]),
                             (1.0, [target.server, target.metrics])):
        crowd = [s for address in addresses for s in _crowd(address, outcome, CONNECTIONS)]
        time.sleep(max(0.0, begin + share * total - time.monotonic()))
        outcome.count("connections ended by the server",
                      sum(not sockets.is_open(s) for s in crowd))
        for s in crowd:
            s.close()


def churn(target, outcome):
    """Connections that end at once, in several ways."""
    def work(target, outcome, worker):
        rng = target.rng(worker)
        for _ in range(CHURN_LIMIT):
            if target.left() <= 0:
                return
            address = target.server if rng.random() < 0.8 else target.metrics
            try:
                s = sockets.connect(address, timeout=1)
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.05)
                continue
            with contextlib.suppress(OSError):
                if rng.random() < 0.5:
                    s.sendall(http2.PREFACE[:rng.randrange(len(http2.PREFACE) + 1)])
                if rng.random() < 0.2:
                    s.sendall(http2.settings({}))
            if rng.random() < 0.5:
                sockets.reset(s)
            else:
                s.close()
            outcome.count("connections opened")

    in_threads(CHURN_THREADS, work, target, outcome)


def alone(target, outcome):
    """Nobody: what the served caller sees then."""
    target.wait()
    outcome.count("seconds", round(ALONE_SECONDS))


ATTACKS = [
    Attack("alone", "nobody attacks", alone, seconds=ALONE_SECONDS, by=(NOBODY,),
           guarded_only=True),
    Attack("connections", f"{CONNECTIONS} connections a port at a server with {DESCRIPTORS} "
           "descriptors", beyond_descriptors, descriptors=DESCRIPTORS,
           refused=frozenset({"connect", "scrape"}),
           by=(STRANGER,)),
    Attack("churn", f"{CHURN_THREADS} threads that connect and go", churn,
           by=(STRANGER,)),
]
