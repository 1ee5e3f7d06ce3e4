"""Reports go where their results go: pickled and copied."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import gemmd
import numpy as np
import pytest

A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("copied", [
    copy.copy, copy.deepcopy,
    *(lambda report, version=version: pickle.loads(pickle.dumps(report, version))
      for version in range(pickle.HIGHEST_PROTOCOL + 1)),
])  # fmt: skip
def test_a_report_is_the_same_once_copied(g, copied):
    _, report = g.matmul(A, A.T, verify="always", return_report=True)
    other = copied(report)
    assert isinstance(other, gemmd.Report) and other is not report
    assert repr(other) == repr(report) and other.phases == report.phases
    assert other.check == report.check and other.params == report.params


@pytest.mark.parametrize("make", [
    lambda g: g.matmul(A, A.T),
    lambda g: g.matmul(np.stack([A, A]), A.T),
    lambda g: g.grouped_matmul(A, np.stack([A.T, A.T]), [1, 2]),
    lambda g: g.put(A).numpy(),
    lambda g: A @ g.put(A.T),
    lambda g: g.pipeline().matmul(A, A.T).result(),
], ids=["product", "batch", "group", "fetched", "operator", "pipeline"])  # fmt: skip
def test_a_result_is_a_plain_array(g, make):
    result = make(g)
    assert type(result) is np.ndarray and not hasattr(result, "report")


def test_a_report_is_returned_to_who_asks(g):
    product, report = g.matmul(A, A.T, return_report=True)
    np.testing.assert_array_equal(product, A @ A.T)
    assert (report.m, report.n, report.k) == (3, 3, 4) and g.last_report is report
    g.grouped_matmul(A, np.stack([A.T, A.T]), [1, 2])
    assert g.last_report.group == 2
    product, report = g.grouped_matmul(A, np.stack([A.T] * 3), [1, 1, 1], return_report=True)
    assert report.group == 3 and product.shape == (3, 3)


def test_the_last_report_is_the_threads_own(g):
    g.matmul(A, A.T)
    mine = g.last_report
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: g.last_report).result() is None
        pool.submit(g.matmul, A.T, A).result()
        assert pool.submit(lambda: g.last_report.m).result() == 4
    assert g.last_report is mine
