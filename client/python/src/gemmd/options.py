"""How a client connects and how it tries again."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TypeAlias

from . import checks
from .contract import MIB

Path: TypeAlias = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Retry:
    """When a call is tried again, and when it gives up.

    UNAVAILABLE is tried again where the call leaves nothing behind under a name of the
    caller's; RESOURCE_EXHAUSTED where the server says when to try again, as it has then done
    nothing. The wait is what the server says and, on top, a random time of up to
    `first_seconds`, twice as much before the third attempt, and so on up to
    `longest_seconds`. An error whose server wants a longer wait than that is raised.
    """

    #: The first one included. 1: no call is tried again.
    attempts: int = 5
    first_seconds: float = 0.1
    longest_seconds: float = 2.0
    #: Bounds what all calls of a client add to the load of a server in trouble. A call pays in
    #: `budget_per_call`, and a further attempt takes 1. At most `budget` is saved up; a client
    #: begins with as much. A pipeline has a budget of its own: two attempts for
    #: each product of its window, and one for each that has ended well.
    budget: float = 20.0
    budget_per_call: float = 0.2


@dataclass(frozen=True)
class Options:
    """What `gemmd.connect` takes beside the address."""

    #: TCP connections, 1 to 64. Calls take turns on them; a large matrix is split over all.
    #: More than a few are slower: what grpcio does for each message, it does one at a time.
    channels: int = 2
    #: Payload bytes of a message; never more than the server accepts.
    chunk_bytes: int = MIB
    #: Up to this many bytes of operands and result together go as one message each way.
    unary_bytes: int = 256 << 10
    #: A matrix of at least this many bytes is split over the channels.
    stripe_bytes: int = 8 * MIB
    #: The largest message that this client accepts.
    max_message_bytes: int = 64 * MIB
    #: Seconds for calls that give no timeout of their own. None, or inf: `idle_timeout` is their
    #: bound.
    timeout: float | None = None
    #: A call without a timeout ends with DeadlineExceeded once nothing was sent or received for so
    #: many seconds. A product counts as that while the server computes it. inf: no bound.
    idle_timeout: float = 300.0
    #: Seconds for `connect`, with all its attempts, and for `Handle.free`.
    connect_timeout: float = 10.0
    #: A silent connection is pinged after this many seconds, and given up after as many more.
    keepalive_seconds: float = 30.0
    keepalive_timeout: float = 20.0
    #: The time to live of matrices that the package itself keeps on the server during a call.
    transfer_ttl: float = 120.0
    #: Whether transfers of more than a second are shown with tqdm, where it is installed.
    progress: bool = True
    retry: Retry = field(default_factory=Retry)
    #: TLS with the system's CAs. Also on where `ca` or `cert` is given; else plain TCP, which
    #: never goes through the proxy of http_proxy.
    tls: bool = False
    #: The file of the CA that signed the server's certificate, in PEM.
    ca: Path = None
    #: The files of the certificate to show and of its private key, in PEM: both or neither.
    cert: Path = None
    key: Path = None
    #: The name in the server's certificate, where it is not the address's.
    server_name: str | None = None
    #: The bearer token that the server knows this client by, or the file that has it. Left
    #: out: that of GEMMD_TOKEN_FILE, else GEMMD_TOKEN, in the environment.
    #: token="": none, whatever the environment has.
    token: str | None = field(default=None, repr=False)
    token_file: Path = None
    #: A token is sent without TLS to this machine alone, unless this is set.
    token_without_tls: bool = False

    def check(self) -> None:
        """InvalidArgument names the option, the value and the bound."""
        for name, least, most in (
            ("channels", 1, 64),
            ("chunk_bytes", 4096, 64 * MIB),
            ("unary_bytes", 0, 64 * MIB),
            ("stripe_bytes", 1, 1 << 62),
            ("max_message_bytes", 64 << 10, 1024 * MIB),
        ):
            checks.integer(getattr(self, name), name, least, most)
        for name, longest in (
            ("keepalive_seconds", 86400),
            ("keepalive_timeout", 86400),
            ("transfer_ttl", 1e9),
        ):
            checks.between(getattr(self, name), name, 0.001, longest)
        for name in ("connect_timeout", "idle_timeout"):
            checks.timeout(getattr(self, name), name)
        if self.timeout is not None:
            checks.timeout(self.timeout)
        if self.server_name is not None:
            checks.text(self.server_name, "server_name")
        for name in ("progress", "tls", "token_without_tls"):
            checks.flag(getattr(self, name), name)
        checks.instance(self.retry, "retry", Retry, "a gemmd.Retry")
        for name, bound in (
            ("attempts", 1),
            ("first_seconds", 0),
            ("longest_seconds", 0),
            ("budget", 0),
            ("budget_per_call", 0),
        ):
            checks.between(getattr(self.retry, name), f"retry.{name}", bound)
