"""asyncio: what a cancelled task leaves behind, and that nothing blocks the loop."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time

import gemmd
import gemmd.aio
import gemmd.call
import gemmd.client
import gemmd.handle
import numpy as np
import pytest
from gemmd import operands, wire

from conftest import SMALL, left_on

A = np.random.default_rng(5).standard_normal((4, 4))
# Of many chunks with SMALL, and not small with the usual options.
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


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


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


def stop(server):
    """Until SIGCONT it answers nothing."""
    server.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)


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

    for module in (gemmd.client, gemmd.handle):
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
            stop(own_server)
            try:
                for name, call in CALLS.items():
                    task = asyncio.ensure_future(call(g, w))
                    while not calls:
                        await asyncio.sleep(0.001)
                    await asyncio.sleep(0.01)
                    await asyncio.wait_for(cancelled(task), 20)
                    assert not calls, name
            finally:
                own_server.process.send_signal(signal.SIGCONT)
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
                stop(own_server)
                first = await begun(client, shared)
                other = await begun(client, shared)
                await cancelled(first)
                assert not shared.cancelled
                own_server.process.send_signal(signal.SIGCONT)
                np.testing.assert_allclose((await other)[0], (A @ A)[0])
                stop(own_server)
                last = await begun(client, shared)
                shared.cancel()
                with pytest.raises(gemmd.Cancelled):
                    await last
            finally:
                own_server.process.send_signal(signal.SIGCONT)

    asyncio.run(main())
    with gemmd.connect(own_server.address) as client:
        assert left_on(client) == (0, 0)


def test_a_pipeline_without_room_does_not_block_the_loop(own_server):
    """Room is given back for several products at once: a product that ends makes none yet."""
    window = 16
    woken = threading.Event()

    def wake():
        woken.set()
        own_server.process.send_signal(signal.SIGCONT)

    async def main():
        async with await gemmd.aio.connect(own_server.address) as g, g.pipeline(window) as p:
            await (await p.matmul(A, A))
            stop(own_server)
            watchdog = threading.Timer(5, wake)
            watchdog.start()
            try:
                tasks = [asyncio.create_task(p.matmul(A, A)) for _ in range(window + 4)]
                for _ in range(window + 20):
                    await asyncio.sleep(0)
                assert not woken.is_set(), "the loop waited for the server"
                assert sum(task.done() for task in tasks) == window - 1
            finally:
                watchdog.cancel()
                watchdog.join()
                own_server.process.send_signal(signal.SIGCONT)
            for task in tasks:
                np.testing.assert_allclose(await (await task), A @ A)

    asyncio.run(main())


class Lazy:
    """An operand of which numpy makes an array."""

    def __init__(self, threads, seconds=0.0):
        self.threads = threads
        self.seconds = seconds

    def __array__(self, *args, **options):
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        return A


class Foreign(np.ndarray):
    """Of the other byte order: it is converted."""

    def astype(self, *args, **options):
        self.threads.add(threading.get_ident())
        return super().astype(*args, **options)


def test_no_operand_of_a_pipeline_is_copied_on_the_loop(server, monkeypatch):
    threads = set()

    def watched(function):
        def call(*args):
            # Of a small product a copy is nothing.
            if any(isinstance(arg, operands.HostMatrix) and arg.nbytes < 4096 for arg in args):
                return function(*args)
            threads.add(threading.get_ident())
            return function(*args)

        return call

    foreign = BIG.T.astype(BIG.dtype.newbyteorder()).view(Foreign)
    foreign.threads = threads
    rng = np.random.default_rng(8)
    one, many = rng.standard_normal((60, 150)), rng.standard_normal((500, 300))
    strided = rng.standard_normal((150, 280))[:, ::2]

    async def main():
        async with await gemmd.aio.connect(server.address) as g, g.pipeline(64) as p:
            await (await p.matmul(A, A))
            with contextlib.ExitStack() as stack:
                patch = stack.enter_context(monkeypatch.context())
                patch.setattr(operands.HostMatrix, "piece", watched(operands.HostMatrix.piece))
                cases = []
                for _ in range(20):
                    cases += [(one, strided), (many, many.T), (BIG, foreign)]
                futures = []
                for a, b in cases:
                    futures.append(await p.matmul(a, b))
                    await asyncio.sleep(0.002)
                lazy = await p.matmul(Lazy(threads), A)
                for (a, b), future in zip(cases, futures, strict=True):
                    np.testing.assert_allclose(await future, a @ b)
                np.testing.assert_allclose(await lazy, A @ A)
            assert threads and threading.get_ident() not in threads

    asyncio.run(main())


def test_every_future_is_done_behind_the_block(server):
    async def main():
        async with await gemmd.aio.connect(server.address) as g:
            for _ in range(5):
                async with g.pipeline(256) as p:
                    futures = [await p.matmul(A, A) for _ in range(200)]
                for future in futures:
                    np.testing.assert_allclose(future.result(), A @ A)

    asyncio.run(main())


def test_products_keep_the_order_of_the_calls_where_one_is_copied(server):
    async def main():
        async with await gemmd.aio.connect(server.address) as g, g.pipeline(4) as p:
            slow = asyncio.create_task(p.matmul(Lazy(set(), seconds=0.2), np.eye(4)))
            others = [asyncio.create_task(p.matmul(A * i, np.eye(4))) for i in (2, 3)]
            await asyncio.gather(slow, *others)
            results = [product async for product in p.results()]
            for i, product in enumerate(results, 1):
                np.testing.assert_allclose(product, A * i)
            assert len(results) == 3
            with pytest.raises(gemmd.InvalidArgument, match="op\\(a\\)"):
                await p.matmul(A, A[:2])

    asyncio.run(main())


def test_a_pipeline_sends_while_every_thread_of_the_client_is_busy(server):
    async def main():
        async with await gemmd.aio.connect(server.address) as g:
            free = threading.Event()
            watchdog = threading.Timer(30, free.set)
            watchdog.start()
            busy = [g._pool.submit(free.wait) for _ in range(64)]
            try:
                async with g.pipeline(4) as p:
                    np.testing.assert_allclose(await (await p.matmul(BIG, BIG.T)), BIG @ BIG.T)
                waiting = asyncio.create_task(g.matmul(A, A))
                await asyncio.sleep(0)
                await cancelled(waiting)
                assert not free.is_set(), "something waited for a thread"
            finally:
                watchdog.cancel()
                free.set()
            assert all(future.result() for future in busy)

    asyncio.run(main())


class BusyThreads:
    """Every thread of a client is taken, until the end of the block."""

    def __init__(self, client):
        self.free = threading.Event()
        self.taken = [client._pool.submit(self.free.wait, 30) for _ in range(client._threads)]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.free.set()


def test_a_timeout_counts_while_its_call_waits_for_a_thread(server):
    async def main():
        async with await gemmd.aio.connect(server.address, threads=2) as g:
            with BusyThreads(g):
                words = "info did not begin within its timeout of 0.2 s: 2 calls"
                with pytest.raises(gemmd.DeadlineExceeded, match=words):
                    await g.info(timeout=0.2)
            assert (await g.info(timeout=20)).devices
            with pytest.raises(gemmd.InvalidArgument, match="timeout is 0.0"):
                await g.info(timeout=0)
        async with await gemmd.aio.connect(server.address, threads=1) as g:
            with BusyThreads(g):
                words = ": 1 call of this client is under way, and it has as many threads"
                with pytest.raises(gemmd.DeadlineExceeded, match=words):
                    await g.info(timeout=0.2)

    asyncio.run(main())


@pytest.mark.parametrize("early", [True, False], ids=["before the call", "behind it"])
def test_a_canceller_ends_a_call_that_waits_for_a_thread(server, early):
    async def main():
        async with await gemmd.aio.connect(server.address, threads=1) as g:
            with BusyThreads(g) as busy:
                canceller = gemmd.Canceller()
                if early:
                    canceller.cancel()
                waiting = asyncio.create_task(g.info(cancel=canceller))
                await asyncio.sleep(0.05)
                canceller.cancel()
                with pytest.raises(gemmd.Cancelled, match="info was cancelled by its caller"):
                    await asyncio.wait_for(waiting, 10)
                assert not busy.taken[0].done()
            assert (await g.info()).devices

    asyncio.run(main())


def test_what_a_call_waited_for_a_thread_is_of_its_timeout(server):
    async def main():
        async with await gemmd.aio.connect(server.address, threads=1) as g:
            def left(cancel, timeout):
                with gemmd.call.Call(g._blocking._connection, "left", timeout, cancel) as call:
                    return call.left()

            with BusyThreads(g) as busy:
                waiting = asyncio.create_task(g._run_cancellable(left, timeout=30))
                await asyncio.sleep(0.2)
                busy.free.set()
            assert await waiting < 29.85

    asyncio.run(main())


def test_the_number_of_threads_is_the_callers(server):
    async def main():
        with pytest.raises(gemmd.InvalidArgument, match="threads is 0; it must be 1 to 1024"):
            await gemmd.aio.connect(server.address, threads=0)

    asyncio.run(main())


def test_numpy_makes_no_array_of_a_handle(server):
    async def run():
        async with await gemmd.aio.connect(server.address) as g:
            async with await g.put(np.ones((2, 3))) as w:
                with pytest.raises(gemmd.InvalidType, match=r"await w.numpy\(\)"):
                    np.asarray(w)
                assert (await w.numpy()).shape == (2, 3)

    asyncio.run(run())


def test_operators_of_handles_are_awaited_and_give_what_those_of_gemmd_give(server, g):
    b = BIG[:, :4].copy()

    async def main():
        async with await gemmd.aio.connect(server.address) as client:
            w, v = await client.put(b), await client.put(A)
            cases = [
                (w @ v, b @ A), (w.T @ w, b.T @ b), (w @ w.T, b @ b.T), (v.T @ w.T, A.T @ b.T),
                (w.T @ b, b.T @ b), (b.T @ w, b.T @ b), (A @ w.T, A @ b.T), (w @ A, b @ A),
            ]  # fmt: skip
            for i, (awaited, want) in enumerate(cases):
                product = await awaited
                if i < 4:
                    assert isinstance(product, gemmd.aio.Handle)
                    product = await product.numpy()
                np.testing.assert_allclose(product, want)
            assert isinstance(await client.matmul(w, v), np.ndarray)

    asyncio.run(main())


def test_a_handle_and_its_transposed_one_say_what_those_of_gemmd_say(server, g):
    async def main():
        async with await gemmd.aio.connect(server.address) as client:
            handle, blocking = await client.put(BIG), g.put(BIG)
            public = {name for name in vars(gemmd.Handle) if not name.startswith("_")}
            public |= set(vars(blocking)) - {"_client", "_life", "_matrix", "_ref", "_freed"}
            assert public <= set(dir(handle))
            names = {name for name in dir(blocking.T) if not name.startswith("_")}
            assert names <= set(dir(handle.T))
            assert (handle.owned, handle.device, handle.id != "") == (True, "host:0", True)
            assert handle.T.T is handle
            assert (handle.T.shape, handle.T.dtype) == (blocking.T.shape, blocking.T.dtype)
            np.testing.assert_array_equal(await handle.T.numpy(), blocking.T.numpy())

    asyncio.run(main())


@pytest.fixture
def logged():
    """What asyncio tells the loop's handler, such as of errors that nobody has retrieved."""
    told = []
    yield told
    gc.collect()


def run_logged(main, told):
    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        await main()
        gc.collect()

    asyncio.run(run())


def test_as_completed_gives_every_future_also_behind_one_that_failed(server, logged):
    async def main():
        async with await gemmd.aio.connect(server.address) as g, g.pipeline(8) as p:
            futures = []
            for i in range(12):
                futures.append(await p.matmul(A, A, kernel="nope" if i % 3 == 0 else None))
            ended = [future async for future in p.as_completed()]
            assert {id(f) for f in ended} == {id(f) for f in futures}
            assert sum(isinstance(f.exception(), gemmd.NotFound) for f in ended) == 4
            again = await p.matmul(A, A)
            assert [f async for f in p.as_completed()] == [again]
            given = 0
            while given < 8:
                try:
                    async for _ in p.results():
                        given += 1
                except gemmd.NotFound:
                    pass

    run_logged(main, logged)
    assert not logged


def test_as_completed_that_is_cancelled_loses_nothing(own_server):
    async def main():
        async with await gemmd.aio.connect(own_server.address) as g, g.pipeline(8) as p:
            await (await p.matmul(A, A))
            stop(own_server)
            future = await p.matmul(A, A)
            ended = p.as_completed()
            await anext(ended)
            waiting = asyncio.create_task(anext(ended))
            await asyncio.sleep(0.01)
            await cancelled(waiting)
            own_server.process.send_signal(signal.SIGCONT)
            assert [f async for f in p.as_completed()] == [future]

    asyncio.run(main())


@pytest.mark.parametrize("collect", [True, False])
def test_the_end_of_the_block_raises_what_nobody_asked_for(server, logged, collect):
    async def main():
        async with await gemmd.aio.connect(server.address) as g:
            with pytest.raises(gemmd.NotFound, match="nope"):
                async with g.pipeline(collect=collect) as p:
                    seen = await p.matmul(A, A, kernel="also_none")
                    with pytest.raises(gemmd.NotFound):
                        await seen
                    await p.matmul(A, A, kernel="nope")
                    good = await p.matmul(A, A)
                    await p.matmul(A, A, kernel="nope_either")
            np.testing.assert_allclose(await good, A @ A)
            with pytest.raises(ZeroDivisionError):
                async with g.pipeline() as p:
                    await p.matmul(A, A, kernel="nope")
                    1 / 0  # noqa: B018

    run_logged(main, logged)
    assert not logged


ASKED = {
    "gather": lambda fs: asyncio.gather(*fs),
    "wait_for": lambda fs: asyncio.gather(*(asyncio.wait_for(f, 20) for f in fs)),
    "shield": lambda fs: asyncio.gather(*map(asyncio.shield, fs)),
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_end_of_the_block_leaves_errors_to_the_tasks_that_wait_for_them(server, asked):
    async def consume(future, caught):
        try:
            await ASKED[asked]([future])
        except gemmd.NotFound:
            caught.append(future)

    async def main():
        async with await gemmd.aio.connect(server.address) as g:
            for _ in range(20):
                async with g.pipeline() as p:
                    futures = [await p.matmul(A, A, kernel="nope") for _ in range(40)]
                    with contextlib.suppress(gemmd.NotFound):
                        await ASKED[asked](futures)
            for _ in range(20):
                caught = []
                async with g.pipeline() as p:
                    tasks = []
                    for _ in range(100):
                        future = await p.matmul(A, A, kernel="nope")
                        tasks.append(asyncio.create_task(consume(future, caught)))
                await asyncio.gather(*tasks)
                assert len(caught) == 100

    asyncio.run(main())


def test_failures_that_were_seen_are_not_held_without_bound(server):
    async def main():
        async with await gemmd.aio.connect(server.address) as g, g.pipeline(8) as p:
            for _ in range(200):
                assert (await asyncio.wait([await p.matmul(A, A, kernel="nope")]))[0].pop().exception()
            assert len(p._arrivals._failed) < 50

    asyncio.run(main())


def test_map_takes_iterables_of_either_kind_and_takes_along_what_is_behind_a_failure(server, logged):
    async def pairs():
        for i in range(20):
            await asyncio.sleep(0)
            yield A * i, np.eye(4)

    async def main():
        async with await gemmd.aio.connect(server.address) as g, g.pipeline(4) as p:
            mapped = [c async for c in p.map(pairs())]
            np.testing.assert_allclose(mapped, [A * i for i in range(20)])
            with pytest.raises(gemmd.NotFound):
                [c async for c in p.map([(A, A)] * 10, kernel="nope")]
            np.testing.assert_allclose(await (await p.matmul(A, A)), A @ A)

    run_logged(main, logged)
    assert not logged


def test_products_that_are_alike_go_as_batches(server):
    async def batches(**options):
        a = np.eye(8, dtype=np.float32)
        async with await gemmd.aio.connect(server.address) as g, g.pipeline(**options) as p:
            futures = [await p.matmul(a, a) for _ in range(300)]
            reports = [(await p.matmul(a, a, return_report=True)) for _ in range(100)]
            for future in futures:
                np.testing.assert_array_equal(await future, a)
            return {(await future)[1].batch for future in reports}

    assert asyncio.run(batches(batch=False)) == {1}
    assert max(asyncio.run(batches())) > 1
