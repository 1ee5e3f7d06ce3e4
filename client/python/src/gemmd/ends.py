"""The waits at an end. Each has a bound, and what it leaves behind is named in the log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

_log = logging.getLogger("gemmd")

#: How long the end of something may take in which nothing moves any more.
BOUND_SECONDS = 5.0


def joined(thread: threading.Thread, pace: Callable[[], object]) -> bool:
    """Waits for the thread's end. False where `pace`, which changes while there is something to
    wait for, has not changed for BOUND_SECONDS."""
    while True:
        before = pace()
        thread.join(BOUND_SECONDS)
        if not thread.is_alive():
            return True
        if pace() == before:
            return False


def left_of(threads: Sequence[threading.Thread]) -> int:
    """How many of them have not ended after BOUND_SECONDS."""
    end = time.monotonic() + BOUND_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return sum(thread.is_alive() for thread in threads)


def done(work: Callable[[], None], name: str) -> bool:
    """Whether `work` has ended, on a thread of its own, within BOUND_SECONDS."""
    thread = threading.Thread(target=work, daemon=True, name=name)
    try:
        thread.start()
    except RuntimeError:  # Python ends, and starts no more threads
        work()
        return True
    return left_of([thread]) == 0


def left_behind(what: str) -> None:
    _log.warning("gemmd: %s", what)
