"""Products in float64, and how far a product on the server may be from them."""

import math

import numpy as np

# Significand bits, the rounding bit included, and the smallest subnormal.
_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_TINY = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}


def activate(x, activation, slope):
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu":
        return x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))
    if activation == "leaky_relu":
        return np.where(x > 0, x, slope * x)
    return x


def expect(a, b, output, *, alpha=1.0, beta=0.0, c=None, bias=None, activation=None, slope=0.01,
           factor=1.0, lost=0.0, multiply=np.matmul):  # fmt: skip
    """(result, bound): the product of op(a) and op(b), which are already transposed.

    lost is what the device loses of |a| |b| before f32 accumulators, as a share of it;
    multiply is the product of two matrices in float64.
    """
    a, b = a.astype(float), b.astype(float)
    k = a.shape[1]
    scale = alpha * factor
    result = scale * multiply(a, b)
    size = abs(scale) * multiply(abs(a), abs(b))
    before = 1.2 * lost * size
    if c is not None:
        result = result + beta * c.astype(float)
        size = size + abs(beta * c.astype(float))
    if bias is not None:
        result = result + bias.astype(float)
        size = size + abs(bias.astype(float))
    accumulator = 53 if output == "float64" else 24
    # Each of k additions and the steps of the epilogue round once; gelu's slope is below 1.2.
    bound = before + 1.2 * (k + 8) * 2.0**-accumulator * size
    result = activate(result, activation, slope)
    bound = bound + 2.0 ** -_BITS[output] * (abs(result) + bound) * 1.01 + _TINY[output]
    if activation == "gelu":
        bound = bound + 4 * 2.0**-accumulator * size  # of erf
    return result, bound


def check(got, expected, bound):
    error = abs(np.asarray(got).astype(float) - expected)
    worst = np.unravel_index(np.argmax(error - bound), error.shape)
    assert (error <= bound).all(), (
        f"element {worst} is {float(np.asarray(got)[worst])}, expected {expected[worst]} "
        f"within {bound[worst]}"
    )
