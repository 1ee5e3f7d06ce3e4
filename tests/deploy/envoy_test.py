#!/usr/bin/env python3
"""Runs the configuration of deploy/envoy/ before two gemmds: TLS, long streams, floods, a drain.

  envoy_test.py --gemmd build/host/server/gemmd --envoy .venv/bin/envoy

Exits with 1 and a sentence for each thing that is not as it must be, with 77 (skipped) where a
Python module is missing. Takes less than a minute. Minutes of the configuration are seconds here
(envoy_setup.py).
"""

import argparse
import concurrent.futures
import importlib.util
import pathlib
import queue
import socket
import ssl
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "attacks")]

MISSING = [n for n in ("grpc", "numpy") if importlib.util.find_spec(n) is None]
if MISSING:
    print(f"skipped: {sys.executable} has no module {', '.join(MISSING)}")
    sys.exit(77)

import grpc  # noqa: E402  (they need the modules looked for above)
import numpy  # noqa: E402
from envoy_setup import (  # noqa: E402
    DRAIN_DELAY_SECONDS,
    TOKEN,
    Authority,
    Envoy,
    Gemmd,
    await_true,
)

import access  # noqa: E402
import http2  # noqa: E402
import wire  # noqa: E402

CALL_SECONDS = 30
# Beyond the scaled times of a connection (8 s of age, 15 s without a call), and beyond what
# Envoy gives a route that says nothing (15 s).
LONG_STREAM_SECONDS = 20
IN_FLIGHT = "gemmd_jobs_in_flight"


def seen(condition, sentence):
    if not condition:
        raise AssertionError(sentence)


class Caller:
    """A gRPC client of the proxy."""

    _count = 0

    def __init__(self, address, roots, token=TOKEN):
        Caller._count += 1
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.channel = grpc.secure_channel(
            "localhost:" + address.split(":")[1],
            grpc.ssl_channel_credentials(root_certificates=roots),
            [*wire.UNLIMITED, ("gemm.channel", Caller._count)])
        self.stub = wire.stub(self.channel)

    def info(self):
        return self.stub.GetServerInfo(wire.messages().GetServerInfoRequest(),
                                       metadata=self.metadata, timeout=CALL_SECONDS)

    def code(self):
        try:
            self.info()
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()

    def multiply(self, n=4):
        pb = wire.messages()
        product = pb.Product(a=wire.generated(n, n), b=wire.generated(n, n, 2))
        return self.stub.MultiplyUnary(pb.MultiplyUnaryRequest(product=product),
                                       metadata=self.metadata, timeout=CALL_SECONDS)


class Stream:
    """A Multiply stream, message by message."""

    def __init__(self, caller):
        self._out = queue.SimpleQueue()
        self._call = caller.stub.Multiply(iter(self._out.get, None), metadata=caller.metadata)

    def _send(self, **message):
        self._out.put(wire.messages().MultiplyRequest(**message))

    def begin(self, job_id, n=4):
        """A job whose operands are to come: it is in flight until then."""
        pb = wire.messages()
        operand = pb.Operand(shape=wire.shape(n, n), payload=pb.Payload())
        self._send(header=pb.MultiplyHeader(job_id=job_id, product=pb.Product(a=operand, b=operand)))

    def finish(self, job_id, n=4):
        """Its operands, and its result's last message."""
        pb = wire.messages()
        data = numpy.ones((n, n), numpy.float32).tobytes()
        for role in (pb.OPERAND_ROLE_A, pb.OPERAND_ROLE_B):
            self._send(chunk=pb.OperandChunk(job_id=job_id, operand=role, data=data))
        for message in self._call:
            kind = message.WhichOneof("message")
            if kind != "chunk" and getattr(message, kind).job_id == job_id:
                return message
        return None

    def stir(self):
        """A message that concerns no job: the stream is not silent."""
        self._send(cancel=wire.messages().CancelJob(job_id=1 << 40))

    def multiply(self, job_id):
        self.begin(job_id)
        message = self.finish(job_id)
        seen(message is not None and message.HasField("result"),
             f"a job of a long stream ended with {message or 'the stream'}")

    def end(self):
        self._out.put(None)
        for _ in self._call:
            pass

    def await_end(self):
        """The code of a stream that the other side ends."""
        try:
            for _ in self._call:
                pass
        except grpc.RpcError as error:
            return error.code()
        finally:
            self._out.put(None)
        return grpc.StatusCode.OK


class Scene:
    def __init__(self, arguments, folder):
        self.ca = Authority(folder / "ca")
        self.roots = self.ca.certificate.read_bytes()
        self.other_roots = Authority(folder / "other").certificate.read_bytes()
        self.servers = []
        self.envoy = None
        try:
            for name in ("one", "two"):
                self.servers.append(Gemmd(arguments.gemmd, folder / name, self.ca))
            self.envoy = Envoy(arguments.envoy, folder / "envoy", self.ca, self.servers)
            self.access = access.Access(self.envoy.address, ca=str(self.ca.certificate),
                                        authorization=f"Bearer {TOKEN}")
        except BaseException:
            self.close()
            raise

    def caller(self, **options):
        return Caller(self.envoy.address, options.pop("roots", self.roots), **options)

    def raw(self):
        """A TLS connection that speaks HTTP/2 by hand."""
        host, port = self.envoy.address.split(":")
        raw = self.access.tls_context().wrap_socket(
            socket.create_connection((host, int(port)), timeout=CALL_SECONDS),
            server_hostname="localhost")
        raw.sendall(http2.PREFACE + http2.settings({}))
        return raw

    def close(self):
        """Sentences of what did not end as it must."""
        faults = []
        if self.envoy is not None:
            self.envoy.stop()
        for server in self.servers:
            if server.process.poll() is None and server.stop() != 0:
                faults.append(f"a gemmd did not end with 0:\n{server.log()}")
        return faults


def check_tls_and_callers(scene):
    """Who is not known to gemmd is refused by it, and who is known is known by name."""
    seen(scene.caller().info().caller.name == "alice", "the token's caller is not alice")
    seen(scene.caller(token="").code() == grpc.StatusCode.UNAUTHENTICATED, "no token, and served")
    seen(scene.caller(token="no").code() == grpc.StatusCode.UNAUTHENTICATED,
         "a wrong token, and served")
    seen(scene.caller(roots=scene.other_roots).code() == grpc.StatusCode.UNAVAILABLE,
         "a client that trusts another CA was served")
    plain = wire.stub(grpc.insecure_channel(scene.envoy.address))
    try:
        plain.GetServerInfo(wire.messages().GetServerInfoRequest(), timeout=CALL_SECONDS)
        raise AssertionError("a connection without TLS was served")
    except grpc.RpcError as error:
        seen(error.code() == grpc.StatusCode.UNAVAILABLE, f"without TLS: {error.code()}")


def check_large_products(scene):
    """Far more than any buffer of the proxy, there and back."""
    n = 1024
    stream = Stream(scene.caller())
    stream.begin(1, n)
    data = numpy.ones((n, n), numpy.float32).tobytes()
    pb = wire.messages()
    for role in (pb.OPERAND_ROLE_A, pb.OPERAND_ROLE_B):
        for offset in range(0, len(data), 1 << 20):
            stream._send(chunk=pb.OperandChunk(job_id=1, operand=role, offset=offset,
                                               data=data[offset:offset + (1 << 20)]))
    received = 0
    for message in stream._call:
        received += len(message.chunk.data) if message.HasField("chunk") else 0
        if message.WhichOneof("message") in ("result", "error"):
            break
    seen(received == len(data), f"{received} bytes of a result of {len(data)} came")
    stream.end()


def check_long_streams(scene):
    """A stream with jobs outlives the time and the age of connections."""
    stream = Stream(scene.caller())
    stream.multiply(1)
    time.sleep(LONG_STREAM_SECONDS)
    stream.multiply(2)
    stream.end()


def check_silent_streams(scene):
    """A stream that nobody uses ends: 30 minutes, 30 s here."""
    stream = Stream(scene.caller())
    stream.multiply(1)
    begin = time.monotonic()
    code = stream.await_end()
    seen(code != grpc.StatusCode.OK, "a silent stream ended with OK")
    seen(time.monotonic() - begin > LONG_STREAM_SECONDS,
         f"a silent stream ended after {time.monotonic() - begin:.0f} s with {code}")


def closed(connection, send):
    """Whether the other side closes while `send` is called again and again."""
    connection.settimeout(CALL_SECONDS)
    try:
        for _ in range(2000):
            send()
        while connection.recv(65536):
            pass
        return True
    except (ConnectionError, ssl.SSLError, BrokenPipeError):
        return True
    except TimeoutError:
        return False


def check_rapid_reset(scene):
    """CVE-2023-44487: calls that are reset as soon as they begin."""
    caller, connection = scene.caller(), scene.raw()
    stream = iter(range(1, 1 << 30, 2))
    fields = http2.request_fields(scene.access, "ListKernels")

    def send():
        number = next(stream)
        connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, number, fields) +
                           http2.rst_stream(number))

    seen(closed(connection, send), "a connection that resets all of its calls was not closed")
    # It would be closed for its age, too.
    seen(scene.envoy.stat("http.callers.downstream_rq_too_many_premature_resets") == 1,
         "a connection that resets all of its calls was not closed for that")
    caller.multiply()


def check_continuation_flood(scene):
    """CVE-2024-27919 and its like: headers without an end."""
    caller, connection = scene.caller(), scene.raw()
    connection.sendall(http2.frame(http2.HEADERS, 0, 1, http2.request_fields(scene.access, "ListKernels")))
    block = b"".join(http2.field(b"x-%d" % i, b"y" * 100) for i in range(100))
    seen(closed(connection, lambda: connection.sendall(
        http2.frame(http2.CONTINUATION, 0, 1, block))), "headers without an end were read on")
    caller.multiply()


def check_broken_binary_headers(scene):
    """CVE-2024-7246: headers that gemmd cannot decode leave those of others alone."""
    caller, connection = scene.caller(), scene.raw()
    connection.settimeout(CALL_SECONDS)
    for i in range(100):
        broken = ((b"x-%d-bin" % i, b"not base64 !" * 3), (b"x-%d" % i, b"y"))
        fields = http2.request_fields(scene.access, "ListKernels", broken)
        connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM,
                                       2 * i + 1, fields))
        seen(caller.info().caller.name == "alice", "the token's caller is not alice")


def check_long_headers(scene):
    """No more than 8 KiB, and no more than 64 of them."""
    caller = scene.caller()
    for extra in ([("long", "x" * 9000)], [(f"many-{i}", "x") for i in range(80)]):
        try:
            caller.stub.GetServerInfo(wire.messages().GetServerInfoRequest(),
                                      metadata=caller.metadata + extra, timeout=CALL_SECONDS)
            raise AssertionError(f"{len(extra)} headers of {len(extra[0][1])} bytes were taken")
        except grpc.RpcError:
            pass


def check_silent_connections(scene):
    """One that never begins its handshake is closed: in 10 s, which are not scaled."""
    host, port = scene.envoy.address.split(":")
    with socket.create_connection((host, int(port)), timeout=CALL_SECONDS) as silent:
        seen(silent.recv(1) == b"", "a silent connection got bytes")


TOGETHER = (check_tls_and_callers, check_large_products, check_long_streams, check_silent_streams,
            check_rapid_reset, check_continuation_flood, check_broken_binary_headers,
            check_long_headers, check_silent_connections)


def check_drain(scene):
    """One of two servers drains: no call fails, and the job it has ends."""
    caller, stream = scene.caller(), Stream(scene.caller())
    stream.begin(1)
    seen(await_true(lambda: any(s.metric(IN_FLIGHT) == 1 for s in scene.servers)),
         "a job with no payload is in flight nowhere")
    draining = next(s for s in scene.servers if s.metric(IN_FLIGHT) == 1)
    over, failures = threading.Event(), []

    def call_on():
        while not over.is_set():
            try:
                caller.multiply()
                time.sleep(0.02)
            except grpc.RpcError as error:
                failures.append(f"{error.code()}: {error.details()}")

    calling = threading.Thread(target=call_on)
    calling.start()
    try:
        draining.process.terminate()
        stream.stir()
        seen(await_true(lambda: scene.envoy.healthy() == 1), "the proxy did not see the drain")
        for _ in range(DRAIN_DELAY_SECONDS):
            time.sleep(1)
            stream.stir()
        # Now it refuses calls.
        message = stream.finish(1)
        seen(message is not None and message.HasField("result"),
             f"the draining server's job ended with {message or 'the stream'}")
        code = draining.process.wait(CALL_SECONDS)
        seen(code == 0, f"the draining server ended with {code}:\n{draining.log()}")
    finally:
        over.set()
        calling.join()
    seen(not failures, f"{len(failures)} calls failed in the drain, the first: {failures[:1]}")


def run(check, scene):
    """Sentences of what is wrong."""
    begin = time.monotonic()
    try:
        check(scene)
    except Exception as error:  # whatever it is, it is this check's
        return [f"{check.__name__}: {type(error).__name__}: {error}"]
    print(f"ok: {check.__doc__.splitlines()[0]} ({time.monotonic() - begin:.0f} s)", flush=True)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--envoy", required=True, help="the proxy's program")
    parser.add_argument("--only", default="", help="the name of one check")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.envoy).is_file():
        print(f"FAILED: there is no {arguments.envoy}: scripts/install-deps.sh test installs it")
        return 1
    wire.load_stubs("")
    with tempfile.TemporaryDirectory(prefix="envoy-test-") as folder:
        scene = Scene(arguments, pathlib.Path(folder))
        try:
            together = [c for c in TOGETHER if arguments.only in c.__name__]
            with concurrent.futures.ThreadPoolExecutor(len(TOGETHER)) as pool:
                faults = sum(pool.map(lambda check: run(check, scene), together), [])
            if arguments.only in check_drain.__name__:
                faults += run(check_drain, scene)
            if faults:
                faults.append(f"the proxy's log:\n{scene.envoy.log()}")
        finally:
            faults_of_end = scene.close()
    for fault in [*faults, *faults_of_end]:
        print(f"FAILED: {fault}", flush=True)
    return 1 if faults or faults_of_end else 0


if __name__ == "__main__":
    sys.exit(main())
