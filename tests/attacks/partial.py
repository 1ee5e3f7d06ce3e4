"""Calls and messages that begin and do not end, and messages that are not what they say."""

import contextlib
import struct
import time

import http2
import sockets
import wire
from attack import HOLDING_SECONDS, Attack, in_threads
from guard import STRANGER

SILENT_CONNECTIONS, SILENT_CALLS = 8, 900
PARTIAL_CALLS = 40
MESSAGE_BYTES = 16 << 20


def silent_calls(target, outcome):
    """Calls that are opened, of any method, and send nothing at all."""
    connections, methods = [], wire.methods()
    for i in range(SILENT_CONNECTIONS):
        with contextlib.suppress(OSError):
            connection = http2.Connection(target.attacker())
            connections.append(connection)
            for j in range(SILENT_CALLS):
                if target.left() <= 0:
                    break
                connection.open(methods[(i + j) % len(methods)])
                outcome.count("calls")
    target.wait()
    outcome.count("connections ended by the server",
                  sum(not sockets.is_open(c.socket) for c in connections))
    for connection in connections:
        connection.close()


def partial_messages(target, outcome):
    """Messages that lack their last byte, as long as the server takes them."""
    data = struct.pack(">BI", 0, MESSAGE_BYTES) + bytes(MESSAGE_BYTES - 1)

    def work(target, outcome, worker):
        connection = http2.Connection(target.attacker())
        stream = connection.open(["MultiplyUnary", "Multiply", "PutMatrix"][worker % 3])
        sent = connection.write_slowly(stream, data, target.until, end=False)
        outcome.count("MiB sent", sent >> 20)
        target.wait()
        outcome.count("connections ended by the server", not sockets.is_open(connection.socket))
        connection.close()

    in_threads(PARTIAL_CALLS, work, target, outcome)


def _messages(rng):
    """(what it is, a gRPC message) that no server can make sense of."""
    good = wire.messages().MultiplyUnaryRequest(
        product=wire.generated_product(4, 4, 4)).SerializeToString()
    kind = rng.randrange(6)
    if kind == 0:
        return "random bytes", http2.message(rng.randbytes(rng.randrange(1, 2000)))
    if kind == 1:
        return "length of 4 GiB", http2.message(good, length=(1 << 32) - 1)
    if kind == 2:
        return "length too small", http2.message(good, length=rng.randrange(len(good)))
    if kind == 3:
        return "empty message", http2.message(b"")
    if kind == 4:
        return "nested deeply", http2.message(_nested(rng.randrange(50, 20000)))
    data = bytearray(good)
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return "bytes changed", http2.message(bytes(data))


def _nested(depth):
    """Groups that begin in one another: what a parser recurses into."""
    return b"\x0b" * depth


def bad_messages(target, outcome):
    """Messages that do not parse, or say another length than theirs."""
    methods = wire.methods()

    def work(target, outcome, worker):
        rng = target.rng(worker)
        while target.left() > 0:
            try:
                connection = http2.Connection(target.attacker())
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.1)
                continue
            for _ in range(30):
                what, data = _messages(rng)
                stream = connection.open(rng.choice(methods))
                connection.write(stream, data[:60000], end=rng.random() < 0.8)
                outcome.count(what)
            for _ in connection.frames(0.05):
                pass
            connection.close()

    in_threads(3, work, target, outcome)


ATTACKS = [
    Attack("silent-calls", f"{SILENT_CONNECTIONS * SILENT_CALLS:,} calls that send nothing",
           silent_calls,
           seconds=HOLDING_SECONDS, by=(STRANGER, "benchmark")),
    Attack("partial-messages", f"{PARTIAL_CALLS} messages of 16 MiB without their last byte",
           partial_messages,
           seconds=HOLDING_SECONDS, by=(STRANGER, "matrices")),
    Attack("bad-messages", "messages that do not parse, or lie about their length",
           bad_messages,
           by=(STRANGER, "benchmark")),
]
