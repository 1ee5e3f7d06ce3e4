"""Shows transfers that take longer than a second, where tqdm is installed."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from .call import Call

_AFTER_SECONDS = 1.0


class Meter:
    """Counts the bytes of one call. Thread-safe."""

    def __init__(self, call: Call, what: str, total: int) -> None:
        self._call = call
        self._what = what
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._shown = call.connection.options.progress
        self._bar: Any = None
        self._lock = threading.Lock()

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._shown = False
            if self._bar is not None:
                self._bar.close()

    def add(self, nbytes: int) -> None:
        self._call.moved()
        if not self._shown:
            return
        with self._lock:
            self._done += nbytes
            if self._bar is not None:
                self._bar.update(nbytes)
            elif self._shown and time.monotonic() - self._begun > _AFTER_SECONDS:
                self._open()

    def _open(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._shown = False
            return
        self._bar = tqdm(
            total=self._total, initial=self._done, desc=self._what, unit="B", unit_scale=True,
            unit_divisor=1024, leave=False, disable=None,
        )  # fmt: skip
