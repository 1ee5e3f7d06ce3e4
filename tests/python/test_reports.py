"""Reports go where their results go: pickled and copied."""

import copy
import pickle

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
    assert other["report"].kernel == kept["report"].kernel
