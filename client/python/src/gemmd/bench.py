"""Benchmarks of the server's kernels. The only place that knows their messages."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from . import checks, dtypes
from .call import Call
from .contract import pb
from .errors import InvalidArgument
from .records import Record, types_text
from .report import seconds
from .tables import Table, html_table

_MODES = {"f64", "f32", "tf32", "f32x3", "f16", "s32"}


@dataclass(frozen=True)
class Row(Record):
    """One kernel on one shape. Times are in seconds; None where it was not measured."""

    m: int
    n: int
    k: int
    kernel: str
    family: str
    types: str
    params: str
    #: Whether it is a kernel of the vendor's, which the others are compared with.
    baseline: bool
    median: float | None
    fastest: float | None
    slowest: float | None
    tflops: float | None
    #: TFLOPS divided by those of the vendor's kernel.
    of_vendor: float | None
    #: The largest error divided by its bound. Above 1: the product is wrong.
    error_of_bound: float | None
    note: str


class Benchmark:
    """What a benchmark found: `rows`, and `metadata` of the device to compare them by."""

    def __init__(self) -> None:
        self.device = ""
        self.version = ""
        self.vendor = ""
        self.metadata: dict[str, str] = {}
        self.rows: Table[Row] = Table(Row, ())
        #: Jobs that ran beside it and disturbed the figures.
        self.jobs = 0
        self.elapsed = 0.0

    def dataframe(self) -> Any:
        """The rows as a pandas.DataFrame. Needs pandas."""
        return self.rows.dataframe()

    def __repr__(self) -> str:
        return f"{self.device}, server {self.version}, beside {self.vendor}\n{self.rows!r}"

    def _repr_html_(self) -> str:
        facts = html_table(("", "benchmark"), [("device", self.device), *self.metadata.items()])
        return facts + self.rows._repr_html_()


def types_of(text: str) -> pb.KernelTypes:
    """ "f16", or "A:B:D:mode" where a part may be empty: any."""
    parts = checks.text(text, "types").split(":")
    if len(parts) not in (1, 4):
        raise InvalidArgument(f"types has {text!r}; it must be like f16 or f16:f16:f16:f32")
    types = pb.KernelTypes()
    for name, part in zip(("a", "b", "output"), parts * 3 if len(parts) == 1 else parts):
        if part:
            setattr(types, name, dtypes.parse(part, "types"))
    if len(parts) == 4 and parts[3]:
        if parts[3] not in _MODES:
            raise InvalidArgument(
                f"types has the mode {parts[3]!r}; it must be one of {', '.join(sorted(_MODES))}"
            )
        types.compute = pb.ComputeMode.Value("COMPUTE_MODE_" + parts[3].upper())  # type: ignore[assignment]
    return types


def request(
    shapes: Sequence[int | tuple[int, int, int]],
    suite: str,
    kernels: Sequence[str],
    families: Sequence[str],
    types: Sequence[str],
    iterations: int | None,
    warmup: int | None,
    baseline: bool,
    budget: float | None,
    device: str,
) -> pb.BenchmarkRequest:
    message = pb.BenchmarkRequest(
        device=checks.text(device, "device"),
        suite=checks.text(suite, "suite"),
        kernels=checks.texts(kernels, "kernels"),
        families=checks.texts(families, "families"),
        baselines=checks.flag(baseline, "baseline"),
    )
    for place, shape in enumerate(checks.sequence(shapes, "shapes", "n or (m, n, k)")):
        m, n, k = _extents(shape, f"shapes[{place}]")
        message.shapes.add(m=m, n=n, k=k)
    message.types.extend(map(types_of, checks.texts(types, "types")))
    if iterations is not None:
        message.iterations = checks.integer(iterations, "iterations", 1, 2**31 - 1)
    if warmup is not None:
        message.warmup = checks.integer(warmup, "warmup", 0, 2**31 - 1)
    if budget is not None:
        message.budget.FromMicroseconds(checks.microseconds(budget, "budget"))
    return message


def _extents(shape: int | tuple[int, int, int], field: str) -> list[int]:
    try:
        given: Any = [operator.index(shape)] * 3  # type: ignore[arg-type]
    except TypeError:
        given = shape
    return checks.sizes(given, field, ("m", "n", "k"))


def _row(size: pb.ProductSize, row: pb.BenchmarkRow) -> Row:
    measured = row.measurement if row.HasField("measurement") else None

    def of(name: str) -> float | None:
        return float(getattr(measured, name)) if measured is not None else None

    has_vendor = measured is not None and measured.HasField("relative_to_vendor")
    return Row(
        m=size.m,
        n=size.n,
        k=size.k,
        kernel=row.kernel,
        family=row.family,
        types=types_text(row.types),
        params=row.params,
        baseline=row.baseline,
        median=of("median_seconds"),
        fastest=of("fastest_seconds"),
        slowest=of("slowest_seconds"),
        tflops=of("tflops"),
        of_vendor=of("relative_to_vendor") if has_vendor else None,
        error_of_bound=of("max_error_over_bound"),
        note=row.note,
    )


def run(call: Call, message: pb.BenchmarkRequest) -> Benchmark:
    """Runs the benchmark to its end."""
    found = Benchmark()
    sizes: Sequence[pb.ProductSize] = ()
    rows: list[Row] = []
    rpc = call.begin(call.connection.stubs().benchmark, message)
    try:
        for response in rpc:
            call.moved()
            if response.HasField("header"):
                header = response.header
                sizes = header.shapes
                found.device, found.version, found.vendor = (
                    header.device, header.version, header.vendor,
                )  # fmt: skip
                found.metadata = {entry.key: entry.value for entry in header.metadata}
            elif response.HasField("rows"):
                size = sizes[response.rows.shape_index]
                rows += [_row(size, row) for row in response.rows.rows]
            elif response.HasField("end"):
                found.jobs = response.end.concurrent_jobs
                found.elapsed = seconds(response.end.elapsed)
    except grpc.RpcError as error:
        raise call.explain(error) from None
    found.rows = Table(Row, rows)
    return found
