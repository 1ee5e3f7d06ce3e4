"""Block scales of fp8 operands, beside the same product in numpy."""

import gemmd
import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")

E4M3 = ml_dtypes.float8_e4m3fn
M, N, K = 150, 133, 300


def drawn(rows, cols, seed):
    return np.random.default_rng(seed).uniform(-4, 4, (rows, cols)).astype(E4M3)


def scales(rows, cols, seed):
    """Powers of two, so that nothing is rounded but sums."""
    draws = np.random.default_rng(seed).integers(-4, 4, (rows, cols))
    return np.exp2(draws).astype(np.float32)


def blocks(extent):
    return -(-extent // 128)


def expanded(scales, rows, cols):
    if scales.shape[0] != rows:
        scales = np.repeat(scales, 128, axis=0)[:rows]
    return np.repeat(scales, 128, axis=1)[:, :cols] if scales.shape[1] != cols else scales


def product(a, b, scales_a, scales_b):
    left = a.astype(np.float64) * expanded(scales_a, M, K)
    right = b.astype(np.float64) * expanded(scales_b, K, N)
    return left @ right, np.abs(left) @ np.abs(right)


@pytest.mark.parametrize("tiles_a", [False, True])
@pytest.mark.parametrize("tiles_b", [False, True])
def test_product(g, small, tiles_a, tiles_b):
    a, b = drawn(M, K, 1), drawn(K, N, 2)
    of_a = scales(blocks(M) if tiles_a else M, blocks(K), 3)
    of_b = scales(blocks(K), blocks(N) if tiles_b else N, 4)
    want, size = product(a, b, of_a, of_b)
    for client in (g, small):
        got = client.matmul(a, b, scales_a=of_a, scales_b=of_b, dtype="f32")
        assert (np.abs(got - want) <= K * 2.0**-24 * size).all()
        # Another order in memory, a handle, and operands to transpose.
        with client.put(np.asfortranarray(of_b)) as handle:
            again = client.matmul(
                a.T.copy(), b.T.copy(), transpose_a=True, transpose_b=True,
                scales_a=np.asfortranarray(of_a), scales_b=handle, dtype="f32",
            )  # fmt: skip
        np.testing.assert_array_equal(got, again)


def test_they_count(g):
    a, b = drawn(M, K, 1), drawn(K, N, 2)
    ones = np.ones((M, blocks(K)), np.float32), np.ones((blocks(K), blocks(N)), np.float32)
    plain = g.matmul(a, b, dtype="f32")
    np.testing.assert_allclose(
        g.matmul(a, b, scales_a=ones[0], scales_b=ones[1], dtype="f32"), plain, rtol=1e-3
    )
    ones[0][7, 1] = 1024
    other = g.matmul(a, b, scales_a=ones[0], scales_b=ones[1], dtype="f32")
    assert not np.allclose(other[7], plain[7], rtol=1e-3)
    np.testing.assert_allclose(np.delete(other, 7, 0), np.delete(plain, 7, 0), rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"scales_b": None}, gemmd.InvalidArgument, "scales_b is not given"),
        ({"scales_a": np.ones((M, 4), np.float32)}, gemmd.InvalidArgument, r"\(150, 3\)"),
        ({"scales_b": np.ones((3, 2), np.float64)}, gemmd.InvalidType, "must have f32"),
        ({"verify": "always"}, gemmd.FailedPrecondition, "block scales are not checked"),
        ({"a": np.ones((M, K), np.float16)}, gemmd.InvalidArgument, r"no type in common here: give one of them as .astype"),
    ],
)
def test_what_does_not_fit(g, change, error, words):
    given = {
        "a": drawn(M, K, 1), "b": drawn(K, N, 2),
        "scales_a": np.ones((M, 3), np.float32), "scales_b": np.ones((3, 2), np.float32),
    } | change  # fmt: skip
    with pytest.raises(error, match=words):
        g.matmul(given.pop("a"), given.pop("b"), **given)


def test_torch(g):
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(drawn(M, K, 1).astype(np.float32)).to(torch.float8_e4m3fn)
    b = torch.from_numpy(drawn(K, N, 2).astype(np.float32)).to(torch.float8_e4m3fn)
    of_a, of_b = scales(M, blocks(K), 3), scales(blocks(K), blocks(N), 4)
    got = g.matmul(
        a, b, scales_a=torch.from_numpy(of_a), scales_b=torch.from_numpy(of_b), dtype="f32"
    )
    want, size = product(drawn(M, K, 1), drawn(K, N, 2), of_a, of_b)
    assert (np.abs(got.numpy() - want) <= K * 2.0**-24 * size).all()


def test_records(g):
    assert g.info().limits.scale_block == 128
    takes = {kernel.name: kernel.block_scales for kernel in g.kernels()}
    assert takes["host_openblas"] and takes["host_reference"]
    assert g.explain(8, 8, 8, types="e4m3", block_scales=True)[0].name == "host_openblas"
