"""Products of int8: numpy's in int64, cut to 32 bits, or rounded once."""

import gemmd
import numpy as np
import pytest


def drawn(rows, cols, seed):
    return np.random.default_rng(seed).integers(-128, 128, (rows, cols), dtype=np.int8)


def exact(a, b):
    return a.astype(np.int64) @ b.astype(np.int64)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("k", [1, 33, 2100])
def test_int8_gives_int32(g, small, turned, k):
    a, b = drawn(37, k, 1), drawn(k, 29, 2)
    left = a.T.copy() if turned else a
    for client in (g, small):
        got = client.matmul(left, b, transpose_a=turned)
        assert got.dtype == np.int32
        assert client.last_report.compute == "s32"
        np.testing.assert_array_equal(got, exact(a, b))
    c = np.random.default_rng(3).integers(-(2**31), 2**31, (37, 29)).astype(np.int32)
    with g.put(b) as handle:
        got = g.matmul(a, handle, c=c, bias=c[0], activation="relu")
    wrapped = (exact(a, b) + c.astype(np.int64) + c[0]).astype(np.int32)
    np.testing.assert_array_equal(got, np.maximum(wrapped, 0))


def test_accumulators_wrap(g):
    a, b = np.full((2, 131072), -128, np.int8), np.full((131072, 3), -128, np.int8)
    np.testing.assert_array_equal(g.matmul(a, b), np.full((2, 3), -(2**31), np.int32))


def test_scaled(g):
    a, b = drawn(20, 300, 4), drawn(300, 10, 5)
    got = g.matmul(a, b, dtype="f32", alpha=2.0**-10, bias=np.full(10, 0.5, np.float32))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, (exact(a, b) / 1024 + 0.5).astype(np.float32))
    half = g.matmul(a, b, dtype="f16", scale_a=0.25, scale_b=2.0**-6)
    np.testing.assert_array_equal(half, (exact(a, b) / 256).astype(np.float32).astype(np.float16))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0.5}, "alpha is 0.5"),
        ({"scale_a": 2.0}, "alpha . scale_a . scale_b is 2"),
        ({"activation": "gelu"}, "activation is gelu"),
        ({"compute": "f32"}, "compute=f32"),
        ({"dtype": "s8"}, "result=s8"),
    ],
)
def test_an_int32_result_is_a_sum_of_integers(g, options, words):
    a, b = drawn(4, 5, 6), drawn(5, 6, 7)
    with pytest.raises(gemmd.InvalidArgument, match=words):
        g.matmul(a, b, **options)


def test_torch(g):
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(drawn(9, 70, 8)), torch.from_numpy(drawn(70, 4, 9))
    got = g.matmul(a, b)
    assert got.dtype == torch.int32
    assert torch.equal(got.long(), a.long() @ b.long())
