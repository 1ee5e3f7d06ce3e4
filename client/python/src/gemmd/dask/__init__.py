"""Products of Dask arrays on gemmd servers: Dask schedules, servers multiply.

    with gemmd.dask.offload(["gpu1:50051", "gpu2:50051"]):
        z = x @ y
    z.persist()

`print(gemmd.dask.plan(x, y, servers))` says before what it takes. docs/dask.md explains it.
"""

from .functions import matmul, offload, plan
from .plan import Plan
from .servers import Server

__all__ = ["Plan", "Server", "matmul", "offload", "plan"]
