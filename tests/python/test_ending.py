"""Calls that end early: timeouts, cancellation, Ctrl-C, and servers that die."""

import pathlib
import signal
import subprocess
import sys
import threading
import time

import gemmd
import numpy as np
import pytest

from conftest import SMALL, Server, free_port, left_on

A = np.random.default_rng(1).standard_normal((40, 30))
BIG = np.ones((1500, 1500))
INTERRUPTED = pathlib.Path(__file__).with_name("interrupted.py")
SLOW = {"kernel": "host_reference"}  # seconds for BIG


def test_a_timeout_is_kept_and_named(g):
    begun = time.monotonic()
    with pytest.raises(gemmd.DeadlineExceeded, match=r"0\.2 s"):
        g.matmul(BIG, BIG, timeout=0.2, **SLOW)
    assert time.monotonic() - begun < 10
    assert left_on(g) == (0, 0)


@pytest.mark.parametrize("size", [60, 400, 1500], ids=["unary", "stream", "striped"])
def test_a_call_is_cancelled_from_another_thread(g, size):
    canceller = gemmd.Canceller()
    timer = threading.Timer(0.2, canceller.cancel)
    timer.start()
    big = np.ones((size, size))
    try:
        with pytest.raises(gemmd.Cancelled, match="cancelled by its caller"):
            for _ in range(10000):
                g.matmul(big, big, cancel=canceller, **SLOW)
    finally:
        timer.join()
    with pytest.raises(gemmd.Cancelled):
        g.put(big, cancel=canceller)
    assert left_on(g) == (0, 0)


def test_no_server_is_one_clear_error():
    address = f"127.0.0.1:{free_port()}"
    begun = time.monotonic()
    with pytest.raises(gemmd.Unavailable, match=address):
        gemmd.connect(address)
    assert time.monotonic() - begun < 15


def test_a_server_that_starts_meanwhile_is_connected_to(own_server):
    own_server.kill()
    timer = threading.Timer(0.5, own_server.start)
    timer.start()
    retry = gemmd.Retry(attempts=100, first_seconds=0.2, longest_seconds=1, budget=100)
    with gemmd.connect(own_server.address, retry=retry) as client:
        np.testing.assert_allclose(client.matmul(A, A.T), A @ A.T)
    timer.join()


def test_connect_gives_up_in_time():
    begun = time.monotonic()
    retry = gemmd.Retry(attempts=1000, budget=1000)
    with pytest.raises((gemmd.Unavailable, gemmd.DeadlineExceeded)):
        gemmd.connect(f"127.0.0.1:{free_port()}", retry=retry, connect_timeout=1)
    assert time.monotonic() - begun < 5


def kill_at_work(server, watcher):
    while watcher.info().jobs == 0:
        time.sleep(0.001)
    server.kill()


def test_a_server_that_dies_in_mid_call(own_server):
    client = gemmd.connect(own_server.address, retry=gemmd.Retry(attempts=1))
    with gemmd.connect(own_server.address) as watcher:
        killer = threading.Thread(target=kill_at_work, args=(own_server, watcher))
        killer.start()
        with pytest.raises(gemmd.Unavailable, match=own_server.address):
            client.matmul(BIG, BIG, **SLOW)
        killer.join()
    with pytest.raises(gemmd.Unavailable):
        client.put(A)
    own_server.start()
    deadline = time.monotonic() + 20
    while True:
        try:
            np.testing.assert_allclose(client.matmul(A, A.T), A @ A.T)
            break
        except gemmd.Unavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    with gemmd.connect(own_server.address) as other:
        assert left_on(other) == (0, 0)
    client.close()


def test_a_server_killed_in_mid_transfer(own_server):
    client = gemmd.connect(own_server.address, retry=gemmd.Retry(attempts=1))
    timer = threading.Timer(0.3, own_server.kill)
    timer.start()
    with pytest.raises(gemmd.Unavailable, match=own_server.address):
        while True:
            with client.put(BIG) as w:
                w.numpy()
    timer.join()
    client.close()


def test_a_bound_that_passes_is_waited_for_and_another_is_not():
    busy = Server("--max-jobs=1", "--max-job-bytes=64MiB")
    patient = gemmd.Retry(attempts=200, first_seconds=0.05, longest_seconds=0.2, budget=200)
    hasty = gemmd.Retry(attempts=1)
    try:
        with (
            gemmd.connect(busy.address, retry=patient) as client,
            gemmd.connect(busy.address, retry=hasty) as other,
            client.pipeline() as p,
        ):
            first = p.matmul(BIG[:700], BIG[:, :700], **SLOW)
            with pytest.raises(gemmd.ResourceExhausted, match="max-jobs"):
                while not first.done():
                    other.matmul(A, A.T)
            np.testing.assert_allclose(client.matmul(A, A.T), A @ A.T)
            first.result()
            begun = time.monotonic()
            with pytest.raises(gemmd.ResourceExhausted, match="split the product"):
                client.matmul(np.ones((3000, 3000)), np.ones((3000, 3000)))
            assert time.monotonic() - begun < 20
    finally:
        busy.kill()


def test_handles_of_a_former_life_say_so(own_server):
    with gemmd.connect(own_server.address, **SMALL) as client:
        w = client.put(A, name="w")
        own_server.kill()
        own_server.start()
        deadline = time.monotonic() + 20
        while True:
            try:
                client.info()
                break
            except gemmd.Unavailable:
                assert time.monotonic() < deadline
        for use in (lambda: A.T @ w, w.numpy, lambda: client.keep(w, A.T)):
            with pytest.raises(gemmd.LostHandle, match="former life"):
                use()
        with client.pipeline() as p:
            with pytest.raises(gemmd.LostHandle, match="former life"):
                p.matmul(A.T, w).result(30)
        w.free()
        again = client.put(A, name="w")
        np.testing.assert_allclose(A.T @ again, A.T @ A)


def test_a_restarted_server_is_found_again_without_an_error(own_server):
    retry = gemmd.Retry(attempts=100, first_seconds=0.2, longest_seconds=1, budget=100)
    with gemmd.connect(own_server.address, retry=retry) as client:
        own_server.kill()
        timer = threading.Timer(0.5, own_server.start)
        timer.start()
        np.testing.assert_allclose(client.matmul(A, A.T), A @ A.T)
        timer.join()


def test_a_server_that_dies_ends_a_pipeline_and_its_futures(own_server):
    client = gemmd.connect(own_server.address)
    with pytest.raises(gemmd.Unavailable):
        with client.pipeline() as p:
            futures = [p.matmul(BIG, BIG, **SLOW) for _ in range(3)]
            time.sleep(0.3)
            own_server.kill()
            for future in futures:
                future.result(60)
    assert all(isinstance(future.exception(), gemmd.GemmdError) for future in futures)
    client.close()


@pytest.mark.parametrize("way", ["unary", "stream", "striped", "put", "keep", "pipeline"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_handler_that_raises_anywhere_in_a_call_leaves_the_client_usable(server, g, way, number):
    source = pathlib.Path(gemmd.__file__).parents[1]
    child = subprocess.run(
        [sys.executable, INTERRUPTED, server.address, way, "30", str(int(number))],
        capture_output=True, text=True, timeout=240, env={"PYTHONPATH": str(source)},
    )  # fmt: skip
    assert (child.returncode, child.stdout) == (0, "usable\n"), child.stderr
    assert left_on(g) == (0, 0)
