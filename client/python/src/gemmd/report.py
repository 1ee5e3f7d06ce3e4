"""What the server says of a product that it ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import dtypes
from .contract import pb
from .tables import html_table


def seconds(duration: Any) -> float:
    """A google.protobuf.Duration in seconds."""
    return float(duration.seconds) + float(duration.nanos) * 1e-9


@dataclass(frozen=True)
class Check:
    """What the server's check of a product found."""

    #: "passed", "partial", "unusual", "suspect" or "wrong", as in the contract; "not_checked",
    #: for which gemmctl shows "not checked".
    result: str
    #: The largest residual of a row, as a multiple of its bound: at most 1 where it passed.
    of_bound: float
    #: Rows that the check says nothing about.
    uncovered_rows: int
    #: The product was checked before its activation was applied.
    before_activation: bool
    #: The kernel whose product was replaced by another's.
    failed_kernel: str
    #: Why there was no check.
    not_checked: str


class Report:
    """Which kernel ran, why, and how long each phase took. Times are in seconds."""

    __slots__ = ("_proto",)

    def __init__(self, proto: pb.ProductReport) -> None:
        self._proto = proto

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return parse, (self._proto.SerializeToString(),)

    @property
    def kernel(self) -> str:
        return self._proto.kernel

    @property
    def reason(self) -> str:
        """Why this kernel: the caller's choice, or the rule that picked it."""
        return self._proto.reason

    @property
    def params(self) -> dict[str, int]:
        """The launch parameters that were used, defaults included."""
        return dict(self._proto.params)

    @property
    def device(self) -> str:
        return self._proto.device

    @property
    def m(self) -> int:
        return self._proto.m

    @property
    def n(self) -> int:
        return self._proto.n

    @property
    def k(self) -> int:
        return self._proto.k

    @property
    def batch(self) -> int:
        """How many products the job had. Each was m x n x k."""
        return max(1, self._proto.batch_count)  # 0: a server that knows no batches

    @property
    def group(self) -> int:
        """How many products a group had; 0: it was none. m, n or k is the sum of theirs."""
        return self._proto.group_count

    @property
    def jobs_in_launch(self) -> int:
        """How many small products, of any callers, ran in one launch with this one, itself
        included. Each has an equal part of the kernel's time."""
        return max(1, self._proto.jobs_in_launch)  # 0: a server that launches each by itself

    @property
    def compute(self) -> str:
        """The arithmetic: "f64", "f32", "tf32", "f32x3", "f16" or "s32"."""
        return pb.ComputeMode.Name(self._proto.compute).removeprefix("COMPUTE_MODE_").lower()

    @property
    def dtype(self) -> str:
        """The type of the result, such as "f32"."""
        return dtypes.short_name(self._proto.result_shape.dtype)

    @property
    def tflops(self) -> float:
        """2 m n k / kernel time, in 1e12 per second; 0 where alpha is 0."""
        return self._proto.tflops

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of each phase, by its name in the contract. They overlap."""
        times = self._proto.phases
        return {field.name: seconds(value) for field, value in times.ListFields()}

    @property
    def check(self) -> Check | None:
        """What the server's check of the product found; None where it was not to be checked."""
        if not self._proto.HasField("check"):
            return None
        check = self._proto.check
        name = pb.CheckResult.Name(check.result).removeprefix("CHECK_RESULT_").lower()
        return Check(
            "not_checked" if name == "unspecified" else name,
            check.of_bound,
            check.uncovered_rows,
            check.before_activation,
            check.failed_kernel,
            check.not_checked,
        )

    @property
    def copies(self) -> int:
        """How many resident operands lay on another device."""
        return len(self._proto.copies)

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("kernel", self.kernel),
            ("reason", self.reason),
            ("device", self.device),
            ("m x n x k", f"{self.m} x {self.n} x {self.k}"),
            ("compute", self.compute),
            ("TFLOPS", f"{self.tflops:.4g}"),
        ]
        rows += [(f"{name}", f"{value * 1e3:.3f} ms") for name, value in self.phases.items()]
        if (check := self.check) is not None:
            rows.append(("check", check.not_checked or f"{check.result}, {check.of_bound:.2g}"))
        if self.params:
            rows.append(("params", " ".join(f"{k}={v}" for k, v in sorted(self.params.items()))))
        return rows

    def __repr__(self) -> str:
        return (
            f"<Report {self.kernel} on {self.device}: {self.m} x {self.n} x {self.k}, "
            f"{self.phases.get('kernel', 0) * 1e3:.3f} ms, {self.tflops:.4g} TFLOPS>"
        )

    def _repr_html_(self) -> str:
        return html_table(("", "product"), self._rows())


def parse(data: bytes) -> Report:
    """A report that was pickled, or copied."""
    return Report(pb.ProductReport.FromString(data))
