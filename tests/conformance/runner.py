"""Sends problem records to a server and compares every element of every answer."""

import collections
import dataclasses

import numpy as np

import client as wire
import oracle
from cases import describe, draw, fitted, of_product, products, single, sums
from client import pb
from elements import from_wire, round_to, to_double, to_wire

BATCH_JOBS = 24
BATCH_BYTES = 256 << 20
# Of the products of a batch or a group, at most about so many are compared and run alone.
PRODUCTS = 24


@dataclasses.dataclass
class Tally:
    """One line of the report."""
    name: str
    cases: int = 0
    exact: int = 0        # compared without any tolerance
    elements: int = 0
    worst_ratio: float = 0.0  # largest error over its bound; a right answer is at most 1
    worst_case: str = ""
    out_of_order: int = 0     # jobs that ended before one whose header came earlier
    kernels: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failures: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0


class Runner:
    """Owns the resident matrices of the cases under way and deletes them afterwards."""

    def __init__(self, client, backend, rng):
        self._client = client
        self._backend = backend
        self._rng = rng
        self._names = 0
        # The resident operands of a product must lie on one device.
        self._devices = [d.name for d in client.info().devices]
        self._to_delete = []
        self._alone = False

    def run(self, tally, cases):
        """Runs all `cases`, batch by batch, and adds them to `tally`."""
        batch, size = [], 0
        for p in map(fitted, cases):
            batch.append((p, draw(p)))
            size += sum(e.nbytes for e, _ in batch[-1][1].values())
            size += 8 * results(p)
            if len(batch) == BATCH_JOBS or size > BATCH_BYTES:
                self._run_batch(tally, batch)
                batch, size = [], 0
        if batch:
            self._run_batch(tally, batch)
        return tally

    def run_batches(self, tally, cases):
        """As `run`; and each product of a batch or a group must have the bits that it has alone."""
        self._alone = True
        self.run(tally, cases)
        self._alone = False
        return tally

    def _run_batch(self, tally, batch):
        self._to_delete = []
        jobs = [self._product(p, operands) for p, operands in batch]
        streamed = [i for i, (p, _) in enumerate(batch) if not p["unary"]]
        answers = dict(zip(streamed, self._client.multiply([jobs[i] for i in streamed], self._rng)))
        tally.out_of_order += inversions([answers[i].finished for i in streamed])
        for i, (p, _) in enumerate(batch):
            if p["unary"]:
                answers[i] = self._client.multiply_unary(jobs[i][0])
        for i, (p, operands) in enumerate(batch):
            tally.cases += 1
            tally.elements += results(p)
            tally.exact += p["exact"]
            fault = self._check(tally, p, operands, answers[i])
            if fault:
                tally.failures.append(f"{describe(p)}: {fault}")
        for matrix_id in self._to_delete:
            self._client.delete(matrix_id)

    def _product(self, p, operands):
        """The Product message of a record, and the payload that goes with it."""
        product = pb.Product(
            transpose_a=p["trans_a"], transpose_b=p["trans_b"], alpha=p["alpha"], beta=p["beta"],
            activation=wire.ACTIVATIONS[p["activation"]], output_dtype=wire.TYPES[p["d_type"]],
            output_layout=wire.LAYOUTS[p["layout_d"]], compute=wire.COMPUTES[p["ask_compute"]])
        for scale in ("scale_a", "scale_b"):
            if p[scale] != 1:
                setattr(product, scale, p[scale])
        if p["activation"] == "leaky_relu":
            product.leaky_slope = p["slope"]
        if p["kernel"]:
            product.kernel.name = p["kernel"]
        if p["batch"] > 1 or (self._alone and not p["group"]):
            product.batch_count = p["batch"]
        for extent in p["group"]:
            product.group.add(**{"m": p["m"], "n": p["n"], "k": p["k"], p["by"]: extent})
        product.shared_operands.extend(wire.ROLES[role] for role in p["shared"])
        if p["result"] == "both" or (p["result"] == "stream" and self._rng.random() < 0.5):
            product.result.stream = True  # Left out, a result that is not kept is streamed too.
        if p["result"] != "stream":
            product.result.keep.name = self._next_name() if self._rng.random() < 0.5 else ""
            product.result.keep.SetInParent()
        types = {"a": p["a_type"], "b": p["b_type"], "c": p["d_type"], "bias": p["d_type"]}
        layouts = {"a": p["layout_a"], "b": p["layout_b"], "c": p["layout_d"], "bias": "row"}
        device = self._rng.choice(self._devices)
        payloads = {}
        for role, (elements, spec) in operands.items():
            message = getattr(product, role)
            data = self._operand(message, p["source_" + role], elements, spec, types[role],
                                 layouts[role], device)
            if data is not None:
                payloads[role] = data
        return product, payloads

    def _operand(self, message, source, elements, spec, dtype, layout, device):
        """Fills one Operand; returns the bytes to send as chunks, if any."""
        if source in ("payload", "data", "generated"):
            message.shape.CopyFrom(wire.shape_of(elements, dtype, layout))
        if source == "payload":
            message.payload.SetInParent()
            return to_wire(elements, layout)
        if source == "data":
            message.data = to_wire(elements, layout)
        elif source == "generated":
            message.generator.CopyFrom(wire.generator_of(*spec))
        else:
            name = self._next_name() if source == "named" else ""
            ways = 3 if source == "split" else 1
            matrix = self._client.put(elements, dtype, layout, name, ways, self._rng, device)
            if source == "named":
                message.matrix.name = name
            else:
                message.matrix.id = matrix.id
            message.matrix.release = source == "release"
            if source != "release":
                self._to_delete.append(matrix.id)
        return None

    def _next_name(self):
        self._names += 1
        return f"conformance/{self._names}"

    def _check(self, tally, p, operands, answer):
        """What is wrong with an answer, or an empty string."""
        if answer.fault:
            return answer.fault
        if answer.error is not None:
            return f"error {answer.error.code}: {answer.error.message}"
        report = answer.report
        tally.kernels[report.kernel] += 1
        if (report.m, report.n, report.k) != (p["m"], p["n"], p["k"]) or not report.kernel:
            return f"the report says {report.m}x{report.n}x{report.k}, kernel '{report.kernel}'"
        if report.batch_count != p["batch"]:
            return f"the report says a batch of {report.batch_count}"
        if report.group_count != len(p["group"]):
            return f"the report says a group of {report.group_count}"
        if p["kernel"] and report.kernel != p["kernel"]:
            return f"kernel {report.kernel} ran"
        results = [answer.data] if p["result"] != "keep" else []
        if p["result"] != "stream":
            if answer.kept is None:
                return "no MatrixInfo of the kept result"
            results.append(self._fetch(answer.kept))
        elif answer.kept is not None:
            return "a result was kept that nobody asked to keep"
        for data in results:
            fault = self._compare(tally, p, operands, data)
            if fault:
                return fault
        if self._alone:
            fault = self._differs_alone(p, operands, report, results[0])
            if fault:
                return fault
        return "" if p["result"] != "keep" or not answer.data else "a kept result was streamed too"

    def _fetch(self, kept):
        """Downloads a kept matrix, whole or in three ranges, and deletes it."""
        data = bytearray()
        if kept.bytes >= 3 and self._rng.random() < 0.5:
            edges = [0] + sorted(self._rng.sample(range(1, kept.bytes), 2)) + [kept.bytes]
            for begin, end in zip(edges, edges[1:]):
                data += self._client.get(pb.MatrixRef(id=kept.id), begin, end - begin)[1]
            self._client.delete(kept.id)
        else:
            data += self._client.get(pb.MatrixRef(id=kept.id, release=True))[1]
        return data

    def _differs_alone(self, p, operands, report, data):
        """Runs products by themselves, as the report says that they ran together."""
        stack = from_wire(data, *result_shape(p), p["d_type"], p["layout_d"])
        for i in compared(p):
            one, own = single(p, operands, i)
            one.update(result="stream", kernel=report.kernel,
                       **{f"source_{role}": "data" for role in operands})
            product, _ = self._product(one, {role: (e, None) for role, e in own.items()})
            for name, value in report.params.items():
                if value >= 0:  # not the kernel's own choice
                    product.kernel.params[name] = value
            answer = self._client.multiply_unary(product)
            if answer.error is not None:
                return f"product {i} alone: error {answer.error.code}: {answer.error.message}"
            if answer.data != to_wire(of_product(p, "d", stack, i), p["layout_d"]):
                return f"product {i} has other bits than alone, with {report.kernel}"
        return ""

    def _compare(self, tally, p, operands, data):
        try:
            elements = from_wire(data, *result_shape(p), p["d_type"], p["layout_d"])
        except ValueError as error:
            return str(error)
        for i in compared(p):
            one, inputs = single(p, operands, i)
            fault = self._compare_one(tally, one, inputs, of_product(p, "d", elements, i))
            if fault:
                return fault if products(p) == 1 else f"product {i}: {fault}"
        return ""

    def _compare_one(self, tally, p, operands, elements):
        """One product against the oracle."""
        got = to_double(np.ascontiguousarray(elements), p["d_type"])
        a, b = operands["a"], operands["b"]
        inputs = (a.T if p["trans_a"] else a, b.T if p["trans_b"] else b,
                  operands.get("c"), operands.get("bias"))
        if p["exact"]:
            want = to_double(round_to(oracle.exact(p, *inputs), p["d_type"]), p["d_type"])
            wrong = np.flatnonzero(~((got == want) | (np.isnan(got) & np.isnan(want))))
            if wrong.size:
                i, j = divmod(int(wrong[0]), p["n"])
                return (f"{wrong.size} elements are not exact; D[{i},{j}] is {got[i, j]!r}, "
                        f"not {want[i, j]!r}")
            return ""
        value, tolerance = oracle.expected(self._backend, p, *inputs)
        ratio, index = oracle.worst_ratio(self._backend, got, value, tolerance)
        if ratio > tally.worst_ratio:
            tally.worst_ratio, tally.worst_case = ratio, describe(p)
        if not ratio <= 1:
            i, j = divmod(index, p["n"])
            return (f"D[{i},{j}] is {got[i, j]!r}, not {float(value[i, j])!r} "
                    f"within {float(tolerance[i, j]):.3g}")
        return ""


def result_shape(p):
    """Of all products."""
    rows, cols, count = p["m"], p["n"], 1 if sums(p, "d") else products(p)
    return (rows * count, cols) if p["layout_d"] == "row" else (rows, cols * count)


def results(p):
    """Elements of all products."""
    rows, cols = result_shape(p)
    return rows * cols


def compared(p):
    """The products that are looked at: all of a few, else some, the first and the last among
    them. Those of a group without rows or columns have nothing to look at."""
    count = products(p)
    return [i for i in sorted({*range(0, count, max(1, count // PRODUCTS)), count - 1})
            if not (sums(p, "d") and p["group"][i] == 0)]


def inversions(finished):
    """How many jobs ended before one that was opened earlier."""
    count, latest = 0, -1
    for place in finished:
        count += place < latest
        latest = max(latest, place)
    return count
