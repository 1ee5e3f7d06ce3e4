"""Sends one product and receives its result: in one message each way, as a stream, or with
large matrices split over the channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from . import errors, retries, transfer, wire
from .call import Call
from .contract import MESSAGE_OVERHEAD_BYTES, pb
from .janitor import Janitor, by_id, by_name
from .keeping import KeepAs
from .operands import Buffer, HostMatrix, Shape
from .product import ROLES, Plan
from .progress import Meter
from .report import Report
from .results import Target
from .stripes import new_id

_JOB_ID = 1


class Kept:
    """A result that stays on the server."""

    def __init__(self, info: pb.MatrixInfo, report: Report) -> None:
        self.info = info
        self.report = report


def fits_one_message(call: Call, plan: Plan, result_bytes: int) -> bool:
    """Whether the product is small enough for one message each way."""
    connection = call.connection
    options = connection.options
    return (
        plan.payload_bytes + result_bytes <= options.unary_bytes
        and plan.payload_bytes + plan.fields_bytes <= connection.server_message_bytes
        and result_bytes + MESSAGE_OVERHEAD_BYTES <= options.max_message_bytes
    )


def fetch(janitor: Janitor, call: Call, plan: Plan) -> tuple[Any, Report]:
    """The result of a product, as the caller's kind of array, and its report."""
    target = plan.target()
    if fits_one_message(call, plan, plan.shape.nbytes):
        request = wire.multiply_unary(plan.with_data())
        report = call.tried(lambda: _unary(call, request, plan.shape, target))
    else:
        report = call.tried(lambda: _large(janitor, call, plan, target))
    return plan.result(target, report), report


def keep(janitor: Janitor, call: Call, plan: Plan, keep_as: pb.Keep) -> Kept:
    """Runs a product whose result stays on the server."""
    plan.proto.result.keep.CopyFrom(keep_as)
    if fits_one_message(call, plan, 0):
        return _keep_unary(call, plan.with_data())
    total = plan.payload_bytes
    with Meter(call, call.what, total) as meter:
        with _Temporaries(janitor, call) as temporaries:
            left = _upload_large(call, plan, temporaries, meter)
            if left:
                return _keep_stream(call, plan, left, meter)
            return _keep_unary(call, plan.without_data())


def _keep_unary(call: Call, pieces: list[Buffer]) -> Kept:
    method = call.connection.stubs().multiply_unary
    response = call.unary(method, wire.multiply_unary(pieces))
    return Kept(response.kept, Report(response.report))


def _unary(call: Call, request: bytes, shape: Shape, target: Target) -> Report:
    response = call.unary(call.connection.stubs().multiply_unary, request)
    data = response.data
    check_shape(shape, response.report)
    if len(data) != len(target.memory):
        raise errors.Internal(
            f"the server sent {len(data)} bytes; the result has {len(target.memory)}"
        )
    target.memory[:] = data
    return Report(response.report)


def check_shape(expected: Shape, report: pb.ProductReport) -> None:
    """Internal where the server's result is not of the shape that was expected."""
    shape = Shape.of(report.result_shape)
    if shape != expected:
        raise errors.Internal(f"the result was expected to be {expected}; it is {shape}")


class _Temporaries:
    """Names of what the package keeps on the server during one product.

    Names, as an id may never come to be known: a call can end well on the server just as
    its caller gives up. What is left when the block ends is deleted in the background.
    """

    def __init__(self, janitor: Janitor, call: Call) -> None:
        self._janitor = janitor
        self._ttl = call.connection.options.transfer_ttl
        # One folder of names a product: the server keeps those on one device.
        self._folder = f"transfer/{new_id()}"
        self._names: list[str] = []

    def __enter__(self) -> _Temporaries:
        self._janitor.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            self._janitor.delete(by_name(name))

    def new(self) -> pb.Keep:
        name = f"{self._folder}/{len(self._names)}"
        self._names.append(name)
        return KeepAs(ttl=self._ttl).proto(name)

    def released(self, count: int) -> None:
        """The first `count` were deleted by the job that took them."""
        del self._names[:count]


def _large(janitor: Janitor, call: Call, plan: Plan, target: Target) -> Report:
    total = plan.payload_bytes + len(target.memory)
    with Meter(call, call.what, total) as meter:
        striped = _striped_names(call, plan)
        striped_result = _stripes(call) and plan.shape.nbytes >= _threshold(call)
        if not striped and not striped_result:
            return _stream(call, plan, plan.sent, target, meter)
        if plan.one_stream:
            return _one_stream(call, plan, target, meter)
        try:
            with _Temporaries(janitor, call) as temporaries:
                return _striped(call, plan, target, temporaries, meter, striped_result)
        except errors.ResourceExhausted as refusal:
            # The store may be full, or the caller's open calls too many, where the job itself
            # would fit.
            plan.one_stream = True
            if retries.refused(refusal):
                raise  # to be tried again, within the budget
            return _one_stream(call, plan, target, meter)


def _one_stream(call: Call, plan: Plan, target: Target, meter: Meter) -> Report:
    """After an attempt over all channels."""
    for name, matrix in plan.sent:
        matrix.shape.write(plan.operand(name).shape)
    plan.proto.ClearField("result")
    return _stream(call, plan, plan.sent, target, meter)


def _stripes(call: Call) -> bool:
    """Whether large matrices go over all channels: their pieces are kept on the server."""
    return call.connection.channels > 1 and call.connection.may_keep


def _threshold(call: Call) -> int:
    connection = call.connection
    return max(connection.options.stripe_bytes, connection.chunk_bytes + 1)


def _striped_names(call: Call, plan: Plan) -> list[str]:
    """The operands that are uploaded over all channels.

    Uploads, and the job that takes them, must be on one device. It can be chosen here unless
    the product names resident matrices, which lie where they lie.
    """
    if not _stripes(call) or (plan.handles and len(call.connection.server.devices) > 1):
        return []
    return [name for name, matrix in plan.sent if matrix.nbytes >= _threshold(call)]


def _upload_large(
    call: Call, plan: Plan, temporaries: _Temporaries, meter: Meter
) -> list[tuple[str, HostMatrix]]:
    """Uploads the large operands, all at once. Returns the others."""
    names = _striped_names(call, plan)
    if not names:
        return plan.sent
    connection = call.connection
    device = ""
    if len(connection.server.devices) > 1:
        device = connection.pick_device(call.ask_server())
    uploads = []
    for name, matrix in plan.sent:
        if name in names:
            header = pb.PutMatrixHeader(shape=matrix.shape.to_proto(), device=device)
            header.keep.CopyFrom(temporaries.new())
            uploads.append((name, transfer.Upload(call, header, matrix, meter)))
    infos = transfer.finished([upload for _, upload in uploads])
    for (name, _), info in zip(uploads, infos):
        ref = plan.operand(name).matrix
        ref.id = info.id
        ref.release = True
    return [(name, matrix) for name, matrix in plan.sent if name not in names]


def _striped(
    call: Call,
    plan: Plan,
    target: Target,
    temporaries: _Temporaries,
    meter: Meter,
    striped_result: bool,
) -> Report:
    left = _upload_large(call, plan, temporaries, meter)
    uploaded = len(plan.sent) - len(left)
    if not striped_result:
        report = _stream(call, plan, left, target, meter)
        temporaries.released(uploaded)
        return report
    plan.proto.result.stream = False
    plan.proto.result.keep.CopyFrom(temporaries.new())
    if left:
        kept = _keep_stream(call, plan, left, meter)
    else:
        kept = _keep_unary(call, plan.without_data())
    check_shape(plan.shape, kept.report._proto)
    temporaries.released(uploaded)
    transfer.download(call, by_id(kept.info.id), target.memory, meter)
    return kept.report


def _messages(
    plan: Plan, sent: list[tuple[str, HostMatrix]], chunk: int, meter: Meter
) -> Iterator[bytes]:
    for name, _ in sent:
        plan.operand(name).payload.SetInParent()
    yield wire.multiply_header(_JOB_ID, plan.without_data())
    for name, matrix in sent:
        for offset, payload in matrix.pieces(0, matrix.nbytes, chunk):
            yield wire.operand_chunk(_JOB_ID, ROLES[name], offset, payload)
            meter.add(len(payload))


def _stream(
    call: Call,
    plan: Plan,
    sent: list[tuple[str, HostMatrix]],
    target: Target,
    meter: Meter,
) -> Report:
    sink = wire.Sink(target.memory, 0, len(target.memory))
    result = _run_stream(call, plan, sent, sink, meter)
    check_shape(plan.shape, result.report)
    sink.check_complete()
    return Report(result.report)


def _keep_stream(call: Call, plan: Plan, sent: list[tuple[str, HostMatrix]], meter: Meter) -> Kept:
    result = _run_stream(call, plan, sent, wire.Sink(memoryview(bytearray()), 0, 0), meter)
    return Kept(result.kept, Report(result.report))


def _run_stream(
    call: Call, plan: Plan, sent: list[tuple[str, HostMatrix]], sink: wire.Sink, meter: Meter
) -> pb.MultiplyResult:
    connection = call.connection
    call.check_cancelled()
    messages = _messages(plan, sent, connection.chunk_bytes, meter)
    rpc = call.begin(connection.stubs().multiply, messages)
    try:
        for message in rpc:
            response = wire.multiply_response(message)
            if isinstance(response, wire.Piece):
                meter.add(sink.take(response))
            elif response.HasField("error"):
                rpc.cancel()
                raise retries.of_job(response.error)
            elif response.HasField("result"):
                return response.result
    except grpc.RpcError as error:
        raise call.explain(error) from None
    raise errors.Internal("the server ended the stream without a result")
