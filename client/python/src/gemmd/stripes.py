"""How a matrix is split over the channels: as the C++ client does it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass


@dataclass(frozen=True)
class Stripe:
    """Bytes [start, end) of a matrix, on one channel."""

    channel: int
    start: int
    end: int


def plan(nbytes: int, channels: int, chunk: int, first: int) -> list[Stripe]:
    """At most `channels` stripes, in order, without gaps, of nearly equal length.

    All but the last consist of whole chunks. The first is on channel `first`, the next ones
    on the channels after it, in a circle.
    """
    chunks = -(-nbytes // chunk)
    count = min(chunks, channels)
    stripes = []
    start = 0
    for i in range(count):
        whole = chunks // count + (1 if i < chunks % count else 0)
        end = min(start + whole * chunk, nbytes)
        stripes.append(Stripe((first + i) % channels, start, end))
        start = end
    return stripes


def new_id() -> str:
    """128 random bits in hexadecimal."""
    return secrets.token_hex(16)
