"""How a matrix stays on the server."""

from __future__ import annotations

from typing import NamedTuple

from .contract import pb
from .errors import InvalidArgument


class KeepAs(NamedTuple):
    """What a caller says of a matrix that is to stay."""

    #: None: a name of the package's own.
    name: str | None = None
    ttl: float | None = None
    replace: bool = False
    if_version: int | None = None
    shared: bool = False

    def proto(self, name: str) -> pb.Keep:
        """Under `name`. InvalidArgument names the option that cannot be."""
        keep = pb.Keep(name=name, replace=self.replace, shared=self.shared)
        for field in ("replace", "shared"):
            if getattr(self, field) and self.name is None:
                raise InvalidArgument(f"{field} is set without a name; give name", field=field)
        if self.if_version is not None:
            if not self.replace or not 0 <= self.if_version < 1 << 64:
                raise InvalidArgument(
                    f"if_version is {self.if_version}; it must be 0 to 2**64 - 1, with replace=True",
                    field="if_version",
                )
            keep.if_version = self.if_version
        if self.ttl is not None:
            if not self.ttl > 0:
                raise InvalidArgument(f"ttl is {self.ttl}; it must be above 0 seconds", field="ttl")
            keep.ttl.FromMicroseconds(round(self.ttl * 1e6))
        return keep
