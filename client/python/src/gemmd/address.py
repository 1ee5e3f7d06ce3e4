"""Where a server is: host:port or a socket's path, also by the names that gRPC has for them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from . import checks
from .errors import InvalidArgument

#: The address if none is given, here or in the environment.
DEFAULT = "127.0.0.1:50051"
_VARIABLE = "GEMMD_ADDRESS"
_FORM = "host:port, [IPv6 address]:port or unix:PATH"
_SOCKET = re.compile(r"unix(-abstract)?:.+", re.DOTALL)
_SCHEME = re.compile(r"dns:(//[^/]*/)?|(?P<numbers>ipv[46]):(///)?", re.IGNORECASE)
_HOST_PORT = re.compile(
    r"(\[[^\[\]\s]+\]|%5b[^\[\]\s]+%5d|[^\[\]:/@\s]+)(:([^:/]*))?", re.IGNORECASE
)
_MOST_PORT = 65535


def chosen(address: Any, environment: Mapping[str, str] = os.environ) -> str:
    """The caller's address; where that is None, the one of GEMMD_ADDRESS, else the default."""
    if address is not None:
        return check(address)
    several = environment.get(_VARIABLE)
    # A server may listen on several: the first will do.
    return check(several.split(",")[0], _VARIABLE) if several else DEFAULT


def check(address: Any, name: str = "address") -> str:
    """InvalidArgument where no server can be there. gRPC itself takes a port modulo 65536.

    name: of what gave it."""
    given = checks.text(address, "address")
    if _SOCKET.fullmatch(given):
        return given
    scheme = _SCHEME.match(given)
    hosts = given[scheme.end() :] if scheme is not None else given
    several = scheme is not None and scheme["numbers"]
    for host in hosts.split(",") if several else [hosts]:
        found = _HOST_PORT.fullmatch(host)
        if found is None:
            raise _wrong(f"{name} is {given!r}; it must be {_FORM}")
        port = found[3]
        if not port:
            raise _wrong(f"{name} is {given!r}, which has no port; it must be {_FORM}")
        if not _is_port(port):
            raise _wrong(
                f"{name} is {given!r}, whose port is {port}; it must be 1 to {_MOST_PORT}"
            )
    return given


def host(address: str) -> str | None:
    """Of an address that was checked, the first where it has several. None for a socket's path."""
    if _SOCKET.fullmatch(address):
        return None
    scheme = _SCHEME.match(address)
    first = address[scheme.end() if scheme is not None else 0 :].split(",")[0]
    return first.rpartition(":")[0].removeprefix("[").removesuffix("]")


def _is_port(text: str) -> bool:
    digits = text.lstrip("0")
    known = digits.isascii() and digits.isdigit() and len(digits) <= 5
    return known and int(digits) <= _MOST_PORT


def _wrong(sentence: str) -> InvalidArgument:
    return InvalidArgument(sentence, field="address")
