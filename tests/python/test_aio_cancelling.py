"""asyncio: what a cancelled task leaves behind."""

import asyncio
import threading
import time

import gemmd
import gemmd.aio
import gemmd.client
import gemmd.handle
import gemmd.matrices
import gemmd.queries
import numpy as np
import pytest
from gemmd import wire

from conftest import SMALL, cancelled, left_on

A = np.random.default_rng(5).standard_normal((4, 4))
# Many chunks with SMALL, and not small with the usual options.
BIG = np.random.default_rng(6).standard_normal((150, 140))


class Arriving:
    """Slows the pieces of results down: a task can be cancelled before one is written."""

    def __init__(self, monkeypatch):
        self.begun = threading.Event()
        take = wire.Sink.take

        def slow(sink, piece):
            self.begun.set()
            time.sleep(0.1)
            return take(sink, piece)

        monkeypatch.setattr(wire.Sink, "take", slow)

    async def wait(self):
        while not self.begun.is_set():
            await asyncio.sleep(0.001)


def assert_left_alone(out):
    """Nothing is written there any more."""
    out[:] = np.nan
    time.sleep(0.3)
    assert np.isnan(out).all()


@pytest.mark.parametrize("times", [1, 3], ids=["cancelled", "cancelled again and again"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_cancelled_download_leaves_out_alone(server, monkeypatch, kind, times):
    torch = pytest.importorskip("torch") if kind == "torch" else None

    async def main():
        async with await gemmd.aio.connect(server.address, **SMALL) as g, await g.put(BIG) as w:
            out = np.full(BIG.shape, np.nan)
            arriving = Arriving(monkeypatch)
            if torch is not None:
                task = asyncio.create_task(w.torch(torch.from_numpy(out)))
            else:
                task = asyncio.create_task(w.numpy(out))
            await arriving.wait()
            for _ in range(times - 1):
                task.cancel()
                await asyncio.sleep(0)
            await cancelled(task)
            assert_left_alone(out)

    asyncio.run(main())


def test_a_cancelled_product_of_a_pipeline_leaves_out_alone(server, monkeypatch):
    async def main():
        async with await gemmd.aio.connect(server.address, **SMALL) as g, g.pipeline(4) as p:
            out = np.full((150, 150), np.nan)
            arriving = Arriving(monkeypatch)
            future = await p.matmul(BIG, BIG.T, out=out)
            await arriving.wait()
            await cancelled(future)
            np.testing.assert_allclose(out, BIG @ BIG.T)  # it is done when all has arrived
            others = [await p.matmul(BIG, BIG.T, out=np.empty((150, 150))) for _ in range(3)]
            assert all(future.cancel() for future in others)
            for future in others:
                await cancelled(future)
            monkeypatch.undo()
            future = await p.matmul(A, A)
            assert future.cancel() and future.cancelled()
            np.testing.assert_allclose(await (await p.matmul(A, A, out=np.empty((4, 4)))), A @ A)

    asyncio.run(main())


def test_a_block_of_a_pipeline_that_is_cancelled_at_its_end_leaves_out_alone(server, monkeypatch):
    out = np.full((150, 150), np.nan)
    futures = []

    async def block(g):
        async with g.pipeline(4) as p:
            futures.append(await p.matmul(BIG, BIG.T, out=out))

    async def main():
        async with await gemmd.aio.connect(server.address, **SMALL) as g:
            arriving = Arriving(monkeypatch)
            task = asyncio.create_task(block(g))
            await arriving.wait()
            await cancelled(task)
            assert_left_alone(out)
            assert futures[0].done() and isinstance(futures[0].exception(), gemmd.Cancelled)

    asyncio.run(main())


@pytest.fixture
def calls(monkeypatch):
    """The calls under way."""
    under_way = set()

    class Counted(gemmd.client.Call):
        def __enter__(self):
            under_way.add(self.what)
            return super().__enter__()

        def __exit__(self, *error):
            try:
                return super().__exit__(*error)
            finally:
                under_way.discard(self.what)

    for module in (gemmd.client, gemmd.handle, gemmd.matrices, gemmd.queries):
        monkeypatch.setattr(module, "Call", Counted)
    return under_way


CALLS = {
    "matmul": lambda g, w: g.matmul(A, A),
    "grouped_matmul": lambda g, w: g.grouped_matmul(A, A[None], [4]),
    "keep": lambda g, w: g.keep(A, A),
    "put": lambda g, w: g.put(A),
    "random": lambda g, w: g.random((4, 4)),
    "matrix": lambda g, w: g.matrix("w"),
    "matrices": lambda g, w: g.matrices(),
    "exists": lambda g, w: g.exists("w"),
    "delete": lambda g, w: g.delete("w"),
    "info": lambda g, w: g.info(),
    "kernels": lambda g, w: g.kernels(),
    "explain": lambda g, w: g.explain(4, 4, 4),
    "traffic": lambda g, w: g.traffic(),
    "reload_tuning": lambda g, w: g.reload_tuning(),
    "bench": lambda g, w: g.bench([4]),
    "numpy": lambda g, w: w.numpy(),
    "array @ handle": lambda g, w: A @ w,
    "handle @ array": lambda g, w: w @ A,
    "handle @ handle": lambda g, w: w @ w,
    "transposed.numpy": lambda g, w: w.T.numpy(),
    "transposed @ array": lambda g, w: w.T @ A,
}


def test_every_call_is_among_those_that_are_cancelled():
    has_none = {"close", "pipeline"}
    public = {name for name in vars(gemmd.aio.Client) if not name.startswith("_")}
    assert public - has_none <= set(CALLS)


def test_a_cancelled_task_returns_when_its_call_has_ended(own_server, calls):
    async def main():
        async with await gemmd.aio.connect(own_server.address) as g:
            w = await g.put(A, name="w")
            own_server.stop()
            try:
                for name, call in CALLS.items():
                    task = asyncio.ensure_future(call(g, w))
                    while not calls:
                        await asyncio.sleep(0.001)
                    await asyncio.sleep(0.01)
                    await asyncio.wait_for(cancelled(task), 20)
                    assert not calls, name
            finally:
                own_server.go_on()
            np.testing.assert_array_equal(await w.numpy(), A)

    asyncio.run(main())


def test_a_cancelled_task_leaves_the_other_calls_of_its_canceller(own_server, calls):
    async def begun(client, canceller):
        task = asyncio.create_task(client.matmul(A, A, cancel=canceller))
        while not calls:
            await asyncio.sleep(0.001)
        return task

    async def main():
        async with await gemmd.aio.connect(own_server.address) as client:
            shared = gemmd.Canceller()
            try:
                own_server.stop()
                first = await begun(client, shared)
                other = await begun(client, shared)
                await cancelled(first)
                assert not shared.cancelled
                own_server.go_on()
                np.testing.assert_allclose((await other)[0], (A @ A)[0])
                own_server.stop()
                last = await begun(client, shared)
                shared.cancel()
                with pytest.raises(gemmd.Cancelled):
                    await last
            finally:
                own_server.go_on()

    asyncio.run(main())
    with gemmd.connect(own_server.address) as client:
        assert left_on(client) == (0, 0)
