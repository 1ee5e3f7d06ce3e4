"""The proxy that a connection with TLS goes through."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import NamedTuple

from . import address as addresses


class Proxy(NamedTuple):
    #: host:port, without its password.
    address: str
    variable: str


def chosen(address: str, environment: Mapping[str, str] = os.environ) -> Proxy | None:
    """That of grpc_proxy, https_proxy or http_proxy, the first that is set, as gRPC takes it: it
    must be http://HOST:PORT.

    None also for a server that is excepted by no_grpc_proxy, no_proxy or NO_PROXY, the first that
    is set: a list of host names, which stand for their subdomains as well, of subnets such as
    10.0.0.0/8, or "*" for every server. gRPC itself knows no NO_PROXY and no "*".
    """
    variable = _first_set(("grpc_proxy", "https_proxy", "http_proxy"), environment)
    host = addresses.host(address)
    if variable is None or host is None:
        return None
    scheme, _, rest = environment[variable].partition("://")
    proxy = rest.partition("/")[0].rpartition("@")[2]
    if scheme != "http" or not proxy:
        return None
    excepted = _first_set(("no_grpc_proxy", "no_proxy", "NO_PROXY"), environment)
    if excepted is not None and any(
        _covers(entry.strip(), host) for entry in environment[excepted].split(",")
    ):
        return None
    return Proxy(proxy, variable)


def _first_set(names: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    return next((name for name in names if name in environment), None)


def _covers(entry: str, host: str) -> bool:
    if not entry or entry == "*":
        return bool(entry)
    if host.lower().endswith(entry.lower()):
        return True
    try:
        return "/" in entry and ipaddress.ip_address(host) in ipaddress.ip_network(entry, False)
    except ValueError:  # a name
        return False
