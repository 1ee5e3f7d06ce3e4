"""Handshakes of TLS that do not end, or that are repeated without end."""

import contextlib
import ssl
import time

import sockets
from attack import Attack, in_threads
from guard import STRANGER

# The server's bound on a handshake, and time for a slow machine to keep it.
BOUND_SECONDS, SLACK_SECONDS = 10.0, 10.0
UNFINISHED_SECONDS = 12.0
SILENT, BEGUN, DRIPPING = 300, 300, 100
THREADS = 3
LIMIT = 20_000  # connections a thread
OLDEST_TO_NEWEST = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def client_hello(access, version=ssl.TLSVersion.TLSv1_3):
    """The first message of a handshake, as OpenSSL makes it."""
    context = ssl.create_default_context(cafile=access.ca)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def check_ended(outcome, what, group, last):
    """A fault for handshakes that are not over at `last`, by time.monotonic."""
    while (left := sum(sockets.is_open(s) for s in group)) and time.monotonic() < last:
        time.sleep(0.5)
    outcome.count(f"{what}: ended by the server", len(group) - left)
    if left:
        outcome.fault(f"{what}: handshakes that are open after "
                      f"{BOUND_SECONDS + SLACK_SECONDS:.0f} s: {left} of {len(group)}, 0 allowed")


def unfinished(target, outcome):
    """Connections that say nothing, that stop after a ClientHello, and that send it bytewise."""
    hello = client_hello(target.attacker())
    crowd = []
    for count in (SILENT, BEGUN, DRIPPING):
        crowd.append([])
        for _ in range(count):
            with contextlib.suppress(OSError):
                crowd[-1].append(sockets.connect(target.server, timeout=1))
    silent, begun, dripping = crowd
    outcome.count("connections", sum(map(len, crowd)))
    last = time.monotonic() + BOUND_SECONDS + SLACK_SECONDS
    for s in begun:
        sockets.send_all(s, hello, 0.5)
    for at in range(len(hello)):
        if target.left() <= 0:
            break
        for s in dripping:
            sockets.send_all(s, hello[at:at + 1], 0.1)
        time.sleep(min(0.05, target.left()))
    target.wait()
    for what, group in (("silent", silent), ("begun", begun), ("dripping", dripping)):
        check_ended(outcome, what, group, last)
        for s in group:
            s.close()


def _repeated(target, outcome, one):
    """one(outcome, worker, rng) on connection after connection, in each thread."""
    def work(target, outcome, worker):
        rng = target.rng(worker)
        for _ in range(LIMIT):
            if target.left() <= 0:
                return
            try:
                one(outcome, rng)
            except OSError as error:
                outcome.count(f"ended with {type(error).__name__}")

    in_threads(THREADS, work, target, outcome)


def hellos(target, outcome):
    """A ClientHello, for which the server signs, and the end of the connection."""
    made = [client_hello(target.attacker(), version) for version in OLDEST_TO_NEWEST]

    def one(outcome, rng):
        s = sockets.connect(target.server, timeout=1)
        sockets.send_all(s, rng.choice(made), 0.5)
        if rng.random() < 0.8:
            answer, _ = _first_bytes(s)
            outcome.count("answered" if answer else "no answer")
        else:
            outcome.count("not waited for")
        sockets.reset(s)

    _repeated(target, outcome, one)


def _first_bytes(s):
    s.settimeout(2)
    try:
        return s.recv(65536), True
    except OSError:
        return b"", False


def handshakes(target, outcome):
    """Whole handshakes, of either version, one connection each."""
    contexts = []
    for version in OLDEST_TO_NEWEST:
        contexts.append(ssl.create_default_context(cafile=target.attacker().ca))
        contexts[-1].minimum_version = contexts[-1].maximum_version = version
        contexts[-1].set_alpn_protocols(["h2"])

    def one(outcome, rng):
        with rng.choice(contexts).wrap_socket(sockets.connect(target.server, timeout=3),
                                              server_hostname="127.0.0.1") as s:
            outcome.count(s.version())
            if rng.random() < 0.5:
                sockets.reset(s)

    _repeated(target, outcome, one)


ATTACKS = [
    Attack("tls-unfinished", f"{SILENT} connections that say nothing, {BEGUN} that stop after a "
           f"ClientHello, {DRIPPING} that send it byte by byte", unfinished,
           seconds=UNFINISHED_SECONDS, by=(STRANGER,), guarded_only=True),
    Attack("tls-hellos", f"{THREADS} threads that send a ClientHello and go", hellos,
           by=(STRANGER,), guarded_only=True),
    Attack("tls-handshakes", f"{THREADS} threads with handshake after handshake", handshakes,
           by=(STRANGER,), guarded_only=True),
]
