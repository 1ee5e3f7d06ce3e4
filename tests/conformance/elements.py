"""Element types of the contract as numpy sees them, and the generator of the contract.

A matrix of elements is a numpy array of the wire type; bf16 is held as uint16, fp8 as uint8.
"""

import math

import numpy as np

# Unit roundoff of each type: the largest relative error of rounding to it.
UNIT_ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8,
                 "e4m3": 2.0**-4, "e5m2": 2.0**-3, "s32": 0.0}
# Half the smallest subnormal: the largest absolute error of rounding to the type near zero.
UNDERFLOW = {"f64": 5e-324, "f32": 2.0**-150, "f16": 2.0**-25, "bf16": 2.0**-134,
             "s32": 0.0}
WIRE = {"f64": np.dtype("<f8"), "f32": np.dtype("<f4"), "f16": np.dtype("<f2"),
        "bf16": np.dtype("<u2"), "e4m3": np.dtype("u1"), "e5m2": np.dtype("u1"),
        "s8": np.dtype("i1"), "s32": np.dtype("<i4")}
FP8 = ("e4m3", "e5m2")
INTEGERS = ("s8", "s32")


def _fp8_values(mantissa_bits, bias):
    """The value of each of the 256 codes, infinities and NaNs left aside."""
    codes = np.arange(256)
    exponent, mantissa = (codes & 0x7F) >> mantissa_bits, codes % 2**mantissa_bits
    fraction = mantissa / 2**mantissa_bits
    size = np.where(exponent == 0, fraction * 2.0**(1 - bias),
                    (1 + fraction) * 2.0**(exponent.astype(float) - bias))
    return np.where(codes < 128, size, -size)


# OCP 8-bit floating point: e4m3 has no infinity, and one NaN of either sign.
_FP8_VALUES = {"e4m3": _fp8_values(3, 7), "e5m2": _fp8_values(2, 15)}
_FP8_VALUES["e4m3"][[0x7F, 0xFF]] = np.nan
_FP8_VALUES["e5m2"][[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
_FP8_VALUES["e5m2"][[0x7C, 0xFC]] = [np.inf, -np.inf]
_FP8_LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B}  # the code of the largest finite value


def _round_to_fp8(single, dtype):
    """f32 values within the type's range, to the nearest code, the even one of two as near."""
    values = _FP8_VALUES[dtype][:_FP8_LARGEST[dtype] + 1]
    size = np.abs(single.astype(np.float64))
    if not (size <= values[-1]).all():
        raise ValueError(f"beyond {values[-1]}, the largest {dtype}")
    above = np.searchsorted(values, size)  # the first code that is at least as large
    below = np.maximum(above - 1, 0)
    to_above, to_below = values[above] - size, size - values[below]
    up = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(up, above, below).astype(np.uint8)
    return code | np.where(np.signbit(single), 0x80, 0).astype(np.uint8)


def round_to(values, dtype):
    """f64 values rounded to f32, then to `dtype` (f64 and s32 straight), as wire elements.

    What is beyond an integer type becomes its nearest end.
    """
    values = np.asarray(values, dtype=np.float64)
    if dtype == "f64":
        return values.astype("<f8")
    if dtype == "s32":
        return np.clip(np.rint(values), -2.0**31, 2.0**31 - 1).astype("<i4")
    single = values.astype(np.float32)
    if dtype == "s8":
        return np.clip(np.rint(single), -128, 127).astype("i1")
    if dtype == "bf16":
        bits = single.view(np.uint32)
        # To nearest even: half of the dropped part, less one where the kept part is even.
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return (rounded >> np.uint32(16)).astype("<u2")
    return _round_to_fp8(single, dtype) if dtype in FP8 else single.astype(WIRE[dtype])


def special(name, dtype):
    """The wire element that is "nan" or "inf"; e4m3 has no infinity, and gives NaN for it.

    Integers have neither: zero, and the largest.
    """
    if dtype in INTEGERS:
        return WIRE[dtype].type(np.iinfo(WIRE[dtype]).max if name == "inf" else 0)
    codes = {"bf16": (0x7FC0, 0x7F80), "e4m3": (0x7F, 0x7F), "e5m2": (0x7E, 0x7C)}
    if dtype in codes:
        return WIRE[dtype].type(codes[dtype][name == "inf"])
    return WIRE[dtype].type(name)


def to_double(elements, dtype):
    """Wire elements as f64, exactly."""
    if dtype == "bf16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if dtype in FP8:
        return _FP8_VALUES[dtype][elements]
    return elements.astype(np.float64)


def ordered_bits(elements, dtype):
    """Integers in the order of the values, one apart for neighbouring elements."""
    width = WIRE[dtype].itemsize * 8
    bits = elements.view(f"<i{width // 8}").astype(np.int64)
    return np.where(bits < 0, np.int64(-(2**(width - 1))) - bits, bits)


def to_wire(elements, layout):
    """Bytes of a 2-D array, line after line of `layout` ('row' or 'col')."""
    return np.ascontiguousarray(elements if layout == "row" else elements.T).tobytes()


def from_wire(data, rows, cols, dtype, layout):
    """The 2-D array that `data` holds. Raises ValueError where the size is wrong."""
    flat = np.frombuffer(data, dtype=WIRE[dtype])
    if flat.size != rows * cols:
        raise ValueError(f"{flat.size} elements received, {rows * cols} wanted")
    return flat.reshape(rows, cols) if layout == "row" else flat.reshape(cols, rows).T


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _uniform01(seed, index):
    """u(t) of the contract: the top 53 bits of SplitMix64's output function, over 2^53."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (index + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def generate(rows, cols, dtype, seed, distribution, first, second):
    """The matrix that a Generator of the contract describes.

    `distribution` is 'uniform' (first, second: low, high) or 'normal' (mean, stddev).
    """
    index = np.arange(rows * cols, dtype=np.uint64)
    if distribution == "uniform":
        values = first + (second - first) * _uniform01(seed, index)
    else:
        with np.errstate(over="ignore"):
            radius = np.sqrt(-2.0 * np.log(1.0 - _uniform01(seed, index * np.uint64(2))))
            angle = 2.0 * math.pi * _uniform01(seed, index * np.uint64(2) + np.uint64(1))
        values = first + second * (radius * np.cos(angle))
    if dtype == "f64":
        values = values.astype(np.float32).astype(np.float64)
    return round_to(values, dtype).reshape(rows, cols)
