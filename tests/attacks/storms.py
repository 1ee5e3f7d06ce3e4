"""Calls that are given up at any moment, by their caller or by their deadline."""

import time

import grpc

import wire
from attack import Attack, in_threads

THREADS = 4
LIVE = 8  # calls of a thread at a time
EXTENTS = [1, 16, 64, 256, 700]
MATRIX = "attacks/storm"


def _pieces(data):
    for offset in range(0, len(data), 1 << 18):
        yield offset, data[offset:offset + (1 << 18)]


def _multiply(rng):
    """A stream of a few jobs, some with payload."""
    pb = wire.messages()
    extent = rng.choice(EXTENTS)
    operand = bytes(extent * extent * wire.F32_BYTES)
    for job in range(1, rng.randrange(2, 6)):
        if rng.random() < 0.5:
            yield wire.multiply_header(job, wire.generated_product(extent, extent, extent))
            continue
        yield wire.multiply_header(job, wire.promised_product(extent, extent, extent))
        for role in (pb.OPERAND_ROLE_A, pb.OPERAND_ROLE_B):
            for offset, data in _pieces(operand):
                yield pb.MultiplyRequest(chunk=pb.OperandChunk(
                    job_id=job, operand=role, offset=offset, data=data))


def _upload(rng, key):
    """A matrix that goes soon after it has come; a third of them under a shared name."""
    pb = wire.messages()
    extent = rng.choice(EXTENTS)
    header = pb.PutMatrixHeader(shape=wire.shape(extent, extent))
    header.keep.ttl.FromMilliseconds(200)
    if rng.random() < 0.3:
        header.upload_id = f"storm-{key}"
        header.range.offset, header.range.length = 0, extent * extent * wire.F32_BYTES
    yield pb.PutMatrixRequest(header=header)
    for offset, data in _pieces(bytes(extent * extent * wire.F32_BYTES)):
        yield pb.PutMatrixRequest(chunk=pb.MatrixChunk(offset=offset, data=data))


def _start(server_stub, rng, timeout):
    """(a call of a drawn method, whether it is read message by message)."""
    pb = wire.messages()
    kind = rng.randrange(4)
    if kind == 0:
        return server_stub.Multiply(_multiply(rng), timeout=timeout), True
    if kind == 1:
        extent = rng.choice(EXTENTS)
        product = wire.generated_product(extent, extent, extent)
        return server_stub.MultiplyUnary.future(pb.MultiplyUnaryRequest(product=product),
                                                timeout=timeout), False
    if kind == 2:
        requests = _upload(rng, rng.getrandbits(40))
        return server_stub.PutMatrix.future(requests, timeout=timeout), False
    return server_stub.GetMatrix(pb.GetMatrixRequest(matrix=pb.MatrixRef(name=MATRIX)),
                                 timeout=timeout), True


def _storm(target, outcome, end, timeout):
    """Calls in each thread, ended by end(call, streams, rng)."""
    with wire.channel(target.attacker()) as channel:
        wire.delete(wire.stub(channel), MATRIX)
        wire.put_generated(wire.stub(channel), MATRIX, 1024, 1024)

    def work(target, outcome, worker):
        rng = target.rng(worker)
        with wire.channel(target.attacker()) as channel:
            server_stub = wire.stub(channel)
            while target.left() > 0:
                calls = [_start(server_stub, rng, timeout(rng)) for _ in range(LIVE)]
                for call, streams in calls:
                    outcome.count("calls")
                    end(call, streams, rng)

    in_threads(THREADS, work, target, outcome)
    with wire.channel(target.attacker()) as channel:
        wire.delete(wire.stub(channel), MATRIX)


def cancels(target, outcome):
    """Cancelled after 0 to 30 ms, some after their first answer."""
    def end(call, streams, rng):
        if streams and rng.random() < 0.2:
            try:
                next(call, None)
            except grpc.RpcError:
                outcome.count("ended before they were cancelled")
        time.sleep(rng.random() ** 3 * 0.03)
        call.cancel()

    _storm(target, outcome, end, lambda rng: 20)


def deadlines(target, outcome):
    """Deadlines of 0 to 30 ms; every call ends."""
    def end(call, streams, _):
        begin = time.monotonic()
        try:
            if streams:
                for _ in call:
                    pass
            else:
                call.result()
            outcome.count("OK")
        except grpc.RpcError as error:
            outcome.count(error.code().name)
        except grpc.FutureCancelledError:
            outcome.count("CANCELLED")
        if time.monotonic() - begin > 10:
            outcome.fault("a call with a deadline of at most 30 ms took more than 10 s")

    _storm(target, outcome, end, lambda rng: rng.random() ** 3 * 0.03)


ATTACKS = [
    Attack("cancels", f"{THREADS * LIVE} calls at a time, cancelled within 30 ms", cancels,
           by=("matrices",)),
    Attack("deadlines", f"{THREADS * LIVE} calls at a time with deadlines up to 30 ms",
           deadlines,
           by=("matrices",)),
]
