"""What the server says of itself, as small records."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

from . import dtypes
from .contract import pb
from .report import seconds
from .tables import Table, html_table, text


class Record:
    """A record that a notebook shows as a table."""

    def _rows(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        return html_table(("", type(self).__name__.lower()), self._rows())


@dataclass(frozen=True)
class Device(Record):
    """A device of the server. Sizes are in bytes."""

    name: str
    model: str
    compute_capability: str
    memory: int
    memory_used: int
    streams: int
    healthy: bool
    unhealthy_reason: str
    estimates: str = ""


@dataclass(frozen=True)
class Limits(Record):
    """The bounds of the server. Sizes are in bytes."""

    max_message_bytes: int
    max_job_bytes: int
    max_admitted_bytes: int
    max_jobs: int
    max_jobs_per_stream: int
    store_bytes: int
    max_matrices: int
    chunk_bytes: int
    benchmark_seconds: float
    benchmark_memory_bytes: int
    #: Products of one request; 0: the server takes no batches.
    max_batch_count: int
    #: The same of `grouped_matmul`; 0: the server takes no groups.
    max_group_count: int
    #: Elements along k of a block that has a scale; 0: the server takes no block scales.
    scale_block: int
    #: Seconds after its last use until a matrix without a name and a `ttl` is deleted; 0: it stays.
    unnamed_ttl: float = 0


@dataclass(frozen=True)
class RunningBenchmark(Record):
    """A benchmark that runs on the server, or waits for one before it to end."""

    #: "" on a server that asks nobody, and for idle tuning.
    caller: str
    device: str
    #: For people, such as "shape 3/125 4096x4096x4096: host_reference".
    subject: str
    #: Seconds since it was asked for.
    age: float
    #: It was cancelled, and ends after the launch under way. Another may be asked for.
    ending: bool


@dataclass(frozen=True)
class Info(Record):
    """The server: what it is, what it has, and what it does now."""

    version: str
    commit: str
    started: datetime
    devices: Table[Device]
    limits: Limits
    jobs: int
    queued: int
    admitted_bytes: int
    matrices: int
    store_used_bytes: int
    benchmark_running: bool
    #: The name that the server knows this client by, and its roles; "" where it asks nobody.
    caller: str
    roles: tuple[str, ...]
    #: The one that runs, then those that wait for it to end.
    benchmarks: tuple[RunningBenchmark, ...] = ()
    #: Which products the server checks of its own accord: "off", "sampled" or "always"; "unknown"
    #: of an older server.
    verify: str = "unknown"
    #: Since the server's start, matrices whose time to live has passed.
    matrices_expired: int = 0

    def _rows(self) -> list[tuple[str, Any]]:
        rows: list[tuple[str, Any]] = [
            ("version", f"{self.version} (commit {self.commit})"),
            ("started", self.started.isoformat(" ", "seconds")),
            ("jobs", f"{self.jobs} of {self.limits.max_jobs}, {self.queued} of them queued"),
            ("store", f"{self.matrices} matrices, {self.store_used_bytes} bytes, "
                      f"{self.matrices_expired} matrices expired so far"),
            ("checks", self.verify),
        ]
        if self.caller:
            rows.append(("caller", f"{self.caller}: {', '.join(self.roles)}"))
        rows += [
            ("bench", f"{b.caller or 'nobody'}, {b.age:.0f} s on {b.device}: {b.subject}")
            for b in self.benchmarks
        ]
        rows += [
            (d.name, f"{d.model}, {d.memory_used} of {d.memory} bytes, "
             + ("healthy" if d.healthy else d.unhealthy_reason))
            for d in self.devices
        ]  # fmt: skip
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{name:<8} {value}" for name, value in self._rows())


@dataclass(frozen=True)
class Kernel(Record):
    """A kernel of the catalogue."""

    name: str
    family: str
    summary: str
    #: The types of A, B and D, and the compute mode, such as ("f16:f16:f16:f32",).
    types: tuple[str, ...]
    #: Launch parameters, as (name, least, most, default).
    params: tuple[tuple[str, int, int, int], ...]
    tile: tuple[int, int, int]
    stages: int
    threads: int
    shared_memory_bytes: int
    deterministic: bool
    #: Whether it takes many products in one request.
    batches: bool
    #: Whether it takes a group by m in one launch; every kernel takes groups.
    groups: bool
    #: Whether it takes block scales of fp8 operands.
    block_scales: bool
    devices: tuple[str, ...]
    unavailable_reason: str


@dataclass(frozen=True)
class RankedKernel(Record):
    """A kernel that takes a product, as the server ranks it."""

    name: str
    family: str
    #: As it would be launched.
    params: dict[str, int]
    #: Why it is the server's choice, or its rank.
    reason: str
    #: The measured time of one launch, where the choice is from the server's tuning table.
    seconds: float | None
    workspace_bytes: int
    deterministic: bool


@dataclass(frozen=True)
class Traffic(Record):
    """Products of one kind that are worth tuning."""

    #: As row-major products: where the result is column-major, m and n have changed places.
    m: int
    n: int
    k: int
    #: The types of A, B and D, and the compute mode, such as "f16:f16:f16:f32".
    types: str
    transpose_a: bool
    transpose_b: bool
    #: They have a beta, a bias or an activation.
    epilogue: bool
    count: int
    #: The time of all their kernels together.
    seconds: float


@dataclass(frozen=True)
class TuningLoad(Record):
    """What the server has of its tuning tables."""

    #: Entries of all machines.
    entries: int
    #: The entries that its devices can use.
    used: int
    #: The used entries that were measured with another driver, CUDA or library.
    other_versions: int
    #: How many kernels cannot be used there, and up to 100 of their names.
    skipped: int
    skipped_kernels: tuple[str, ...]


@dataclass(frozen=True)
class Matrix(Record):
    """A resident matrix."""

    id: str
    name: str
    rows: int
    cols: int
    dtype: str
    column_major: bool
    nbytes: int
    device: str
    created: datetime
    expires: datetime | None
    in_use: int
    owner: str
    shared: bool
    version: int


def _moment(timestamp: Any) -> datetime:
    return datetime.fromtimestamp(timestamp.seconds + timestamp.nanos * 1e-9, timezone.utc)  # noqa: UP017 (3.10)


def types_text(types: pb.KernelTypes) -> str:
    """Such as "f16:f16:f16:f32"."""
    mode = pb.ComputeMode.Name(types.compute).removeprefix("COMPUTE_MODE_").lower()
    names = [dtypes.short_name(number) for number in (types.a, types.b, types.output)]
    return ":".join([*names, mode])


def device(proto: pb.DeviceInfo) -> Device:
    return Device(
        proto.name, proto.model, proto.compute_capability, proto.memory_bytes,
        proto.memory_used_bytes, proto.streams, proto.healthy, proto.unhealthy_reason,
        proto.estimates,
    )  # fmt: skip


def limits(proto: pb.Limits) -> Limits:
    return Limits(
        proto.max_message_bytes, proto.max_job_bytes, proto.max_admitted_bytes, proto.max_jobs,
        proto.max_jobs_per_stream, proto.store_bytes, proto.max_matrices, proto.chunk_bytes,
        seconds(proto.benchmark_limit), proto.benchmark_memory_bytes, proto.max_batch_count,
        proto.max_group_count, proto.scale_block, seconds(proto.unnamed_ttl),
    )  # fmt: skip


def info(proto: pb.GetServerInfoResponse) -> Info:
    load = proto.load
    return Info(
        version=proto.version,
        commit=proto.commit,
        started=_moment(proto.started),
        devices=Table(Device, map(device, proto.devices)),
        limits=limits(proto.limits),
        jobs=load.jobs,
        queued=load.queued,
        admitted_bytes=load.admitted_bytes,
        matrices=load.matrices,
        store_used_bytes=load.store_used_bytes,
        benchmark_running=load.benchmark_running,
        caller=proto.caller.name,
        roles=tuple(proto.caller.roles),
        benchmarks=tuple(
            RunningBenchmark(b.caller, b.device, b.subject, seconds(b.age), b.ending)
            for b in load.benchmarks
        ),
        verify=_verify(proto),
        matrices_expired=load.matrices_expired,
    )


def _verify(proto: pb.GetServerInfoResponse) -> str:
    if proto.verify == pb.VERIFY_UNSPECIFIED:
        return "unknown"
    return pb.Verify.Name(proto.verify).removeprefix("VERIFY_").lower()


def kernel(proto: pb.KernelInfo) -> Kernel:
    return Kernel(
        name=proto.name,
        family=proto.family,
        summary=proto.summary,
        types=tuple(map(types_text, proto.types)),
        params=tuple((p.name, p.min, p.max, p.default_value) for p in proto.params),
        tile=(proto.tile_m, proto.tile_n, proto.tile_k),
        stages=proto.stages,
        threads=proto.threads,
        shared_memory_bytes=proto.shared_memory_bytes,
        deterministic=proto.deterministic,
        batches=proto.batches,
        groups=proto.groups,
        block_scales=proto.block_scales,
        devices=tuple(proto.devices),
        unavailable_reason=proto.unavailable_reason,
    )


def ranked_kernel(proto: pb.RankedKernel) -> RankedKernel:
    return RankedKernel(
        name=proto.name,
        family=proto.family,
        params=dict(proto.params),
        reason=proto.reason,
        seconds=proto.tuned_from.seconds if proto.HasField("tuned_from") else None,
        workspace_bytes=proto.workspace_bytes,
        deterministic=proto.deterministic,
    )


def traffic(proto: pb.TrafficEntry) -> Traffic:
    return Traffic(
        m=proto.size.m,
        n=proto.size.n,
        k=proto.size.k,
        types=types_text(proto.types),
        transpose_a=proto.layout.transpose_a,
        transpose_b=proto.layout.transpose_b,
        epilogue=proto.epilogue,
        count=proto.count,
        seconds=proto.seconds,
    )


def tuning_load(proto: pb.ReloadTuningResponse) -> TuningLoad:
    return TuningLoad(
        proto.entries, proto.used, proto.other_versions, proto.skipped,
        tuple(proto.skipped_kernels),
    )  # fmt: skip


def matrix(proto: pb.MatrixInfo) -> Matrix:
    shape = proto.shape
    return Matrix(
        id=proto.id,
        name=proto.name,
        rows=shape.rows,
        cols=shape.cols,
        dtype=dtypes.short_name(shape.dtype),
        column_major=shape.layout == pb.LAYOUT_COLUMN_MAJOR,
        nbytes=proto.bytes,
        device=proto.device,
        created=_moment(proto.created),
        expires=_moment(proto.expires) if proto.HasField("expires") else None,
        in_use=proto.in_use,
        owner=proto.owner,
        shared=proto.shared,
        version=proto.version,
    )


__all__ = [
    "Device", "Info", "Kernel", "Limits", "Matrix", "Record", "device", "info", "kernel",
    "limits", "matrix", "text", "types_text",
]  # fmt: skip
