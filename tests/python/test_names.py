"""Names that pass from one matrix to the next, and versions."""

import asyncio
import dataclasses
import gc
import itertools
import threading
import time

import gemmd
import numpy as np
import pytest
from gemmd import aio
from gemmd.progress import Meter

from conftest import SMALL, left_on


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
        ({"shared": True}, "shared"),
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
    small.put(of(1), name="w")
    cancel = gemmd.Canceller()
    cancel.cancel()
    with pytest.raises(gemmd.Cancelled):
        small.put(of(2), name="w", replace=True, cancel=cancel)
    np.testing.assert_array_equal(small.matrix("w").numpy(), of(1))
    small.delete("w")
    assert left_on(small) == (0, 0)


def test_a_name_may_be_asked_for_by_owner(g):
    w = g.put(of(1), name="w")
    g.matrix("w", owner="")  # the caller's name on a server that asks nobody
    with pytest.raises(gemmd.NotFound, match='owner "alice"'):
        g.matrix("w", owner="alice")
    with pytest.raises(gemmd.NotFound):
        g.matrix("w", shared=True)
    assert g.matrix("w", version=w.version).id == w.id
    with pytest.raises(gemmd.Aborted, match=f"has version {w.version}"):
        g.matrix("w", version=w.version + 1)
    w.free()


@pytest.mark.parametrize("way", ["put", "random", "keep"])
def test_a_matrix_with_a_name_outlives_its_handle_and_its_client(server, g, way):
    options = {"name": "w", "replace": True}
    calls = {
        "put": lambda client: client.put(of(1), **options),
        "random": lambda client: client.random((60, 50), **options),
        "keep": lambda client: client.keep(of(1).T, of(1), **options),
    }
    with gemmd.connect(server.address) as client:
        client.put(of(0), name="w")
        calls[way](client)  # its handle is garbage at once
        gc.collect()
        assert [m.name for m in client.matrices()] == ["w"]  # after what is to be deleted
        with calls[way](client) as w:
            pass
        assert [m.version for m in client.matrices()] == [w.version]
        last = calls[way](client)
    assert [m.version for m in g.matrices()] == [last.version]
    g.delete("w")
    assert left_on(g) == (0, 0)


def test_shared_names_are_names_of_their_own(g):
    private = g.put(of(1), name="w")
    shared = g.put(of(2), name="w", shared=True)
    assert [m.id for m in g.matrices("w")] == [private.id]
    assert [(m.id, m.shared) for m in g.matrices("w", shared=True)] == [(shared.id, True)]
    np.testing.assert_array_equal(g.matrix("w", shared=True).numpy(), of(2))
    kept = g.keep(of(2).T, shared, name="w", shared=True, replace=True, if_version=shared.version)
    assert g.random((4, 4), name="r", shared=True).shape == (4, 4)
    with pytest.raises(gemmd.Aborted, match="version"):
        g.delete("w", shared=True, if_version=shared.version)
    g.delete("w", shared=True, if_version=kept.version)
    g.delete("r", shared=True)
    assert not g.matrices(shared=True)
    np.testing.assert_array_equal(g.matrix("w").numpy(), of(1))
    private.free()
    assert left_on(g) == (0, 0)


@pytest.mark.parametrize("client", ["g", "small"])
def test_a_handle_whose_shape_is_given_follows_its_name(client, request):
    g = request.getfixturevalue(client)
    g.put(of(1), name="w")
    w = g.matrix("w", shape=(60, 50), dtype="f32")
    assert (w.id, w.version, w.owned, w.shape) == ("", 0, False, (60, 50))
    x = of(1).T.copy()
    for value in (1, 3):
        g.put(of(value), name="w", replace=True)
        np.testing.assert_array_equal(x @ w, x @ of(value))
        np.testing.assert_array_equal(w.numpy(), of(value))
    with pytest.raises(gemmd.InvalidArgument, match="shape"):
        g.matmul(np.ones((4, 61), "f4"), g.matrix("w", shape=(61, 50), dtype="f32"))
    for size, dtype in (((50, 60), "f32"), ((60, 25), "f64")):  # as many bytes
        with pytest.raises(gemmd.InvalidArgument, match="shape: 'w' is 60x50 f32"):
            g.matrix("w", shape=size, dtype=dtype).numpy()
    w.free()
    with pytest.raises(gemmd.NotFound):
        g.matmul(x, g.matrix("w", shape=(60, 50), dtype="f32"))
    for wrong, field in (({"shape": (1, 1)}, "dtype"), ({"dtype": "f32"}, "shape")):
        with pytest.raises(gemmd.InvalidArgument, match=f"without {field}"):
            g.matrix("w", **wrong)
    assert left_on(g) == (0, 0)


def test_a_matrix_that_was_replaced_before_it_was_complete_is_an_error(server, g):
    """One put is held after its header, until its name was taken by another."""
    begun, go_on = threading.Event(), threading.Event()

    class Held(Meter):
        def add(self, nbytes):
            begun.set()
            assert go_on.wait(60)

    ended = []

    def put():
        try:
            ended.append(held.put(of(1), name="w"))
        except gemmd.GemmdError as error:
            ended.append(error)

    with gemmd.connect(server.address, chunk_bytes=4096) as held:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gemmd.matrices.Meter", Held)
            writer = threading.Thread(target=put)
            writer.start()
            assert begun.wait(60)
            patch.undo()
            deadline = time.monotonic() + 60
            while not ended and time.monotonic() < deadline:  # its header may be on its way
                try:
                    g.delete("w")
                    break
                except gemmd.NotFound:
                    time.sleep(0.01)
            go_on.set()
            writer.join(60)
    assert isinstance(ended[0], gemmd.Aborted) and "before it was complete" in str(ended[0])
    assert left_on(g) == (0, 0)


def test_readers_of_a_name_find_the_old_one_or_the_new_one(g):
    g.put(of(0), name="w")
    done = threading.Event()

    def write():
        for value in range(1, 100):
            g.put(of(value), name="w", replace=True)
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


@pytest.mark.parametrize("size", [8, 64], ids=["one stripe", "striped"])
def test_a_described_name_is_followed_beside_a_writer(server, small, size):
    """Every download is of one matrix, whatever has the name meanwhile."""
    shape = (size, size)
    end = threading.Event()

    def write():
        with gemmd.connect(server.address) as writer:
            for value in itertools.count():
                if end.is_set():
                    return
                writer.put(np.full(shape, float(value)), name="followed", replace=True)

    small.put(np.zeros(shape), name="followed")
    thread = threading.Thread(target=write)
    thread.start()
    try:
        w = small.matrix("followed", shape=shape, dtype="f64")
        seen = [w.numpy() for _ in range(200)]
    finally:
        end.set()
        thread.join()
        small.delete("followed")
    assert all((matrix == matrix[0, 0]).all() for matrix in seen)


class _Then:
    """A call, and what is done behind it."""

    def __init__(self, rpc, then):
        self._rpc = rpc
        self._then = then

    def cancel(self):
        self._rpc.cancel()

    def __iter__(self):
        yield from self._rpc
        self._then()


def test_a_name_is_followed_once_its_matrix_was_found(server, small):
    """The matrix is replaced between the question for it and the download of its stripes."""
    old, new = np.zeros((64, 64)), np.ones((64, 64))
    small.put(old, name="found")
    with gemmd.connect(server.address, **SMALL) as reader:
        connection, asked = reader._connection, []
        get = connection.stubs(0).get

        def replaces(request, timeout=None):
            messages = get(request, timeout=timeout)
            if request.range.length == 1:
                asked.append(request)
                messages = _Then(messages, lambda: small.put(new, name="found", replace=True))
            return messages

        connection._all = [dataclasses.replace(one, get=replaces) for one in connection._all]
        w = reader.matrix("found", shape=old.shape, dtype="f64")
        np.testing.assert_array_equal(w.numpy(), new)
        assert len(asked) == 1
    small.delete("found")


def test_a_described_name_of_another_shape_is_refused(small):
    for size in (8, 64):
        small.put(np.zeros((size, size)), name="other")
        for wrong in {(size, 2 * size), (64, 64), (8, 8)} - {(size, size)}:
            with pytest.raises(gemmd.InvalidArgument, match="on the server, but the handle was"):
                small.matrix("other", shape=wrong, dtype="f64").numpy()
        small.delete("other")
    with pytest.raises(gemmd.NotFound):
        small.matrix("other", shape=(8, 8), dtype="f64").numpy()
    with pytest.raises(gemmd.NotFound):
        small.matrix("other", shape=(64, 64), dtype="f64").numpy()
