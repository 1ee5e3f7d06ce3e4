"""Records of TLS that no client sends, in a handshake and after it."""

import contextlib
import socket
import struct
import subprocess
import time

import http2
import sockets
from attack import Attack, in_threads
from guard import FORGED, STRANGER
from tls_handshakes import BOUND_SECONDS, SLACK_SECONDS, check_ended, client_hello

THREADS = 3
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
LARGEST_RECORD = 16384
ENDLESS_BYTES = 4 << 20  # of a message that the server is to refuse long before
RENEGOTIATORS = 6
HELD = 200  # connections that the server did not end at once, and must end later


def record(kind, payload, length=None, version=0x0303):
    """A record; `length` is what its head says."""
    return struct.pack(">BHH", kind, version, len(payload) if length is None else length) + payload


def _in_pieces(hello, size):
    """The ClientHello in records of `size` bytes."""
    message = hello[5:]
    return b"".join(record(HANDSHAKE, message[i:i + size]) for i in range(0, len(message), size))


def _endless_hello():
    """A ClientHello that says that it has 16 MiB."""
    head = b"\x01" + b"\xff\xff\xff" + b"\x03\x03"
    piece = record(HANDSHAKE, bytes(LARGEST_RECORD))
    return record(HANDSHAKE, head) + piece * (ENDLESS_BYTES // len(piece))


def openings(hello):
    """{what it is: bytes} to send in place of a handshake, or with it."""
    return {
        "a record of 65,535 bytes": record(HANDSHAKE, bytes(65535)),
        "a record that is shorter than it says": record(HANDSHAKE, b"\x01", length=LARGEST_RECORD),
        "a ClientHello of 16 MiB": _endless_hello(),
        "a ClientHello in records of a byte": _in_pieces(hello, 1),
        "a ClientHello 200 times": hello * 200,
        "empty records": record(HANDSHAKE, b"") * 2000,
        "warnings": record(ALERT, b"\x01\x5a") * 2000,
        "changes of cipher": hello + record(CHANGE_CIPHER_SPEC, b"\x01") * 2000,
        "data before the handshake": record(APPLICATION_DATA, bytes(1000)) * 50,
        "SSL 2": b"\x80\x2e\x01\x00\x02" + bytes(41),
        "records of a version that there is not": record(HANDSHAKE, hello[5:], version=0x7f7f),
    }


def _send_opening(target, outcome, data, what, held):
    s = sockets.connect(target.server, timeout=2)
    sent = sockets.send_all(s, data, 1)
    _, ended = sockets.received(s, 0.3)
    ended = ended or sent < len(data)
    outcome.count(f"{what}: ended" if ended else f"{what}: left open")
    if ended or len(held) >= HELD:
        s.close()
    else:
        held.append(s)


def _break_session(target, outcome, rng):
    """A handshake, then bytes on the connection that are no records of it."""
    s = sockets.open_to(target.attacker())
    with contextlib.suppress(OSError):
        if rng.random() < 0.5:
            s.sendall(http2.PREFACE + http2.settings({}))
        kind = rng.choice([CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA, 99])
        socket.socket.send(s, record(kind, rng.randbytes(rng.choice([1, 20, LARGEST_RECORD]))))
        sockets.received(s, 0.1)
    outcome.count("sessions with broken records")
    s.close()


def records(target, outcome):
    made = list(openings(client_hello(target.attacker())).items())
    held = []

    def work(target, outcome, worker):
        rng = target.rng(worker)
        for i in range(1 << 20):
            if target.left() <= 0:
                return
            try:
                if rng.random() < 0.3:
                    _break_session(target, outcome, rng)
                else:
                    what, data = made[(worker + i) % len(made)]
                    _send_opening(target, outcome, data, what, held)
            except OSError as error:
                outcome.count(f"ended with {type(error).__name__}")

    in_threads(THREADS, work, target, outcome)
    check_ended(outcome, "left open", held, time.monotonic() + BOUND_SECONDS + SLACK_SECONDS)
    for s in held:
        s.close()


def renegotiate(target, outcome):
    """openssl's own client, told to renegotiate (TLS 1.2) or to change keys (TLS 1.3)."""
    def work(target, outcome, worker):
        option, key = (("-tls1_2", b"R\n"), ("-tls1_3", b"K\n"))[worker % 2]
        what = "renegotiations" if worker % 2 == 0 else "changes of keys"
        while target.left() > 0:
            client = subprocess.Popen(
                ["openssl", "s_client", "-connect", target.server, "-alpn", "h2", option],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            asked = 0
            with contextlib.suppress(OSError):
                while target.left() > 0 and client.poll() is None:
                    client.stdin.write(key)
                    client.stdin.flush()
                    asked += 1
                    time.sleep(0.002)  # the client takes one of them at each read
            outcome.count(f"{what} asked for", asked)
            outcome.count(f"connections of {what}")
            client.kill()
            client.communicate()

    in_threads(RENEGOTIATORS, work, target, outcome)


def certificates(target, outcome):
    """Certificates that must not be taken: no byte of HTTP/2 may come."""
    def work(target, outcome, worker):
        while target.left() > 0:
            access = target.attacker()
            try:
                s = sockets.open_to(access)  # of TLS 1.3: before the server has looked at it
                with contextlib.suppress(OSError):
                    s.sendall(http2.PREFACE + http2.settings({}))
                answer, ended = sockets.received(s, 2)
                s.close()
            except OSError:
                answer, ended = b"", True
            outcome.count(f"{access.who}: {'ended' if ended else 'left open'}")
            if answer:
                outcome.fault(f"{access.who}: {len(answer)} bytes of HTTP/2, 0 needed")

    in_threads(THREADS, work, target, outcome)


ATTACKS = [
    Attack("tls-records", "records too large, too small, endless, empty or broken", records,
           by=(STRANGER,), guarded_only=True, peak_mib=96),
    Attack("tls-renegotiation", f"{RENEGOTIATORS} clients that renegotiate or change keys",
           renegotiate, by=(STRANGER,), guarded_only=True),
    Attack("tls-certificates", f"{THREADS} threads with certificates of another CA, expired, or "
           "as large as 400 KB", certificates, by=(FORGED,), guarded_only=True, peak_mib=96),
]
