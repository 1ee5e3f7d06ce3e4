"""Slow and endless requests to /metrics."""

import contextlib
import time

import sockets
from attack import HOLDING_SECONDS, Attack, in_threads
from guard import STRANGER

IDLE = 100
DRIPS = 40
ENDLESS_BYTES = 32 << 20  # a connection, at most
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"


def _count_ends(connections, outcome):
    for s in connections:
        outcome.count("connections ended by the server" if not sockets.is_open(s)
                      else "connections that stayed to the end")
        s.close()


def _connect_all(target, outcome, count):
    connections = []
    for _ in range(count):
        if target.left() <= 0:
            break
        with contextlib.suppress(OSError):
            connections.append(sockets.connect(target.metrics, timeout=0.5))
    outcome.count("connections", len(connections))
    return connections


def idle(target, outcome):
    """Connections that say nothing."""
    connections = _connect_all(target, outcome, IDLE)
    target.wait()
    _count_ends(connections, outcome)


def drip(target, outcome):
    """A header that comes byte by byte, and never ends."""
    connections = _connect_all(target, outcome, DRIPS)
    text = GET + b"X-Slow: " + b"a" * 4096
    for at in range(len(text)):
        if target.left() <= 0:
            break
        for s in connections:
            sockets.send_all(s, text[at:at + 1], 0.1)
        time.sleep(min(0.1, target.left()))
    _count_ends(connections, outcome)


def endless(target, outcome):
    """Header lines without end, as fast as they go; and one line that is all of it."""
    def work(target, outcome, worker):
        while target.left() > 0:
            try:
                s = sockets.connect(target.metrics, timeout=1)
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.1)
                continue
            piece = b"X-A: b\r\n" * 1024 if worker % 2 else b"a" * 8192
            sent = sockets.send_all(s, GET + (b"" if worker % 2 else b"X-Huge: "), 1)
            while sent < ENDLESS_BYTES and target.left() > 0:
                got = sockets.send_all(s, piece, 1)
                sent += got
                if got < len(piece):
                    break
            answer, _ = sockets.received(s, 0.2)
            outcome.count("answer " + (answer[:12].decode("latin-1") if answer else "none"))
            outcome.count("MiB sent", sent >> 20)
            s.close()

    in_threads(4, work, target, outcome)


def bodies(target, outcome):
    """Bodies that are announced and drip, chunked ones, and requests in one go."""
    starts = [b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n",
              GET + b"Content-Length: 1000000000\r\n\r\n",
              b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
              GET + b"Expect: 100-continue\r\nContent-Length: 99\r\n\r\n",
              (GET + b"\r\n") * 200]
    connections = _connect_all(target, outcome, 4 * len(starts))
    for i, s in enumerate(connections):
        sockets.send_all(s, starts[i % len(starts)], 0.2)
    while target.left() > 0:
        for s in connections:
            sockets.send_all(s, b"1\r\na\r\n", 0.1)
        time.sleep(min(0.2, target.left()))
    _count_ends(connections, outcome)


ATTACKS = [
    Attack("http-idle", f"{IDLE} silent connections to /metrics", idle,
           seconds=HOLDING_SECONDS, by=(STRANGER,)),
    Attack("http-drip", f"{DRIPS} headers byte by byte", drip,
           seconds=HOLDING_SECONDS, by=(STRANGER,)),
    Attack("http-endless", "headers without end, 32 MiB each", endless, peak_mib=64,
           by=(STRANGER,)),
    Attack("http-bodies", "bodies announced and dripping, 200 requests in one go", bodies,
           by=(STRANGER,)),
]
