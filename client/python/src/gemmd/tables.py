"""Records that a terminal and a notebook show as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Generic, TypeVar, overload

Record = TypeVar("Record")


def html_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in HTML; every cell is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text(value: Any) -> str:
    """A cell: what a person reads."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(text(item) for item in value)
    return str(value)


class Table(Sequence[Record], Generic[Record]):
    """A sequence of records of one dataclass."""

    def __init__(self, kind: type[Record], records: Iterable[Record]) -> None:
        self._kind = kind
        self._records = tuple(records)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(self._kind))  # type: ignore[arg-type]

    def _cells(self) -> list[tuple[Any, ...]]:
        return [tuple(getattr(r, name) for name in self.columns) for r in self._records]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Table[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Table[Record]:
        if isinstance(index, slice):
            return Table(self._kind, self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def dataframe(self) -> Any:
        """The records as a pandas.DataFrame. Needs pandas."""
        import pandas

        return pandas.DataFrame(self._cells(), columns=list(self.columns))

    def __repr__(self) -> str:
        if not self._records:
            return f"<no {self._kind.__name__}>"
        rows = [tuple(text(cell) for cell in row) for row in [self.columns, *self._cells()]]
        widths = [min(40, max(len(row[i]) for row in rows)) for i in range(len(self.columns))]
        return "\n".join(
            "  ".join(cell[:width].ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        return html_table(self.columns, self._cells())
