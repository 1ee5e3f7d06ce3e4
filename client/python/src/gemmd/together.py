"""Products of a pipeline that are alike and wait together, as one batch.

Alike are products with the same shapes, types, scalars and resident operands, of which the server
chooses the kernel. Small ones alone: of large ones, the message costs little beside the elements.
"""

from __future__ import annotations

import numpy as np

from . import errors, wire
from .connection import Connection
from .contract import MESSAGE_OVERHEAD_BYTES, pb
from .operands import Buffer, Shape
from .product import FIELDS, ROLES, Plan, write_shared
from .results import Target

#: Operands and result of one product.
_MOST_BYTES = 256 << 10
_ROW = pb.LAYOUT_ROW_MAJOR
# Errors that a server may give to a batch before it computes it, but not to a single product.
_OF_BATCHES = (
    errors.FailedPrecondition, errors.InvalidArgument, errors.NotFound, errors.ResourceExhausted,
    errors.Unimplemented,
)  # fmt: skip


def key(plan: Plan) -> bytes | None:
    """The same for products that are alike; None for one that goes by itself."""
    proto = plan.proto
    if (
        plan.payload_bytes + plan.shape.nbytes > _MOST_BYTES
        or plan.shape.layout != _ROW
        or proto.batch_count > 1
        or proto.group
        or proto.verify > pb.VERIFY_OFF  # no batch is checked
        or proto.HasField("kernel")  # which may take none
        or proto.HasField("scales_a")
    ):
        return None
    stacked = False
    for name, matrix in plan.sent:
        if matrix.shape.layout != _ROW:
            return None
        stacked = stacked or name in ("a", "b")
    return proto.SerializeToString() if stacked else None


def go_alone(error: errors.GemmdError) -> bool:
    """Whether the products of a batch that was refused are to be sent one by one. Not where the
    time is over, or the server goes: each would have its timeout, or its attempt, twice."""
    return isinstance(error, _OF_BATCHES)


def most(connection: Connection, plan: Plan) -> int:
    """How many such products one message takes. Their results, which are received beside their
    places, have the same bound."""
    limits = connection.server.limits
    room = min(connection.chunk_bytes, connection.server_message_bytes) - MESSAGE_OVERHEAD_BYTES
    return max(1, min(limits.max_batch_count, room // max(plan.payload_bytes, plan.shape.nbytes)))


class Together:
    """The batch: its message, and memory for its results, which are copied to their places."""

    def __init__(self, plans: list[Plan]) -> None:
        first = plans[0]
        self._count = len(plans)
        self._plans = plans
        self._shape = first.shape
        self._memory = np.empty(self.shape.nbytes, np.uint8)
        self.sink = wire.Sink(self._memory.data, 0, self.shape.nbytes)

    @property
    def shape(self) -> Shape:
        """Of the results, one after the other."""
        return self._shape._replace(rows=self._count * self._shape.rows)

    def message(self, job_id: int) -> bytes:
        first = self._plans[0]
        proto = pb.Product()
        proto.CopyFrom(first.proto)
        proto.batch_count = self._count
        sent = [name for name, _ in first.sent]
        for name in sent:
            getattr(proto, name).shape.rows *= self._count
        write_shared(proto, frozenset(ROLES.keys() - set(sent)))
        data: list[tuple[int, list[Buffer]]] = []
        for place, name in enumerate(sent):
            matrices = [plan.sent[place][1] for plan in self._plans]
            data.append((FIELDS[name], [matrix.piece(0, matrix.nbytes) for matrix in matrices]))
        return wire.multiply_header(job_id, wire.product(proto.SerializeToString(), data))

    def deliver(self, place: int, target: Target) -> None:
        """The result of the product that has this place."""
        size = self._shape.nbytes
        target.memory[:] = self._memory.data[place * size : (place + 1) * size]

    def check(self, report: pb.ProductReport) -> None:
        """Internal where the server's results are not what was asked for."""
        self.sink.check_complete()
        shape = Shape.of(report.result_shape)
        if shape != self.shape or report.batch_count != self._count:
            raise errors.Internal(
                f"the results of {self._count} products were expected to be {self.shape}; they are "
                f"{shape}, of {report.batch_count}"
            )
