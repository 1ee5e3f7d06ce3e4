"""Dask's own tests of products, with `offload` around each.

They come with the package that is installed: dask.array.tests. Products that no server takes, such
as those of integers or of more than two dimensions, must be Dask's own then.
"""

import gemmd.dask
import pytest
from dask.array.tests.test_array_core import (  # noqa: F401
    test_chunked_dot_product,
    test_matmul_array_ufunc,
)
from dask.array.tests.test_array_core import test_matmul as test_matmul_operator  # noqa: F401
from dask.array.tests.test_masked import test_tensordot as test_tensordot_of_masked  # noqa: F401
from dask.array.tests.test_routines import (  # noqa: F401
    test_dot_method,
    test_dot_persist_equivalence,
    test_matmul,
    test_tensordot,
    test_tensordot_2,
    test_tensordot_double_contraction_neq2,
    test_tensordot_double_contraction_ngt2,
    test_tensordot_more_than_26_dims,
    test_vdot,
)


@pytest.fixture(autouse=True)
def offloaded(server):
    with gemmd.dask.offload(server.address):
        yield
