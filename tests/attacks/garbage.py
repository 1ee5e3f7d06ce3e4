"""Bytes that are no request."""

import time

import http2
import sockets
from access import Access
from attack import Attack, in_threads
from guard import STRANGER

THREADS = 3
LIMIT = 3000  # connections a thread
TLS_HELLO = bytes.fromhex(
    "16030100a5010000a10303") + bytes(range(32)) + bytes.fromhex(
    "00001cc02bc02fcca9cca8c02cc030c00ac009c013c014009c009d002f00350100005c") + bytes(92)


def _flood(target, outcome, address, draw):
    """Connections with drawn bytes, one after the other in each thread."""
    def work(target, outcome, worker):
        rng = target.rng(worker)
        for _ in range(LIMIT):
            if target.left() <= 0:
                return
            try:
                s = sockets.connect(address, timeout=1)
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.05)
                continue
            name, data = draw(rng)
            sockets.send_all(s, data, 0.5)
            if rng.random() < 0.3:
                sockets.received(s, 0.05)
            if rng.random() < 0.3:
                sockets.reset(s)
            else:
                s.close()
            outcome.count(name)

    in_threads(THREADS, work, target, outcome)


def _random_frames(rng):
    """A valid preface, then frames of any kind, flags, stream and payload."""
    frames = b"".join(
        http2.frame(rng.randrange(16), rng.randrange(256),
                    rng.choice([0, 1, 2, 3, rng.getrandbits(31)]),
                    rng.randbytes(rng.choice([0, 1, 4, 5, 6, 8, 100, 16384])))
        for _ in range(rng.randrange(1, 30)))
    return http2.PREFACE + http2.settings({}) + frames


def _broken_call(rng):
    """A call, some bits of it turned over."""
    fields = http2.request_fields(Access(""), "MultiplyUnary")
    data = bytearray(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields)
                     + http2.frame(http2.DATA, http2.END_STREAM, 1,
                                   http2.message(rng.randbytes(rng.randrange(200)))))
    for _ in range(rng.randrange(4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return http2.PREFACE + http2.settings({}) + bytes(data)


def _draw_grpc(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return "random bytes", rng.randbytes(rng.choice([1, 9, 24, 1000, 100000]))
    if kind == 1:
        return "TLS hello", TLS_HELLO
    if kind == 2:
        return "HTTP/1.1", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * rng.randrange(1, 50)
    if kind == 3:
        return "part of the preface", http2.PREFACE[:rng.randrange(24)] + rng.randbytes(40)
    if kind == 4:
        return "random frames", _random_frames(rng)
    return "broken calls", _broken_call(rng)


def _draw_http(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return "random bytes", rng.randbytes(rng.choice([1, 9, 24, 1000, 100000]))
    if kind == 1:
        return "TLS hello", TLS_HELLO
    if kind == 2:
        return "HTTP/2 preface", http2.PREFACE + http2.settings({}) * 20
    if kind == 3:
        line = bytearray(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")
        for _ in range(rng.randrange(1, 5)):
            line[rng.randrange(len(line))] = rng.randrange(256)
        return "broken requests", bytes(line)
    method = rng.choice([b"", b"GET", b"PUT", b"\0" * 9, b"A" * 9000, b"CONNECT", b"TRACE"])
    path = rng.choice([b"/", b"*", b"/metrics/../../etc/passwd", b"http://x:99999/", b"\xff\xfe",
                       b"/%00%0d%0a", b"/" + b"p" * 20000])
    version = rng.choice([b"HTTP/1.1", b"HTTP/9.9", b"HTTP/1.1\0", b"", b"ICY"])
    return "odd requests", b" ".join([method, path, version]) + b"\r\nHost: x\r\n\r\n"


def grpc_port(target, outcome):
    _flood(target, outcome, target.server, _draw_grpc)


def http_port(target, outcome):
    _flood(target, outcome, target.metrics, _draw_http)


ATTACKS = [
    Attack("garbage-grpc", "random bytes, TLS, HTTP/1.1 and broken frames at the gRPC port",
           grpc_port,
           by=(STRANGER,)),
    Attack("garbage-http", "random bytes, TLS, HTTP/2 and odd requests at the metrics port",
           http_port,
           by=(STRANGER,)),
]
