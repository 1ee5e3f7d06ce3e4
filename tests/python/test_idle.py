"""A call without a timeout ends once nothing was sent or received for a while."""

import contextlib
import threading
import time

import gemmd
import numpy as np
import pytest

BIG = np.ones((1500, 1500))
SMALL = np.ones((4, 4))
IDLE = 0.5


@contextlib.contextmanager
def stopped(server):
    server.stop()
    try:
        yield
    finally:
        server.go_on()


def pipelined(client, handle):
    with client.pipeline() as p:
        p.matmul(SMALL, SMALL).result()


@pytest.mark.parametrize("call", [
    lambda client, handle: client.info(),
    lambda client, handle: client.matmul(SMALL, SMALL),
    lambda client, handle: client.matmul(BIG, BIG),
    lambda client, handle: client.put(BIG),
    lambda client, handle: client.exists(id=handle.id),
    lambda client, handle: handle.numpy(),
    lambda client, handle: client.bench([64]),
    pipelined,
], ids=["info", "unary", "stream", "put", "stat", "get", "bench", "pipeline"])  # fmt: skip
def test_of_a_server_that_does_nothing(own_server, call):
    with gemmd.connect(own_server.address, idle_timeout=IDLE, stripe_bytes=1 << 20) as client:
        handle = client.put(BIG)
        with stopped(own_server):
            begun = time.monotonic()
            with pytest.raises(gemmd.DeadlineExceeded, match=r"nothing .* for 0.5 s \(idle_timeout\)"):
                call(client, handle)
            assert time.monotonic() - begun < 20


def test_a_timeout_of_its_own_counts_alone(own_server):
    with gemmd.connect(own_server.address, idle_timeout=0.2) as client:
        handle = client.put(BIG)
        threading.Timer(1, own_server.go_on).start()
        with stopped(own_server):
            assert np.array_equal(handle.numpy(timeout=60), BIG)


def test_a_transfer_that_goes_on_takes_as_long_as_it_takes(own_server, monkeypatch):
    with gemmd.connect(own_server.address, idle_timeout=IDLE, chunk_bytes=1 << 20) as client:
        handle = client.put(BIG)
        take = gemmd.wire.Sink.take

        def slowly(self, piece):
            time.sleep(0.2)
            return take(self, piece)

        monkeypatch.setattr(gemmd.wire.Sink, "take", slowly)
        begun = time.monotonic()
        assert np.array_equal(handle.numpy(), BIG)
        assert time.monotonic() - begun > 2 * IDLE


def test_a_pipeline_may_have_nothing_to_do(g, server):
    with gemmd.connect(server.address, idle_timeout=0.2) as client, client.pipeline() as p:
        for _ in range(2):
            assert p.matmul(SMALL, SMALL).result().sum() == 64
            time.sleep(0.6)


def test_it_may_be_turned_off(server):
    for none in (float("inf"), 1e12):
        with gemmd.connect(server.address, idle_timeout=none) as client:
            assert client._connection.idle_timeout is None
            assert client.matmul(SMALL, SMALL).sum() == 64
    with pytest.raises(gemmd.InvalidArgument, match="idle_timeout is 0.0; it must be above 0"):
        gemmd.connect(server.address, idle_timeout=0)
