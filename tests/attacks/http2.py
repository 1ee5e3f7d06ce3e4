"""HTTP/2 by hand (RFC 9113), for what no gRPC library would send."""

import ssl
import struct
import time

import sockets

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, \
    MAX_HEADER_LIST_SIZE = range(1, 7)
LARGEST_WINDOW = (1 << 31) - 1
FRAME_BYTES = 16384
# Loopback has many addresses, and the bystander comes from another one: what the server refuses
# the address of a flood is no harm to it.
ELSEWHERE = "127.0.0.2"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(values):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", k, v) for k, v in values.items()))


def window_update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def rst_stream(stream, code=8):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def _integer(value, bits):
    """An HPACK integer whose first byte has `bits` bits for it."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    out, value = bytearray([most]), value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + bytes([value]))


def field(name, value):
    """A header field that goes into no table (RFC 7541, 6.2.2)."""
    return b"\0" + b"".join(_integer(len(text), 7) + text for text in (name, value))


def request_fields(access, method, extra=()):
    """The header block of a gRPC call: a method of the contract, or the path of another one."""
    path = method if method.startswith("/") else "/gemm.v1.GemmService/" + method
    shown = [(key.encode(), value.encode()) for key, value in access.metadata()]
    fields = [(b":method", b"POST"), (b":scheme", b"https" if access.ca else b"http"),
              (b":path", path.encode()), (b":authority", b"localhost"),
              (b"content-type", b"application/grpc"), (b"te", b"trailers"), *shown, *extra]
    return b"".join(field(name, value) for name, value in fields)


def message(data, compressed=False, length=None):
    """A gRPC message; `length` is what its prefix says."""
    return struct.pack(">BI", compressed, len(data) if length is None else length) + data


class Connection:
    """A client's end. Nothing is read from the server unless asked for."""

    def __init__(self, access, initial_window=65535, connection_window=65535, receive_bytes=0):
        self.access = access
        source = ELSEWHERE if access.address.startswith("127.") else ""
        self.socket = sockets.open_to(access, receive_bytes=receive_bytes, source=source)
        self.next_stream = 1
        self.broken = False  # whether bytes could not be sent
        self._received = b""
        self.socket.sendall(PREFACE + settings({INITIAL_WINDOW_SIZE: initial_window}))
        if connection_window > 65535:
            self.socket.sendall(window_update(0, connection_window - 65535))

    def close(self):
        self.socket.close()

    def send(self, data, seconds=5.0):
        """True where the server took all of it."""
        taken = sockets.send_all(self.socket, data, seconds) == len(data)
        self.broken = self.broken or not taken
        return taken

    def open(self, method, extra=(), end=False):
        """Opens a call and returns its stream."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream,
                        request_fields(self.access, method, extra)))
        return stream

    def write(self, stream, data, end=False):
        """Sends bytes of a call. No window is kept: a few small messages fit the first one."""
        pieces = [data[i:i + FRAME_BYTES] for i in range(0, len(data), FRAME_BYTES)] or [b""]
        return self.send(b"".join(
            frame(DATA, END_STREAM if end and i == len(pieces) - 1 else 0, stream, piece)
            for i, piece in enumerate(pieces)))

    def call(self, method, data, end=True, extra=()):
        """A whole call with one message; its stream."""
        stream = self.open(method, extra)
        self.write(stream, message(data), end)
        return stream

    def write_slowly(self, stream, data, until, end=True):
        """Sends bytes of a call as the server's windows let it; the bytes sent by `until`."""
        sent, windows, start = 0, {0: 65535, stream: 65535}, 65535
        while sent < len(data):
            room = min(windows.values(), default=0)
            if room > 0:
                piece = data[sent:sent + min(room, FRAME_BYTES)]
                sent += len(piece)
                last = end and sent == len(data)
                if not self.send(frame(DATA, END_STREAM if last else 0, stream, piece)):
                    return sent
                for key in windows:
                    windows[key] -= len(piece)
                continue
            for kind, flags, key, payload in self.frames(0.2):
                if kind == WINDOW_UPDATE and key in windows:
                    windows[key] += struct.unpack(">I", payload)[0]
                elif kind == SETTINGS and not flags & ACK:
                    for name, value in struct.iter_unpack(">HI", payload):
                        if name == INITIAL_WINDOW_SIZE:
                            windows[stream] += value - start
                            start = value
                elif kind in (RST_STREAM, GOAWAY) or kind == HEADERS and key == stream:
                    return sent
                if min(windows.values()) > 0:
                    break
            if time.monotonic() > until or not sockets.is_open_now(self.socket):
                return sent
        return sent

    def frames(self, seconds):
        """(kind, flags, stream, payload) of what comes within `seconds`; acknowledges settings."""
        until = time.monotonic() + seconds
        while True:
            while len(self._received) >= 9:
                length = int.from_bytes(self._received[:3], "big")
                if len(self._received) < 9 + length:
                    break
                kind, flags, stream = struct.unpack(">BBI", self._received[3:9])
                payload = self._received[9:9 + length]
                self._received = self._received[9 + length:]
                if kind in (SETTINGS, PING) and not flags & ACK:
                    self.send(frame(kind, ACK, 0, payload if kind == PING else b""))
                yield kind, flags, stream, payload
            left = until - time.monotonic()
            if left <= 0 or not sockets.readable(self.socket, left):
                return
            self.socket.settimeout(max(left, 0.01))
            try:
                piece = self.socket.recv(1 << 16)
            except (TimeoutError, ssl.SSLWantReadError):
                continue  # a record of TLS that is not whole, or has nothing for us
            except OSError:
                return
            if not piece:
                return
            self._received += piece
