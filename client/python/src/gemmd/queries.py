"""What a client asks of the server itself."""

from __future__ import annotations

from collections.abc import Sequence

from . import bench, checks, records
from .call import Call, Canceller
from .connection import Connection
from .contract import pb
from .tables import Table


class Queries:
    """The part of `gemmd.Client` that asks for information, and measures."""

    _connection: Connection

    @checks.named_options
    def info(
        self, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> records.Info:
        """The server's version, devices, limits and present load."""
        with Call(self._connection, "info", timeout, cancel) as call:
            return records.info(call.tried(call.ask_server))

    @checks.named_options
    def kernels(
        self, family: str = "", *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Table[records.Kernel]:
        """The kernels of the catalogue, or those of one family."""
        request = pb.ListKernelsRequest(family=checks.text(family, "family"))
        with Call(self._connection, "kernels", timeout, cancel) as call:
            method = self._connection.stubs().kernels
            response = call.tried(lambda: call.unary(method, request))
            return Table(records.Kernel, map(records.kernel, response.kernels))

    @checks.named_options
    def explain(
        self,
        m: int,
        n: int,
        k: int,
        *,
        types: str = "f32",
        transpose_a: bool = False,
        transpose_b: bool = False,
        epilogue: bool = False,
        block_scales: bool = False,
        family: str = "",
        device: str = "",
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> Table[records.RankedKernel]:
        """The kernels that take a product: first the one that the server picks, and why.

        types: of A, B and the result, and the compute mode: f16:f16:f16:f32. One alone is that of
            A and B; the others are then those of such a product.
        epilogue: the product has a beta, a bias or an activation.
        block_scales: it has scales of the blocks of fp8 operands.
        """
        asked = bench.types_of(types)
        if ":" not in types:
            asked.ClearField("output")
        request = pb.RankKernelsRequest(
            device=checks.text(device, "device"),
            size=pb.ProductSize(
                m=checks.integer(m, "m", 1),
                n=checks.integer(n, "n", 1),
                k=checks.integer(k, "k", 1),
            ),
            types=asked,
            layout=pb.OperandTransposes(
                transpose_a=checks.flag(transpose_a, "transpose_a"),
                transpose_b=checks.flag(transpose_b, "transpose_b"),
            ),
            epilogue=checks.flag(epilogue, "epilogue"),
            block_scales=checks.flag(block_scales, "block_scales"),
            family=checks.text(family, "family"),
        )
        with Call(self._connection, "explain", timeout, cancel) as call:
            method = self._connection.stubs().rank
            response = call.tried(lambda: call.unary(method, request))
            return Table(records.RankedKernel, map(records.ranked_kernel, response.kernels))

    @checks.named_options
    def traffic(
        self, limit: int = 100, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> Table[records.Traffic]:
        """What is worth tuning of the products that the server has seen, by the time they took.

        Those that left the kernel to the server, and for whose shape its tuning table has no
        entry. limit: at most so many, 1 to 1024.
        """
        request = pb.ListTrafficRequest(limit=checks.integer(limit, "limit", 1, 1024))
        with Call(self._connection, "traffic", timeout, cancel) as call:
            method = self._connection.stubs().traffic
            response = call.tried(lambda: call.unary(method, request))
            return Table(records.Traffic, map(records.traffic, response.entries))

    @checks.named_options
    def reload_tuning(
        self, *, timeout: float | None = None, cancel: Canceller | None = None
    ) -> records.TuningLoad:
        """Has the server read its tuning tables again: later products are chosen for by them.

        FailedPrecondition where it has none, or a file is wrong: then nothing changes.
        """
        with Call(self._connection, "reload_tuning", timeout, cancel) as call:
            method = self._connection.stubs().reload_tuning
            request = pb.ReloadTuningRequest()
            return records.tuning_load(call.tried(lambda: call.unary(method, request)))

    @checks.named_options
    def bench(
        self,
        shapes: Sequence[int | tuple[int, int, int]] = (),
        *,
        suite: str = "",
        kernels: Sequence[str] = (),
        families: Sequence[str] = (),
        types: Sequence[str] = (),
        iterations: int | None = None,
        warmup: int | None = None,
        baseline: bool = True,
        budget: float | None = None,
        device: str = "",
        timeout: float | None = None,
        cancel: Canceller | None = None,
    ) -> bench.Benchmark:
        """Measures kernels on the server's device, without payload.

        shapes: n, or (m, n, k). suite: a named list of shapes.
        kernels, families: names, or patterns with * and ?. Left out: all.
        types: such as "f16" or "f16:f16:f16:f32". Left out: each kernel's first.
        baseline: whether the vendor's kernels are measured beside them.
        budget: seconds for all of it.
        """
        request = bench.request(
            shapes, suite, kernels, families, types, iterations, warmup, baseline, budget, device
        )
        with Call(self._connection, "bench", timeout, cancel) as call:
            return call.tried(lambda: bench.run(call, request), repeatable=False)
