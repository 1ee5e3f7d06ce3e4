"""Ends calls for which nothing was sent or received for a while."""

from __future__ import annotations

import threading
import time
from typing import Protocol

_LONGEST_SLEEP_SECONDS = 1.0


class Watched(Protocol):
    """A call."""

    def end_if_idle(self) -> float:
        """Seconds until something must have moved. Ends the call where they are none."""
        ...


class Watch:
    """Looks at the calls of a connection whose streams have no deadline. Thread-safe.

    One thread, which ends when there is no such call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: set[Watched] = set()
        self._running = False

    def add(self, call: Watched) -> None:
        with self._lock:
            self._calls.add(call)
            if self._running:
                return
            self._running = True
        try:
            threading.Thread(target=self._run, daemon=True, name="gemmd-idle").start()
        except RuntimeError:  # the system gives no thread, or Python ends
            with self._lock:
                self._running = False

    def remove(self, call: Watched) -> None:
        with self._lock:
            self._calls.discard(call)

    def _run(self) -> None:
        while True:
            with self._lock:
                calls = list(self._calls)
                if not calls:
                    self._running = False
                    return
            sleep = _LONGEST_SLEEP_SECONDS
            for call in calls:
                left = call.end_if_idle()
                if left <= 0:
                    self.remove(call)
                else:
                    sleep = min(sleep, left)
            del call, calls  # a call must not live until the next look
            time.sleep(sleep)
