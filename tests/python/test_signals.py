"""Signal handlers of the application's during calls: when they run, and what they raise."""

import contextlib
import gc
import os
import signal
import threading
import weakref

import gemmd
import numpy as np
import pytest
from gemmd import interrupt

ONE = np.ones((4, 4))


class Stopped(Exception):
    pass


@pytest.fixture
def handle():
    """Sets a handler of SIGTERM, which is put back behind the test."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, before)


def raising(number, frame):
    raise Stopped


def test_what_a_handler_raises_is_raised_behind_a_hold(handle):
    handle(raising)
    reached = []
    with pytest.raises(Stopped):
        with interrupt.Hold():
            signal.raise_signal(signal.SIGTERM)
            reached.append("behind the signal")
    assert reached
    with pytest.raises(Stopped):
        signal.raise_signal(signal.SIGTERM)


def test_the_first_one_counts_and_ends_what_is_waited_for(handle):
    handle(raising)
    cancelled = threading.Event()
    with pytest.raises(Stopped):
        with interrupt.Hold(cancelled.set):
            signal.raise_signal(signal.SIGTERM)
            assert cancelled.wait(60)
            signal.raise_signal(signal.SIGINT)


def test_a_handler_that_raises_nothing_runs_at_once_and_the_call_goes_on(handle):
    seen = []
    handle(lambda number, frame: seen.append(number))
    with interrupt.Hold(lambda: seen.append("cancelled")):
        signal.raise_signal(signal.SIGTERM)
        assert seen == [signal.SIGTERM]
    assert seen == [signal.SIGTERM]


def test_handlers_are_put_back(handle, g):
    handle(raising)
    g.info()
    assert signal.getsignal(signal.SIGTERM) is raising
    with interrupt.Hold():
        assert signal.getsignal(signal.SIGTERM) is not raising
        g.info()  # within another hold
        assert signal.getsignal(signal.SIGTERM) is not raising
    assert signal.getsignal(signal.SIGTERM) is raising


def test_what_a_call_has_made_is_garbage_with_what_is_raised(handle):
    """And so its matrices are deleted."""
    handle(raising)

    class Made:
        pass

    gone = []

    def call():
        made = Made()
        weakref.finalize(made, gone.append, True)
        with interrupt.Hold():
            signal.raise_signal(signal.SIGTERM)

    gc.disable()
    try:
        with contextlib.suppress(Stopped):
            call()
        assert gone
    finally:
        gc.enable()


@pytest.mark.parametrize("left", [signal.SIG_DFL, signal.SIG_IGN])
def test_what_is_no_function_is_left_alone(handle, left):
    handle(left)
    with interrupt.Hold():
        assert signal.getsignal(signal.SIGTERM) is left
    assert signal.getsignal(signal.SIGTERM) is left


def test_a_handler_that_sets_another_one_keeps_it(handle):
    def once(number, frame):
        signal.signal(number, signal.SIG_IGN)
        raise Stopped

    handle(once)
    with pytest.raises(Stopped):
        with interrupt.Hold():
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_that_is_forked_during_a_hold_has_none(handle):
    """As by a thread, while the main thread is in a call."""
    handle(raising)
    statuses = []

    def fork():
        child = os.fork()
        if child == 0:
            kept = signal.getsignal(signal.SIGTERM) is raising
            try:
                with interrupt.Hold():
                    signal.raise_signal(signal.SIGTERM)
                os._exit(1)
            except Stopped:
                os._exit(0 if kept else 2)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with interrupt.Hold():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert statuses == [0]


def test_a_handler_may_use_the_client_it_interrupts(handle, g):
    seen = []
    handle(lambda number, frame: seen.append(g.matmul(ONE, ONE)[0, 0]))
    with interrupt.Hold():
        signal.raise_signal(signal.SIGTERM)
    assert seen == [4]


def test_a_call_that_is_under_way_is_ended(handle, server):
    """The handler runs while the RPC of a slow product waits for its answer."""
    handle(raising)
    big = np.ones((900, 900))
    main = threading.get_ident()

    def poke():
        with gemmd.connect(server.address) as watcher:
            while watcher.info().jobs == 0:
                pass
        signal.pthread_kill(main, signal.SIGTERM)

    with gemmd.connect(server.address) as client:
        for multiply in (client.matmul, client.keep):
            poker = threading.Thread(target=poke)
            poker.start()
            with pytest.raises(Stopped):
                while True:
                    multiply(big, big, kernel="host_reference")
            poker.join()
        assert client.matmul(ONE, ONE)[0, 0] == 4
