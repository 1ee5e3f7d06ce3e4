#!/usr/bin/env python3
"""Multiplies two matrices on a gemmd server with grpcio and nothing of ours but the proto.

    python -m pip install grpcio grpcio-tools numpy
    python -m grpc_tools.protoc -I proto --python_out=build/stubs \\
        --grpc_python_out=build/stubs proto/gemm/v1/gemm.proto
    PYTHONPATH=build/stubs python examples/python/multiply.py [HOST:PORT]
"""

import sys

import grpc
import numpy as np
from gemm.v1 import gemm_pb2 as pb
from gemm.v1 import gemm_pb2_grpc

CHUNK_BYTES = 1 << 20


def shape(matrix: np.ndarray) -> pb.MatrixShape:
    """The shape of a row-major float32 matrix."""
    rows, cols = matrix.shape
    return pb.MatrixShape(rows=rows, cols=cols, dtype=pb.DATA_TYPE_F32)


def multiply_small(stub: gemm_pb2_grpc.GemmServiceStub, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B in one message each way: for matrices of up to a megabyte or so."""
    product = pb.Product(
        a=pb.Operand(shape=shape(a), data=a.tobytes()),
        b=pb.Operand(shape=shape(b), data=b.tobytes()),
    )
    response = stub.MultiplyUnary(pb.MultiplyUnaryRequest(product=product))
    return np.frombuffer(response.data, np.float32).reshape(a.shape[0], b.shape[1])


def multiply_stream(
    stub: gemm_pb2_grpc.GemmServiceStub, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, pb.ProductReport]:
    """A B in chunks, for matrices of any size; also what ran and how long each phase took."""

    def requests():
        product = pb.Product(
            a=pb.Operand(shape=shape(a), payload=pb.Payload()),
            b=pb.Operand(shape=shape(b), payload=pb.Payload()),
        )
        yield pb.MultiplyRequest(header=pb.MultiplyHeader(job_id=1, product=product))
        for role, matrix in ((pb.OPERAND_ROLE_A, a), (pb.OPERAND_ROLE_B, b)):
            data = matrix.tobytes()
            for offset in range(0, len(data), CHUNK_BYTES):
                piece = data[offset : offset + CHUNK_BYTES]
                yield pb.MultiplyRequest(
                    chunk=pb.OperandChunk(job_id=1, operand=role, offset=offset, data=piece)
                )

    result = bytearray()
    for response in stub.Multiply(requests()):
        match response.WhichOneof("message"):
            case "chunk":
                result += response.chunk.data
            case "error":
                raise RuntimeError(response.error.message)
            case "result":
                report = response.result.report
    return np.frombuffer(result, np.float32).reshape(a.shape[0], b.shape[1]), report


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051"
    rng = np.random.default_rng(1)
    a = rng.standard_normal((300, 200), np.float32)
    b = rng.standard_normal((200, 100), np.float32)
    unlimited = [("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, unlimited) as channel:
        stub = gemm_pb2_grpc.GemmServiceStub(channel)
        small = multiply_small(stub, a, b)
        streamed, report = multiply_stream(stub, a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    print(f"{report.kernel} on {report.device}: {report.reason}")
    print(f"largest error: {abs(small - exact).max():.1e} unary, {abs(streamed - exact).max():.1e}")


if __name__ == "__main__":
    main()
