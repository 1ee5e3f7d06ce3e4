"""Any product that can be written with numpy is numpy's, up to rounding.

GEMMD_CASES is the number of cases, 300 if it is not set.
"""

import os

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle

CASES = int(os.environ.get("GEMMD_CASES", "300"))
TYPES = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
# The output types that a kernel of the host has for each operand type.
OUTPUTS = {
    "float64": ["float64"], "float32": ["float32"], "float16": ["float16", "float32"],
    "bfloat16": ["bfloat16", "float32"], "float8_e4m3fn": ["float16", "bfloat16", "float32"],
    "float8_e5m2": ["float16", "bfloat16", "float32"],
}  # fmt: skip
ORDERS = ["C", "F", "strided", "transposed-strided", "reversed", "padded", "broadcast", "swapped"]


def laid_out(values, order):
    """The same elements in memory of this order."""
    rows, cols = values.shape
    if order == "F":
        return np.asfortranarray(values)
    if order == "strided":
        memory = np.zeros((rows * 2, cols * 3), values.dtype)
        memory[::2, ::3] = values
        return memory[::2, ::3]
    if order == "transposed-strided":
        memory = np.zeros((cols * 2, rows), values.dtype)
        memory[::2] = values.T
        return memory[::2].T
    if order == "reversed":
        return np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]
    if order == "padded":
        memory = np.zeros((rows, cols + 5), values.dtype)
        memory[:, :cols] = values
        return memory[:, :cols]
    if order == "swapped" and values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder())
    return np.ascontiguousarray(values)


@st.composite
def matrices(draw, rows, cols, dtype):
    seed = draw(st.integers(0, 2**32 - 1))
    values = np.random.default_rng(seed).standard_normal((rows, cols)).astype(TYPES[dtype])
    order = draw(st.sampled_from(ORDERS))
    if order == "broadcast":
        return np.broadcast_to(values[:1], (rows, cols))
    return laid_out(values, order)


@st.composite
def products(draw):
    """(operands and options of a product, what oracle.expect takes)."""
    m, n, k = (draw(st.one_of(st.integers(1, 8), st.integers(1, 90))) for _ in range(3))
    dtype = draw(st.sampled_from(sorted(TYPES)))
    output = draw(st.sampled_from(OUTPUTS[dtype]))
    turn_a, turn_b = draw(st.booleans()), draw(st.booleans())
    a = draw(matrices(*((k, m) if turn_a else (m, k)), dtype))
    b = draw(matrices(*((n, k) if turn_b else (k, n)), dtype))
    scalar = st.sampled_from([1.0, 0.0, -1.0, 0.5, 3.25])
    options = {"transpose_a": turn_a, "transpose_b": turn_b, "alpha": draw(scalar)}
    expected = {"alpha": options["alpha"]}
    options["dtype"] = draw(st.sampled_from([output, TYPES[output]]))
    if draw(st.booleans()):
        options["c"] = expected["c"] = draw(matrices(m, n, output))
        beta = draw(st.one_of(st.none(), scalar))
        options["beta"] = beta
        expected["beta"] = 1.0 if beta is None else beta
    if draw(st.booleans()):
        bias = draw(matrices(1, n, output))
        expected["bias"] = bias
        options["bias"] = draw(st.sampled_from([bias, bias[0]]))
    options["activation"] = expected["activation"] = draw(
        st.sampled_from([None, "none", "relu", "gelu", "leaky_relu"])
    )
    if options["activation"] == "leaky_relu":
        options["leaky_slope"] = expected["slope"] = 0.25
    if dtype.startswith("float8"):
        options["scale_a"], options["scale_b"] = 0.5, 4.0
        expected["factor"] = 2.0
    out = draw(st.sampled_from([None, "C", "F", "strided"]))
    if out is not None:
        options["out"] = laid_out(np.zeros((m, n), TYPES[output]), out)
    return a, b, output, options, expected


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=products(), way=st.sampled_from(["g", "small", "handles", "pipeline"]))
def test_product_is_numpys(g, small, case, way):
    a, b, output, options, expected = case
    right_a = a.T if options["transpose_a"] else a
    right_b = b.T if options["transpose_b"] else b
    result, bound = oracle.expect(right_a, right_b, output, **expected)
    if way == "handles":
        with small.put(a) as left, g.put(b) as unused, small.put(b) as right:
            del unused
            got = small.matmul(left, right, **options)
    elif way == "pipeline":
        with small.pipeline(4) as p:
            got = p.matmul(a, b, **options).result()
    else:
        got = {"g": g, "small": small}[way].matmul(a, b, **options)
    oracle.check(got, result, bound)
    assert got.dtype == TYPES[output]
    if "out" in options:
        assert np.shares_memory(got, options["out"])
    assert (got.report.m, got.report.n, got.report.k) == (*result.shape, right_a.shape[1])


@settings(max_examples=max(20, CASES // 10), deadline=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(data=st.data())
def test_what_is_put_comes_back(small, data):
    rows, cols = data.draw(st.integers(1, 120)), data.draw(st.integers(1, 120))
    matrix = data.draw(matrices(rows, cols, data.draw(st.sampled_from(sorted(TYPES)))))
    with small.put(matrix) as handle:
        got = handle.numpy()
    assert handle.shape == (rows, cols)
    assert got.astype(float).tobytes() == matrix.astype(float).tobytes()
