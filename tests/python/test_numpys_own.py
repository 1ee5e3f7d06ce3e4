"""numpy's own tests of matmul, with ours in its place.

Each runs once for every type of numpy's. A type that no kernel has is refused by a sentence that
says what to write; int8 gives int32, as the guide says.
"""

import warnings

import gemmd
import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
    from numpy._core.tests.test_multiarray import MatmulCommon

REFUSED = "gFDGO"  # long double, complex, object
TESTS = sorted(name for name in vars(MatmulCommon) if name.startswith("test_"))


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("char", MatmulCommon.types)
def test_matmul_common(g, name, char):
    class Case(MatmulCommon):
        # The first is bool: what is tested of it is written apart.
        types = "?" + char if char != "?" else "?"
        matmul = staticmethod(g.matmul)

    if char in REFUSED and name != "test_exceptions":
        with pytest.raises(gemmd.InvalidType, match="astype|apart"):
            getattr(Case(), name)()
    elif char == "b" and name == "test_result_types":
        ones = np.ones((1, 1), np.int8)
        assert g.matmul(ones, ones).dtype == np.int32
    else:
        getattr(Case(), name)()


def test_there_are_eight():
    assert len(TESTS) == 8
