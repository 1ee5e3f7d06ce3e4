"""Moves matrices to and from the server, in one RPC or in one for each stripe."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc

from . import checks, dtypes, ends, wire
from .call import Call, first_error
from .contract import pb
from .errors import (
    DeadlineExceeded,
    GemmdError,
    Internal,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)
from .operands import HostMatrix, Shape
from .progress import Meter
from .stripes import Stripe, new_id, plan

# Codes of a stripe that did not fail by itself.
_NO_FAILURE = (grpc.StatusCode.OK, grpc.StatusCode.ABORTED, grpc.StatusCode.CANCELLED)
# For the call that ends an upload.
_END_ATTEMPTS = 5
_END_SECONDS = 10.0


def stripes_for(call: Call, nbytes: int) -> list[Stripe]:
    """One stripe, or one a channel for a matrix that is large enough."""
    connection = call.connection
    first = connection.next_channel()
    if nbytes < connection.options.stripe_bytes:
        return [Stripe(first, 0, nbytes)]
    return plan(nbytes, connection.channels, connection.chunk_bytes, first)


def _put_messages(
    header: pb.PutMatrixHeader, matrix: HostMatrix, stripe: Stripe, chunk: int, meter: Meter
) -> Iterator[bytes]:
    yield pb.PutMatrixRequest(header=header).SerializeToString()
    for offset, payload in matrix.pieces(stripe.start, stripe.end, chunk):
        yield wire.matrix_chunk(offset, payload)
        # The chunk before has left, so that this is at most one ahead.
        meter.add(len(payload))


class Upload:
    """A matrix on its way to the server: all stripes at once. Waited for by `finished`."""

    def __init__(
        self, call: Call, header: pb.PutMatrixHeader, matrix: HostMatrix, meter: Meter
    ) -> None:
        self._call = call
        stripes = stripes_for(call, matrix.nbytes)
        upload_id = new_id() if len(stripes) > 1 else ""
        #: The header of each stripe, and its RPC.
        self._parts: list[tuple[pb.PutMatrixHeader, Any]] = []
        for stripe in stripes:
            part = pb.PutMatrixHeader()
            part.CopyFrom(header)
            if upload_id:
                part.upload_id = upload_id
                part.range.offset = stripe.start
                part.range.length = stripe.end - stripe.start
            messages = _put_messages(part, matrix, stripe, call.connection.chunk_bytes, meter)
            method = call.connection.stubs(stripe.channel).put
            rpc = call.begin(method.future, messages)
            self._parts.append((part, rpc))
        for _, rpc in self._parts:
            rpc.add_done_callback(self._ended)

    def _ended(self, rpc: Any) -> None:
        """One stripe has. Where it failed by itself, the others are of no use."""
        if rpc.code() not in _NO_FAILURE:
            for _, other in self._parts:
                other.cancel()

    def _outcome(self, rpc: Any) -> pb.PutMatrixResponse | GemmdError:
        try:
            response: pb.PutMatrixResponse = rpc.result()
        except (grpc.RpcError, grpc.FutureCancelledError) as error:
            return self._call.explain(error)
        return response

    def wait(self) -> pb.MatrixInfo:
        """The matrix, once all of it is on the server's device."""
        failures: list[GemmdError] = []
        whole: pb.MatrixInfo | None = None
        for _, rpc in self._parts:
            outcome = self._outcome(rpc)
            if isinstance(outcome, GemmdError):
                failures.append(outcome)
            elif outcome.complete:
                whole = outcome.matrix
        if failures:
            raise first_error(failures)
        if whole is None:
            raise Internal("the server did not say that the upload is complete")
        return whole

    def give_up(self) -> None:
        """Ends a split upload of which a stripe was refused, or cancelled on its way.

        Such a stripe ends nothing on the server: those that have landed would keep the matrix's
        name and bytes until --upload-timeout. So one more call for it sends no byte: it fails,
        and the upload with it. Then a further attempt finds the name free.
        """
        refused: list[pb.PutMatrixHeader] = []
        failed: list[pb.PutMatrixHeader] = []
        for part, rpc in self._parts:
            rpc.cancel()
            outcome = self._outcome(rpc)
            if isinstance(outcome, ResourceExhausted):
                refused.append(part)
            elif isinstance(outcome, GemmdError):
                failed.append(part)
        missing = refused + failed
        if missing and missing[0].upload_id and len(refused) < len(self._parts):
            self._end_with(missing[0])

    def _end_with(self, part: pb.PutMatrixHeader) -> None:
        message = pb.PutMatrixRequest(header=part).SerializeToString()
        call = self._call
        wait = 0.0
        for made in range(_END_ATTEMPTS):
            call.sleep(wait)
            left = call.left()
            timeout = _END_SECONDS if left is None else min(left, _END_SECONDS)
            put = call.connection.stubs().put
            rpc = call.begin(put.future, iter((message,)), timeout=timeout)
            outcome = self._outcome(rpc)
            if not isinstance(outcome, ResourceExhausted) or outcome.retry_after is None:
                return
            # Stripes that have just ended may still count towards the caller's open calls.
            wait = min(outcome.retry_after * 2**made, _END_SECONDS)


def finished(uploads: Sequence[Upload]) -> list[pb.MatrixInfo]:
    """The matrices of one call's uploads, in order. Where the server refuses one of them, nothing
    of the others that is incomplete stays."""
    try:
        return [upload.wait() for upload in uploads]
    except ResourceExhausted:
        with contextlib.suppress(DeadlineExceeded):
            for upload in uploads:
                upload.give_up()
        raise


def generated(
    shape: tuple[int, int], dtype: Any, seed: int, distribution: str, device: str
) -> pb.PutMatrixHeader:
    """The header of a matrix that the server makes, but for how it is kept."""
    checks.choice(distribution, ("uniform", "normal"), "distribution")
    rows, cols = checks.sizes(shape, "shape", ("rows", "columns"))
    size = Shape(rows, cols, dtypes.parse(dtype, "dtype"))
    header = pb.PutMatrixHeader(shape=size.to_proto(), device=checks.text(device, "device"))
    header.generator.seed = checks.integer(seed, "seed", 0, 2**64 - 1)
    getattr(header.generator, distribution).SetInParent()
    return header


def generate(call: Call, header: pb.PutMatrixHeader) -> pb.MatrixInfo:
    """A matrix that the server makes from the header's generator."""
    message = pb.PutMatrixRequest(header=header).SerializeToString()
    rpc = call.begin(call.connection.stubs().put.future, iter((message,)))
    try:
        info: pb.MatrixInfo = rpc.result().matrix
    except (grpc.RpcError, grpc.FutureCancelledError) as error:
        raise call.explain(error) from None
    return info


def _get(call: Call, ref: pb.MatrixRef, stripe: Stripe, whole: int, memory: memoryview,
         meter: Meter, found: Callable[[pb.MatrixInfo], None] | None = None,
         begin: int = 0) -> None:  # fmt: skip
    """found: is called with what the server says of the matrix, before the first byte.
    begin: the byte of the matrix that `memory` begins with."""
    request = pb.GetMatrixRequest(matrix=ref)
    if stripe.end - stripe.start < whole:
        request.range.offset = stripe.start
        request.range.length = stripe.end - stripe.start
    sink = wire.Sink(memory, stripe.start, stripe.end, begin)
    method = call.connection.stubs(stripe.channel).get
    rpc = call.begin(method, request)
    try:
        for message in rpc:
            piece = wire.get_response(message)
            if isinstance(piece, wire.Piece):
                meter.add(sink.take(piece))
            elif found is not None:
                found(piece.matrix)
    except grpc.RpcError as error:
        raise call.explain(error) from None
    sink.check_complete()


def download(call: Call, ref: pb.MatrixRef, memory: memoryview, meter: Meter) -> None:
    """The elements of a resident matrix, by its id, into `memory`."""
    stripes = stripes_for(call, len(memory))
    if len(stripes) == 1:
        return _get(call, ref, stripes[0], len(memory), memory, meter)
    failures: list[BaseException] = []

    def one(stripe: Stripe) -> None:
        try:
            _get(call, ref, stripe, len(memory), memory, meter)
        except BaseException as error:
            failures.append(error)
            call.drop()

    _in_threads(call, one, stripes)
    if failures:
        raise failures[0]
    return None


def download_named(
    call: Call,
    ref: pb.MatrixRef,
    found: Callable[[pb.MatrixInfo], None],
    memory: memoryview,
    meter: Meter,
) -> None:
    """The elements of one matrix that has the name, also where others replace it all the time.
    `found` raises where that is none to be had."""
    stripe = Stripe(call.connection.next_channel(), 0, len(memory))
    if len(memory) >= call.connection.options.stripe_bytes:
        info = describe(call, ref)
        found(info)
        try:
            return download(call, pb.MatrixRef(id=info.id), memory, meter)
        except NotFound:
            pass  # it had the name, and has gone before every stripe had taken hold of it
    # In one RPC, which nothing can come between.
    return _get(call, ref, stripe, len(memory), memory, meter, found)


def download_part(
    call: Call,
    ref: pb.MatrixRef,
    part: tuple[int, int],
    whole: int,
    memory: memoryview,
    meter: Meter,
    found: Callable[[pb.MatrixInfo], None] | None,
) -> None:
    """Bytes `part` of a matrix of `whole` bytes."""
    stripe = Stripe(call.connection.next_channel(), *part)
    _get(call, ref, stripe, whole, memory, meter, found, part[0])


def _in_threads(call: Call, one: Any, stripes: Sequence[Stripe]) -> None:
    """Runs `one` for every stripe. Where that fails, or the call is cancelled, it ends the RPCs and
    waits for the threads: none writes into the caller's memory after that."""
    threads = [threading.Thread(target=one, args=(stripe,), daemon=True) for stripe in stripes]

    def pace() -> object:
        return None if call.cancelled else time.monotonic()

    try:
        for thread in threads:
            thread.start()
        all(ends.joined(thread, pace) for thread in threads)  # until one does not end
    except BaseException:
        call.cancel()
        raise
    finally:
        if left := ends.left_of([thread for thread in threads if thread.ident]):
            ends.left_behind(
                f"{call.what}: {left} of its threads did not end within {ends.BOUND_SECONDS:g} s; "
                "they may yet write into the result's memory"
            )
    if left:
        call.check_cancelled()


def listed(call: Call, request: pb.ListMatricesRequest) -> Iterator[pb.MatrixInfo]:
    """All pages of the answer."""
    while True:
        page = call.tried(lambda: call.unary(call.connection.stubs().list, request))
        yield from page.matrices
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def described(shape: tuple[int, int] | None, dtype: Any) -> pb.MatrixInfo:
    """The MatrixInfo of a row-major matrix that the server is not asked for."""
    if shape is None or dtype is None:
        given, other = ("dtype", "shape") if shape is None else ("shape", "dtype")
        raise InvalidArgument(f"{given} is given without {other}; give both", field=given)
    rows, cols = checks.sizes(shape, "shape", ("rows", "columns"))
    size = Shape(rows, cols, dtypes.parse(dtype, "dtype"))
    return pb.MatrixInfo(shape=size.to_proto())


def describe(call: Call, ref: pb.MatrixRef) -> pb.MatrixInfo:
    """The MatrixInfo of one resident matrix, from a GetMatrix call for its first byte."""
    request = pb.GetMatrixRequest(matrix=ref)
    request.range.length = 1
    rpc = call.begin(call.connection.stubs().get, request)
    info = None
    try:
        for message in rpc:
            first = wire.get_response(message)
            if isinstance(first, pb.GetMatrixResponse):
                info = first.matrix
    except grpc.RpcError as error:
        raise call.explain(error) from None
    if info is None:
        raise Internal("the server said nothing of the matrix")
    return info
