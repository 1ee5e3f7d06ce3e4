"""Opens the connection of a client."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future

from . import checks, ends, errors
from .call import Call
from .connection import Connection
from .contract import pb
from .interrupt import Hold
from .options import Options


def opened(address: str, options: Options, on_every_channel: bool = False) -> Connection:
    """A connection whose server has answered."""
    with Hold():
        opened = Connection(address, options)
    try:
        with Call(opened, "connect", options.connect_timeout) as call:
            call.tried(call.ask_server)
            for channel in range(opened.channels if on_every_channel else 0):
                call.unary(opened.stubs(channel).info, pb.GetServerInfoRequest())
    except BaseException:
        opened.close()
        raise
    return opened


def opened_in_child(address: str, options: Options) -> Connection:
    """The same with a bound of its own: the fork may have come while a thread of the parent held
    locks of gRPC's, which nobody frees here, so that gRPC keeps no deadline. One channel may work
    where another does not, so each is asked: a later call may have no deadline."""
    future: Future[Connection] = Future()

    def work() -> None:
        try:
            future.set_result(opened(address, options, on_every_channel=True))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=work, daemon=True, name="gemmd-connect")
    thread.start()
    timeout = checks.timeout(options.connect_timeout, "connect_timeout")
    try:
        thread.join(None if timeout is None else timeout + ends.BOUND_SECONDS)
    finally:
        if thread.is_alive():
            future.add_done_callback(_close_late)
    why = (
        f"process {os.getpid()} was forked, maybe while another thread of its parent was in a call, "
        "and then gRPC does not work here; fork before the first gemmd.connect, or start processes "
        "by the methods spawn or forkserver"
    )
    if not future.done():
        raise errors.DeadlineExceeded(
            f"connect did not end within its timeout of {timeout:g} s; {why}"
        )
    try:
        return future.result()
    except errors.DeadlineExceeded as error:
        raise errors.DeadlineExceeded(f"{error}; {why}") from None


def _close_late(opened: Future[Connection]) -> None:
    if opened.exception() is None:
        opened.result().close()
