"""Clients that ask for much and do not read."""

import contextlib
import threading

import grpc

import http2
import sockets
import wire
from attack import GIVEN_UP_SECONDS, HOLDING_SECONDS, Attack

JOBS = 72             # with results of 8 MiB, generated
DOWNLOADS = 70        # of DOWNLOAD_ROWS x 4096 f32
DOWNLOAD_ROWS = 8768  # 137 MiB
MANY_DOWNLOADS = 600
UNARY_CALLS = 300
TINY_WINDOW = 4096    # bytes; the kernel makes it a little more
MATRIX = "attacks/unread"


def _large_matrix(target):
    """Keeps the matrix that is downloaded; what is left of it goes with the next attack."""
    channel = wire.channel(target.attacker())
    server_stub = wire.stub(channel)
    wire.delete(server_stub, MATRIX)
    wire.put_generated(server_stub, MATRIX, DOWNLOAD_ROWS, 4096, seconds=60)
    return channel, server_stub


def _download_request():
    pb = wire.messages()
    return pb.GetMatrixRequest(matrix=pb.MatrixRef(name=MATRIX))


def _result_8_mib(job_id=1):
    return wire.multiply_header(job_id, wire.generated_product(2048, 1024, 8))


def _ends(calls, outcome):
    """Counts how the server ended calls, cancels those that it did not."""
    for call in calls:
        if call.done():
            outcome.count(f"calls ended by the server with {call.code().name}")
        else:
            outcome.count("calls that stayed to the end")
            call.cancel()


def one_stream(target, outcome):
    """One Multiply stream, many large results, none read."""
    over = threading.Event()

    def requests():
        for job in range(JOBS):
            yield _result_8_mib(job + 1)
        over.wait()

    with wire.channel(target.attacker()) as channel:
        call = wire.stub(channel).Multiply(requests())
        target.wait()
        _ends([call], outcome)
        over.set()


def _raw_calls(target, outcome, method, request, calls, per_connection, end=True,
               **windows):
    """Calls by hand that the server cannot send all of; nothing is read."""
    connections = []
    for first in range(0, calls, per_connection):
        try:
            connections.append(http2.Connection(target.attacker(), **windows))
        except OSError:
            outcome.count("connections refused")
            continue
        for _ in range(min(per_connection, calls - first)):
            if target.left() <= 0:
                break
            connections[-1].call(method, request, end)
            outcome.count("calls")
    target.wait()
    outcome.count("connections ended by the server",
                  sum(not sockets.is_open(c.socket) for c in connections))
    for connection in connections:
        connection.close()


def many_streams(target, outcome):
    """As many streams as jobs, each with one large result, none read."""
    _raw_calls(target, outcome, "Multiply", _result_8_mib().SerializeToString(), JOBS, JOBS,
               end=False)


def _downloads(target, outcome, calls, per_connection, **windows):
    channel, server_stub = _large_matrix(target)
    with channel:
        _raw_calls(target, outcome, "GetMatrix", _download_request().SerializeToString(), calls,
                   per_connection, **windows)
        wire.delete(server_stub, MATRIX)


def downloads(target, outcome):
    """Downloads of one large matrix on one connection, none read."""
    _downloads(target, outcome, DOWNLOADS, DOWNLOADS)


def many_downloads(target, outcome):
    """More downloads than there are staging blocks, with windows that stay shut."""
    _downloads(target, outcome, MANY_DOWNLOADS, 50, initial_window=0)


def unary(target, outcome):
    """Unary products with results of 4 MiB behind a window that stays shut."""
    request = wire.messages().MultiplyUnaryRequest(product=wire.generated_product(1024, 1024, 8))
    _raw_calls(target, outcome, "MultiplyUnary", request.SerializeToString(), UNARY_CALLS, 30,
               initial_window=0)


def benchmark(target, outcome):
    """A benchmark whose rows nobody reads, and others that are refused meanwhile."""
    request = wire.small_benchmark(wire.info(target.attacker()))
    _raw_calls(target, outcome, "Benchmark", request.SerializeToString(), 8, 4, initial_window=0)


def shut_sockets(target, outcome):
    """Open HTTP/2 windows, but a TCP receive buffer that fills: every method, and /metrics."""
    channel, server_stub = _large_matrix(target)
    pb = wire.messages()
    unary_request = pb.MultiplyUnaryRequest(product=wire.generated_product(1024, 1024, 8))
    requests = [("GetMatrix", _download_request().SerializeToString(), True),
                ("Multiply", _result_8_mib().SerializeToString(), False),
                ("MultiplyUnary", unary_request.SerializeToString(), True),
                ("ListKernels", b"", True)]
    connections = []
    for i in range(40):
        connection = http2.Connection(target.attacker(), http2.LARGEST_WINDOW, http2.LARGEST_WINDOW,
                                      receive_bytes=TINY_WINDOW)
        connections.append(connection)
        method, request, end = requests[i % len(requests)]
        for _ in range(4):
            connection.call(method, request, end)
            outcome.count("calls")
    scrapes = [sockets.connect(target.metrics, receive_bytes=TINY_WINDOW) for _ in range(8)]
    for scrape in scrapes:
        sockets.send_all(scrape, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200, 0.2)
        outcome.count("scrapes", 200)
    target.wait()
    for s in [c.socket for c in connections] + scrapes:
        with contextlib.suppress(OSError):
            s.close()
    with channel, contextlib.suppress(grpc.RpcError):
        wire.delete(server_stub, MATRIX)


ATTACKS = [
    Attack("unread-stream", f"one stream, {JOBS} results of 8 MiB, none read", one_stream,
           seconds=HOLDING_SECONDS),
    Attack("unread-streams", f"{JOBS} streams with a result of 8 MiB each, none read",
           many_streams,
           seconds=HOLDING_SECONDS),
    Attack("unread-downloads", f"{DOWNLOADS} downloads of 137 MiB, none read", downloads,
           seconds=HOLDING_SECONDS, by=("matrices",)),
    Attack("unread-many", f"{MANY_DOWNLOADS} downloads behind shut windows", many_downloads,
           seconds=HOLDING_SECONDS, by=("matrices",)),
    # All products are computed, here and below, so the queue is long for a while.
    Attack("unread-unary", f"{UNARY_CALLS} unary products of 4 MiB behind shut windows", unary,
           refused=frozenset({"product"}), refused_seconds=GIVEN_UP_SECONDS,
           seconds=HOLDING_SECONDS),
    Attack("unread-benchmark", "a benchmark whose rows nobody reads", benchmark,
           seconds=HOLDING_SECONDS, by=("benchmark",)),
    Attack("unread-sockets", "160 calls and 1,600 scrapes into TCP buffers that fill",
           shut_sockets,
           refused=frozenset({"product"}), refused_seconds=GIVEN_UP_SECONDS,
           seconds=HOLDING_SECONDS, by=("matrices",)),
]
