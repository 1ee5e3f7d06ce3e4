"""matmul of operands of 0 to 4 dimensions, of any type and order, is np.matmul.

Elements are such that no float rounds. GEMMD_CASES is the number of cases, 300 if it is not set.
"""

import os

import gemmd
import ml_dtypes
import numpy as np
import pytest

import cases

CASES = int(os.environ.get("GEMMD_CASES", "300"))
FLOATS = [np.dtype(t) for t in "efd"] + [np.dtype(ml_dtypes.bfloat16)]
INTEGERS = [np.dtype(t) for t in "?bBhHiIlLqQ"]
NO_KERNELS = [np.dtype(t) for t in "gFDO"]


def laid_out(source, values):
    """The same elements in memory of some order."""
    order = source.pick(["C", "F", "axes", "strided", "reversed", "swapped"])
    if order == "axes" and values.ndim > 1:
        axes = list(range(values.ndim))
        axes = axes[-1:] + axes[:-1]
        return np.ascontiguousarray(values.transpose(axes)).transpose(np.argsort(axes))
    if order == "strided" and values.ndim:
        memory = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        memory[..., ::2] = values
        return memory[..., ::2]
    if order == "reversed" and values.ndim:
        return np.ascontiguousarray(values[..., ::-1])[..., ::-1]
    if order == "swapped" and values.dtype.kind in "fiu" and values.dtype.itemsize > 1:
        return values.astype(values.dtype.newbyteorder())
    return np.array(values, order="F" if order == "F" else "C")


def shapes(source):
    dims = [source.integer(0, source.pick([1, 4, 6])) for _ in range(3)]
    m, k, n = (size or source.integer(0, 1) for size in dims)
    lead = [source.integer(0, 3) or 1 for _ in range(2)]
    a, b = [*lead[: source.integer(0, 2)], m, k], [*lead[: source.integer(0, 2)], k, n]
    if len(a) == 3 and len(b) == 4:
        a[0] = b[1]
    if len(b) == 3 and len(a) == 4:
        b[0] = a[1]
    for shape in (a, b):
        if source.pick([False, True]):
            shape[:-2] = [source.pick([1, size]) for size in shape[:-2]]
        if source.pick([False] * 9 + [True]):  # perhaps one that does not fit
            place = source.integer(0, len(shape) - 1)
            shape[place] += 1
    if source.pick([False] * 3 + [True]):
        a = [k] if source.integer(0, 5) else []
    if source.pick([False] * 3 + [True]):
        b = [k] if source.integer(0, 5) else []
    return tuple(a), tuple(b)


def drawn(source, shape, dtype, small):
    rng = np.random.default_rng(source.integer(0, 2**32 - 1))
    if dtype.kind not in "iu" or small:
        least = 0 if dtype.kind in "bu" else -3
        return laid_out(source, rng.integers(least, 4, shape).astype(dtype))
    limits = np.iinfo(dtype)
    least, most = max(limits.min, -(2**24)), min(limits.max, 2**24)
    return laid_out(source, rng.integers(least, most, shape, endpoint=True).astype(dtype))


def expected(a, b):
    """numpy's; ml_dtypes has no matmul."""
    common = np.result_type(a, b)
    wide = np.float64 if common.name == "bfloat16" else common
    return np.matmul(a.astype(wide), b.astype(wide)).astype(common)


@pytest.mark.parametrize("seed", range(20))
def test_any_operands(g, seed):
    source = cases.Seeded(seed)
    refused = 0
    for _ in range(-(-CASES // 20)):
        types = source.pick([FLOATS, INTEGERS, FLOATS + INTEGERS, FLOATS + INTEGERS + NO_KERNELS])
        left, right = source.pick(types), source.pick(types)
        small = left.kind not in "biu" or right.kind not in "biu"
        shape_a, shape_b = shapes(source)
        a, b = drawn(source, shape_a, left, small), drawn(source, shape_b, right, small)
        what = f"{a.dtype}{a.shape} {a.strides} @ {b.dtype}{b.shape} {b.strides}"
        if left in NO_KERNELS or right in NO_KERNELS:
            with pytest.raises(gemmd.InvalidArgument, match="astype|apart|scalar"):
                g.matmul(a, b)
            continue
        try:
            want = expected(a, b)
        except TypeError:  # bf16 has no type in common with integers and f16
            with pytest.raises(gemmd.InvalidArgument, match="astype|scalar"):
                g.matmul(a, b)
            continue
        except ValueError:
            with pytest.raises(ValueError) as caught:
                g.matmul(a, b)
            assert isinstance(caught.value, gemmd.InvalidArgument), what
            refused += 1
            continue
        if left == right == np.int8:
            want = np.matmul(a.astype(np.int32), b.astype(np.int32))
        got = g.matmul(a, b)
        assert (got.dtype, np.shape(got)) == (want.dtype, want.shape), what
        assert np.ndim(want) or type(got) is type(want), what
        np.testing.assert_array_equal(got, want, what)
        if source.pick([False, True]):
            out = laid_out(source, np.zeros(want.shape, want.dtype))
            bias = np.ones(want.shape[-1:], want.dtype)
            plus = want | bias if want.dtype == bool else want + bias
            if want.dtype == bool:
                assert g.matmul(a, b, out=out) is out
                np.testing.assert_array_equal(out, want, what)
            else:
                assert g.matmul(a, b, bias=bias, out=out) is out
                np.testing.assert_array_equal(out, plus, what)
    assert refused < CASES / 20
