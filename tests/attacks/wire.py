"""The contract's messages, as small requests that the attacks are made of."""

import importlib
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


_channels = 0


def channel(address):
    """A connection of its own: channels that differ in an argument share none."""
    global _channels
    _channels += 1
    return grpc.insecure_channel(address, [*UNLIMITED, ("gemm.channel", _channels)])


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


def info(address):
    """What the server says of itself."""
    with channel(address) as own:
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
    pb = messages()
    try:
        server_stub.DeleteMatrix(pb.DeleteMatrixRequest(matrix=pb.MatrixRef(name=name)),
                                 timeout=seconds)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
