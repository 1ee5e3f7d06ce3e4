"""Operands of types that differ, and of integers: numpy's rules, where a type of ours is exact.

Floats are widened to numpy's common type. Integers and bools are multiplied as floats: where no
sum can leave the integers that these hold, the result is numpy's, wrapped to its type as numpy does.
Anything else is an error that names `astype`. Two matrices of int8 are left as they are: their
product is int32.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from . import dtypes, operands
from .errors import InvalidArgument, InvalidType
from .operators import Remote
from .product import Options

_FLOAT8 = {"float8_e4m3fn", "float8_e5m2"}
_EXACT = ((np.dtype(np.float32), 2**24), (np.dtype(np.float64), 2**53))


def is_handle(value: Any) -> bool:
    return isinstance(value, Remote)


def _name(value: Any) -> str:
    """numpy's name of its type."""
    return dtypes.to_name(dtypes.parse(value.dtype, "dtype")) if is_handle(value) else value.dtype.name


def _is_integer(dtype: npt.DTypeLike) -> bool:
    return np.dtype(dtype).kind in "biu"


def _agree(left: str, right: str) -> bool:
    """Whether the server multiplies the two, by their names."""
    return (left == right or {left, right} <= _FLOAT8) and left in dtypes.OPERANDS


def _converted(value: Any, name: str, dtype: npt.DTypeLike) -> Any:
    """The same values in a wider type, or an error."""
    target = np.dtype(dtype)
    if _name(value) == target.name:
        return value
    if is_handle(value):
        raise InvalidType(
            f"{name} is a handle of {value.dtype}, and the product's type is {target}: give the "
            f"other operand as .astype(...) of the handle's type, or put {name} as {target}",
            field=name,
        )
    converted = value.astype(target)
    if _is_integer(value.dtype) and not (converted.astype(value.dtype) == value).all():
        raise InvalidArgument(
            f"{name} has integers that {target} does not hold; give {name}.astype(np.{target}) to "
            "have them rounded",
            field=name,
        )
    return converted


def _largest(value: Any) -> int:
    return max(abs(int(value.max())), abs(int(value.min()))) if value.size else 0


def _integers(
    a: Any, b: Any, result: npt.DTypeLike, options: Options
) -> tuple[Any, Any, Options, Any]:
    """As floats that hold every sum."""
    for name in ("dtype", "compute", "leaky_slope", "scale_a", "scale_b", "scales_a", "scales_b"):
        if getattr(options, name) is not None:
            raise InvalidArgument(
                f"{name} is given for a product of integers: give a.astype(np.float64), or another "
                "type of floats",
                field=name,
            )
    for name, allowed in (("alpha", (1,)), ("beta", (None, 0, 1)),
                          ("activation", (None, "none", "relu"))):  # fmt: skip
        if getattr(options, name) not in allowed:
            raise InvalidArgument(
                f"{name} is {getattr(options, name)!r}, and the product is one of integers: give "
                "a.astype(np.float64), or another type of floats",
                field=name,
            )
    for name, value in (("a", a), ("b", b)):
        if is_handle(value):
            raise InvalidType(
                f"{name} is a handle of {value.dtype}, and the product one of integers: put it as "
                "float64, and give the other operand as .astype(np.float64)",
                field=name,
            )
    inner = a.shape[-2 if options.transpose_a and a.ndim > 1 else -1]
    addends = {n: getattr(options, n) for n in ("c", "bias") if getattr(options, n) is not None}
    for name, value in addends.items():
        addends[name] = value = operands.array(value, name)
        if is_handle(value) or operands.is_torch(value) or not _is_integer(value.dtype):
            raise InvalidType(
                f"{name} has dtype {value.dtype}, and the product is one of integers: give "
                f"{name}.astype(np.{np.dtype(result)}), or a.astype(np.float64)",
                field=name,
            )
    bound = inner * _largest(a) * _largest(b) + sum(_largest(value) for value in addends.values())
    carrier = next((dtype for dtype, most in _EXACT if bound <= most), None)
    if carrier is None:
        raise InvalidArgument(
            f"a and b are of {a.dtype} and {b.dtype}, and a sum of {inner} of their products may "
            "exceed 2^53, which no type here holds exactly: give a.astype(np.float64) to have it "
            "rounded",
            field="a",
        )
    changes = {name: value.astype(carrier) for name, value in addends.items()}
    options = dataclasses.replace(options, **changes)
    return a.astype(carrier), b.astype(carrier), options, np.dtype(result)


def _of_torch(a: Any, b: Any) -> None:
    names = []
    for name, value in (("a", a), ("b", b)):
        if is_handle(value):
            names.append(_name(value))
        else:
            number = dtypes.of_torch if operands.is_torch(value) else dtypes.of_numpy
            names.append(dtypes.to_name(number(value.dtype, name)))
    if not _agree(*names):
        raise InvalidType(
            f"a has dtype {names[0]} and b has {names[1]}; they must be the same, one of floats or "
            "int8: give one of them as .to(...)",
            field="b",
        )


def unify(a: Any, b: Any, options: Options) -> tuple[Any, Any, Options, Any]:
    """Operands of one type, and numpy's type of the result where that has to be made of it."""
    if operands.is_torch(a) or operands.is_torch(b):
        _of_torch(a, b)
        return a, b, options, None
    if _agree(_name(a), _name(b)):
        return a, b, options, None
    for name, value in (("a", a), ("b", b)):
        if not is_handle(value) and not _is_integer(value.dtype):
            dtypes.of_numpy(value.dtype, name)  # complex, long double and objects are none
    left, right = (
        dtypes.to_numpy(dtypes.parse(x.dtype, "dtype")) if is_handle(x) else x.dtype for x in (a, b)
    )
    try:
        common = np.result_type(left, right)
    except TypeError:
        common = np.dtype(object)
    if _is_integer(common):
        return _integers(a, b, common, options)
    if common.name not in dtypes.OPERANDS:
        raise InvalidType(
            f"a has dtype {left} and b has {right}, which have no type in common here: give one of "
            "them as .astype(...)",
            field="b",
        )
    return _converted(a, "a", common), _converted(b, "b", common), options, None


def addend(value: Any, name: str, number: int) -> Any:
    """c or the bias in the result's type, where no value changes by that."""
    if is_handle(value) or operands.is_torch(value):
        return value
    if dtypes.number_of(value.dtype) == number:
        return value
    target = dtypes.to_numpy(number)
    if _is_integer(value.dtype) or np.can_cast(value.dtype, target, "safe"):
        return _converted(value, name, target)
    return value  # which product.make refuses


def check_out(out: Any, natural: npt.DTypeLike, asked: Any) -> None:
    """InvalidType where numpy would not write a result of this type there, either; and where the
    caller has `asked` for it."""
    fits = not operands.is_torch(out) and np.can_cast(np.dtype(natural), out.dtype, "same_kind")
    if asked is not None or not fits:
        raise InvalidType(
            f"out has dtype {out.dtype}; the result has {np.dtype(natural)}", field="out"
        )
