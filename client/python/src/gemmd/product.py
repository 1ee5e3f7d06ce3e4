"""A product as the caller describes it, as the contract's message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from . import checks, dtypes, operands, results, wire
from .contract import MESSAGE_OVERHEAD_BYTES, pb
from .errors import InvalidArgument, InvalidType, Unimplemented
from .handle import Handle, Owner, TransposedHandle
from .operands import Buffer, HostMatrix, Shape
from .report import Report

ROLES = {
    "a": pb.OPERAND_ROLE_A,
    "b": pb.OPERAND_ROLE_B,
    "c": pb.OPERAND_ROLE_C,
    "bias": pb.OPERAND_ROLE_BIAS,
    "scales_a": pb.OPERAND_ROLE_SCALES_A,
    "scales_b": pb.OPERAND_ROLE_SCALES_B,
}
FIELDS = {
    "a": pb.Product.A_FIELD_NUMBER,
    "b": pb.Product.B_FIELD_NUMBER,
    "c": pb.Product.C_FIELD_NUMBER,
    "bias": pb.Product.BIAS_FIELD_NUMBER,
    "scales_a": pb.Product.SCALES_A_FIELD_NUMBER,
    "scales_b": pb.Product.SCALES_B_FIELD_NUMBER,
}
_ACTIVATIONS = {
    "none": pb.ACTIVATION_NONE,
    "relu": pb.ACTIVATION_RELU,
    "gelu": pb.ACTIVATION_GELU,
    "leaky_relu": pb.ACTIVATION_LEAKY_RELU,
}
_COMPUTE = {
    "f64": pb.COMPUTE_MODE_F64,
    "f32": pb.COMPUTE_MODE_F32,
    "tf32": pb.COMPUTE_MODE_TF32,
    "f16": pb.COMPUTE_MODE_F16,
    "f32x3": pb.COMPUTE_MODE_F32X3,
    "s32": pb.COMPUTE_MODE_S32,
}
_VERIFY = {
    "off": pb.VERIFY_OFF,
    "sampled": pb.VERIFY_SAMPLED,
    "always": pb.VERIFY_ALWAYS,
}
#: The result's type where it is not that of a.
_RESULTS = {
    pb.DATA_TYPE_F8E4M3: pb.DATA_TYPE_F16,
    pb.DATA_TYPE_F8E5M2: pb.DATA_TYPE_F16,
    pb.DATA_TYPE_S8: pb.DATA_TYPE_S32,
}
_SHORT_FLOATS = (pb.DATA_TYPE_F16, pb.DATA_TYPE_BF16, pb.DATA_TYPE_F32)
#: The types that it may have where not that of a alone.
_OUTPUTS = {
    pb.DATA_TYPE_F16: (pb.DATA_TYPE_F16, pb.DATA_TYPE_F32),
    pb.DATA_TYPE_BF16: (pb.DATA_TYPE_BF16, pb.DATA_TYPE_F32),
    pb.DATA_TYPE_F8E4M3: _SHORT_FLOATS,
    pb.DATA_TYPE_F8E5M2: _SHORT_FLOATS,
    pb.DATA_TYPE_S8: (pb.DATA_TYPE_S32, *_SHORT_FLOATS),
}


@dataclass
class Options:
    """What a product may have beside its operands; `Client.matmul` explains them."""

    out: Any = None
    c: Any = None
    bias: Any = None
    alpha: float = 1.0
    beta: float | None = None
    transpose_a: bool = False
    transpose_b: bool = False
    activation: str | None = None
    leaky_slope: float | None = None
    scale_a: float | None = None
    scale_b: float | None = None
    scales_a: Any = None
    scales_b: Any = None
    dtype: Any = None
    compute: str | None = None
    kernel: str | None = None
    family: str | None = None
    params: Mapping[str, int] | None = None
    verify: str | None = None
    #: Not of the product: whether its report is to be returned beside the result.
    return_report: bool = False


OPTION_NAMES = tuple(one.name for one in fields(Options))


class Stack(Protocol):
    """Many products in one, whose matrices are stacked: a batch or a group."""

    @property
    def layout(self) -> int:
        """The order of the result, and of c."""
        ...

    def layouts(self, options: Options) -> tuple[int, int]:
        """The orders of a and b."""
        ...

    def of_one(self, shape: Shape, name: str) -> Shape:
        """What `make` multiplies of an operand: one product's part, or all of it."""
        ...

    def times(self, name: str) -> int:
        """How many such matrices an addend has, or the result ("d")."""
        ...

    def write(self, proto: pb.Product, limits: Any, result: Shape, inner: int) -> None:
        """Says in `proto` what is stacked; `result` and `inner` are what was multiplied."""
        ...


@dataclass
class Plan:
    """A product with everything that can be checked here checked."""

    #: Without elements.
    proto: pb.Product
    #: The operands to send, by their names.
    sent: list[tuple[str, HostMatrix]]
    handles: list[Handle]
    shape: Shape
    out: Any = None
    #: "numpy" or "torch", and the torch device where it is not the host.
    kind: str = "numpy"
    device: Any = None
    #: An attempt over all channels was refused.
    one_stream: bool = False
    #: Makes the caller's result of the server's, if the two differ.
    ending: Callable[[Any], Any] | None = None
    return_report: bool = False
    payload_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.payload_bytes = sum([matrix.nbytes for _, matrix in self.sent])

    @property
    def fields_bytes(self) -> int:
        """The most that the product has beside elements: of a group three numbers for each."""
        return MESSAGE_OVERHEAD_BYTES + 35 * len(self.proto.group)

    def operand(self, name: str) -> pb.Operand:
        """The message of an operand."""
        operand: pb.Operand = getattr(self.proto, name)
        return operand

    def with_data(self) -> list[Buffer]:
        """The pieces of the serialized product, with the elements of what is sent."""
        data = [(FIELDS[name], [matrix.piece(0, matrix.nbytes)]) for name, matrix in self.sent]
        return wire.product(self.proto.SerializeToString(), data)

    def without_data(self) -> list[Buffer]:
        """The serialized product, where the elements of what is sent go in other messages."""
        return [self.proto.SerializeToString()]

    def target(self) -> results.Target:
        sent = [matrix for _, matrix in self.sent]
        return results.Target(self.shape, self.kind, self.out, self.device, sent)

    def result(self, target: results.Target, report: Report) -> Any:
        """What the caller gets, once the target's memory is full."""
        result = target.finish()
        if self.ending is not None:
            result = self.ending(result)
        return (result, report) if self.return_report else result


def _choice(value: Any, table: Mapping[str, int], name: str) -> Any:
    return table[checks.choice(value, table, name)]


class _Builder:
    """Takes the operands one by one."""

    def __init__(self, client: Owner) -> None:
        self.client = client
        self.proto = pb.Product()
        self.sent: list[tuple[str, HostMatrix]] = []
        self.handles: list[Handle] = []

    def operand(self, value: Any, name: str, layout: int | None = None) -> tuple[Shape, bool]:
        """Its shape as stored, and whether it is a transposed handle."""
        transposed = isinstance(value, TransposedHandle)
        handle = value.T if transposed else value
        if isinstance(handle, Handle):
            handle._check(self.client)
            getattr(self.proto, name).matrix.CopyFrom(handle._ref)
            if not handle.id:  # its shape is the caller's word: the server is to check it
                handle._matrix.write(getattr(self.proto, name).shape)
            self.handles.append(handle)
            return handle._matrix, transposed
        matrix = operands.take(value, name, layout=layout, bias=name == "bias")
        matrix.shape.write(getattr(self.proto, name).shape)
        self.sent.append((name, matrix))
        return matrix.shape, False

    def scalars(self, options: Options) -> None:
        proto = self.proto
        alpha = checks.finite(options.alpha, "alpha")
        if alpha != 1:
            proto.alpha = alpha
        for name in ("scale_a", "scale_b", "leaky_slope"):
            value = getattr(options, name)
            if value is not None:
                setattr(proto, name, checks.finite(value, name))
        if options.activation is not None:
            proto.activation = _choice(options.activation, _ACTIVATIONS, "activation")
        if options.compute is not None:
            proto.compute = _choice(options.compute, _COMPUTE, "compute")
        if options.verify is not None:
            proto.verify = _choice(options.verify, _VERIFY, "verify")
        self._kernel(options)

    def _kernel(self, options: Options) -> None:
        if options.kernel is not None and options.family is not None:
            raise InvalidArgument(
                f"kernel is {options.kernel!r} and family is {options.family!r}; "
                "at most one of them may be given",
                field="kernel",
            )
        if options.kernel is not None:
            self.proto.kernel.name = checks.text(options.kernel, "kernel")
        if options.family is not None:
            self.proto.kernel.family = checks.text(options.family, "family")
        if options.params is not None:
            self.proto.kernel.params.update(checks.parameters(options.params, "params"))

    def addends(self, options: Options, shape: Shape, stack: Stack | None) -> Shape:
        """c and the bias against one product's result, whose order follows c's."""
        beta = checks.finite(1.0 if options.beta is None else options.beta, "beta")
        if options.c is None:
            if options.beta is not None and beta != 0:
                raise InvalidArgument(f"beta is {beta} and c is not given", field="beta")
        elif beta != 0:
            self.proto.beta = beta
            wanted = None if options.out is None else results.layout_of(options.out)
            if stack is not None:
                wanted = stack.layout
            c, transposed = self.operand(options.c, "c", wanted)
            if transposed:
                raise InvalidArgument("c is a transposed handle; it must be as stored", field="c")
            if stack is not None and c.layout != stack.layout:
                raise InvalidArgument(f"c is {c}; it must be in the result's order", field="c")
            self._same(c, "c", _times(stack, "c") * shape.rows, shape.cols, shape.dtype)
            shape = Shape(shape.rows, shape.cols, shape.dtype, c.layout)
        if options.bias is not None:
            bias, transposed = self.operand(options.bias, "bias")
            if transposed:
                raise InvalidArgument(
                    "bias is a transposed handle; it must be as stored", field="bias"
                )
            self._same(bias, "bias", _times(stack, "bias"), shape.cols, shape.dtype)
        return shape

    def scales(self, options: Options, shape: Shape, inner: int, limits: Any) -> None:
        """Of the blocks of a and b, whose product is `shape`."""
        given = {"scales_a": options.scales_a, "scales_b": options.scales_b}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) == 2:
            return
        if missing:
            raise InvalidArgument(
                f"{missing[0]} is not given; a product has scales of both or neither",
                field=missing[0],
            )
        block = limits.scale_block
        if block == 0:  # such a server would leave them out
            raise Unimplemented(
                "scales_a is given; the server takes no block scales", field="scales_a"
            )
        along_k = -(-inner // block)
        for name, outer in (("scales_a", shape.rows), ("scales_b", shape.cols)):
            scales, transposed = self.operand(given[name], name)
            if transposed:
                raise InvalidArgument(
                    f"{name} is a transposed handle; it must be as stored", field=name
                )
            fit = [(outer, along_k), (-(-outer // block), along_k)]
            if name == "scales_b":
                fit = [(cols, rows) for rows, cols in fit]
            if (scales.rows, scales.cols) not in fit:
                raise InvalidArgument(
                    f"{name} has shape {(scales.rows, scales.cols)}; it must have {fit[0]}, or "
                    f"{fit[1]} for blocks of {block} x {block}",
                    field=name,
                )
            if scales.dtype != pb.DATA_TYPE_F32:
                raise InvalidType(
                    f"{name} has dtype {dtypes.short_name(scales.dtype)}; it must have f32",
                    field=name,
                )

    @staticmethod
    def _same(shape: Shape, name: str, rows: int, cols: int, dtype: int) -> None:
        if (shape.rows, shape.cols) != (rows, cols):
            raise InvalidArgument(
                f"{name} has shape {(shape.rows, shape.cols)}; it must have {(rows, cols)}",
                field=name,
            )
        if shape.dtype != dtype:
            raise InvalidType(
                f"{name} has dtype {dtypes.short_name(shape.dtype)}; "
                f"it must have the result's, {dtypes.short_name(dtype)}: give {name}.astype(...)",
                field=name,
            )


def natural(operand: int) -> int:
    """The type of a product's result, by that of a, where nothing else is asked for."""
    return _RESULTS.get(operand, operand)  # type: ignore[call-overload, no-any-return]


def outputs(operand: int) -> tuple[int, ...]:
    """The types of results that the server has of such operands."""
    return _OUTPUTS.get(operand, (operand,))  # type: ignore[call-overload, no-any-return]


def _result_shape(a: Shape, b: Shape, ta: bool, tb: bool, options: Options) -> Shape:
    rows, inner_a = (a.cols, a.rows) if ta else (a.rows, a.cols)
    inner_b, cols = (b.cols, b.rows) if tb else (b.rows, b.cols)
    if inner_a != inner_b:
        raise InvalidArgument(
            f"op(a) has {inner_a} columns and op(b) has {inner_b} rows; they must be the same",
            field="b",
        )
    if options.dtype is not None:
        dtype = dtypes.parse(options.dtype, "dtype")
    elif options.out is not None:
        dtype = results.dtype_of(options.out) or natural(a.dtype)
    else:
        dtype = natural(a.dtype)
    layout = None if options.out is None else results.layout_of(options.out)
    return Shape(rows, cols, dtype, layout or pb.LAYOUT_ROW_MAJOR)


def _times(stack: Stack | None, name: str) -> int:
    """How many matrices an operand has."""
    return 1 if stack is None else stack.times(name)


def write_shared(proto: pb.Product, shared: frozenset[str]) -> None:
    """Names the operands that all products have in common."""
    for name in sorted(shared):
        if proto.HasField(name):
            proto.shared_operands.append(ROLES[name])


def make(client: Owner, a: Any, b: Any, options: Options, stack: Stack | None = None) -> Plan:
    """The plan of a product, or of many whose matrices are stacked. Errors name the operand or
    the option."""
    builder = _Builder(client)
    options = replace(
        options,
        transpose_a=checks.flag(options.transpose_a, "transpose_a"),
        transpose_b=checks.flag(options.transpose_b, "transpose_b"),
    )
    if options.out is not None:
        results.check_out(options.out)
    layouts = (None, None) if stack is None else stack.layouts(options)
    shape_a, turned_a = builder.operand(a, "a", layouts[0])
    shape_b, turned_b = builder.operand(b, "b", layouts[1])
    if stack is not None:
        shape_a, shape_b = stack.of_one(shape_a, "a"), stack.of_one(shape_b, "b")
    transpose_a = options.transpose_a != turned_a
    transpose_b = options.transpose_b != turned_b
    builder.scalars(options)
    shape = _result_shape(shape_a, shape_b, transpose_a, transpose_b, options)
    shape = builder.addends(options, shape, stack)
    limits = client._connection.server.limits
    inner = shape_a.rows if transpose_a else shape_a.cols
    builder.scales(options, shape, inner, limits)
    if stack is not None:
        stack.write(builder.proto, limits, shape, inner)
        shape = shape._replace(rows=stack.times("d") * shape.rows, layout=stack.layout)
    proto = builder.proto
    proto.transpose_a = transpose_a
    proto.transpose_b = transpose_b
    if shape.dtype != shape_a.dtype or shape_a.dtype in _RESULTS:
        proto.output_dtype = shape.dtype  # type: ignore[assignment]
    proto.output_layout = shape.layout  # type: ignore[assignment]
    plan = Plan(proto, builder.sent, builder.handles, shape, options.out)
    plan.return_report = checks.flag(options.return_report, "return_report")
    for _, matrix in builder.sent:
        if matrix.kind == "torch":
            plan.kind = "torch"
            plan.device = matrix.owner.device
            break
    return plan
