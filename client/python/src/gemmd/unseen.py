"""Names for what may be on the server without this client knowing it."""

from __future__ import annotations

from .janitor import Janitor, by_name
from .stripes import new_id

_OWN_PREFIX = "python-"


class Unseen:
    """A matrix that may be on the server without this client knowing its id.

    A call can end well there just as its caller gives up. So every matrix has a name, and
    what is left under a name of this class is deleted when the block ends. A name of the
    caller's is left alone: another matrix may have it.
    """

    def __init__(self, janitor: Janitor, name: str | None) -> None:
        self._janitor = janitor
        self._given = name
        self._own: list[str] = []

    def __enter__(self) -> Unseen:
        self._janitor.start()
        return self

    def new_name(self) -> str:
        """The caller's, or a new one for each attempt."""
        if self._given is not None:
            return self._given
        self._own.append(_OWN_PREFIX + new_id())
        return self._own[-1]

    def known(self) -> None:
        """The last one has a handle now."""
        del self._own[-1:]

    def __exit__(self, *_: object) -> None:
        for name in self._own:
            self._janitor.delete(by_name(name))
