"""Products at random: shapes, types, orders in memory and options.

What is drawn comes from a source with `integer(least, most)` and `pick(values)`: hypothesis in
the tests, random.Random on a machine without it.
"""

import random

import numpy as np

ORDERS = ["C", "F", "strided", "transposed-strided", "reversed", "padded", "broadcast", "swapped"]
# The output types of each operand type.
OUTPUTS = {
    "float64": ["float64"], "float32": ["float32"], "float16": ["float16", "float32"],
    "bfloat16": ["bfloat16", "float32"], "float8_e4m3fn": ["float16", "bfloat16", "float32"],
    "float8_e5m2": ["float16", "bfloat16", "float32"],
}  # fmt: skip
SCALARS = [1.0, 0.0, -1.0, 0.5, 3.25]


class Seeded:
    """A source of its own, the same for the same seed."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def integer(self, least, most):
        return self._random.randint(least, most)

    def pick(self, values):
        return self._random.choice(values)


def laid_out(values, order):
    """The same elements in memory of this order."""
    rows, cols = values.shape
    if order == "F":
        return np.asfortranarray(values)
    if order == "strided":
        memory = np.zeros((rows * 2, cols * 3), values.dtype)
        memory[::2, ::3] = values
        return memory[::2, ::3]
    if order == "transposed-strided":
        memory = np.zeros((cols * 2, rows), values.dtype)
        memory[::2] = values.T
        return memory[::2].T
    if order == "reversed":
        return np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]
    if order == "padded":
        memory = np.zeros((rows, cols + 5), values.dtype)
        memory[:, :cols] = values
        return memory[:, :cols]
    if order == "broadcast":
        return np.broadcast_to(values[:1], (rows, cols))
    if order == "swapped" and values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder())
    return np.ascontiguousarray(values)


def normal(source, rows, cols):
    """Elements of N(0, 1)."""
    return np.random.default_rng(source.integer(0, 2**32 - 1)).standard_normal((rows, cols))


def product(source, dtypes, make, largest=90):
    """(a, b, output type, options of matmul, what oracle.expect takes) of one product.

    make(rows, cols, dtype, flat) gives a matrix, or a vector where flat is set, and its
    elements in float64.
    """
    m, n, k = (source.integer(1, source.pick([8, largest])) for _ in range(3))
    dtype = source.pick(dtypes)
    output = source.pick(OUTPUTS[dtype])
    turn_a, turn_b = source.pick([False, True]), source.pick([False, True])
    a, right_a = make(*((k, m) if turn_a else (m, k)), dtype)
    b, right_b = make(*((n, k) if turn_b else (k, n)), dtype)
    options = {"transpose_a": turn_a, "transpose_b": turn_b, "alpha": source.pick(SCALARS)}
    expected = {"a": right_a.T if turn_a else right_a, "b": right_b.T if turn_b else right_b,
                "output": output, "alpha": options["alpha"]}  # fmt: skip
    if source.pick([False, True]):
        options["c"], expected["c"] = make(m, n, output)
        options["beta"] = source.pick([None, *SCALARS])
        expected["beta"] = 1.0 if options["beta"] is None else options["beta"]
    if source.pick([False, True]):
        options["bias"], expected["bias"] = make(1, n, output, source.pick([False, True]))
    options["activation"] = source.pick([None, "none", "relu", "gelu", "leaky_relu"])
    expected["activation"] = options["activation"]
    if options["activation"] == "leaky_relu":
        options["leaky_slope"] = expected["slope"] = 0.25
    if dtype.startswith("float8"):
        options["scale_a"], options["scale_b"] = 0.5, 4.0
        expected["factor"] = 2.0
    return a, b, (m, n, k), options, expected
