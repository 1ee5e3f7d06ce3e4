"""Many products under way, threads and asyncio."""

import asyncio
import concurrent.futures
import gc
import queue
import sys
import threading
import time
import weakref
from concurrent.futures import CancelledError, ThreadPoolExecutor

import gemmd
import gemmd.aio
import gemmd.stream
import gemmd.unary
import numpy as np
import pytest
from gemmd.futures import ProductFuture

from conftest import SMALL, left_on

ONE = np.ones((4, 4))

def pairs(count, size=20):
    rng = np.random.default_rng(9)
    return [
        (rng.standard_normal((size, size + i % 3)), rng.standard_normal((size + i % 3, size)))
        for i in range(count)
    ]


def test_results_come_in_order_and_as_completed(small):
    cases = pairs(60)
    with small.pipeline(window=16) as p:
        for a, b in cases:
            p.matmul(a, b)
        got = list(p.results())
        assert list(p.results()) == []
        for _ in p.as_completed():
            pass
        futures = [p.matmul(a, b) for a, b in cases]
        ended = list(p.as_completed())
    for (a, b), product in zip(cases, got, strict=True):
        np.testing.assert_allclose(product, a @ b)
    assert {id(f) for f in ended} == {id(f) for f in futures}
    assert [(f.report.m, f.report.k) for f in futures] == [a.shape for a, _ in cases]


def test_products_take_their_events_from_grpc_or_from_its_own_stream(small, monkeypatch):
    rng = np.random.default_rng(4)
    large = rng.standard_normal((150, 140))
    for usual in (True, False):
        if not usual:
            monkeypatch.setattr(gemmd.stream, "cygrpc", None)
            monkeypatch.setattr(gemmd.unary, "cygrpc", None)
        with small.pipeline(8) as p:
            assert isinstance(p._stream, gemmd.stream._OwnQueue) == usual
            np.testing.assert_array_equal(small.matmul(np.eye(3), np.eye(3)), np.eye(3))
            good = [p.matmul(a, b) for a, b in pairs(20)] + [p.matmul(large, large.T)]
            bad = p.matmul(large, large.T, kernel="none_of_these")
            with pytest.raises(gemmd.NotFound):
                bad.result()
        for (a, b), future in zip([*pairs(20), (large, large.T)], good, strict=True):
            np.testing.assert_allclose(future.result(), a @ b)


def test_a_small_product_is_not_sent_by_grpcios_own_call(g, monkeypatch):
    for stubs in g._connection._all:
        monkeypatch.setattr(stubs.multiply_unary, "_usual", None)
    np.testing.assert_array_equal(g.matmul(np.eye(3), np.eye(3)), np.eye(3))


def test_map_goes_in_order_over_an_endless_source(g):
    def endless():
        i = 0
        while True:
            yield np.full((2, 2), float(i)), np.eye(2)
            i += 1

    with g.pipeline(window=4) as p:
        for i, product in enumerate(p.map(endless())):
            assert product[0, 0] == i
            if i == 20:
                break
    assert i == 20


def test_a_pipeline_that_does_not_collect_holds_no_result(g):
    a = np.eye(4)
    with g.pipeline(4, collect=False) as p:
        held = weakref.ref(p.matmul(a, a).result())
        list(p.map([(a, a)] * 10))
        assert list(p.results()) == [] and list(p.as_completed()) == []
    gc.collect()
    assert held() is None


def readers():
    return [t for t in threading.enumerate() if t.name == "gemmd-pipeline"]


def test_a_pipeline_that_is_dropped_ends_when_no_future_waits_for_it(server):
    a = np.eye(4)
    big = np.ones((500, 500))
    with gemmd.connect(server.address) as client:
        before = len(readers())
        for _ in range(5):
            client.pipeline().matmul(a, a).result()
        futures = [client.pipeline().matmul(big, big, kernel="host_reference") for _ in range(2)]
        gc.collect()
        for future in futures:
            assert future.result(60)[0, 0] == 500
        del future, futures
        deadline = time.monotonic() + 20
        while len(readers()) > before and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.01)
        assert len(readers()) <= before
        np.testing.assert_array_equal(client.matmul(a, a), a)


def test_a_pipeline_that_is_garbage_with_its_client_ends(server):
    before = len(readers())
    for _ in range(5):
        client = gemmd.connect(server.address)
        client.pipeline()
        client.pipeline().matmul(np.eye(4), np.eye(4)).result()
        del client
        gc.collect()
    deadline = time.monotonic() + 20
    while len(readers()) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(readers()) <= before


def test_large_and_small_products_share_a_pipeline(small):
    rng = np.random.default_rng(2)
    large = rng.standard_normal((150, 140))
    out = np.empty((150, 150), order="F")
    with small.put(large) as w, small.pipeline(8) as p:
        first = p.matmul(large, large.T, out=out)
        second = p.matmul(large[:2, :5], large[:5, :3])
        third = p.matmul(w, large.T)
    assert np.shares_memory(first.result(), out)
    np.testing.assert_allclose(out, large @ large.T)
    np.testing.assert_allclose(second.result(), large[:2, :5] @ large[:5, :3])
    np.testing.assert_allclose(third.result(), large @ large.T)


def test_one_products_error_is_its_own(g):
    a = np.eye(3)
    with g.pipeline() as p:
        good = p.matmul(a, a)
        bad = p.matmul(a, a, kernel="none_of_these")
        late = p.matmul(np.ones((700, 700)), np.ones((700, 700)), timeout=2e-6)
        after = p.matmul(a, a * 2)
        with pytest.raises(gemmd.NotFound):
            bad.result()
        with pytest.raises(gemmd.DeadlineExceeded):
            late.result()
    np.testing.assert_array_equal(good.result(), a)
    np.testing.assert_array_equal(after.result(), a * 2)


@pytest.mark.parametrize("collect", [True, False])
def test_the_end_of_the_block_raises_what_nobody_asked_for(g, collect):
    a = np.eye(3)
    with pytest.raises(gemmd.NotFound, match="nope") as caught:
        with g.pipeline(collect=collect) as p:
            seen = p.matmul(a, a, kernel="also_none")
            assert isinstance(seen.exception(), gemmd.NotFound)
            p.matmul(a, a, kernel="nope")
            good = p.matmul(a, a)
            p.matmul(a, a, kernel="nope_either")
    np.testing.assert_array_equal(good.result(), a)
    if sys.version_info >= (3, 11):  # noqa: UP036 (the package runs on 3.10 too)
        assert caught.value.__notes__ == ["further products of the pipeline that failed: 1"]


def test_the_end_of_the_block_leaves_an_error_to_the_thread_that_waits_for_it(g, monkeypatch):
    a = np.eye(3)
    waiting = threading.Event()
    wait = ProductFuture._wait

    def slow(future, timeout):
        waiting.set()
        wait(future, timeout)
        time.sleep(0.2)  # the end of the block comes first

    with ThreadPoolExecutor(1) as pool:
        with g.pipeline() as p, monkeypatch.context() as patch:
            patch.setattr(ProductFuture, "_wait", slow)
            asked = pool.submit(p.matmul(a, a, kernel="nope").exception)
            assert waiting.wait(20)
        assert isinstance(asked.result(), gemmd.NotFound)


def test_a_wait_that_times_out_has_not_asked():
    future, unseen = ProductFuture(), {}
    for ask in (future.result, future.exception):
        with pytest.raises(concurrent.futures.TimeoutError):
            ask(0.01)
    assert not future.is_asked_for()
    future.fail(gemmd.NotFound("nope"), unseen)
    assert list(unseen.values()) == [future]
    assert future.exception() is not None
    assert not unseen


def test_the_end_of_the_block_raises_nothing_in_place_of_another_error(g):
    a = np.eye(3)
    with pytest.raises(ZeroDivisionError):
        with g.pipeline() as p:
            p.matmul(a, a, kernel="nope")
            1 / 0  # noqa: B018
    with g.pipeline() as p:
        futures = [p.matmul(a, a, kernel="nope")]
        futures += [p.matmul(np.ones((700, 700)), np.ones((700, 700))) for _ in range(8)]
        p.cancel()
    assert all(future.done() for future in futures)


def test_a_map_that_fails_takes_what_is_behind_it_along(g):
    a = np.eye(3)
    with g.pipeline(8) as p:
        with pytest.raises(gemmd.NotFound):
            list(p.map([(a, a)] * 20, kernel="nope"))
        np.testing.assert_array_equal(p.matmul(a, a).result(), a)


def test_a_failure_that_was_seen_is_not_held(g):
    a = np.eye(3)
    with g.pipeline(collect=False) as p:
        future = p.matmul(a, a, kernel="nope")
        held = weakref.ref(future)
        assert future.exception() is not None
        del future
        deadline = time.monotonic() + 20  # the pipeline's thread may still be at its end
        while held() is not None and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.001)
        assert held() is None


def test_a_block_that_raises_ends_what_is_under_way(g):
    big = np.ones((600, 600))
    with pytest.raises(ZeroDivisionError):
        with g.pipeline() as p:
            futures = [p.matmul(big, big) for _ in range(20)]
            1 / 0  # noqa: B018
    for future in futures:
        assert future.done()
        if not future.cancelled() and future.exception() is None:
            continue
        with pytest.raises((gemmd.Cancelled, CancelledError)):
            future.result()
    with pytest.raises(gemmd.GemmdError, match="closed|cancelled"):
        p.matmul(big, big)
    assert left_on(g) == (0, 0)


def test_the_window_is_checked(g):
    for window in (0, 10**9):
        with pytest.raises(gemmd.InvalidArgument, match="window"):
            g.pipeline(window)


def test_threads_share_a_client(small):
    failures = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(6):
                a, b = rng.standard_normal((50, 60)), rng.standard_normal((60, 40))
                np.testing.assert_allclose(small.matmul(a, b), a @ b)
                with small.put(a) as w:
                    np.testing.assert_allclose(w @ b, a @ b)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert left_on(small) == (0, 0)


def test_asyncio(server):
    cases = pairs(30)
    a, b = cases[0]

    async def main():
        async with await gemmd.aio.connect(server.address, **SMALL) as g:
            products = await asyncio.gather(*(g.matmul(a, b) for a, b in cases))
            async with await g.put(b) as w:
                assert w.shape == b.shape
                np.testing.assert_allclose(await (a @ w), a @ b)
                np.testing.assert_allclose(await g.matmul(w.T, a.T), b.T @ a.T)
                kept = await g.keep(a, w)
                np.testing.assert_allclose(await kept.numpy(), a @ b)
                await kept.free()
            async with g.pipeline(4) as p:
                for left, right in cases:
                    await p.matmul(left, right)
                ordered = [c async for c in p.results()]
                mapped = [c async for c in p.map(cases)]
            info = await g.info()
            kernels = await g.kernels("host")
            return products, ordered, mapped, info, kernels

    products, ordered, mapped, info, kernels = asyncio.run(main())
    for group in (products, ordered, mapped):
        for (left, right), product in zip(cases, group, strict=True):
            np.testing.assert_allclose(product, left @ right)
    assert info.devices[0].name == "host:0"
    assert {k.family for k in kernels} == {"host"}


def test_a_cancelled_task_cancels_its_call(server, g):
    async def main():
        async with await gemmd.aio.connect(server.address, retry=gemmd.Retry(1)) as client:
            big = np.ones((1500, 1500))
            task = asyncio.create_task(client.matmul(big, big, kernel="host_reference"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            np.testing.assert_array_equal(await client.matmul(np.eye(2), np.eye(2)), np.eye(2))

    asyncio.run(main())
    assert left_on(g) == (0, 0)


@pytest.mark.parametrize("window", [1, 2, 9])
def test_a_callback_adds_a_product_to_a_full_window(g, window):
    """It runs on the thread that makes room."""
    left, chain_ended = [50], threading.Event()

    def again(future):
        future.result()
        if left[0]:
            left[0] -= 1
            p.matmul(ONE, ONE).add_done_callback(again)
        else:
            chain_ended.set()

    with g.pipeline(window) as p:
        for _ in range(window):
            p.matmul(ONE, ONE).add_done_callback(again)
        assert chain_ended.wait(60)
        for c in p.results():
            np.testing.assert_allclose(c, ONE @ ONE)


def test_callbacks_that_add_ever_more_are_refused(g):
    refusals = queue.SimpleQueue()

    def twice(future):
        try:
            for _ in range(2):
                p.matmul(ONE, ONE).add_done_callback(twice)
        except gemmd.GemmdError as error:
            refusals.put(error)

    with g.pipeline(4) as p:
        p.matmul(ONE, ONE).add_done_callback(twice)
        refusal = refusals.get(timeout=60)
        p.cancel()
    assert isinstance(refusal, gemmd.ResourceExhausted) and "window is 4" in str(refusal)


def test_a_callback_that_would_wait_for_itself_says_so(g):
    failures = queue.SimpleQueue()

    def waits(future):
        one = p.matmul(ONE, ONE).result
        for wait in (one, lambda: list(p.results()), lambda: next(p.as_completed())):
            try:
                failures.put(wait())
            except gemmd.FailedPrecondition as error:
                failures.put(error)

    with g.pipeline() as p:
        p.matmul(ONE, ONE).add_done_callback(waits)
        for _ in range(3):
            assert "would wait for ever" in str(failures.get(timeout=60))
