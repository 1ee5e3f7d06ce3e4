"""Matrices that stay on the server."""

import gc

import gemmd
import numpy as np
import pytest

from conftest import left_on


@pytest.fixture
def matrix():
    return np.random.default_rng(3).standard_normal((60, 50)).astype(np.float32)


def test_a_handle_is_an_operand_on_either_side(g, matrix):
    x = np.ones((4, 60), np.float32)
    y = np.ones((50, 3), np.float32)
    with g.put(matrix, name="weights") as w:
        assert (w.shape, w.dtype, w.nbytes, w.name) == ((60, 50), "f32", 12000, "weights")
        np.testing.assert_allclose(x @ w, x @ matrix, rtol=1e-5)
        np.testing.assert_allclose(w @ y, matrix @ y, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(w.T @ np.ones((60, 2), "f4"), matrix.T @ np.ones((60, 2), "f4"),
                                   rtol=1e-4, atol=1e-5)  # fmt: skip
        np.testing.assert_array_equal(w.numpy(), matrix)
        out = np.zeros((60, 50), np.float32, order="F")
        w.numpy(out)
        np.testing.assert_array_equal(out, matrix)
    assert not w.freed
    w.free()
    assert w.freed and left_on(g) == (0, 0)


def test_two_handles_give_a_handle(g, matrix):
    with g.put(matrix) as w, g.put(matrix.T) as v:
        product = w @ v
        assert isinstance(product, gemmd.Handle)
        assert g.last_report.kernel
        np.testing.assert_allclose(product.numpy(), matrix @ matrix.T, rtol=1e-4, atol=1e-4)
        kept = g.keep(product, w, activation="relu", name="chain", ttl=60)
        expected = np.maximum(matrix @ matrix.T @ matrix, 0)
        np.testing.assert_allclose(kept.numpy(), expected, rtol=1e-3, atol=1e-3)
        assert [m.name for m in g.matrices("chain")] == ["chain"]
        kept.free()
        del product, kept
    gc.collect()
    assert left_on(g) == (0, 0)


def test_del_and_the_clients_end_free(server, g, matrix):
    with gemmd.connect(server.address) as client:
        w = client.put(matrix)
        assert len(g.matrices()) == 1
        del w
        assert len(client.matrices()) == 0
        held = [client.put(matrix) for _ in range(5)]
        left = client.put(matrix).detach()
        client.put(matrix, name="stays")
    assert sorted(m.name for m in g.matrices() if m.id != left.id) == ["stays"]
    g.delete(next(m.name for m in g.matrices() if m.id == left.id))
    assert held[0].freed and not left.freed
    with g.matrix("stays") as again:
        np.testing.assert_array_equal(again.numpy(), matrix)
    assert len(g.matrices()) == 1
    g.delete("stays")
    with pytest.raises(gemmd.NotFound):
        g.delete("stays")
    assert left_on(g) == (0, 0)


def test_large_operands_are_striped_and_leave_nothing(small):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((300, 200)), rng.standard_normal((200, 150))
    for left, right in ((a, b), (a[::2], b), (a, np.asfortranarray(b)), (a, b[:, :3])):
        got = small.matmul(left, right)
        np.testing.assert_allclose(got, left @ right, rtol=1e-11, atol=1e-11)
    with small.put(a[::3, ::2]) as w:
        np.testing.assert_array_equal(w.numpy(), a[::3, ::2])
    kept = small.keep(a, b)
    np.testing.assert_allclose(kept.numpy(), a @ b, rtol=1e-11, atol=1e-11)
    kept.free()
    assert left_on(small) == (0, 0)


def test_numpy_makes_an_array_of_a_handle(g, matrix):
    with g.put(matrix) as w:
        for array, expected in (
            (np.asarray(w), matrix), (np.asarray(w.T), matrix.T),
            (np.asarray(w, np.float64), matrix.astype(np.float64)), (np.array([w])[0], matrix),
        ):  # fmt: skip
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)
        with g.put(w) as same:
            np.testing.assert_array_equal(same.numpy(), matrix)
        np.testing.assert_array_equal(np.from_dlpack(w), matrix)
        for handle in (w, w.T):
            with pytest.raises(gemmd.InvalidArgument, match="copy is False"):
                handle.__array__(copy=False)
    w.free()
    with pytest.raises(gemmd.HandleError, match="freed"):
        np.asarray(w)
    assert left_on(g) == (0, 0)


def test_generated_matrices_are_the_same_twice(g):
    with (
        g.random((40, 30), dtype="f64", seed=7) as one,
        g.random((40, 30), dtype="f64", seed=7) as two,
    ):
        first, second = one.numpy(), two.numpy()
    np.testing.assert_array_equal(first, second)
    assert 0 <= first.min() < first.max() < 1


def test_a_transposed_handle_is_fetched(g):
    b = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    with g.put(b) as w:
        assert (w.T.shape, w.T.dtype, w.T.nbytes) == ((3, 2), "f32", 24)
        np.testing.assert_array_equal(w.T.numpy(), b.T)
        np.testing.assert_array_equal(np.asarray(w.T), b.T)
        np.testing.assert_array_equal(np.from_dlpack(w.T), b.T)
        for order in "CF":
            out = np.zeros((3, 2), np.float32, order=order)
            assert np.shares_memory(w.T.numpy(out), out)
            np.testing.assert_array_equal(out, b.T)
        with pytest.raises(gemmd.InvalidType, match="out is a list"):
            w.T.numpy([])


def test_a_detached_matrix_is_found_by_its_id(g, matrix):
    kept = g.put(matrix).detach()
    matrix_id = kept.id
    del kept
    gc.collect()
    found = g.matrix(id=matrix_id)
    assert found.id == matrix_id and not found.owned and found.name.startswith("python-")
    np.testing.assert_array_equal(found.numpy(), matrix)
    del found
    gc.collect()
    version = g.matrix(id=matrix_id).version
    with pytest.raises(gemmd.Aborted):
        g.delete(id=matrix_id, if_version=version + 1)
    g.delete(id=matrix_id, if_version=version)
    with pytest.raises(gemmd.NotFound):
        g.matrix(id=matrix_id)
    assert left_on(g) == (0, 0)


@pytest.mark.parametrize("given,says", [
    ({}, "neither name nor id is given; give one of them"),
    ({"name": "w", "id": "1"}, "name and id are both given"),
    ({"id": ""}, "id is empty"),
    ({"id": 7}, "id is 7, a int; it must be a str"),
    ({"id": "1", "shared": True}, "shared is set with an id"),
])  # fmt: skip
def test_a_matrix_is_named_in_one_way(g, given, says):
    for call in (g.matrix, g.delete):
        with pytest.raises(gemmd.InvalidArgument, match=says):
            call(**given)
    with pytest.raises(gemmd.InvalidArgument, match="shape and dtype are for a name"):
        g.matrix(id="1", shape=(2, 2), dtype="f32")
