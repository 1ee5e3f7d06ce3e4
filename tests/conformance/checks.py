"""Checks that are no products: generated bits, transfers, one stream with many jobs, the end."""

import time

import numpy as np

import client as wire
from cases import COMBINATIONS, record
from client import pb
from elements import WIRE, from_wire, generate, ordered_bits, round_to, to_double, to_wire

_TYPE_NAMES = {number: name for name, number in wire.TYPES.items()}
_COMPUTE_NAMES = {number: name for name, number in wire.COMPUTES.items()}


def named_kernels(server):
    """(name, combination of types) of every kernel that a device of the server runs.

    Combinations with a type that this program has no elements for are left out.
    """
    rows = []
    for kernel in server.kernels():
        if not kernel.devices:
            continue
        for types in kernel.types:
            names = [_TYPE_NAMES.get(t) for t in (types.a, types.b, types.output)]
            if None not in names:
                rows.append((kernel.name, (*names, _COMPUTE_NAMES[types.compute])))
    return rows


def batched_kernels(server):
    """Those of them that take batches, by name, and by the server's choice ("")."""
    takers = {kernel.name for kernel in server.kernels() if kernel.batches}
    rows = [(name, types) for name, types in named_kernels(server) if name in takers]
    return [("", types) for types in dict.fromkeys(types for _, types in rows)] + rows


def grouped_kernels(server):
    """By name those that take groups in one launch, and of each other family one for each
    combination: those are launched product by product, all in the same way. And by the server's
    choice ("")."""
    rows = named_kernels(server)
    info = {kernel.name: kernel for kernel in server.kernels()}
    first = {(info[name].family, types): name for name, types in reversed(rows)}
    named = [(name, types) for name, types in rows
             if info[name].groups or first[info[name].family, types] == name]
    return [("", types) for types in dict.fromkeys(types for _, types in rows)] + named


def generator(tally, server, rng):
    """Generated matrices: uniform bit for bit, normal within one unit in the last place.

    sqrt, log and cos of two libraries may differ in the last bit of a double, which can turn
    over the rounding to the element type, but by no more than one element.
    """
    for dtype in WIRE:
        if dtype == "s32":  # it cannot be generated
            continue
        for distribution, first, second in (("uniform", 0.0, 1.0), ("uniform", -3.5, 2.25),
                                            ("normal", 0.0, 1.0), ("normal", 2.0, 0.125)):
            for layout in ("row", "col"):
                rows, cols = rng.randint(1, 257), rng.randint(1, 257)
                seed = rng.getrandbits(64)
                message = wire.generator_of(seed, distribution, first, second)
                if (first, second) == (0.0, 1.0) and rng.random() < 0.5:
                    getattr(message, distribution).Clear()  # both zero: the default
                    getattr(message, distribution).SetInParent()
                matrix = server.put_generated(rows, cols, dtype, layout, message)
                data = server.get(pb.MatrixRef(id=matrix.id, release=True))[1]
                got = from_wire(data, rows, cols, dtype, layout)
                want = generate(rows, cols, dtype, seed, distribution, first, second)
                distance = np.abs(ordered_bits(np.ascontiguousarray(got), dtype) -
                                  ordered_bits(want, dtype))
                # f64 elements are f32 values, so their neighbours are 2^29 apart.
                unit = 2**29 if dtype == "f64" else 1
                tally.cases += 1
                tally.exact += distribution == "uniform"
                tally.elements += got.size
                allowed = 0 if distribution == "uniform" else unit
                if distance.max() > allowed:
                    tally.failures.append(
                        f"{dtype} {distribution} {rows}x{cols} {layout} seed={seed}: "
                        f"{np.count_nonzero(distance > allowed)} elements differ")


def transfers(tally, server, rng, quick):
    """Uploads whole and split, downloads whole and by ranges, names, listing, deletion."""
    limit = 200 if quick else 3000
    for at, ways in enumerate((1, 2, 4, 7)):
        for dtype in WIRE:
            layout = rng.choice(["row", "col"])
            shape = (rng.randint(8, limit), rng.randint(8, limit))
            # Every bit pattern, NaNs with payload among them, must come back.
            bits = np.random.default_rng(rng.getrandbits(32)).bytes(
                shape[0] * shape[1] * WIRE[dtype].itemsize)
            elements = np.frombuffer(bits, WIRE[dtype]).reshape(shape)
            name = f"conformance/transfer-{at}-{dtype}"
            info = server.put(elements, dtype, layout, name, ways, rng)
            want = to_wire(elements, layout)
            tally.cases += 1
            tally.exact += 1
            tally.elements += elements.size
            begin = rng.randrange(len(want))
            length = rng.randint(1, len(want) - begin)
            problems = [
                (info.bytes != len(want), f"bytes is {info.bytes}, not {len(want)}"),
                (server.get(pb.MatrixRef(name=name))[1] != want, "comes back changed"),
                (server.get(pb.MatrixRef(id=info.id), begin, length)[1] !=
                 want[begin:begin + length], f"range {begin}+{length} differs"),
                (name not in _names(server), "is not listed"),
            ]
            server.delete(info.id)
            problems.append((name in _names(server), "is listed after its deletion"))
            tally.failures += [f"{ways}-way {dtype} {shape} {layout}: {text}"
                               for wrong, text in problems if wrong]


def _names(server):
    answer = server.stub.ListMatrices(pb.ListMatricesRequest(name_prefix="conformance/transfer-"),
                                      timeout=wire.CALL_SECONDS)
    return {m.name for m in answer.matrices}


def one_stream(tally, server, rng, count):
    """Many jobs on one stream: a big one first, small ones after it, some cancelled.

    Each small product is exact. The big one must not hold up the others' answers for ever, nor
    a cancelled one hurt its neighbours.
    """
    jobs, wants, cancelled = [], [], set()
    for i in range(count):
        extent = 700 if i == 0 else 40
        m, n, k = [extent if i == 0 else rng.randint(1, extent) for _ in range(3)]
        p = record(m, n, k, ("f32", "f32", "f32", "f32"), rng.getrandbits(32))
        draws = np.random.default_rng(p["seed"])
        a, b = (round_to(draws.integers(-3, 4, s), "f32") for s in ((m, k), (k, n)))
        product = pb.Product()
        for message, elements in ((product.a, a), (product.b, b)):
            message.shape.CopyFrom(wire.shape_of(elements, "f32", "row"))
            message.payload.SetInParent()
        if 0 < i and rng.random() < 0.1:
            cancelled.add(i)
        jobs.append((product, {"a": to_wire(a, "row"), "b": to_wire(b, "row")}))
        wants.append(to_double(a, "f32") @ to_double(b, "f32"))
    answers = server.multiply(jobs, rng, cancelled)
    latest = -1
    for i, (answer, want) in enumerate(zip(answers, wants, strict=True)):
        tally.cases += 1
        tally.exact += 1
        tally.elements += want.size
        tally.out_of_order += answer.finished < latest
        latest = max(latest, answer.finished)
        if answer.fault:
            tally.failures.append(f"job {i + 1}: {answer.fault}")
        elif answer.error is not None:
            if i not in cancelled or answer.error.code != 1:  # CANCELLED
                tally.failures.append(f"job {i + 1}: {answer.error.code} {answer.error.message}")
        elif not np.array_equal(from_wire(answer.data, *want.shape, "f32", "row"), want):
            tally.failures.append(f"job {i + 1}: the product is wrong")


def ranking(tally, server, rng, count):
    """A product without a kernel of its own gets the first of the ranking, by the same rule."""
    for _ in range(count):
        combination = rng.choice(COMBINATIONS)
        m, n, k = (rng.randint(1, 64) for _ in range(3))
        ranked = server.rank(m, n, k, combination)
        product = pb.Product(output_dtype=wire.TYPES[combination[2]],
                             compute=wire.COMPUTES[combination[3]])
        for operand, rows, cols, dtype in ((product.a, m, k, combination[0]),
                                           (product.b, k, n, combination[1])):
            operand.shape.rows, operand.shape.cols = rows, cols
            operand.shape.dtype = wire.TYPES[dtype]
            operand.generator.uniform.SetInParent()
        report = server.stub.MultiplyUnary(pb.MultiplyUnaryRequest(product=product),
                                           timeout=wire.CALL_SECONDS).report
        tally.cases += 1
        tally.exact += 1
        names = [kernel.name for kernel in ranked.kernels]
        if report.kernel != names[0] or report.rule != ranked.rule or len(set(names)) < len(names):
            tally.failures.append(f"{m}x{n}x{k} {combination}: {report.kernel} by {report.rule}, "
                                  f"but ranked by {ranked.rule}: {', '.join(names)}")


def traffic(tally, server, count):
    """Each product that no table has is there at once, and counted; one with a kernel is not."""
    def run(m, kernel=""):
        product = pb.Product()
        product.kernel.name = kernel
        for operand, rows, cols in ((product.a, m, 61), (product.b, 61, 59)):
            operand.shape.rows, operand.shape.cols = rows, cols
            operand.shape.dtype = pb.DATA_TYPE_F32
            operand.generator.uniform.SetInParent()
        return server.stub.MultiplyUnary(pb.MultiplyUnaryRequest(product=product),
                                         timeout=wire.CALL_SECONDS).report

    def seen(m):
        return sum(entry.count for entry in server.traffic()
                   if (entry.size.m, entry.size.n, entry.size.k) == (m, 59, 61)
                   and entry.types.a == pb.DATA_TYPE_F32 and not entry.epilogue)

    for m in range(1, count + 1):
        before = seen(m)
        report = run(m)
        run(m, report.kernel)
        known = (report.rule == pb.CHOICE_RULE_TABLE_EXACT
                 and not report.tuned_from.other_versions)
        tally.cases += 1
        tally.exact += 1
        if seen(m) != before + (0 if known else 1):
            tally.failures.append(f"{m}x59x61 by {report.rule}: seen {before} times, then "
                                  f"{seen(m)}")


def nothing_left(tally, server, matrices_before):
    """The server's load is back where it was."""
    for _ in range(50):
        load = server.info().load
        if not (load.jobs or load.admitted_bytes or load.matrices != matrices_before):
            return
        time.sleep(0.1)
    tally.failures.append(f"jobs {load.jobs}, admitted bytes {load.admitted_bytes}, matrices "
                          f"{load.matrices} (before: {matrices_before})")
