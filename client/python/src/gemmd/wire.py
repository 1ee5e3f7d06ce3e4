"""Messages with payload, written and read by hand.

The payload would be copied twice more by protobuf's classes. The fields are few: the contract
gives a chunk's payload the last number, so that it stands at the message's end.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .contract import pb
from .errors import Internal
from .operands import Buffer

_VARINT, _BYTES = 0, 2
_DATA = 15


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value) if value else b""


@functools.lru_cache(256)  # the messages of a pipeline have few different lengths
def _open(number: int, length: int) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(length)


def _message(outer: int, fields: bytes, payload: Buffer) -> bytes:
    inner = fields + _open(_DATA, len(payload))
    # One copy: grpcio takes nothing but bytes.
    return b"".join((_open(outer, len(inner) + len(payload)), inner, payload))


def product(head: bytes, data: Iterable[tuple[int, Sequence[Buffer]]]) -> list[Buffer]:
    """The pieces of a serialized Product: `head`, then the elements of operands by their numbers,
    in pieces themselves.

    `head` has these operands too, without a source: a parser merges the two.
    """
    pieces: list[Buffer] = [head]
    for number, elements in data:
        length = sum(map(len, elements))
        inner = _open(pb.Operand.DATA_FIELD_NUMBER, length)
        pieces += (_open(number, len(inner) + length), inner, *elements)
    return pieces


def multiply_unary(product: list[Buffer]) -> bytes:
    """A MultiplyUnaryRequest with a Product in pieces."""
    outer = _open(pb.MultiplyUnaryRequest.PRODUCT_FIELD_NUMBER, sum(map(len, product)))
    return b"".join((outer, *product))


def multiply_header(job_id: int, product: list[Buffer]) -> bytes:
    """A MultiplyRequest with a MultiplyHeader of a Product in pieces."""
    length = sum(map(len, product))
    inner = _field(pb.MultiplyHeader.JOB_ID_FIELD_NUMBER, job_id)
    inner += _open(pb.MultiplyHeader.PRODUCT_FIELD_NUMBER, length)
    outer = _open(pb.MultiplyRequest.HEADER_FIELD_NUMBER, len(inner) + length)
    return b"".join((outer, inner, *product))


def operand_chunk(job_id: int, role: int, offset: int, payload: Buffer) -> bytes:
    """A MultiplyRequest with an OperandChunk."""
    fields = _field(1, job_id) + _field(2, role) + _field(3, offset)
    return _message(pb.MultiplyRequest.CHUNK_FIELD_NUMBER, fields, payload)


def matrix_chunk(offset: int, payload: Buffer) -> bytes:
    """A PutMatrixRequest with a MatrixChunk."""
    return _message(pb.PutMatrixRequest.CHUNK_FIELD_NUMBER, _field(1, offset), payload)


@dataclass(slots=True)
class Piece:
    """A part of a matrix that arrived."""

    job_id: int
    offset: int
    data: memoryview


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _read(message: bytes, at: int, job_id_field: int, offset_field: int) -> Piece | None:
    """The chunk whose fields begin at `at`; None where it has fields that are not known here."""
    piece = Piece(0, 0, memoryview(b""))
    end = len(message)
    while at < end:
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        value, at = _read_varint(message, at)
        if kind == _VARINT and number == job_id_field:
            piece.job_id = value
        elif kind == _VARINT and number == offset_field:
            piece.offset = value
        elif kind == _BYTES and number == _DATA and at + value <= end:
            piece.data = memoryview(message)[at : at + value]
            at += value
        else:
            return None
    return piece


def multiply_response(message: bytes) -> Piece | pb.MultiplyResponse:
    """A result chunk as a piece of the message, or any other response."""
    if message[:1] == b"\x0a":
        _, at = _read_varint(message, 1)
        piece = _read(message, at, 1, 2)
        if piece is not None:
            return piece
    response = pb.MultiplyResponse.FromString(message)
    if response.WhichOneof("message") == "chunk":
        chunk = response.chunk
        return Piece(chunk.job_id, chunk.offset, memoryview(chunk.data))
    return response


def get_response(message: bytes) -> Piece | pb.GetMatrixResponse:
    """A piece of a matrix, or the first response, which has the matrix's description."""
    piece = _read(message, 0, 0, 2)
    if piece is not None and len(piece.data):
        return piece
    response = pb.GetMatrixResponse.FromString(message)
    if response.HasField("matrix"):
        return response
    return Piece(0, response.offset, memoryview(response.data))


#: Below this size, numpy's own work takes longer than the copy.
_SMALL_COPY_BYTES = 64 << 10


class Sink:
    """Receives bytes [start, end) of a matrix, in order, into memory that is the caller's and
    begins with the matrix's byte `begin`."""

    __slots__ = ("_begin", "_end", "_memory", "_next")

    def __init__(self, memory: memoryview, start: int, end: int, begin: int = 0) -> None:
        self._begin = begin
        self._memory = memory
        self._next = start
        self._end = end

    def take(self, piece: Piece) -> int:
        """Stores the next piece and returns its length. Internal where it is not the next."""
        length = len(piece.data)
        if piece.offset != self._next or length > self._end - self._next:
            raise Internal(
                f"the server sent bytes {piece.offset} to {piece.offset + length}; "
                f"bytes {self._next} to at most {self._end} were to follow"
            )
        at = self._next - self._begin
        target = self._memory[at : at + length]
        if length < _SMALL_COPY_BYTES:
            target[:] = piece.data
        else:
            # numpy copies without the interpreter's lock: other stripes go on meanwhile.
            np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(piece.data, np.uint8))
        self._next += length
        return length

    def check_complete(self) -> None:
        if self._next != self._end:
            raise Internal(
                f"the server ended before byte {self._end}: bytes from {self._next} are missing"
            )
