"""The checks of what a caller gives. Each error is a sentence with the field, value and bound.

InvalidType where the value is of a type that cannot be taken, else InvalidArgument.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .errors import InvalidArgument, InvalidType

# From here on, a timeout is no bound: gRPC's clock ends at 9e9 s.
_NO_BOUND_SECONDS = 1e9
# What a protobuf Duration holds, rounded down.
_MOST_SECONDS = 3e11
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,128}")


def wrong_type(value: Any, field: str, wanted: str) -> InvalidType:
    return InvalidType(
        f"{field} is {reprlib.repr(value)}, a {type(value).__name__}; it must be {wanted}",
        field=field,
    )


def _out_of_bounds(value: Any, field: str, bounds: str) -> InvalidArgument:
    return InvalidArgument(f"{field} is {value}; it must be {bounds}", field=field)


def number(value: Any, field: str) -> float:
    """Also inf and nan. Anything that is a number by itself: no text."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise wrong_type(value, field, "a number") from None


def finite(value: Any, field: str) -> float:
    checked = number(value, field)
    if not math.isfinite(checked):
        raise _out_of_bounds(checked, field, "finite")
    return checked


def between(value: Any, field: str, least: float, most: float = math.inf) -> float:
    checked = number(value, field)
    if not least <= checked <= most:
        bounds = f"at least {least}" if most == math.inf else f"{least} to {most}"
        raise _out_of_bounds(value, field, bounds)
    return checked


def integer(value: Any, field: str, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    try:
        checked = operator.index(value)
    except TypeError:
        raise wrong_type(value, field, "an integer") from None
    if not least <= checked <= most:
        raise _out_of_bounds(checked, field, f"{least} to {most}")
    return checked


def timeout(value: Any, field: str = "timeout") -> float | None:
    """Seconds; None for no bound: inf, and what no clock reaches."""
    checked = number(value, field)
    if not checked > 0:
        raise _out_of_bounds(checked, field, "above 0 seconds")
    return checked if checked < _NO_BOUND_SECONDS else None


def microseconds(value: Any, field: str, least: float = 1e-6) -> int:
    """Of a time in seconds that the server is to know."""
    checked = number(value, field)
    if not least <= checked <= _MOST_SECONDS:
        raise _out_of_bounds(checked, field, f"{least:g} to {_MOST_SECONDS:g} seconds")
    return round(checked * 1e6)


def flag(value: Any, field: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise wrong_type(value, field, "True or False")
    return bool(value)


def text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(value, field, "a str")
    return value


def sequence(value: Any, field: str, of: str) -> list[Any]:
    """A str is none: it would be a sequence of its characters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise wrong_type(value, field, f"a sequence of {of}")
    return list(value)


def texts(value: Any, field: str) -> list[str]:
    given = sequence(value, field, "str")
    return [text(one, f"{field}[{place}]") for place, one in enumerate(given)]


def name(value: Any, field: str = "name") -> str:
    """Of a matrix."""
    if _NAME.fullmatch(text(value, field)) is None:
        raise InvalidArgument(
            f"{field} is {reprlib.repr(value)}, but must be 1 to 128 characters of "
            "A-Z a-z 0-9 . _ / -",
            field=field,
        )
    return value  # type: ignore[no-any-return]


def choice(value: Any, allowed: Iterable[str], field: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(
            f"{field} is {reprlib.repr(value)}; it must be one of {', '.join(allowed)}",
            field=field,
        )
    return value


def sizes(value: Any, field: str, wanted: Sequence[str]) -> list[int]:
    """As many integers of at least 1 as names in `wanted`, such as rows and columns."""
    try:
        given = [operator.index(size) for size in value]
    except TypeError:
        given = []
    if len(given) != len(wanted) or not all(1 <= size < 2**63 for size in given):
        raise InvalidArgument(
            f"{field} is {reprlib.repr(value)}; it must be ({', '.join(wanted)}), integers of "
            "1 to 2^63 - 1",
            field=field,
        )
    return given


def keywords(given: Iterable[str], allowed: Sequence[str], function: str) -> None:
    """InvalidType, in Python's words, names the function that was called and the argument."""
    for name in given:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            meant = f". Did you mean {near[0]!r}?" if near else ""
            raise InvalidType(
                f"{function}() got an unexpected keyword argument {name!r}{meant}", field=name
            )


Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def named_options(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Has `keywords` refuse an unknown option of a method, which Python itself would."""
    allowed = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.POSITIONAL_ONLY and name != "self"
    ]
    known = frozenset(allowed)

    @functools.wraps(function)
    def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Answer:
        if not known.issuperset(options):
            keywords(options, allowed, f"{type(args[0]).__name__}.{function.__name__}")
        return function(*args, **options)

    return checked


def instance(value: Any, field: str, kind: type[Any] | tuple[type[Any], ...], wanted: str) -> None:
    if not isinstance(value, kind):
        raise wrong_type(value, field, wanted)


def parameters(value: Any, field: str = "params") -> dict[str, int]:
    """Of a launch."""
    if not isinstance(value, Mapping):
        raise wrong_type(value, field, "a mapping of names to integers")
    try:
        return {
            text(key, field): integer(number, f"{field}[{key!r}]") for key, number in value.items()
        }
    except InvalidArgument as error:
        error.field = field
        raise
