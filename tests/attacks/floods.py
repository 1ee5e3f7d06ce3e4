"""Much that is announced and does not come."""

import math
import threading

import grpc

import wire
from attack import GIVEN_UP_SECONDS, HOLDING_SECONDS, Attack, in_threads

JOBS_A_STREAM = 1024
STREAMS = 5
# Parts of what there is, and how many of each: the smaller ones fill what the larger leave.
FILLING = [(100, 110), (1600, 40), (25600, 40), (409600, 60)]
GROUPS = 200


def _flood(target, outcome, streams, products):
    """Streams of headers alone, once; every job is ended by the server, or stays."""
    def work(target, outcome, _):
        with wire.channel(target.attacker()) as channel:
            _one_stream(target, outcome, wire.stub(channel), products)

    in_threads(streams, work, target, outcome)


def _one_stream(target, outcome, server_stub, products):
    def requests():
        for job, product in enumerate(products):
            yield wire.multiply_header(job + 1, product)
        target.wait()

    call = server_stub.Multiply(requests(), timeout=target.left())
    outcome.count("headers", len(products))
    try:
        for answer in call:
            code = answer.error.code if answer.HasField("error") else 0
            outcome.count(f"jobs ended with code {code}")
    except grpc.RpcError as error:
        outcome.count(f"streams ended with {error.code().name}")


def small_jobs(target, outcome):
    _flood(target, outcome, STREAMS, [wire.promised_product(64, 64, 64)] * JOBS_A_STREAM)


def large_jobs(target, outcome):
    """Jobs that together need more than the device has."""
    memory_bytes = wire.info(target.attacker()).devices[0].memory_bytes
    products = []
    for part, count in FILLING:
        extent = math.isqrt(memory_bytes // part // (3 * wire.F32_BYTES)) + 1
        products += [wire.promised_product(extent, extent, extent)] * count
    _flood(target, outcome, 1, products)


def _silent_uploads(target, outcome, headers, fill_range):
    """PutMatrix calls that send a header, of a split upload the first byte, and no more."""
    pb = wire.messages()
    over = threading.Event()

    def requests(header):
        yield pb.PutMatrixRequest(header=header)
        if fill_range:
            yield pb.PutMatrixRequest(chunk=pb.MatrixChunk(
                offset=header.range.offset, data=bytes(header.range.length)))
        else:
            over.wait()

    with wire.channel(target.attacker()) as channel:
        server_stub = wire.stub(channel)
        calls = [server_stub.PutMatrix.future(requests(header)) for header in headers]
        outcome.count("calls", len(calls))
        for call in calls:
            _wait(call, target)
            outcome.count(f"calls ended with {call.code().name}" if call.done()
                          else "calls that stayed to the end")
        target.wait()
        for call in calls:
            call.cancel()
        over.set()


def _wait(call, target):
    try:
        call.result(timeout=target.left())
    except (grpc.RpcError, grpc.FutureTimeoutError, grpc.FutureCancelledError):
        pass


def upload_headers(target, outcome):
    """Matrices that together fill the store, and no byte of them."""
    store_bytes = wire.info(target.attacker()).limits.store_bytes
    headers = []
    for part, count in FILLING:
        extent = math.isqrt(store_bytes // part // wire.F32_BYTES) + 1
        header = wire.messages().PutMatrixHeader(shape=wire.shape(extent, extent))
        headers += [header] * count
    _silent_uploads(target, outcome, headers, False)


def upload_groups(target, outcome):
    """Split uploads of which one part comes and the other never does."""
    pb = wire.messages()
    headers = []
    for i in range(GROUPS):
        header = pb.PutMatrixHeader(shape=wire.shape(512, 512), upload_id=f"attack-{i}")
        header.range.offset, header.range.length = 0, 65536
        headers.append(header)
    _silent_uploads(target, outcome, headers, True)


ATTACKS = [
    Attack("headers-jobs", f"{STREAMS} streams of {JOBS_A_STREAM} headers without payload",
           small_jobs, refused=frozenset({"product"}), refused_seconds=GIVEN_UP_SECONDS,
           seconds=HOLDING_SECONDS),
    Attack("headers-memory", "headers for more than the device's memory",
           large_jobs, refused=frozenset({"product", "write"}), refused_seconds=GIVEN_UP_SECONDS,
           seconds=HOLDING_SECONDS),
    Attack("upload-headers", "PutMatrix headers for more than the store",
           upload_headers, refused=frozenset({"write"}), refused_seconds=GIVEN_UP_SECONDS,
           seconds=HOLDING_SECONDS, by=("matrices",)),
    Attack("upload-groups", f"{GROUPS} split uploads with one part of two", upload_groups,
           seconds=HOLDING_SECONDS, by=("matrices",)),
]
