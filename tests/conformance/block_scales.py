"""Products of fp8 matrices with block scales, against float64."""

import itertools

import numpy as np

import client as wire
import oracle
from checks import named_kernels
from client import pb
from elements import FP8, UNDERFLOW, UNIT_ROUNDOFF, from_wire, round_to, to_double, to_wire

BLOCK = 128
KINDS = ("lines", "tiles")


def block_scales(tally, server, rng, quick, backend):
    """Every kernel that takes them, and the server's own choice, with every kind."""
    takers = {kernel.name for kernel in server.kernels() if kernel.block_scales}
    named = [(name, types) for name, types in named_kernels(server) if name in takers]
    rows = [("", types) for types in dict.fromkeys(types for _, types in named)] + named
    for name, combination in rows:
        if combination[0] not in FP8:
            continue
        for kind_a, kind_b in itertools.product(KINDS, KINDS):
            extents = [rng.randint(1, 300 if quick else 1100) for _ in range(3)]
            _one(tally, server, rng, backend, name, combination, extents, (kind_a, kind_b))


def _blocks(extent):
    return -(-extent // BLOCK)


def _expanded(scales, rows, cols):
    """A scale for each element of a rows x cols matrix."""
    for axis, extent in ((0, rows), (1, cols)):
        if scales.shape[axis] != extent:
            scales = np.repeat(scales, BLOCK, axis=axis)
        scales = scales[:extent] if axis == 0 else scales[:, :extent]
    return scales


def _one(tally, server, rng, backend, name, combination, extents, kinds):
    m, n, k = extents
    a_type, b_type, d_type, compute = combination
    draws = np.random.default_rng(rng.getrandbits(32))
    a = round_to(draws.uniform(-4, 4, (m, k)), a_type)
    b = round_to(draws.uniform(-4, 4, (k, n)), b_type)
    of_a = (m if kinds[0] == "lines" else _blocks(m), _blocks(k))
    of_b = (_blocks(k), n if kinds[1] == "lines" else _blocks(n))
    scales = [np.exp2(draws.uniform(-8, -1, shape)).astype(np.float32) for shape in (of_a, of_b)]
    product = pb.Product(alpha=rng.choice([1.0, -0.5]), output_dtype=wire.TYPES[d_type],
                         compute=wire.COMPUTES[compute], transpose_a=rng.random() < 0.5,
                         transpose_b=rng.random() < 0.5,
                         output_layout=wire.LAYOUTS[rng.choice(["row", "col"])])
    product.kernel.name = name
    payload = {}
    for role, elements, dtype in (("a", a.T if product.transpose_a else a, a_type),
                                  ("b", b.T if product.transpose_b else b, b_type),
                                  ("scales_a", scales[0], "f32"), ("scales_b", scales[1], "f32")):
        layout = rng.choice(["row", "col"])
        operand = getattr(product, role)
        if rng.random() < 0.3:
            operand.matrix.id = server.put(elements, dtype, layout).id
            operand.matrix.release = True
        else:
            operand.shape.CopyFrom(wire.shape_of(elements, dtype, layout))
            operand.payload.SetInParent()
            payload[role] = bytes(to_wire(elements, layout))
    answer, = server.multiply([(product, payload)], rng)
    tally.cases += 1
    tally.elements += m * n
    where = f"{name or 'auto'} {combination} {m}x{n}x{k} {kinds[0]} and {kinds[1]}"
    if answer.fault or answer.error is not None:
        tally.failures.append(f"{where}: {answer.fault or answer.error.message}")
        return
    layout = "col" if product.output_layout == wire.LAYOUTS["col"] else "row"
    got = to_double(from_wire(bytes(answer.data), m, n, d_type, layout), d_type)
    left = to_double(a, a_type) * _expanded(scales[0].astype(np.float64), m, k)
    right = to_double(b, b_type) * _expanded(scales[1].astype(np.float64), k, n)
    value = backend.array(product.alpha * (left @ right))
    # Of each block the sum, its scale and their product are rounded besides.
    factor = oracle.accumulation_factor(k, a_type, compute) + 3 * 2.0**-24
    before = backend.array((factor + 4 * 2.0**-24) * abs(product.alpha) *
                           (np.abs(left) @ np.abs(right)))
    size = backend.xp.abs(value)
    tolerance = before + 1.01 * UNIT_ROUNDOFF[d_type] * (size + before) + 2 * UNDERFLOW[d_type]
    ratio, index = oracle.worst_ratio(backend, got, value, tolerance)
    tally.worst_ratio = max(tally.worst_ratio, ratio)
    if ratio > 1:
        tally.failures.append(f"{where}: {ratio:.3g} of the bound at ({index // n}, {index % n})")
