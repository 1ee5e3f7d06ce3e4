"""Whether, and when, a call is tried again."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from typing import Any

from . import errors
from .contract import pb
from .options import Retry

_DETAILS = "grpc-status-details-bin"
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def _seconds(info: pb.RetryInfo) -> float:
    return max(0.0, info.retry_delay.seconds + info.retry_delay.nanos * 1e-9)


def after_metadata(trailing: Iterable[Any] | None) -> float | None:
    """When the server says to try again, from the metadata behind a call."""
    for key, value in trailing or ():
        if key != _DETAILS:
            continue
        try:
            details = pb.StatusDetails.FromString(value)
            for one in details.details:
                if one.type_url == _RETRY_INFO:
                    return _seconds(pb.RetryInfo.FromString(one.value))
        except Exception:  # what another program between has put there
            return None
    return None


def of_job(refusal: pb.JobError) -> errors.GemmdError:
    """The exception of a job's error."""
    error = errors.from_number(refusal.code, refusal.message)
    if refusal.HasField("retry_info"):
        error.retry_after = _seconds(refusal.retry_info)
    return error


def refused(error: errors.GemmdError) -> bool:
    """Whether the server has done nothing, and says when to try again."""
    return isinstance(error, errors.ResourceExhausted) and error.retry_after is not None


class Budget:
    """What calls have for further attempts. Thread-safe."""

    def __init__(self, most: float, per_call: float) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._per_call = per_call
        self._left = most

    def on_call(self) -> None:
        with self._lock:
            self._left = min(self._most, self._left + self._per_call)

    def take(self) -> bool:
        """Whether there is enough for another attempt, which is then taken."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


def wait(retry: Retry, made: int, error: errors.GemmdError) -> float | None:
    """Seconds before the next attempt, `made` were made; None where none follows.

    What the server says, and on top a random part of a bound that doubles.
    """
    least = error.retry_after or 0.0
    if made >= retry.attempts or least > retry.longest_seconds:
        return None
    bound = min(retry.longest_seconds, retry.first_seconds * 2 ** min(made - 1, 30))
    return least + random.uniform(0, bound)
