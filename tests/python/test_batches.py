"""Products of 3-D arrays are numpy's, in one request."""

import gemmd
import numpy as np
import pytest

RNG = np.random.default_rng(3)
BATCH, M, K, N = 6, 5, 4, 3


def drawn(*shape, dtype=np.float32):
    """Small integers, so that every sum is exact."""
    return RNG.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_batch_is_numpys(g, dtype):
    a, b = drawn(BATCH, M, K, dtype=dtype), drawn(BATCH, K, N, dtype=dtype)
    result = g.matmul(a, b)
    assert result.shape == (BATCH, M, N)
    np.testing.assert_array_equal(result, np.matmul(a, b))
    assert g.last_report.batch == BATCH
    assert (g.last_report.m, g.last_report.n, g.last_report.k) == (M, N, K)


def test_a_2d_operand_is_shared(g):
    a, b = drawn(BATCH, M, K), drawn(K, N)
    np.testing.assert_array_equal(g.matmul(a, b), np.matmul(a, b))
    a, b = drawn(M, K), drawn(BATCH, K, N)
    np.testing.assert_array_equal(g.matmul(a, b), np.matmul(a, b))
    columns = np.asfortranarray(a)
    np.testing.assert_array_equal(g.matmul(columns, b), np.matmul(a, b))
    with g.put(a) as handle:
        np.testing.assert_array_equal(g.matmul(handle, b), np.matmul(a, b))
        np.testing.assert_array_equal(g.matmul(handle.T, drawn(1, M, N)).shape, (1, K, N))


def test_an_operand_of_one_matrix_is_shared(g):
    a, b = drawn(1, M, K), drawn(BATCH, K, N)
    for left, right in ((a, b), (b.transpose(0, 2, 1), a.transpose(0, 2, 1))):
        np.testing.assert_array_equal(g.matmul(left, right), np.matmul(left, right))
    for c in (drawn(1, M, N), drawn(BATCH, M, N)):
        np.testing.assert_array_equal(g.matmul(a, b, c=c), np.matmul(a, b) + c)
    np.testing.assert_array_equal(g.matmul(a, b[:1]), np.matmul(a, b[:1]))
    out = np.zeros((BATCH, M, N), np.float32)
    np.testing.assert_array_equal(g.matmul(a, b, out=out), np.matmul(a, b))


def test_arrays_of_any_strides(g):
    a, b = drawn(K, BATCH, M), drawn(BATCH, N, K)
    turned = a.transpose(1, 2, 0)  # (BATCH, M, K)
    want = np.matmul(turned, b.transpose(0, 2, 1))
    np.testing.assert_array_equal(g.matmul(turned, b.transpose(0, 2, 1)), want)
    np.testing.assert_array_equal(g.matmul(turned, b, transpose_b=True), want)
    every_other = drawn(2 * BATCH, M, 2 * K)[::2, :, ::2]
    np.testing.assert_array_equal(
        g.matmul(every_other, b, transpose_b=True),
        np.matmul(every_other, b.transpose(0, 2, 1)),
    )
    # Of one column, where rows and columns are dense alike.
    thin = drawn(K, BATCH * M).T.reshape(BATCH, M, K)
    np.testing.assert_array_equal(
        g.matmul(thin, b, transpose_b=True), np.matmul(thin, b.transpose(0, 2, 1))
    )


@pytest.mark.parametrize("shared_c", [False, True])
@pytest.mark.parametrize("shared_bias", [False, True])
def test_addends(g, shared_c, shared_bias):
    a, b = drawn(BATCH, K, M), drawn(K, N)
    c = drawn(M, N) if shared_c else drawn(BATCH, M, N)
    bias = drawn(N) if shared_bias else drawn(BATCH, 1, N)
    want = np.matmul(a.transpose(0, 2, 1), b) + 2 * c
    want = np.maximum(want + bias, 0)
    result = g.matmul(a, b, c=c, beta=2, bias=bias, transpose_a=True, activation="relu")
    np.testing.assert_array_equal(result, want)


def test_every_product_has_the_bits_that_it_has_alone(g):
    a = RNG.standard_normal((BATCH, M, K)).astype(np.float32)
    b = RNG.standard_normal((BATCH, K, N)).astype(np.float32)
    together = g.matmul(a, b, activation="gelu")
    for i in range(BATCH):
        alone = g.matmul(a[i], b[i], activation="gelu")
        assert alone.tobytes() == together[i].tobytes()


def test_out(g):
    a, b = drawn(BATCH, M, K), drawn(BATCH, K, N)
    out = np.zeros((BATCH, M, N), np.float32)
    result = g.matmul(a, b, out=out)
    np.testing.assert_array_equal(out, np.matmul(a, b))
    assert np.shares_memory(result, out)
    for strides in (np.zeros((BATCH, M, 2 * N), np.float32)[:, :, ::2],
                    np.zeros((N, M, BATCH), np.float32).T):  # fmt: skip
        assert g.matmul(a, b, out=strides) is strides
        np.testing.assert_array_equal(strides, out)
    for wrong in (np.zeros((BATCH, N, M), np.float32), np.zeros((M, N), np.float32)):
        with pytest.raises(gemmd.InvalidArgument, match="out"):
            g.matmul(a, b, out=wrong)


@pytest.mark.parametrize(
    ("a", "b", "options", "says"),
    [
        ((2, M, K), (3, K, N), {}, "the dimensions before the last two must be the same, or 1"),
        ((2, M, K), (2, K + 1, N), {}, "op.a. has 4 columns and op.b. has 5 rows"),
        ((2, M, K), (2, K, N), {"c": (3, M, N)}, "c has shape .* or broadcast to it"),
        ((2, M, K), (2, K, N), {"c": (N, M)}, "c has shape"),
        ((2, M, K), (2, K, N), {"bias": (3, N)}, "bias has shape"),
        ((2, M, K), (2, K, N), {"bias": (3, 1, N)}, "bias has shape .* or broadcast to it"),
        ((2, M, K), (2, K, N), {"bias": (M, N), "c": (M, N)}, "add the two before"),
        ((70000, 1, 1), (1, 1), {}, "a batch has 70000 products; it may have 65535"),
    ],
)
def test_what_does_not_fit_is_named(g, a, b, options, says):
    given = {name: drawn(*shape) for name, shape in options.items()}
    with pytest.raises(gemmd.InvalidArgument, match=says):
        g.matmul(drawn(*a), drawn(*b), **given)


def test_torch(g):
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(drawn(BATCH, M, K)), torch.from_numpy(drawn(BATCH, K, N))
    result = g.matmul(a, b)
    assert torch.equal(result, a @ b)
    assert g.last_report.batch == BATCH
    out = torch.zeros(BATCH, M, N)
    assert g.matmul(a, b, out=out) is out
    assert torch.equal(out, a @ b)


def test_a_large_batch_goes_over_all_channels(server):
    a, b = drawn(64, 96, 128), drawn(128, 80)
    with gemmd.connect(server.address, channels=3, unary_bytes=1, stripe_bytes=1 << 17) as striped:
        np.testing.assert_array_equal(striped.matmul(a, b), np.matmul(a, b))


def test_a_pipeline_takes_what_matmul_takes(g):
    a, b = drawn(BATCH, 1, M, K), drawn(3, K, N)
    out = np.zeros((BATCH, 3, M))
    with g.pipeline() as p:
        futures = [p.matmul(a, b), p.matmul(b[0, 0], b[0, 0]), p.matmul(a, b[0, :, 0]),
                   p.matmul(a[:0], b), p.matmul(a, b[..., 0, None], return_report=True),
                   p.matmul(a, b.astype(int)[1, :, 0], out=out[:, :1])]  # fmt: skip
        got = list(p.results())
    np.testing.assert_array_equal(got[0], np.matmul(a, b))
    assert got[1] == b[0, 0] @ b[0, 0] and got[1].shape == ()
    np.testing.assert_array_equal(got[2], a @ b[0, :, 0])
    assert got[3].shape == (0, 3, M, N)
    assert got[4][0].shape == (BATCH, 3, M, 1) and got[4][1] is futures[4].report
    np.testing.assert_array_equal(got[5], a @ b[1, :, 0])
    assert np.shares_memory(got[5], out)


def test_a_batch_is_kept_as_one_matrix(g):
    a, b, c = drawn(BATCH, M, K), drawn(BATCH, K, N), drawn(BATCH, N, K)
    bias = drawn(BATCH, 1, N)
    want = np.matmul(a, b) + bias
    with g.keep(a, b, bias=bias) as kept:
        assert kept.shape == (BATCH * M, N) and kept.report.batch == BATCH
        np.testing.assert_array_equal(kept.numpy().reshape(want.shape), want)
        second = g.grouped_matmul(kept, c, [M] * BATCH)
        np.testing.assert_array_equal(second.reshape(BATCH, M, K), np.matmul(want, c))


def test_a_transposed_bias_handle_is_refused(g):
    bias = g.put(drawn(BATCH, BATCH))
    with pytest.raises(gemmd.InvalidArgument, match="transposed handle"):
        g.matmul(drawn(BATCH, M, K), drawn(BATCH, K, BATCH), bias=bias.T)
