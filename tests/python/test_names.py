"""Names that pass from one matrix to the next, and versions."""

import asyncio
import threading

import gemmd
import numpy as np
import pytest
from gemmd import aio

from conftest import left_on


def of(value):
    return np.full((60, 50), value, np.float32)


def test_put_replaces_in_one_step_and_by_version(g):
    first = g.put(of(1), name="w", replace=True, if_version=0)
    with pytest.raises(gemmd.AlreadyExists):
        g.put(of(2), name="w")
    with pytest.raises(gemmd.Aborted, match=f"has version {first.version}") as refused:
        g.put(of(2), name="w", replace=True, if_version=0)
    assert refused.value.field == "keep.if_version"
    second = g.put(of(2), name="w", replace=True, if_version=first.version)
    assert second.version > first.version
    assert [m.version for m in g.matrices("w")] == [second.version]
    with pytest.raises(gemmd.LostHandle, match="replaced"):
        first.numpy()
    first.free()  # the handle of the old one does not end the new one
    np.testing.assert_array_equal(g.matrix("w").numpy(), of(2))
    with pytest.raises(gemmd.Aborted, match=f"version is {first.version}"):
        g.delete("w", if_version=first.version)
    third = g.random((4, 4), name="w", replace=True, if_version=second.version)
    g.delete("w", if_version=third.version)
    assert left_on(g) == (0, 0)


@pytest.mark.parametrize("client", ["g", "small"])
def test_a_kept_product_replaces_its_own_operand(client, request):
    g = request.getfixturevalue(client)
    step = np.eye(60, dtype=np.float32) * 2
    w = g.put(of(1), name="w")
    for _ in range(3):
        w = g.keep(step, w, name="w", replace=True, if_version=w.version)
    np.testing.assert_array_equal(w.numpy(), of(8))
    assert len(g.matrices("w")) == 1
    w.free()
    assert left_on(g) == (0, 0)


def test_wrong_options_are_named_before_anything_is_sent(g):
    for wrong, field in (
        ({"replace": True}, "replace"),
        ({"name": "w", "if_version": 3}, "if_version"),
        ({"name": "w", "replace": True, "if_version": -1}, "if_version"),
    ):
        for call in (
            lambda wrong=wrong: g.put(of(1), **wrong),
            lambda wrong=wrong: g.random((4, 4), **wrong),
            lambda wrong=wrong: g.keep(of(1).T, of(1), **wrong),
        ):
            with pytest.raises(gemmd.InvalidArgument) as refused:
                call()
            assert refused.value.field == field
    assert left_on(g) == (0, 0)


def test_a_failed_replacement_leaves_the_old_one(small):
    with small.put(of(1), name="w"):
        cancel = gemmd.Canceller()
        cancel.cancel()
        with pytest.raises(gemmd.Cancelled):
            small.put(of(2), name="w", replace=True, cancel=cancel)
        np.testing.assert_array_equal(small.matrix("w").numpy(), of(1))
    assert left_on(small) == (0, 0)


def test_a_name_may_be_asked_for_by_owner(g):
    with g.put(of(1), name="w"):
        g.matrix("w", owner="")  # the caller's name on a server that asks nobody
        with pytest.raises(gemmd.NotFound, match='owner "alice"'):
            g.matrix("w", owner="alice")
        with pytest.raises(gemmd.NotFound):
            g.matrix("w", shared=True)


def test_readers_of_a_name_find_the_old_one_or_the_new_one(g):
    g.put(of(0), name="w").detach()
    done = threading.Event()

    def write():
        for value in range(1, 100):
            g.put(of(value), name="w", replace=True).detach()
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    last = 0
    while not done.is_set():
        version = g.matrix("w").version
        assert version >= last
        last = version
    writer.join()
    g.delete("w")
    assert left_on(g) == (0, 0)


def test_the_same_for_asyncio(server):
    async def run():
        async with await aio.connect(server.address) as g:
            first = await g.put(of(1), name="w")
            second = await g.put(of(2), name="w", replace=True, if_version=first.version)
            assert second.version > first.version
            with pytest.raises(gemmd.Aborted):
                await g.delete("w", if_version=first.version)
            await g.delete("w", if_version=second.version)

    asyncio.run(run())
