"""What the test of deploy/envoy/ calls with: gRPC clients, and a connection by hand."""

import pathlib
import queue
import socket
import sys

import grpc
import numpy
from envoy_setup import TOKEN, Authority, Envoy, Gemmd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attacks"))

import access  # noqa: E402  (found by the line above)
import http2  # noqa: E402
import wire  # noqa: E402

CALL_SECONDS = 30


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
    """The proxy before two gemmds."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
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

    def another_envoy(self, name, servers):
        """A proxy of the check's own, which it stops."""
        return Envoy(self.arguments.envoy, self.folder / name, self.ca, servers)

    def _connected(self, envoy):
        host, port = envoy.address.split(":")
        return self.access.tls_context().wrap_socket(
            socket.create_connection((host, int(port)), timeout=CALL_SECONDS),
            server_hostname="localhost")

    def certificate(self):
        """What the proxy shows to a new connection, in DER."""
        with self._connected(self.envoy) as connection:
            return connection.getpeercert(binary_form=True)

    def raw(self, envoy=None):
        """A TLS connection that speaks HTTP/2 by hand."""
        raw = self._connected(envoy or self.envoy)
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
