"""Uses the server's memory once, so that what an attack leaves behind can be told from it.

The host device touches its memory, and every server its staging, when it is first used.
"""

import math
import time

import grpc

import wire

PREFIX = "warm/"
PARTS = 8
RESULT_EXTENT = 6144  # 144 MiB of f32
DOWNLOADS = 100
TRIES = 5
SECONDS = 240  # of a call: nothing is measured yet


def _fill_store(server_stub, store_bytes):
    """Generated matrices until the store is full; their names."""
    extent = math.isqrt(store_bytes // PARTS // wire.F32_BYTES)
    names = []
    for i in range(PARTS + 1):
        try:
            wire.put_generated(server_stub, f"{PREFIX}{i}", extent, extent, SECONDS)
            names.append(f"{PREFIX}{i}")
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            break
    return names


def _read_slowly(access, name, count):
    """Downloads that all begin before the first is read, so that each takes staging."""
    pb = wire.messages()
    with wire.channel(access) as channel:
        server_stub = wire.stub(channel)
        request = pb.GetMatrixRequest(matrix=pb.MatrixRef(name=name))
        downloads = [server_stub.GetMatrix(request, timeout=SECONDS) for _ in range(count)]
        time.sleep(1)
        for download in downloads:
            next(download)
            download.cancel()


def _products(server_stub, count):
    """Large results at the same time, read to the end."""
    def requests():
        for job in range(1, count + 1):
            yield wire.multiply_header(
                job, wire.generated_product(RESULT_EXTENT, RESULT_EXTENT, 8))

    for _ in server_stub.Multiply(requests(), timeout=SECONDS):
        pass


def up(access):
    """Uses it, again where this process got so little of a busy machine that it read too slowly.

    On a GPU, whose memory is not the process's, a little of it is enough.
    """
    for left in reversed(range(TRIES)):
        try:
            _use(access)
            return
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED or left == 0:
                raise


def _use(access):
    info = wire.info(access)
    with wire.channel(access) as channel:
        server_stub = wire.stub(channel)
        for i in range(PARTS + 1):
            wire.delete(server_stub, f"{PREFIX}{i}")
        names = _fill_store(server_stub, min(info.limits.store_bytes, 1 << 30))
        _products(server_stub, 3)
        _read_slowly(access, names[0], DOWNLOADS)
        for name in names:
            wire.delete(server_stub, name)
        _products(server_stub, 6)
        for _ in server_stub.Benchmark(wire.small_benchmark(info), timeout=SECONDS):
            pass
