"""What a client shows a server, and what it asks a server to show."""

from __future__ import annotations

import codecs
import os
import re
import ssl
from collections.abc import Mapping
from typing import TypeAlias

import grpc

from . import checks
from .errors import InvalidArgument, InvalidType
from .options import Options, Path

Metadata: TypeAlias = tuple[tuple[str, str], ...]

# The server takes no longer one.
_MOST_TOKEN_BYTES = 1024
_THIS_MACHINE = re.compile(
    r"unix(-abstract)?:.*"
    r"|(dns:///|ipv4:|ipv6:)?(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?"
)


def _read(option: str, path: Path) -> bytes | None:
    if path is None:
        return None
    checks.instance(path, option, (str, os.PathLike), "a path")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidArgument(
            f"{option} is {os.fspath(path)!r}, which cannot be read: {why}", field=option
        ) from None
    if not content.strip():
        raise InvalidArgument(f"{option} is {os.fspath(path)!r}, which is empty", field=option)
    if content.startswith(codecs.BOM_UTF8):
        # Editors write it. The text behind it would not be at the start of a line.
        raise InvalidArgument(
            f"{option} is {os.fspath(path)!r}, which begins with a byte order mark; save it "
            "without one",
            field=option,
        )
    return content


def _read_pem(option: str, path: Path, what: str) -> bytes | None:
    content = _read(option, path)
    label = what.upper().encode()
    pem = rb"-----BEGIN ([A-Z0-9 ]+ )?%b-----.+-----END ([A-Z0-9 ]+ )?%b-----" % (label, label)
    if content is not None and re.search(pem, content, re.DOTALL) is None:
        raise InvalidArgument(
            f"{option} is {os.fspath(path or '')!r}, which has no {what} in PEM", field=option
        )
    return content


def _check_pair(cert: Path, key: Path) -> None:
    """InvalidArgument where the key is not the certificate's."""
    if cert is None or key is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")  # how long a key must be is gRPC's matter
    try:
        context.load_cert_chain(cert, key, password="")  # no question on the terminal
    except ssl.SSLError as error:
        raise InvalidArgument(
            f"key is {os.fspath(key)!r}, which is not the private key, without a password, of "
            f"the certificate that cert has, {os.fspath(cert)!r}: {error.reason}",
            field="key",
        ) from None


def uses_tls(options: Options) -> bool:
    """Whether the channels have TLS; else plain TCP."""
    return options.tls or options.ca is not None or options.cert is not None


def of_channel(options: Options) -> grpc.ChannelCredentials | None:
    """None: plain TCP. InvalidArgument names the option and the file."""
    if (options.cert is None) != (options.key is None):
        given, other = ("cert", "key") if options.key is None else ("key", "cert")
        raise InvalidArgument(
            f"{given} is given without {other}; both must be, or neither", field=given
        )
    if not uses_tls(options):
        if options.server_name is not None:
            raise InvalidArgument(
                "server_name is given without TLS; give tls=True or ca as well", field="server_name"
            )
        return None
    ca = _read_pem("ca", options.ca, "certificate")
    cert = _read_pem("cert", options.cert, "certificate")
    key = _read_pem("key", options.key, "private key")
    # Read once more, which a pipe does not allow.
    if all(path is None or os.path.isfile(path) for path in (options.cert, options.key)):
        _check_pair(options.cert, options.key)
    return grpc.ssl_channel_credentials(ca, key, cert)


def _token(options: Options, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The token and the name of what gave it; errors quote nothing of it."""
    if options.token is not None and options.token_file is not None:
        raise InvalidArgument("token and token_file are both given; at most one may be")
    if options.token is not None:
        if not isinstance(options.token, str):
            kind = type(options.token).__name__  # and nothing of it
            raise InvalidType(f"token is a {kind}; it must be a str", field="token")
        return "token", options.token
    name, path = "token_file", options.token_file
    if path is None and environment.get("GEMMD_TOKEN_FILE"):
        name, path = "GEMMD_TOKEN_FILE", environment["GEMMD_TOKEN_FILE"]
    content = _read(name, path)
    if content is not None:
        return name, content.decode("utf-8", "replace")
    return "GEMMD_TOKEN", environment.get("GEMMD_TOKEN") or None


def of_calls(
    address: str, options: Options, environment: Mapping[str, str] = os.environ
) -> Metadata:
    """The metadata of every call: the token, where there is one."""
    name, token = _token(options, environment)
    if token is None or (name == "token" and token == ""):
        return ()
    token = token.rstrip()  # the end of a line
    graphic = all("!" <= character <= "~" for character in token)
    if not graphic or not 1 <= len(token) <= _MOST_TOKEN_BYTES:
        raise InvalidArgument(
            f"{name} has a token of {len(token)} characters; it must be 1 to "
            f"{_MOST_TOKEN_BYTES} printable ASCII characters without spaces",
            field=name,
        )
    plain = not uses_tls(options)
    if plain and not options.token_without_tls and _THIS_MACHINE.fullmatch(address) is None:
        raise InvalidArgument(
            f"{name} is not sent to {address} without TLS, where others may read it: give tls "
            "or ca, or token_without_tls=True",
            field=name,
        )
    return (("authorization", f"Bearer {token}"),)
