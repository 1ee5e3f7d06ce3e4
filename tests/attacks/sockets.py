"""Connections to the server by hand, of TCP and of TLS."""

import resource
import select
import socket
import ssl
import struct


def raise_own_limit():
    """An attacker needs descriptors, too."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connect(address, timeout=5.0, receive_bytes=0, source=""):
    """A connection, from the address `source`; with `receive_bytes` one whose receive window is
    no larger."""
    host, port = address.split(":")
    s = socket.socket()
    s.settimeout(timeout)
    if source:
        s.bind((source, 0))
    if receive_bytes:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    try:
        s.connect((host, int(port)))
    except OSError:
        s.close()
        raise
    return s


def open_to(access, timeout=5.0, receive_bytes=0, source=""):
    """A connection as `access` has it: after the handshake, where that is TLS."""
    s = connect(access.address, timeout, receive_bytes, source)
    if not access.ca:
        return s
    try:
        return access.tls_context().wrap_socket(s, server_hostname=access.address.split(":")[0])
    except OSError:
        s.close()
        raise


def reset(s):
    """Closes with a RST in place of a FIN."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def is_open(s):
    """False once the server has ended the connection and all it sent was read."""
    s.setblocking(False)
    try:
        while True:
            if not s.recv(65536):
                return False
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def is_open_now(s):
    """As is_open, but takes nothing that is still to be read; of TLS not what is encrypted."""
    try:
        return bool(socket.socket.recv(s, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


def received(s, seconds):
    """What comes within `seconds`, and whether the server has then ended the connection."""
    s.settimeout(seconds)
    data = b""
    try:
        while len(data) < 1 << 20:
            piece = s.recv(65536)
            if not piece:
                return data, True
            data += piece
    except TimeoutError:
        return data, False
    except OSError:
        return data, True
    return data, False


def send_all(s, data, seconds=2.0):
    """Sends what the server takes within `seconds`; the bytes sent."""
    s.settimeout(seconds)
    sent = 0
    try:
        while sent < len(data):
            sent += s.send(data[sent:sent + (1 << 16)])
    except OSError:
        pass
    return sent


def readable(s, seconds):
    """Whether bytes have come; of TLS they may be none of the application's."""
    if isinstance(s, ssl.SSLSocket) and s.pending():
        return True
    poll = select.poll()  # select knows no descriptors above 1023
    poll.register(s, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
