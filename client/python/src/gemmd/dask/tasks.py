"""What a task asks of the scheduler that runs it. Without `distributed`, nothing."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

_log = logging.getLogger("gemmd")
#: The topic of `Client.get_events` under which every try of a tile is recorded.
TOPIC = "gemmd"
# States of a task whose result nobody waits for.
_OVER = ("released", "forgotten", "erred")


def worker() -> Any:
    """The worker of `distributed` that runs this task; None under Dask's other schedulers."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except ValueError:
        return None


@functools.cache
def warn_of_profiler() -> None:
    """Once a process, where the profiler of Dask's workers may stop it for good: before Python 3.12,
    sys._current_frames() collects garbage with the interpreter's lock held (gh-106883), and that of
    gRPC has destructors of its own."""
    import dask

    if sys.version_info < (3, 12) and dask.config.get("distributed.worker.profile.enabled", True):
        _log.warning(
            "gemmd.dask: Dask's profiler can stop workers with a Python before 3.12 for good: set "
            "distributed.worker.profile.enabled to False, or "
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False in their environment"
        )


def key() -> Any:
    """Of this task; None without `distributed`."""
    here = worker()
    return None if here is None else here.get_current_task()


def client() -> Any:
    """A client of the scheduler; None without `distributed`."""
    if worker() is None:
        return None
    from distributed import get_client

    return get_client()


def record(event: dict[str, Any]) -> None:
    here = worker()
    if here is not None:
        here.log_event(TOPIC, event)


def wanted() -> Callable[[], bool]:
    """Asks whether this task's result is still wanted: whether nobody cancelled its future."""
    here = worker()
    if here is None:
        return lambda: True
    mine = here.get_current_task()

    def ask() -> bool:
        task = here.state.tasks.get(mine)
        return task is not None and task.state not in ("cancelled", "released")

    return ask


def make_again(lost: Any) -> NoReturn:
    """Has the scheduler run the task `lost` again, and what that needs, and this one after it."""
    from distributed import Reschedule

    if lost != key():  # where Dask has fused the two, this one makes it again itself
        client().run_on_scheduler(_release, lost)
    raise Reschedule


def _release(lost: Any, dask_scheduler: Any = None) -> None:
    """On the scheduler, as where a worker that had the result is gone."""
    task = dask_scheduler.tasks.get(lost)
    if task is not None and task.state == "memory":
        dask_scheduler.transitions({lost: "released"}, stimulus_id="gemmd-panel-lost")


def wanted_by_any(of: Any, keys: Sequence[Any]) -> bool:
    """Whether the scheduler has the result of one of these tasks, or is about to have it made. True
    where the scheduler does not say."""
    try:
        states = of.sync(of.scheduler.get_task_status, keys=list(keys), callback_timeout=10)
    except Exception:  # the cluster ends: what is left expires
        return True
    return any(states.get(key) not in (None, *_OVER) for key in keys)
