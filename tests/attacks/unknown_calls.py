"""Calls in numbers, of those whom the server refuses; and those that it answers everybody."""

import time

import http2
import sockets
import strangers
import wire
from attack import HOLDING_SECONDS, Attack, in_threads
from guard import STRANGER

THREADS = 3
BATCH = 40
CALLS = 20_000  # a connection, at most
WATCHES, WATCH_CONNECTIONS = 900, 8
WATCH = "/grpc.health.v1.Health/Watch"


def _token(rng):
    """The value of "authorization": one that the server takes for a token, or not."""
    kind = rng.randrange(5)
    if kind == 0:
        return b"Bearer " + rng.randbytes(16).hex().encode() * rng.randrange(1, 33)
    if kind == 1:
        return b"Bearer " + b"x" * rng.choice([1, 1024, 1025, 8000])
    if kind == 2:
        return rng.choice([b"", b"Bearer", b"Bearer ", b"Basic eDp5", b"Bearer  x", b"Bearer\tx"])
    return b"Bearer gemmd_" + rng.randbytes(32).hex().encode()[:43]


def _count_answers(connection, outcome, served, seconds=0.02):
    """Counts ends of calls and data; the latter is a fault where it is not to come.

    False where the connection is to end.
    """
    for kind, flags, stream, payload in connection.frames(seconds):
        if kind == http2.HEADERS and flags & http2.END_STREAM:
            outcome.count("calls ended")
        elif kind == http2.DATA and payload:
            outcome.count("calls answered")
            if not served:
                outcome.fault(f"stream {stream}: {len(payload)} bytes of an answer, 0 needed")
        elif kind == http2.RST_STREAM:
            outcome.count("calls reset")
        elif kind == http2.GOAWAY:
            return False
    return not connection.broken


def _flood(target, outcome, draw, served=False):
    """Whole calls, as many as the server takes; draw(rng) is (path, message, extra fields)."""
    def work(target, outcome, worker):
        rng = target.rng(worker)
        while target.left() > 0:
            try:
                connection = http2.Connection(target.attacker())
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.1)
                continue
            for _ in range(CALLS // BATCH):
                for _ in range(BATCH):
                    path, data, extra = draw(rng)
                    connection.call(path, data, extra=extra)
                outcome.count("calls", BATCH)
                if not _count_answers(connection, outcome, served) or target.left() <= 0:
                    break
            connection.close()
            outcome.count("connections")

    in_threads(THREADS, work, target, outcome)


def wrong_tokens(target, outcome):
    methods, product = wire.methods(), wire.messages().MultiplyUnaryRequest(
        product=wire.generated_product(64, 64, 64)).SerializeToString()

    def draw(rng):
        method = rng.choice(methods)
        data = product if method == "MultiplyUnary" else b""
        return method, data, [(b"authorization", _token(rng))]

    _flood(target, outcome, draw)


def health_checks(target, outcome):
    """Check, which everybody may call."""
    _flood(target, outcome, lambda rng: (strangers.HEALTH_CHECK, b"", ()), served=True)


def refused_watches(target, outcome):
    """Watch, which lasts, and is for known callers alone."""
    _flood(target, outcome, lambda rng: (WATCH, b"", ()))


def watches(target, outcome):
    """Streams of Watch, which the server keeps as long as their caller likes."""
    connections = []
    for _ in range(WATCH_CONNECTIONS):
        try:
            connections.append(http2.Connection(target.attacker()))
        except OSError:
            outcome.count("connections refused")
            continue
        for _ in range(WATCHES):
            if target.left() <= 0:
                break
            connections[-1].call(WATCH, b"")
            outcome.count("streams")
    for connection in connections:
        _count_answers(connection, outcome, served=True)
    target.wait()
    outcome.count("connections ended by the server",
                  sum(not sockets.is_open(c.socket) for c in connections))
    for connection in connections:
        connection.close()


ATTACKS = [
    Attack("wrong-tokens", f"{THREADS} connections full of calls with wrong tokens", wrong_tokens,
           by=(STRANGER,), guarded_only=True),
    Attack("health-checks", f"{THREADS} connections full of Health/Check", health_checks,
           by=(STRANGER,), guarded_only=True),
    Attack("refused-watches", f"{THREADS} connections full of Health/Watch", refused_watches,
           by=(STRANGER,), guarded_only=True),
    Attack("watches", f"{WATCHES * WATCH_CONNECTIONS:,} streams of Health/Watch", watches,
           by=("call",), guarded_only=True, seconds=HOLDING_SECONDS),
]
