"""Handles under `@`, numpy's functions and indices."""

import gemmd
import numpy as np
import pytest

from conftest import left_on

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)


@pytest.fixture
def w(g):
    with g.put(B) as handle:
        yield handle


@pytest.mark.parametrize("multiply", [
    lambda x, y: x @ y, np.matmul, np.dot, getattr(np.linalg, "matmul", np.matmul),
], ids=["@", "matmul", "dot", "linalg"])  # fmt: skip
def test_handles_alone_give_a_handle_and_an_array_gives_an_array(g, w, multiply):
    for left, right, want in ((A, w, A @ B), (w, B.T, B @ B.T), (A[0], w, A[0] @ B),
                              (A.astype(np.float16), w, A @ B), (w.T, A.T, B.T @ A.T)):  # fmt: skip
        got = multiply(left, right)
        assert type(got) is np.ndarray and got.dtype == np.float32
        np.testing.assert_array_equal(got, want)
    with multiply(w.T, w) as kept:
        assert isinstance(kept, gemmd.Handle) and kept.name is None and kept.owned
        np.testing.assert_array_equal(kept.numpy(), B.T @ B)
    assert type(g.matmul(w.T, w)) is np.ndarray


def test_out_of_numpys_functions(w):
    out = np.zeros((3, 5), np.float32)
    for multiply in (np.matmul, np.dot):
        out[:] = 0
        assert multiply(A, w, out=out) is out
        np.testing.assert_array_equal(out, A @ B)
    with pytest.raises(gemmd.InvalidType, match="out is a handle"):
        np.matmul(A, B, out=w)


@pytest.mark.parametrize("use,words", [
    (lambda w: A + w, "np.add of a handle"),
    (lambda w: np.multiply(w, 2.0), "np.multiply of a handle"),
    (lambda w: np.add.reduce(w), "np.add of a handle"),
    (lambda w: np.exp(w), "h.numpy()"),
    (lambda w: np.sum(w), "np.sum of a handle"),
    (lambda w: np.einsum("ij,jk", A, w), "np.einsum of a handle"),
    (lambda w: np.tensordot(A, w, 1), "np.tensordot of a handle"),
    (lambda w: np.linalg.inv(w), "np.linalg.inv of a handle"),
    (lambda w: np.dot(w, np.ones((2, 5, 3))), "give np.matmul or @"),
    (lambda w: np.matmul(A, w, dtype=np.float64), "dtype is given to np.matmul"),
    (lambda w: np.matmul(A, w, axes=[(0, 1)] * 3), "axes is given to np.matmul"),
    (lambda w: A.astype(np.float64) @ w, ".astype(...) of the handle's type"),
    (lambda w: A.astype(int) @ w, ".astype(...) of the handle's type"),
    (lambda w: w[::2], "step of 2"),
    (lambda w: w[4], "it must be -4 to 3"),
    (lambda w: w[1, 2], "must be an integer"),
    (lambda w: w.T[1], "h[i:j]"),
    (lambda w: list(w), "not iterable"),
    (lambda w: np.asarray(w, copy=False), "copy is False"),
])  # fmt: skip
def test_what_a_handle_does_not_do_is_said(w, use, words):
    with pytest.raises((gemmd.InvalidArgument, TypeError)) as caught:
        use(w)
    assert words in str(caught.value), str(caught.value)


def test_shapes_are_known_without_the_elements(w):
    assert (w.shape, w.ndim, w.size, len(w), w.dtype, w.nbytes) == ((4, 5), 2, 20, 4, "f32", 80)
    assert (w.T.shape, w.T.ndim, w.T.size, len(w.T)) == ((5, 4), 2, 20, 5)
    assert (np.shape(w), np.ndim(w), np.size(w.T)) == ((4, 5), 2, 20)
    assert np.transpose(w).shape == (5, 4) and np.transpose(w.T) is w


@pytest.mark.parametrize("index", [0, -1, np.s_[1:3], np.s_[:], np.s_[-2:], np.s_[3:1], np.int64(2)])
def test_rows(g, small, index):
    for client in (g, small):
        for dtype in (np.float64, np.float16):
            matrix = np.random.default_rng(1).standard_normal((4, 700)).astype(dtype)
            with client.put(matrix) as handle:
                got = handle[index]
                assert got.dtype == dtype and got.shape == matrix[index].shape
                np.testing.assert_array_equal(got, matrix[index])
            with client.put(np.asfortranarray(matrix.T)) as columns:
                np.testing.assert_array_equal(columns.T[index], matrix[index])
                with pytest.raises(gemmd.InvalidArgument, match=r"h\.T\[i:j\]"):
                    columns[index]


def test_rows_of_a_handle_that_the_server_was_not_asked_for(g):
    g.put(B, name="rows/b")
    try:
        told = g.matrix("rows/b", shape=(4, 5), dtype="f32")
        np.testing.assert_array_equal(told[1:3], B[1:3])
        wrong = g.matrix("rows/b", shape=(5, 4), dtype="f32")
        with pytest.raises(gemmd.InvalidArgument, match="shape"):
            wrong[1]
    finally:
        g.delete("rows/b")


def test_matmul_keeps_where_it_is_asked_to(g, w):
    kept = g.matmul(A, w, keep=True, name="kept/c", ttl=60, activation="relu")
    try:
        assert kept.name == "kept/c" and not kept.owned and kept.report.m == 3
        np.testing.assert_array_equal(g.matrix("kept/c").numpy(), A @ B)
        again = g.matmul(A, w, keep=True, name="kept/c", replace=True, if_version=kept.version)
        assert again.version > kept.version
    finally:
        g.delete("kept/c")
    with g.matmul(w.T, w, keep=True) as unnamed:
        assert unnamed.owned
    for options in ({"name": "x"}, {"ttl": 5}, {"replace": True}, {"shared": True}):
        field = next(iter(options))
        with pytest.raises(gemmd.InvalidArgument, match=f"{field} is given without keep=True"):
            g.matmul(A, w, **options)
    for options in ({"out": np.zeros((3, 5), "f4")}, {"return_report": True}):
        with pytest.raises(gemmd.InvalidArgument, match="a result that is kept has none"):
            g.matmul(A, w, keep=True, **options)
    for left, words in ((A[0], "v[None, :]"), (A[:0], "of at least 1")):
        with pytest.raises(gemmd.InvalidArgument) as caught:
            g.matmul(left, w, keep=True)
        assert words in str(caught.value)


def test_exists_and_delete_by_prefix(g):
    assert not g.exists("some/a")
    handles = [g.put(B, name=f"some/{letter}") for letter in "abc"]
    other = g.put(B, name="something")
    assert g.exists("some/a") and g.exists(id=handles[1].id)
    assert g.delete("some/a") == 1
    assert not g.exists("some/a")
    assert g.delete(prefix="some/") == 2 and g.exists("something")
    assert g.delete(prefix="some/") == 0
    for options in ({"prefix": ""}, {"prefix": "some", "name": "x"}, {"prefix": 3}):
        with pytest.raises(gemmd.InvalidArgument, match="^prefix is "):
            g.delete(**options)
    other.free()
    assert left_on(g) == (0, 0)
