"""The oracle: a product in float64, and how far from it a right answer may be.

Runs on torch (CUDA where there is a GPU) or, without torch, on numpy.
"""

import math

import numpy as np

from elements import FP8, UNDERFLOW, UNIT_ROUNDOFF, to_double

try:
    import torch
except ImportError:
    torch = None


class Backend:
    """The few array functions that the oracle needs, of torch or of numpy."""

    def __init__(self, name="auto"):
        """`name`: 'auto', 'torch-cuda', 'torch-cpu' or 'numpy'."""
        if name == "auto":
            name = "numpy" if torch is None else (
                "torch-cuda" if torch.cuda.is_available() else "torch-cpu")
        self.name = name
        self.xp = np if name == "numpy" else torch

    def describe(self):
        if self.name == "numpy":
            return f"numpy {np.__version__} float64"
        where = torch.cuda.get_device_name(0) if self.name == "torch-cuda" else "CPU"
        return f"torch {torch.__version__} float64 on {where}"

    def array(self, values):
        values = np.ascontiguousarray(values, dtype=np.float64)
        if self.name == "numpy":
            return values
        tensor = torch.from_numpy(values if values.flags.writeable else values.copy())
        return tensor.cuda() if self.name == "torch-cuda" else tensor

    def erf(self, x):
        if self.name == "numpy":
            return np.vectorize(math.erf, otypes=[np.float64])(x)
        return torch.erf(x)


def accumulation_unit(dtype, compute):
    """Unit roundoff of one addition of the product's accumulation.

    Tensor cores truncate where CUDA cores and CPUs round to nearest, which doubles the
    unit for all that may run on them.
    """
    if compute == "f64":
        return 2.0**-53
    if compute == "f16":
        return 2.0**-10
    return 2.0**-24 if dtype == "f32" and compute == "f32" else 2.0**-23


def accumulation_factor(k, dtype, compute):
    """g such that |computed - exact| <= g (|A||B|)_ij for a sum of k products.

    The classical bound gamma_k = k u / (1 - k u) (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd ed., section 3.1) holds for any order of the additions. For f16
    accumulation k u passes 1 from k = 1024 on, so there the probabilistic bound
    lambda sqrt(k) u of Higham and Mary (SIAM J. Sci. Comput. 41, 2019) is taken where it is
    smaller, with lambda = 6. TF32 rounds, or on tensor cores cuts, each operand to 10 explicit
    bits: 2^-10 each. f32x3 leaves out, and rounds off, up to 2^-20 of each product. Tensor
    cores of sm_89 and sm_90 keep 13 bits of a sum of fp8 products (DeepSeek-V3 Technical
    Report, arXiv:2412.19437, section 3.3.2); after 128 of them it must have gone to f32.
    """
    if compute == "s32":
        return 2.0**-24  # integers are exact, and then rounded to f32
    u = accumulation_unit(dtype, compute)
    factor = k * u / (1 - k * u) if k * u < 1 else math.inf
    if compute == "f16":
        factor = min(factor, 6 * math.sqrt(k) * u)
    if compute == "tf32":
        factor += 2 * 2.0**-10 + 2.0**-20
    if compute == "f32x3":
        factor += 2.0**-20
    if dtype in FP8:
        short = min(k, 128) + 4
        factor += short * 2.0**-13 / (1 - short * 2.0**-13)
    if compute == "f64":
        factor *= 2  # The oracle accumulates in the same precision.
    return factor


def wrapped(x):
    """What a 32-bit integer in two's complement has of integers, which f64 holds."""
    return (x + 2.0**31) % 2.0**32 - 2.0**31


def epilogue_unit(compute):
    """Unit roundoff of the arithmetic after the sum: alpha, beta C, bias, activation."""
    return 2.0**-53 if compute == "f64" else 2.0**-24


def activate(backend, x, activation, slope):
    """act(x) and a Lipschitz constant of act."""
    xp = backend.xp
    zero = xp.zeros_like(x)
    if activation == "relu" or (activation == "leaky_relu" and slope == 0):
        return xp.where(x < 0, zero, x), 1.0
    if activation == "leaky_relu":
        return xp.where(x > 0, x, slope * x), max(1.0, abs(slope))
    if activation == "gelu":
        # Below -40 it is 0, and -inf * 0 must not be made of it.
        inside = xp.where(x < -40, zero, x)
        return inside / 2 * (1 + backend.erf(inside / math.sqrt(2.0))), 1.13
    return x, 1.0


def scalars(p):
    """alpha (the scales in it), beta and the slope of a record, as they count.

    They are rounded to the type of the arithmetic after the sum: f64 where the product
    computes in f64, f32 everywhere else. Zero, also by that rounding, leaves its term out.
    """
    values = (p["alpha"] * p["scale_a"] * p["scale_b"], p["beta"], p["slope"])
    return values if p["compute"] == "f64" else tuple(float(np.float32(v)) for v in values)


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def expected(backend, p, a, b, c, bias):
    """D in float64 and the tolerance of each element, for a problem record `p`.

    a is m x k and b k x n, transposes already applied; c and bias may be None. Error terms:
    the accumulation, scaled by |alpha| and the activation's Lipschitz constant; four
    roundings of the epilogue's terms and eight of the activation's value; the rounding to
    the type of D, twice over because it may go through f32.
    """
    xp = backend.xp
    left, right = backend.array(to_double(a, p["a_type"])), backend.array(to_double(b, p["b_type"]))
    alpha, beta, slope = scalars(p)
    if alpha != 0 and p["compute"] == "s32":
        pre = alpha * wrapped(left @ right)
        magnitude = xp.abs(pre)
    elif alpha != 0:
        pre = alpha * (left @ right)
        # The same additions with every sign positive: the scale of the rounding errors.
        magnitude = abs(alpha) * (xp.abs(left) @ xp.abs(right))
    else:
        pre = magnitude = backend.array(np.zeros((left.shape[0], right.shape[1])))
    terms = magnitude
    if c is not None and beta != 0:
        term = beta * backend.array(to_double(c, p["d_type"]))
        pre, terms = pre + term, terms + xp.abs(term)
    if bias is not None:
        term = backend.array(to_double(bias, p["d_type"]))
        pre, terms = pre + term, terms + xp.abs(term)
    if p["d_type"] == "s32":
        value = activate(backend, wrapped(pre), p["activation"], slope)[0]
        return value, xp.zeros_like(value)
    value, lipschitz = activate(backend, pre, p["activation"], slope)
    u = epilogue_unit(p["compute"])
    before = accumulation_factor(p["k"], p["a_type"], p["compute"]) * magnitude + 4 * u * terms
    if p["activation"] in ("gelu", "leaky_relu"):
        before = before + 8 * u * xp.abs(pre)
    tolerance = lipschitz * before
    u_out = UNIT_ROUNDOFF[p["d_type"]]
    tolerance = tolerance + 1.01 * u_out * (xp.abs(value) + tolerance) + 2 * UNDERFLOW[p["d_type"]]
    return value, tolerance


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def worst_ratio(backend, got, value, tolerance):
    """(largest |got - value| / tolerance, its flat index).

    NaN is right where NaN is expected, and an infinity where that one is. What else is not
    finite counts as inf.
    """
    xp = backend.xp
    got = backend.array(got)
    ratio = xp.abs(got - value) / tolerance
    ratio = xp.where(xp.isfinite(ratio), ratio, xp.zeros_like(value) + math.inf)
    as_expected = (got == value) | (xp.isnan(got) & xp.isnan(value))
    # A finite value that infinite operands led to has no tolerance: 0 of a relu.
    ratio = xp.where(as_expected, xp.zeros_like(value), ratio)
    index = int(ratio.argmax())
    return float(ratio.reshape(-1)[index]), index


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def exact(p, a, b, c, bias):
    """D in float64 where every step is exact: small integers, and powers of two as factors.

    No tolerance goes with it: one rounding to the type of D is all that may happen.
    """
    backend = Backend("numpy")
    alpha, beta, slope = scalars(p)
    pre = np.zeros((a.shape[0], b.shape[1]))
    if alpha != 0:
        pre = alpha * (to_double(a, p["a_type"]) @ to_double(b, p["b_type"]))
    if c is not None and beta != 0:
        pre = pre + beta * to_double(c, p["d_type"])
    if bias is not None:
        pre = pre + to_double(bias, p["d_type"])
    if p["d_type"] == "s32":
        pre = wrapped(pre)
    return activate(backend, pre, p["activation"], slope)[0]
