"""Any product that can be written with numpy is numpy's, up to rounding.

GEMMD_CASES is the number of cases, 300 if it is not set.
"""

import os

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cases
import oracle

CASES = int(os.environ.get("GEMMD_CASES", "300"))
TYPES = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


class Drawn:
    """hypothesis as a source of cases.product."""

    def __init__(self, draw):
        self._draw = draw

    def integer(self, least, most):
        return self._draw(st.integers(least, most))

    def pick(self, values):
        return self._draw(st.sampled_from(values))

    def matrix(self, rows, cols, dtype, flat=False):
        values = cases.normal(self, rows, cols).astype(TYPES[dtype])
        matrix = cases.laid_out(values, self.pick(cases.ORDERS))
        return matrix[0] if flat else matrix, matrix.astype(float)


@st.composite
def products(draw):
    """What cases.product gives, with the type and perhaps memory for the result."""
    source = Drawn(draw)
    a, b, sizes, options, expected = cases.product(source, sorted(TYPES), source.matrix)
    output = expected["output"]
    options["dtype"] = source.pick([output, TYPES[output]])
    out = source.pick([None, "C", "F", "strided"])
    if out is not None:
        options["out"] = cases.laid_out(np.zeros(sizes[:2], TYPES[output]), out)
    return a, b, sizes, options, expected


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=products(), way=st.sampled_from(["g", "small", "handles", "pipeline"]))
def test_product_is_numpys(g, small, case, way):
    a, b, sizes, options, expected = case
    result, bound = oracle.expect(**expected)
    if way == "handles":
        with small.put(a) as left, g.put(b) as unused, small.put(b) as right:
            del unused
            got, report = small.matmul(left, right, return_report=True, **options)
    elif way == "pipeline":
        with small.pipeline(4) as p:
            got, report = p.matmul(a, b, return_report=True, **options).result()
    else:
        got, report = {"g": g, "small": small}[way].matmul(a, b, return_report=True, **options)
    oracle.check(got, result, bound)
    assert got.dtype == TYPES[expected["output"]]
    if "out" in options:
        assert got is options["out"]
    assert (report.m, report.n, report.k) == sizes


@settings(max_examples=max(20, CASES // 10), deadline=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(data=st.data())
def test_what_is_put_comes_back(small, data):
    rows, cols = data.draw(st.integers(1, 120)), data.draw(st.integers(1, 120))
    source = Drawn(data.draw)
    matrix, _ = source.matrix(rows, cols, source.pick(sorted(TYPES)))
    with small.put(matrix) as handle:
        got = handle.numpy()
    assert handle.shape == (rows, cols)
    assert got.astype(float).tobytes() == matrix.astype(float).tobytes()
