"""Products that differ in one dimension are numpy's one by one, in one request."""

import asyncio

import gemmd
import gemmd.aio
import numpy as np
import pytest

RNG = np.random.default_rng(5)
SIZES = [4, 0, 1, 7, 7, 0]
G, TOTAL, M, K, N = len(SIZES), sum(SIZES), 5, 4, 3
PARTS = [slice(end - size, end) for size, end in zip(SIZES, np.cumsum(SIZES), strict=True)]


def drawn(*shape, dtype=np.float32):
    """Small integers, so that every sum is exact."""
    return RNG.integers(-3, 4, shape).astype(dtype)


def by_m(a, b):
    return np.concatenate([a[part] @ b[i] for i, part in enumerate(PARTS)])


def by_n(a, b):
    return np.concatenate([a[i] @ b[:, part] for i, part in enumerate(PARTS)], axis=1)


def by_k(a, b):
    return np.stack([a[:, part] @ b[part] for part in PARTS])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_products_that_differ_in_m(g, dtype):
    a, b = drawn(TOTAL, K, dtype=dtype), drawn(G, K, N, dtype=dtype)
    result = g.grouped_matmul(a, b, SIZES)
    np.testing.assert_array_equal(result, by_m(a, b))
    assert result.dtype == dtype
    assert (g.last_report.group, g.last_report.batch) == (G, 1)
    assert (g.last_report.m, g.last_report.n, g.last_report.k) == (TOTAL, N, K)


def test_products_that_differ_in_k(g):
    a, b = drawn(M, TOTAL), drawn(TOTAL, N)
    result = g.grouped_matmul(a, b, SIZES)
    assert result.shape == (G, M, N)
    np.testing.assert_array_equal(result, by_k(a, b))
    np.testing.assert_array_equal(g.grouped_matmul(a.T, b, SIZES, transpose_a=True), result)
    np.testing.assert_array_equal(g.grouped_matmul(a, b.T, SIZES, transpose_b=True), result)


def test_products_that_differ_in_n(g):
    a, b = drawn(G, M, K), drawn(K, TOTAL)
    result = g.grouped_matmul(a, b, SIZES)
    np.testing.assert_array_equal(result, by_n(a, b))
    np.testing.assert_array_equal(g.grouped_matmul(a, b.T, SIZES, transpose_b=True), result)
    turned = a.transpose(0, 2, 1)
    np.testing.assert_array_equal(g.grouped_matmul(turned, b, SIZES, transpose_a=True), result)


def test_arrays_of_any_strides(g):
    a, b = drawn(K, 2 * TOTAL)[:, ::2].T, drawn(N, G, K).transpose(1, 2, 0)
    np.testing.assert_array_equal(g.grouped_matmul(a, b, SIZES), by_m(a, b))
    np.testing.assert_array_equal(g.grouped_matmul(a.T, b, SIZES, transpose_a=True), by_m(a, b))
    np.testing.assert_array_equal(
        g.grouped_matmul(a, b.transpose(0, 2, 1), SIZES, transpose_b=True), by_m(a, b)
    )


def test_sizes_of_any_kind(g):
    a, b = drawn(TOTAL, K), drawn(G, K, N)
    for sizes in (tuple(SIZES), np.array(SIZES, np.int32), iter(SIZES)):
        np.testing.assert_array_equal(g.grouped_matmul(a, b, sizes), by_m(a, b))


def test_handles_say_the_dimension(g):
    a, b = drawn(TOTAL, K), drawn(G, K, N)
    with g.put(b.reshape(-1, N)) as experts, g.put(a) as tokens:
        np.testing.assert_array_equal(g.grouped_matmul(a, experts, SIZES, by="m"), by_m(a, b))
        np.testing.assert_array_equal(
            g.grouped_matmul(tokens.T, drawn(TOTAL, 1), SIZES, by="k").shape, (G, K, 1)
        )
        with pytest.raises(gemmd.InvalidArgument, match="by is left out"):
            g.grouped_matmul(a, experts, SIZES)
    turned = np.ascontiguousarray(b.transpose(0, 2, 1))
    with g.put(turned.reshape(-1, K)) as experts:
        np.testing.assert_array_equal(g.grouped_matmul(a, experts.T, SIZES, by="m"), by_m(a, b))


@pytest.mark.parametrize("one_bias", [False, True])
def test_addends_by_m(g, one_bias):
    a, b, c = drawn(TOTAL, K), drawn(G, K, N), drawn(TOTAL, N)
    bias = drawn(N) if one_bias else drawn(G, N)
    each = bias if one_bias else np.repeat(bias, SIZES, axis=0)
    want = np.maximum(by_m(a, b) + 2 * c + each, 0)
    result = g.grouped_matmul(a, b, SIZES, c=c, beta=2, bias=bias, activation="relu")
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("one_c", [False, True])
def test_addends_by_k(g, one_c):
    a, b, bias = drawn(M, TOTAL), drawn(TOTAL, N), drawn(G, N)
    c = drawn(M, N) if one_c else drawn(G, M, N)
    want = by_k(a, b) + c + bias[:, None, :]
    np.testing.assert_array_equal(g.grouped_matmul(a, b, SIZES, c=c, bias=bias), want)


def test_addends_by_n(g):
    a, b, c, bias = drawn(G, M, K), drawn(K, TOTAL), drawn(M, TOTAL), drawn(TOTAL)
    want = by_n(a, b) + c + bias
    np.testing.assert_array_equal(g.grouped_matmul(a, b, SIZES, c=c, bias=bias), want)


def test_every_product_has_the_bits_that_it_has_alone(g):
    a = RNG.standard_normal((TOTAL, K)).astype(np.float32)
    b = RNG.standard_normal((G, K, N)).astype(np.float32)
    together = g.grouped_matmul(a, b, SIZES, activation="gelu")
    for i, part in enumerate(PARTS):
        if SIZES[i]:
            alone = g.matmul(a[part], b[i], activation="gelu")
            assert alone.tobytes() == together[part].tobytes()


def test_out(g):
    a, b = drawn(TOTAL, K), drawn(G, K, N)
    out = np.zeros((TOTAL, N), np.float32)
    assert np.shares_memory(g.grouped_matmul(a, b, SIZES, out=out), out)
    np.testing.assert_array_equal(out, by_m(a, b))
    left, right = drawn(M, TOTAL), drawn(TOTAL, N)
    stacked = np.zeros((G, M, N), np.float32)
    g.grouped_matmul(left, right, SIZES, out=stacked)
    np.testing.assert_array_equal(stacked, by_k(left, right))
    with pytest.raises(gemmd.InvalidArgument, match="out has shape"):
        g.grouped_matmul(left, right, SIZES, out=out)


@pytest.mark.parametrize(
    ("a", "b", "sizes", "options", "says"),
    [
        ((5, K), (2, K, N), [2, 4], {}, "group_sizes sum to 6 and op.a. has 5 rows"),
        ((M, 5), (5, N), [2, 4], {}, "group_sizes sum to 6 and op.a. has 5 columns"),
        ((2, M, K), (K, 5), [2, 4], {}, "group_sizes sum to 6 and op.b. has 5 columns"),
        ((6, K), (3, K, N), [2, 4], {}, "b has 3 matrices and group_sizes has 2"),
        ((6, K), (2, K + 1, N), [2, 4], {}, "op.a. has 4 columns and op.b. has 5 rows"),
        ((6, K), (2, K, N), [2, -4], {}, r"group_sizes\[1\] is -4"),
        ((6, K), (2, K, N), [2, 4.0], {}, r"group_sizes\[1\] is 4.0; it must be an integer"),
        ((6, K), (2, K, N), [], {}, "group_sizes is empty"),
        ((6, K), (2, K, N), 6, {}, "group_sizes is a int"),
        ((2, M, K), (2, K, N), [2, 4], {}, "a batch of one size, for matmul"),
        ((6, K), (2, K, N), [2, 4], {"by": "k"}, "by is 'k', but b has three dimensions"),
        ((6, K), (K, N), [2, 4], {"by": "m"}, "b has shape .4, 3.; it must have three dimensions"),
        ((6, K), (2, K, N), [2, 4], {"by": "x"}, "by is 'x'"),
        ((6, K), (2, K, N), [2, 4], {"bias": (3, N)}, "bias has shape"),
        ((6, K), (2, K, N, 1), [2, 4], {}, "b has .*; it must have two dimensions, or three for a matrix"),
        ((6, K), (2, K, N), [2, 4], {"c": (2, 3, N)}, "c has shape"),
        ((4097, 1), (4097, 1, 1), [1] * 4097, {}, "4097 sizes; it may have 4096"),
    ],
)
def test_what_does_not_fit_is_named(g, a, b, sizes, options, says):
    given = {
        name: drawn(*value) if isinstance(value, tuple) else value
        for name, value in options.items()
    }
    with pytest.raises(gemmd.GemmdError, match=says):
        g.grouped_matmul(drawn(*a), drawn(*b), sizes, **given)


def test_a_mixture_of_experts_is_chained_on_the_server(g):
    tokens, up, down = drawn(TOTAL, K), drawn(G, K, N), drawn(G, N, M)
    want = by_m(np.maximum(by_m(tokens, up), 0), down)
    with g.keep(tokens, up, group_sizes=SIZES, activation="relu") as hidden:
        assert hidden.shape == (TOTAL, N) and hidden.report.group == G
        np.testing.assert_array_equal(g.grouped_matmul(hidden, down, SIZES), want)
        with g.keep(hidden, down, group_sizes=SIZES) as chained:
            np.testing.assert_array_equal(chained.numpy(), want)


def test_groups_by_k_and_by_n_are_kept_as_one_matrix(g):
    a, b = drawn(M, TOTAL), drawn(TOTAL, N)
    with g.keep(a, b, group_sizes=SIZES) as kept:
        np.testing.assert_array_equal(kept.numpy().reshape(G, M, N), by_k(a, b))
    a, b = drawn(G, M, K), drawn(K, TOTAL)
    with g.keep(a, b, group_sizes=SIZES, by="n") as kept:
        np.testing.assert_array_equal(kept.numpy(), by_n(a, b))
    with pytest.raises(gemmd.InvalidArgument, match="by is given without group_sizes"):
        g.keep(b, b.T, by="m")


def test_torch(g):
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(drawn(TOTAL, K)), torch.from_numpy(drawn(G, K, N))
    result = g.grouped_matmul(a, b, torch.tensor(SIZES))
    assert torch.equal(result, torch.from_numpy(by_m(a.numpy(), b.numpy())))
    assert g.last_report.group == G
    gradient = g.grouped_matmul(a.t(), result, SIZES)
    assert torch.equal(gradient, torch.from_numpy(by_k(a.numpy().T, result.numpy())))


def test_asyncio(server):
    a, b = drawn(TOTAL, K), drawn(G, K, N)

    async def main():
        async with await gemmd.aio.connect(server.address) as g:
            async with await g.keep(a, b, group_sizes=SIZES) as kept:
                np.testing.assert_array_equal(await kept.numpy(), by_m(a, b))
            return await g.grouped_matmul(a, b, SIZES)

    np.testing.assert_array_equal(asyncio.run(main()), by_m(a, b))


def test_a_large_group_goes_over_all_channels(server):
    sizes = [96, 0, 640, 1, 287]
    a, b = drawn(sum(sizes), 128), drawn(len(sizes), 128, 80)
    ends = np.cumsum(sizes)
    want = np.concatenate(
        [a[e - s : e] @ b[i] for i, (s, e) in enumerate(zip(sizes, ends, strict=True))]
    )
    with gemmd.connect(server.address, channels=3, unary_bytes=1, stripe_bytes=1 << 17) as striped:
        np.testing.assert_array_equal(striped.grouped_matmul(a, b, sizes), want)
        np.testing.assert_array_equal(striped.keep(a, b, group_sizes=sizes).numpy(), want)
