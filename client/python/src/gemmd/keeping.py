"""How a matrix stays on the server."""

from __future__ import annotations

from typing import NamedTuple

from . import checks
from .contract import pb
from .errors import InvalidArgument

# The server takes no shorter one.
_LEAST_TTL = 0.001


class KeepAs(NamedTuple):
    """What a caller says of a matrix that is to stay."""

    #: None: a name of the package's own.
    name: str | None = None
    ttl: float | None = None
    replace: bool = False
    if_version: int | None = None
    shared: bool = False

    def check_unused(self) -> None:
        """InvalidArgument where an option is given, and nothing is kept."""
        for field, value, default in zip(self._fields, self, KeepAs()):
            if value is not default:
                raise InvalidArgument(
                    f"{field} is given without keep=True; nothing stays on the server",
                    field=field,
                )

    @property
    def is_renewed(self) -> bool:
        """Whether its client renews it, as its time to live is the server's for such."""
        return self.name is None and self.ttl is None

    def proto(self, name: str, unnamed_ttl: float = 0) -> pb.Keep:
        """Under `name`. InvalidArgument names the option that cannot be.

        unnamed_ttl: seconds, where nothing else is said for a matrix without a name. 0: none.
        """
        if self.name is not None:
            checks.name(self.name)
        keep = pb.Keep(name=name)
        for field in ("replace", "shared"):
            if not checks.flag(getattr(self, field), field):
                continue
            if self.name is None:
                raise InvalidArgument(f"{field} is set without a name; give name", field=field)
            setattr(keep, field, True)
        if self.if_version is not None:
            keep.if_version = checks.integer(self.if_version, "if_version", 0, 2**64 - 1)
            if not self.replace:
                raise InvalidArgument(
                    f"if_version is {self.if_version} without replace; give replace=True",
                    field="if_version",
                )
        if self.ttl is not None:
            keep.ttl.FromMicroseconds(checks.microseconds(self.ttl, "ttl", _LEAST_TTL))
        elif self.is_renewed and unnamed_ttl > 0:
            keep.ttl.FromMicroseconds(round(unnamed_ttl * 1e6))
        return keep
