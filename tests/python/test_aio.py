"""asyncio: calls that wait for a thread, and handles."""

import asyncio
import threading

import gemmd
import gemmd.aio
import numpy as np
import pytest

A = np.random.default_rng(5).standard_normal((4, 4))
# Of many chunks with SMALL, and not small with the usual options.
BIG = np.random.default_rng(6).standard_normal((150, 140))


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
