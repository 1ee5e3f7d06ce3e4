"""asyncio: pipelines keep their order, block no loop, and lose no error."""

import asyncio
import contextlib
import gc
import threading
import time

import gemmd
import gemmd.aio
import numpy as np
import pytest
from gemmd import operands

from conftest import cancelled

A = np.random.default_rng(5).standard_normal((4, 4))
# Many chunks with SMALL, and not small with the usual options.
BIG = np.random.default_rng(6).standard_normal((150, 140))


def test_a_pipeline_without_room_does_not_block_the_loop(own_server):
    """Room is given back for several products at once: a product that ends makes none yet."""
    window = 16
    woken = threading.Event()

    def wake():
        woken.set()
        own_server.go_on()

    async def main():
        async with await gemmd.aio.connect(own_server.address) as g, g.pipeline(window) as p:
            await (await p.matmul(A, A))
            own_server.stop()
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
                own_server.go_on()
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
            # The copy of a small product takes no time.
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
            own_server.stop()
            future = await p.matmul(A, A)
            ended = p.as_completed()
            await anext(ended)
            waiting = asyncio.create_task(anext(ended))
            await asyncio.sleep(0.01)
            await cancelled(waiting)
            own_server.go_on()
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
