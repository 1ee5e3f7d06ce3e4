"""The contract's messages, as small requests that the attacks are made of."""

import importlib
import itertools
import pathlib
import shutil
import subprocess
import sys
import tempfile

import grpc

SERVICE = "/gemm.v1.GemmService/"
F32_BYTES = 4
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def load_stubs(folder):
    """Makes gemm.v1's stubs importable: those of `folder`, or, where that is empty, new ones."""
    if not folder:
        root = pathlib.Path(__file__).resolve().parents[2]
        folder = tempfile.mkdtemp(prefix="attacks-stubs-")
        subprocess.run(["protoc", "-I", root / "proto", f"--python_out={folder}",
                        f"--grpc_out={folder}",
                        f"--plugin=protoc-gen-grpc={shutil.which('grpc_python_plugin')}",
                        "gemm/v1/gemm.proto"], check=True)
    sys.path.insert(0, str(folder))
    return str(folder)


def messages():
    return importlib.import_module("gemm.v1.gemm_pb2")


def methods():
    """The names of the service's methods, as the contract has them."""
    return [method.name for method in messages().DESCRIPTOR.services_by_name["GemmService"].methods]


def stub(channel):
    return importlib.import_module("gemm.v1.gemm_pb2_grpc").GemmServiceStub(channel)


class _Showing:
    """A method whose calls all show the same metadata."""

    def __init__(self, method, metadata):
        self._method, self._metadata = method, metadata

    def __call__(self, request, timeout=None):
        return self._method(request, timeout=timeout, metadata=self._metadata)

    def future(self, request, timeout=None):
        return self._method.future(request, timeout=timeout, metadata=self._metadata)


class Channel:
    """A connection of its own, all of whose calls show what `access` has."""
    _made = itertools.count()

    def __init__(self, access):
        # Channels that differ in an argument share no connection.
        arguments = [*UNLIMITED, ("gemm.channel", next(Channel._made))]
        self._metadata = access.metadata()
        if access.ca:
            paths = (access.ca, access.key, access.certificate)
            credentials = grpc.ssl_channel_credentials(
                *(pathlib.Path(path).read_bytes() if path else None for path in paths))
            self._channel = grpc.secure_channel(access.address, credentials, arguments)
        else:
            self._channel = grpc.insecure_channel(access.address, arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._channel.close()

    def _of(self, arity):
        make = getattr(self._channel, arity)
        return lambda *arguments, **named: _Showing(make(*arguments, **named), self._metadata)

    @property
    def unary_unary(self):
        return self._of("unary_unary")

    @property
    def unary_stream(self):
        return self._of("unary_stream")

    @property
    def stream_unary(self):
        return self._of("stream_unary")

    @property
    def stream_stream(self):
        return self._of("stream_stream")


def channel(access):
    return Channel(access)


def shape(rows, cols):
    pb = messages()
    return pb.MatrixShape(rows=rows, cols=cols, dtype=pb.DATA_TYPE_F32)


def generated(rows, cols, seed=1):
    pb = messages()
    return pb.Operand(shape=shape(rows, cols),
                      generator=pb.Generator(seed=seed, uniform=pb.Uniform(low=-1, high=1)))


def promised(rows, cols):
    """An operand whose elements are to follow, and in an attack do not."""
    pb = messages()
    return pb.Operand(shape=shape(rows, cols), payload=pb.Payload())


def generated_product(m, n, k):
    return messages().Product(a=generated(m, k), b=generated(k, n, seed=2))


def promised_product(m, n, k):
    return messages().Product(a=promised(m, k), b=promised(k, n))


def multiply_header(job_id, product):
    pb = messages()
    return pb.MultiplyRequest(header=pb.MultiplyHeader(job_id=job_id, product=product))


def info(access):
    """What the server says of itself."""
    with channel(access) as own:
        return stub(own).GetServerInfo(messages().GetServerInfoRequest(), timeout=20)


def small_benchmark(server_info):
    """A benchmark of one small shape, of few kernels that the first device has."""
    pb = messages()
    host = server_info.devices[0].name.startswith("host")
    request = pb.BenchmarkRequest(shapes=[pb.ProductSize(m=64, n=64, k=64)], iterations=2,
                                  warmup=0, families=["host" if host else "cublas"])
    request.budget.FromSeconds(2)
    return request


def put_generated(server_stub, name, rows, cols, seconds=60):
    """Keeps a generated matrix under `name`."""
    pb = messages()
    header = pb.PutMatrixHeader(shape=shape(rows, cols), keep=pb.Keep(name=name),
                                generator=pb.Generator(seed=3, uniform=pb.Uniform(low=-1, high=1)))
    return server_stub.PutMatrix(iter([pb.PutMatrixRequest(header=header)]), timeout=seconds).matrix


def delete(server_stub, name, seconds=20):
    """Deletes a matrix by name, whether there is one or not."""
    _delete(server_stub, messages().MatrixRef(name=name), seconds)


def delete_id(server_stub, matrix_id, seconds=20):
    """The same by its id."""
    _delete(server_stub, messages().MatrixRef(id=matrix_id), seconds)


def _delete(server_stub, reference, seconds):
    try:
        server_stub.DeleteMatrix(messages().DeleteMatrixRequest(matrix=reference),
                                 timeout=seconds)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
