"""Products in blocks of rows: D has the bits of the whole product, wherever it is cut."""

import numpy as np

import client as wire
from checks import named_kernels
from client import pb
from elements import INTEGERS, round_to, to_wire

INVALID_ARGUMENT, FAILED_PRECONDITION = 3, 9  # of google.rpc.Code


def row_blocks(tally, server, rng, quick):
    """Every kernel with its types, and the server's own choice for each."""
    promised = {kernel.name for kernel in server.kernels() if kernel.row_blocks}
    named = named_kernels(server)
    for name, combination in [("", c) for c in dict.fromkeys(c for _, c in named)] + named:
        m, n, k = (rng.randint(2, 40 if quick else 700) for _ in range(3))
        product, payload = _product(server, rng, name, combination, (m, n, k))
        blocks = [_rows(product, payload, begin, end) for begin, end in _cut(m, rng)]
        whole, *parts = server.multiply([(product, payload)] + blocks, rng)
        for operand in (product.b, product.bias):
            server.delete(operand.matrix.id)
        tally.cases += 1
        tally.exact += 1
        tally.elements += m * n
        fault = _fault(whole, parts, name, promised)
        if fault:
            tally.failures.append(f"{name or 'auto'} {combination} {m}x{n}x{k} in "
                                  f"{len(parts)} blocks: {fault}")


def _product(server, rng, name, combination, extents):
    """A product with all of the epilogue. Its A and C are sent, B and the bias are resident."""
    m, n, k = extents
    a_type, b_type, d_type, compute = combination
    draws = np.random.default_rng(rng.getrandbits(32))

    def drawn(rows, cols, dtype):
        reach = 100 if dtype in INTEGERS else 1
        return round_to(draws.uniform(-reach, reach, (rows, cols)), dtype)

    product = pb.Product(alpha=1.25, beta=0.5, activation=pb.ACTIVATION_GELU,
                         transpose_b=rng.random() < 0.5, output_dtype=wire.TYPES[d_type],
                         compute=wire.COMPUTES[compute])
    if d_type == "s32":
        product.alpha, product.beta, product.activation = 1, 1, pb.ACTIVATION_RELU
    product.kernel.name = name
    payload = {}
    for role, rows, cols, dtype in (("a", m, k, a_type), ("c", m, n, d_type)):
        elements = drawn(rows, cols, dtype)
        getattr(product, role).shape.CopyFrom(wire.shape_of(elements, dtype, "row"))
        getattr(product, role).payload.SetInParent()
        payload[role] = bytes(to_wire(elements, "row"))
    b = drawn(*((n, k) if product.transpose_b else (k, n)), b_type)
    for role, elements, dtype in (("b", b, b_type), ("bias", drawn(1, n, d_type), d_type)):
        getattr(product, role).matrix.id = server.put(elements, dtype, "row").id
    return product, payload


def _cut(m, rng):
    """[begin, end) of up to five blocks of m rows."""
    edges = sorted(rng.sample(range(1, m), rng.randint(1, min(4, m - 1))))
    return list(zip([0] + edges, edges + [m]))


def _rows(product, payload, begin, end):
    """The block's product and payload."""
    block = pb.Product()
    block.CopyFrom(product)
    block.row_block.product_rows = product.a.shape.rows
    part = {}
    for role in ("a", "c"):
        row_bytes = len(payload[role]) // product.a.shape.rows
        getattr(block, role).shape.rows = end - begin
        part[role] = payload[role][begin * row_bytes:end * row_bytes]
    return block, part


def _fault(whole, parts, name, promised):
    for answer in [whole] + parts:
        if answer.fault:
            return answer.fault
    if whole.error is not None:
        return f"the whole product: {whole.error.code} {whole.error.message}"
    kernel = whole.report.kernel
    if kernel not in promised:
        code = INVALID_ARGUMENT if name else FAILED_PRECONDITION
        wrong = [p for p in parts if p.error is None or p.error.code != code]
        return f"{len(wrong)} blocks of {kernel} are not refused with {code}" if wrong else ""
    for part in parts:
        if part.error is not None:
            return f"a block: {part.error.code} {part.error.message}"
        if part.report.kernel != kernel or part.report.params != whole.report.params:
            return f"a block ran {part.report.kernel}, the whole product {kernel}"
    if b"".join(bytes(part.data) for part in parts) != bytes(whole.data):
        return "the bits differ from the whole product's"
    return ""
