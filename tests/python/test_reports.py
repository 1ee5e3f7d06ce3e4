"""Reports go where their results go: pickled and copied."""

import copy
import pickle
import pickletools

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
    report = g.matmul(A, A.T, verify="always").report
    other = copied(report)
    assert isinstance(other, gemmd.Report) and other is not report
    assert repr(other) == repr(report) and other.phases == report.phases
    assert other.check == report.check and other.params == report.params


def test_what_holds_one_is_copied(g):
    kept = {"product": g.matmul(A, A.T)}
    kept["report"] = kept["product"].report
    other = pickle.loads(pickle.dumps(copy.deepcopy(kept)))
    np.testing.assert_array_equal(other["product"], A @ A.T)
    assert type(other["product"]) is np.ndarray
    assert other["report"].kernel == kept["report"].kernel


@pytest.mark.parametrize("version", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("make", [
    lambda g: g.matmul(A, A.T),
    lambda g: g.matmul(A, A.T, out=np.empty((3, 3), np.float32, order="F")),
    lambda g: g.matmul(np.stack([A, A]), A.T),
    lambda g: g.grouped_matmul(A, np.stack([A.T, A.T]), [1, 2]),
    lambda g: g.put(A).numpy(),
    lambda g: g.matmul(A, A.T)[1:],
], ids=["new", "out", "batch", "group", "fetched", "view"])  # fmt: skip
def test_a_pickled_result_is_a_plain_array(g, make, version):
    result = make(g)
    pickled = pickle.dumps(result, version)
    names = {str(argument) for _, argument, _ in pickletools.genops(pickled) if argument}
    assert not any("gemmd" in name for name in names)
    other = pickle.loads(pickled)
    assert type(other) is np.ndarray
    np.testing.assert_array_equal(other, result)
    assert result.report is None or result.report.kernel
