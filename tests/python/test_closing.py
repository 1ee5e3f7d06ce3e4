"""A client that is closed while it is used: ClientClosed, whatever is under way."""

import asyncio
import dataclasses
import threading

import gemmd
import gemmd.aio
import numpy as np
import pytest
from gemmd import janitor

from conftest import SMALL, Server

A = np.arange(4096.0).reshape(64, 64)  # goes over all channels
ONE = np.ones((4, 4))
CANCEL = gemmd.Canceller()
WAYS = [
    ("multiply_unary", lambda g, w: g.matmul(ONE, ONE)),
    ("multiply_unary", lambda g, w: g.matmul(ONE, ONE, cancel=CANCEL)),
    ("multiply", lambda g, w: g.matmul(A[:20], A[:, :20])),
    ("multiply_stream", lambda g, w: g.pipeline()),
    ("put", lambda g, w: g.matmul(A, A)),
    ("put", lambda g, w: g.random((4, 4))),
    ("get", lambda g, w: w.numpy()),
    ("get", lambda g, w: g.matrix("w")),
    ("list", lambda g, w: g.matrices()),
    ("info", lambda g, w: g.info()),
    ("benchmark", lambda g, w: g.bench([32], families=["host"], types=["f32"], iterations=1)),
]


@pytest.fixture(scope="module")
def server():
    """Of this module's own: what a call under way has there stays for a while."""
    running = Server()
    yield running
    running.kill()


class ClosesFirst:
    """A method of a stub: the client is closed just before the RPC begins."""

    def __init__(self, client, method):
        self._client = client
        self._method = method

    def __call__(self, *args, **options):
        self._client.close()
        return self._method(*args, **options)

    def future(self, *args, **options):
        self._client.close()
        return self._method.future(*args, **options)


@pytest.mark.parametrize("way,call", WAYS, ids=[way for way, _ in WAYS])
def test_just_before_an_rpc(server, way, call):
    client = gemmd.connect(server.address, **SMALL)
    w = client.put(A).detach()
    connection = client._connection
    connection._all = [
        dataclasses.replace(stubs, **{way: ClosesFirst(client, getattr(stubs, way))})
        for stubs in connection._all
    ]
    with pytest.raises(gemmd.ClientClosed, match="closed"):
        call(client, w)


def test_at_any_time(server):
    """Threads with products of every size."""
    odd = []

    def work(client, size):
        a = np.ones((size, size))
        try:
            while True:
                client.matmul(a, a)
        except gemmd.ClientClosed:
            pass
        except BaseException as error:
            odd.append(error)

    for attempt in range(20):
        client = gemmd.connect(server.address, **SMALL)
        threads = [threading.Thread(target=work, args=(client, n)) for n in (8, 30, 64, 200)]
        for thread in threads:
            thread.start()
        threading.Event().wait(0.005 * attempt)
        client.close()
        for thread in threads:
            thread.join()
    assert odd == []


def test_while_the_list_waits_for_deletes(server):
    client = gemmd.connect(server.address)
    client.put(ONE).free()  # starts the janitor
    client._janitor.stop()
    client._janitor._thread = threading.Thread(target=threading.Event().wait, daemon=True)
    client._janitor._thread.start()
    closer = threading.Timer(0.2, client._connection.close)
    closer.start()
    with pytest.raises(gemmd.ClientClosed, match="closed"):
        client.matrices()
    closer.join()


def test_while_the_janitor_starts(server, monkeypatch):
    """`stop` comes between the making of the thread and its start."""
    making, failed = threading.Event(), []

    class Slow(threading.Thread):
        def start(self):
            making.set()
            stopper.join(0.2)
            super().start()

    def stop():
        making.wait()
        try:
            one.stop()
        except RuntimeError as error:
            failed.append(error)

    with gemmd.connect(server.address) as client:
        one = janitor.Janitor(client._connection)
        stopper = threading.Thread(target=stop)
        stopper.start()
        monkeypatch.setattr(janitor.threading, "Thread", Slow)
        one.start()
        monkeypatch.undo()
        stopper.join(10)
    assert not failed and not stopper.is_alive()


def test_asyncio_says_so_too(server):
    async def main():
        client = await gemmd.aio.connect(server.address)
        w = await client.put(ONE)
        await client.close()
        for use in (
            lambda: client.matmul(ONE, ONE), lambda: client.put(ONE), client.info,
            lambda: client.pipeline().__aenter__(), lambda: client.matrix("w"),
        ):  # fmt: skip
            with pytest.raises(gemmd.ClientClosed):
                await use()
        await w.free()
        await client.close()

    asyncio.run(main())
