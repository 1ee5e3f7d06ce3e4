"""Clients that work until they are killed: each kind is a process that calls without an end.

Each sets `begun` once the server has answered one of its calls with more than an error.

Killed as the kernel kills: no destructor of gRPC runs, no call is cancelled by its caller.
"""

import os
import random
import subprocess
import threading
import uuid

import grpc

import wire

PIECE = 256 << 10
UPLOAD_EXTENT, SPLIT_EXTENT, PARTS = 1024, 1536, 4
DOWNLOADED = "kills/downloaded"  # of the caller "matrices"
DOWNLOADED_EXTENT = 2048
EXTENTS = (64, 256, 512)
TTL_MS = 500
SECONDS = 60


def _sent(extent):
    return wire.messages().Operand(shape=wire.shape(extent, extent),
                                   data=bytes(extent * extent * wire.F32_BYTES))


def unary(stub, rng, begun):
    """Products by MultiplyUnary, four at a time."""
    pb = wire.messages()
    while True:
        extent = rng.choice(EXTENTS)
        request = pb.MultiplyUnaryRequest(product=pb.Product(a=_sent(extent), b=_sent(extent)))
        calls = [stub.MultiplyUnary.future(request, timeout=SECONDS) for _ in range(4)]
        for call in calls:
            call.result()
            begun.set()


def _jobs(rng):
    """Jobs without an end: generated ones, and some with payload."""
    pb = wire.messages()
    for job in range(1, 1 << 30):
        extent = rng.choice(EXTENTS)
        if rng.random() < 0.4:
            yield wire.multiply_header(job, wire.generated_product(extent, extent, extent))
            continue
        yield wire.multiply_header(job, wire.promised_product(extent, extent, extent))
        data = bytes(extent * extent * wire.F32_BYTES)
        for role in (pb.OPERAND_ROLE_A, pb.OPERAND_ROLE_B):
            for at in range(0, len(data), PIECE):
                yield pb.MultiplyRequest(chunk=pb.OperandChunk(
                    job_id=job, operand=role, offset=at, data=data[at:at + PIECE]))


def stream(stub, rng, begun):
    """A Multiply stream whose results are read."""
    for answer in stub.Multiply(_jobs(rng)):
        if not answer.HasField("error"):
            begun.set()


def unread_stream(stub, rng, begun):
    """A Multiply stream whose results are not read."""
    for answer in stub.Multiply(_jobs(rng)):
        if not answer.HasField("error"):
            begun.set()
            threading.Event().wait()


def _pieces(header, begin, length):
    pb = wire.messages()
    yield pb.PutMatrixRequest(header=header)
    for at in range(begin, begin + length, PIECE):
        size = min(PIECE, begin + length - at)
        yield pb.PutMatrixRequest(chunk=pb.MatrixChunk(offset=at, data=bytes(size)))


def _header(extent):
    header = wire.messages().PutMatrixHeader(shape=wire.shape(extent, extent))
    header.keep.ttl.FromMilliseconds(TTL_MS)
    return header


def upload(stub, _, begun):
    """Uploads of 4 MiB, one after the other."""
    while True:
        call = stub.PutMatrix.future(
            _pieces(_header(UPLOAD_EXTENT), 0, UPLOAD_EXTENT**2 * wire.F32_BYTES), timeout=SECONDS)
        call.result()
        begun.set()


def split_upload(stub, _, begun):
    """Uploads of 9 MiB in four calls each."""
    length = SPLIT_EXTENT**2 * wire.F32_BYTES // PARTS
    while True:
        calls, upload_id = [], str(uuid.uuid4())
        for part in range(PARTS):
            header = _header(SPLIT_EXTENT)
            header.upload_id = upload_id
            header.range.offset, header.range.length = part * length, length
            calls.append(stub.PutMatrix.future(_pieces(header, part * length, length),
                                               timeout=SECONDS))
        for call in calls:
            call.result()
        begun.set()


def download(stub, _, begun):
    """Downloads of 16 MiB, one after the other."""
    pb = wire.messages()
    request = pb.GetMatrixRequest(matrix=pb.MatrixRef(name=DOWNLOADED))
    while True:
        for _ in stub.GetMatrix(request, timeout=SECONDS):
            begun.set()


KINDS = {kind.__name__: kind
         for kind in (unary, stream, unread_stream, upload, split_upload, download)}


def run(kind, access, seed, begun):
    """The process's main function: does what `kind` names until it is killed.

    What the server refuses while it is full is tried again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        with wire.channel(access) as channel:
            try:
                KINDS[kind](wire.stub(channel), random.Random(seed), begun)
            except grpc.RpcError:
                begun.wait(0.05)


class Commands:
    """gemmctl, on files of the right size."""

    def __init__(self, gemmctl, access, token_file, folder):
        import numpy as np

        self._head = [gemmctl, "--address", access.address, "--ca", access.ca, "--token-file",
                      token_file]
        self._out = folder / "out.npy"
        self._a = folder / "a.npy"
        np.save(self._a, np.ones((UPLOAD_EXTENT, UPLOAD_EXTENT), "f4"))
        a, shape = str(self._a), ["--shape", "256x256x256"]
        load = ["loadtest", "--duration", "60s", *shape, "--concurrency", "4"]
        self.kinds = {
            "gemmctl multiply, striped": ["multiply", a, a, "--transport", "striped"],
            "gemmctl multiply, one stream": ["multiply", a, a, "--transport", "stream"],
            "gemmctl matrix put": ["matrix", "put", a, "--ttl", f"{TTL_MS}ms"],
            "gemmctl matrix get": ["matrix", "get", f"@{DOWNLOADED}", "-o", str(self._out)],
            "gemmctl loadtest, sent": [*load, "--source", "sent"],
            "gemmctl loadtest, resident and kept": [*load, "--source", "resident", "--result",
                                                    "both"],
        }

    def start(self, kind, errors=subprocess.DEVNULL):
        return subprocess.Popen([*self._head, *self.kinds[kind]], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=errors)
