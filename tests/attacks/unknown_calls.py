"""Calls in numbers, of those whom the server refuses; and calls of health."""

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
ANSWER_SECONDS = 10  # in which calls that were sent must be refused
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
    """Check, which is for known callers alone."""
    known = not target.attackers[0].stranger
    _flood(target, outcome, lambda rng: (strangers.HEALTH_CHECK, b"", ()), served=known)


def silent_health_checks(target, outcome):
    """Calls of Check whose message never comes.

    A stranger's are refused at their headers. A known caller's may last: gRPC's own service has
    no bound on that time, so the bounds are the streams of a connection and the memory.
    """
    connections = []
    for _ in range(WATCH_CONNECTIONS):
        connection = http2.Connection(target.attacker())
        connections.append(connection)
        opened = 0
        while opened < WATCHES and target.left() > 0:
            connection.open(strangers.HEALTH_CHECK)
            opened += 1
        outcome.count("calls", opened)
        if connection.access.stranger:
            _check_refused(connection, outcome, opened)
    target.wait()
    for connection in connections:
        connection.close()


def _check_refused(connection, outcome, opened):
    """A fault where calls are not ended, without a message of theirs."""
    ended = 0
    for kind, flags, _, _ in connection.frames(ANSWER_SECONDS if opened else 0):
        ended += kind == http2.HEADERS and bool(flags & http2.END_STREAM)
        if ended == opened:
            break
    outcome.count("calls ended", ended)
    if ended < opened:
        outcome.fault(f"calls without a message {connection.access.who}: {ended} of {opened} "
                      f"ended within {ANSWER_SECONDS} s, all needed")


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
    if not outcome.counts["calls answered"]:
        outcome.fault("streams of Watch that were answered: 0, at least 1 needed")
    target.wait()
    outcome.count("connections ended by the server",
                  sum(not sockets.is_open(c.socket) for c in connections))
    for connection in connections:
        connection.close()


ATTACKS = [
    Attack("wrong-tokens", f"{THREADS} connections full of calls with wrong tokens", wrong_tokens,
           by=(STRANGER,), guarded_only=True),
    Attack("health-checks", f"{THREADS} connections full of Health/Check", health_checks,
           by=(STRANGER, "call"), guarded_only=True),
    Attack("silent-health-checks", f"{WATCHES * WATCH_CONNECTIONS:,} calls of Health/Check without "
           "their message", silent_health_checks, by=(STRANGER, "call"), guarded_only=True,
           seconds=HOLDING_SECONDS, peak_mib=256),
    Attack("refused-watches", f"{THREADS} connections full of Health/Watch", refused_watches,
           by=(STRANGER,), guarded_only=True),
    Attack("watches", f"{WATCHES * WATCH_CONNECTIONS:,} streams of Health/Watch", watches,
           by=("call",), guarded_only=True, seconds=HOLDING_SECONDS, peak_mib=256),
]
