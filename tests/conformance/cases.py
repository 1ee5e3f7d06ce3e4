"""The problems that the conformance run sends, as plain records.

A record names shapes, types, layouts, scalars, epilogue, sources and where the result goes;
`draw` adds the operands. Everything follows from the record and its seed.
"""

import itertools
import math

import numpy as np

from elements import FP8, INTEGERS, generate, round_to, special

# (type of A, of B, of D, arithmetic).
COMBINATIONS = [
    ("f64", "f64", "f64", "f64"),
    ("f32", "f32", "f32", "f32"),
    ("f32", "f32", "f32", "tf32"),
    ("f32", "f32", "f32", "f32x3"),
    ("f16", "f16", "f16", "f32"),
    ("f16", "f16", "f16", "f16"),
    ("bf16", "bf16", "bf16", "f32"),
    ("e4m3", "e4m3", "f16", "f32"),
    ("e5m2", "e5m2", "f32", "f32"),
    ("e4m3", "e5m2", "bf16", "f32"),
    ("s8", "s8", "s32", "s32"),
    ("s8", "s8", "f32", "s32"),
    ("s8", "s8", "bf16", "s32"),
]
SCALES = [1.0, 0.0125, 3.0]
EXACT_SCALES = [1.0, 0.5]
STREAM_SOURCES = ["payload", "resident", "named", "release", "generated", "split"]
UNARY_SOURCES = ["data", "resident", "named", "release", "generated"]
RESULTS = ["stream", "keep", "both"]
ACTIVATIONS = ["none", "relu", "gelu", "leaky_relu"]
SCALARS = [(1.0, 0.0), (0.5, 0.0), (-1.25, 0.75), (1.0, 1.0), (2.0, -0.5)]
# Scalars, slopes and activations under which integers stay exact.
EXACT_SCALARS = [(1.0, 0.0), (-1.0, 0.0), (2.0, 1.0), (1.0, -1.0)]
EXACT_ACTIVATIONS = ["none", "relu", "leaky_relu"]


def record(m, n, k, combination, seed, **fields):
    a_type, b_type, d_type, compute = combination
    base = dict(m=m, n=n, k=k, a_type=a_type, b_type=b_type, d_type=d_type, compute=compute,
                ask_compute=compute, trans_a=False, trans_b=False, layout_a="row", layout_b="row",
                layout_d="row", alpha=1.0, beta=0.0, scale_a=1.0, scale_b=1.0, bias=False, activation="none", slope=0.01,
                source_a="payload", source_b="payload", source_c="payload",
                source_bias="payload", result="stream", unary=False, kernel="", exact=False,
                special="", batch=1, group=(), by="", shared=(), seed=seed)
    base.update(fields)
    return base


def describe(p):
    """One line that tells a reader which problem this was."""
    def operand(name):
        t = "'" if p["trans_" + name] else ""
        return f"{name.upper()}{t}:{p['layout_' + name]}:{p['source_' + name]}"
    parts = [f"{p['m']}x{p['n']}x{p['k']}", f"{p['a_type']}*{p['b_type']}->{p['d_type']}",
             f"compute={p['compute']}", operand("a"), operand("b"), f"D:{p['layout_d']}",
             f"alpha={p['alpha']:g}", f"beta={p['beta']:g}",
             f"scales={p['scale_a']:g},{p['scale_b']:g}", p["activation"], p["result"]]
    parts += ["bias"] if p["bias"] else []
    parts += ["unary"] if p["unary"] else []
    parts += ["exact"] if p["exact"] else []
    parts += [f"special={p['special']}"] if p["special"] else []
    parts += [f"kernel={p['kernel']}"] if p["kernel"] else []
    parts += [f"batch={p['batch']} shared={','.join(p['shared'])}"] if p["batch"] > 1 else []
    if p["group"]:
        extents = ",".join(map(str, p["group"][:20])) + ("..." if len(p["group"]) > 20 else "")
        parts.append(f"group of {len(p['group'])} by {p['by']}={extents} "
                     f"shared={','.join(p['shared'])}")
    return " ".join(parts) + f" seed={p['seed']}"


def fitted(p):
    """The record with what its types have: an s32 D takes factors of 0 and 1 and no activation but
    the relu, and s32 matrices cannot be generated."""
    if p["d_type"] != "s32":
        return p
    p = dict(p, scale_a=1.0, scale_b=1.0)
    for factor in ("alpha", "beta"):
        p[factor] = p[factor] if np.float32(p[factor]) == 0 else 1.0
    p["activation"] = p["activation"] if p["activation"] == "none" else "relu"
    for source in ("source_c", "source_bias"):
        p[source] = "resident" if p[source] == "generated" else p[source]
    return p


def vary(p, rng):
    """Draws every choice of `p` that is not its shape or its types."""
    p["exact"] = rng.random() < 0.4
    elements = products(p) * (p["m"] * p["n"] + p["k"] * (p["m"] + p["n"]))
    p["unary"] = rng.random() < 0.25 and elements < 200_000
    sources = UNARY_SOURCES if p["unary"] else STREAM_SOURCES
    if p["exact"]:
        sources = [s for s in sources if s != "generated"]
    for role in ("a", "b", "c", "bias"):
        p["source_" + role] = rng.choice(sources)
    p["alpha"], p["beta"] = rng.choice(EXACT_SCALARS if p["exact"] else SCALARS)
    if p["a_type"] in FP8:
        for scale in ("scale_a", "scale_b"):
            p[scale] = rng.choice(EXACT_SCALES if p["exact"] else SCALES)
    p["activation"] = rng.choice(EXACT_ACTIVATIONS if p["exact"] else ACTIVATIONS)
    p["slope"] = rng.choice([0.25, 0.5] if p["exact"] else [0.01, 0.2])
    p["bias"] = rng.random() < 0.4
    p["result"] = rng.choice(RESULTS)
    for flag in ("trans_a", "trans_b"):
        p[flag] = rng.random() < 0.5
    for layout in ("layout_a", "layout_b", "layout_d"):
        p[layout] = rng.choice(["row", "col"])
    natural = {"f64": "f64", "s8": "s32"}.get(p["a_type"], "f32")
    if p["compute"] == natural and rng.random() < 0.5:
        p["ask_compute"] = "default"
    return p


def layout_of(p, role):
    return {"a": p["layout_a"], "b": p["layout_b"], "bias": "row"}.get(role, p["layout_d"])


# The dimensions of each matrix.
DIMENSIONS = {"a": "mk", "b": "kn", "c": "mn", "d": "mn", "bias": "n"}


def products(p):
    """How many there are in a batch or a group."""
    return len(p["group"]) or p["batch"]


def sums(p, role):
    """Whether the matrix has the dimension in which the products of a group differ."""
    return bool(p["group"]) and p["by"] in DIMENSIONS[role]


def stacked(p, role, shape):
    """The shape of what all products have: one matrix after the other in its lines.

    Of a group, m, n and k of `p` have the sum of the extents already.
    """
    if role in p["shared"] or sums(p, role):
        return shape
    rows, cols = shape
    count = products(p)
    return (rows * count, cols) if layout_of(p, role) == "row" else (rows, cols * count)


def of_product(p, role, elements, i):
    """The part of a stacked matrix that product `i` has."""
    if role in p["shared"]:
        return elements
    axis = 0 if layout_of(p, role) == "row" else 1
    if sums(p, role):
        axis = 1 if role == "bias" else axis  # a single row
        begin, size = sum(p["group"][:i]), p["group"][i]
    else:
        size = elements.shape[axis] // products(p)
        begin = i * size
    return elements.take(range(begin, begin + size), axis=axis)


def single(p, operands, i):
    """Product `i` of a batch or a group as a record of its own, and its operands."""
    one = dict(p, batch=1, group=(), by="", shared=())
    own = {role: of_product(p, role, elements, i) for role, (elements, _) in operands.items()}
    if p["group"]:
        one[p["by"]] = p["group"][i]
    if one["k"] == 0:  # a product that is skipped, as with an alpha of 0
        one.update(k=1, alpha=0.0)
        for role, rows, cols in (("a", one["m"], 1), ("b", 1, one["n"])):
            shape = (cols, rows) if p["trans_" + role] else (rows, cols)
            own[role] = np.zeros(shape, own[role].dtype)
    return one, own


def draw(p):
    """The operands of a record: {role: (elements as stored, generator arguments or None)}."""
    rng = np.random.default_rng(p["seed"])
    shapes = {"a": (p["k"], p["m"]) if p["trans_a"] else (p["m"], p["k"]),
              "b": (p["n"], p["k"]) if p["trans_b"] else (p["k"], p["n"])}
    types = {"a": p["a_type"], "b": p["b_type"], "c": p["d_type"], "bias": p["d_type"]}
    if p["beta"] != 0:
        shapes["c"] = (p["m"], p["n"])
    if p["bias"]:
        shapes["bias"] = (1, p["n"])
    shapes = {role: stacked(p, role, shape) for role, shape in shapes.items()}
    operands = {}
    for role, shape in shapes.items():
        if p["source_" + role] == "generated":
            # A normal element may be one unit off (see checks.generator), and for f64 that is
            # one of f32: far more than the bound of a product.
            normal = rng.random() < 0.5 and types[role] != "f64"
            spec = (int(rng.integers(0, 2**63)),) + (
                ("normal", 0.25, 1.5) if normal else ("uniform", -1.5, 1.25))
            operands[role] = (generate(*shape, types[role], *spec), spec)
        elif p["exact"]:
            # f16 accumulation stays exact up to 2048 = 2^11, the short sums of fp8 up to 2^13,
            # f32 up to 2^24.
            limit = 1 if p["compute"] == "f16" or p["a_type"] in FP8 else 3
            values = rng.integers(-limit, limit + 1, shape)
            operands[role] = (round_to(values, types[role]), None)
        elif types[role] in INTEGERS:
            # All that the type has; but sums of products that f16 holds.
            reach = 2**31 if types[role] == "s32" else 8 if p["d_type"] == "f16" else 128
            operands[role] = (round_to(rng.integers(-reach, reach, shape), types[role]), None)
        else:
            operands[role] = (round_to(rng.standard_normal(shape), types[role]), None)
    put_specials(p, operands, types)
    return operands


def put_specials(p, operands, types):
    """NaN and infinities where the record asks for them.

    "factors": all of A and B. "c": all of C. "elements": some of A, B and C.
    """
    def put(role, value, *where):
        operands[role][0][where or ...] = special(value, types[role])

    if p["special"] == "factors":
        put("a", "nan")
        put("b", "inf")
    if p["special"] == "c":
        put("c", "nan")
    if p["special"] == "elements":
        put("a", "nan", 0, 0)
        put("a", "inf", -1, -1)
        put("b", "inf", 0, -1)
        if "c" in operands:
            put("c", "inf", -1, 0)
            put("c", "nan", -1, 1)


def layouts_and_transposes(rng, shape):
    """Every transpose and layout of A, B and D for every combination of types."""
    flags = list(itertools.product([False, True], [False, True], ["row", "col"], ["row", "col"],
                                   ["row", "col"]))
    for combination in COMBINATIONS:
        for trans_a, trans_b, layout_a, layout_b, layout_d in flags:
            p = vary(record(*shape, combination, rng.getrandbits(32)), rng)
            p.update(trans_a=trans_a, trans_b=trans_b, layout_a=layout_a, layout_b=layout_b,
                     layout_d=layout_d)
            yield p


def epilogues(rng, limit):
    """Every activation with and without bias and C for every combination of types."""
    for combination in COMBINATIONS:
        for activation, bias, with_c in itertools.product(ACTIVATIONS, [False, True],
                                                          [False, True]):
            shape = [rng.randint(1, limit) for _ in range(3)]
            p = vary(record(*shape, combination, rng.getrandbits(32)), rng)
            if activation == "gelu":
                p["exact"] = False
            alpha, beta = rng.choice([s for s in (EXACT_SCALARS if p["exact"] else SCALARS)
                                      if (s[1] != 0) == with_c])
            p.update(activation=activation, bias=bias, alpha=alpha, beta=beta)
            yield p


def sources(rng, limit):
    """Every source of A against every way of the result; B, C and bias take the others in turn."""
    for combination in COMBINATIONS:
        for unary in (False, True):
            names = UNARY_SOURCES if unary else STREAM_SOURCES
            for (at, source), result in itertools.product(enumerate(names), RESULTS):
                shape = [rng.randint(1, limit) for _ in range(3)]
                p = vary(record(*shape, combination, rng.getrandbits(32)), rng)
                p.update(unary=unary, exact=False, source_a=source, result=result, beta=0.75,
                         bias=True, source_b=names[(at + 1) % len(names)],
                         source_c=names[(at + 2) % len(names)],
                         source_bias=names[(at + 3) % len(names)])
                yield p


def special_shapes(rng, scale):
    """Single elements, vectors, outer products, primes, one off powers of two."""
    s = scale
    shapes = [(1, 1, 1), (1, 7 * s + 1, 5 * s), (5 * s + 3, 1, 7 * s), (6 * s, 5 * s + 1, 1),
              (1, 1, 40 * s + 7), (1, 30 * s + 1, 1), (2, 3, 5), (13, 17, 19), (127, 131, 137),
              (s - 1, s + 1, s), (3, 4 * s + 1, 2 * s - 1), (4 * s - 1, 2, 2 * s + 1),
              (997, 1009, 1013) if s >= 100 else (97, 101, 103)]
    for shape, combination in itertools.product(shapes, COMBINATIONS):
        yield vary(record(*shape, combination, rng.getrandbits(32)), rng)


def large(rng, shape):
    """One big ragged problem for every combination and each of two pairs of sources."""
    for i, combination in enumerate(COMBINATIONS):
        for pair in (("payload", "split"), ("generated", STREAM_SOURCES[i % 6])):
            p = vary(record(*shape, combination, rng.getrandbits(32)), rng)
            p.update(unary=False, exact=False, source_a=pair[0], source_b=pair[1])
            yield p


def random_shapes(rng, count, limit):
    """Extents drawn log-uniformly from 1 to `limit`."""
    for i in range(count):
        shape = [max(1, min(limit, round(math.exp(rng.uniform(0, math.log(limit))))))
                 for _ in range(3)]
        combination = COMBINATIONS[i % len(COMBINATIONS)]
        yield vary(record(*shape, combination, rng.getrandbits(32)), rng)


def special_values(rng, rows, shapes):
    """Scalars that are 0, or so in their type, and NaN and infinities, for (kernel, combination)."""
    tiny = 1e-60
    variants = [
        dict(special="factors", alpha=0.0, beta=1.0, activation="none", bias=False),
        dict(special="factors", alpha=tiny, beta=0.0, activation="relu", bias=True),
        dict(special="c", alpha=2.0, beta=tiny, activation="leaky_relu", slope=0.5),
        dict(special="elements", alpha=-1.0, beta=0.0, activation="leaky_relu", slope=0.0),
        dict(special="elements", alpha=1.0, beta=-1.0, activation="relu", bias=True),
    ]
    for (name, combination), shape, variant in itertools.product(rows, shapes, variants):
        if combination[3] == "f64" and tiny in (variant["alpha"], variant["beta"]):
            continue
        p = vary(record(*shape, combination, rng.getrandbits(32)), rng)
        p.update(variant, kernel=name, exact=True, scale_a=1.0, scale_b=1.0)
        for role in ("a", "b", "c", "bias"):
            if p["source_" + role] == "generated":
                p["source_" + role] = "resident"
        yield p


def kernels_by_name(rng, rows, shapes):
    """`rows`: (kernel name, combination) that a device here runs."""
    for (name, combination), shape in itertools.product(rows, shapes):
        p = vary(record(*shape, combination, rng.getrandbits(32)), rng)
        p["kernel"] = name
        yield p


def batches(rng, rows, quick):
    """Batches for every (kernel name or "", combination) that takes them: few products of any
    shape, and many tiny ones."""
    limit = 20 if quick else 150
    for name, combination in rows:
        for count, extent in ((1, limit), (2, limit), (3, limit), (17, limit // 2), (1000, 5),
                              (65535, 2)):
            shape = [rng.randint(1, extent) for _ in range(3)]
            p = record(*shape, combination, rng.getrandbits(32), batch=count)
            p = vary(p, rng)
            present = ["a", "b"] + (["c"] if p["beta"] else []) + (["bias"] if p["bias"] else [])
            shared = [r for r in present if rng.random() < 0.3]
            if count > 1 and {"a", "b"} <= set(shared):  # not both of them
                shared.remove("a")
            p.update(kernel=name, shared=tuple(shared))
            yield p


def extents_of_groups(rng, limit, named):
    """What the products of a group have in the dimension in which they differ. A kernel by name,
    of which there are many, gets the first two."""
    drawn = [rng.randint(0, limit) for _ in range(6)]
    extents = [(0, *drawn, 0, limit), (1, 0, 0, limit)]
    if not named:
        extents += [(rng.randint(1, limit),), (limit // 2,) * 3,
                    tuple(rng.randint(0, 3) for _ in range(4095)) + (1,)]
    return extents


def in_lines(p, rng, by):
    """Gives the record an order in which every matrix with the dimension has it as its lines."""
    def turned(role, rows):  # whether the matrix's rows, before any transpose, are the lines
        p["trans_" + role] = rng.random() < 0.5
        p["layout_" + role] = "row" if rows != p["trans_" + role] else "col"

    if by == "m":
        turned("a", True)
        p["layout_d"] = "row"
    elif by == "n":
        turned("b", False)
        p["layout_d"] = "col"
    else:
        turned("a", False)
        turned("b", True)


def groups(rng, rows, quick):
    """Groups by m, n and k for every (kernel name or "", combination)."""
    limit = 20 if quick else 150
    for name, combination in rows:
        for by, extents in itertools.product("mnk", extents_of_groups(rng, limit, bool(name))):
            many = len(extents) > 100
            shape = {dim: rng.randint(1, 4 if many else limit) for dim in "mnk"}
            shape[by] = sum(extents)
            p = record(*shape.values(), combination, rng.getrandbits(32), group=extents, by=by)
            p = vary(p, rng)
            in_lines(p, rng, by)
            shared = [role for role in ("a", "b", "c", "bias")
                      if by not in DIMENSIONS[role] and rng.random() < 0.3
                      and (role != "c" or p["beta"]) and (role != "bias" or p["bias"])]
            p.update(kernel=name, shared=tuple(shared))
            yield p
