"""What crosses the borders between analysis, repair and report: plain frozen data.

Rows and columns are counted from 1, columns in characters, ends are exclusive, as in Ruff's JSON output. In a notebook
a span is relative to its cell, and ``cell`` is the cell's position counted from 1 among all cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Safety(StrEnum):
    """How sure a repair is of the author's intent."""

    SAFE = "safe"
    """Every loss, gradient and update that the original computed rightly stays the same."""
    UNSAFE = "unsafe"
    """The author may have meant otherwise."""


class Severity(StrEnum):
    """What happens if the finding is left as it is."""

    ERROR = "error"
    """The run dies or learns wrongly."""
    WARNING = "warning"
    """Memory or time is lost."""
    NOTE = "note"
    """Style only."""


class Role(StrEnum):
    """Which of the three places that explain a finding this is."""

    RECORDED = "recorded"
    FREED = "freed"
    REACHED = "reached"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source; rows and columns from 1, the end exclusive."""

    row: int
    column: int
    end_row: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Place:
    """One labelled stretch of source that explains a finding."""

    role: Role
    filename: str
    span: Span
    label: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace what lies at ``span`` by ``content``; an empty span inserts, empty content deletes."""

    filename: str
    span: Span
    content: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """The edits that mend one finding together."""

    safety: Safety
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake.

    ``repair`` is the repair that ``fix`` would apply (if its safety allows); ``alternatives`` are other proved repairs
    that ``review`` offers with Tab.
    """

    code: str
    name: str
    message: str
    filename: str
    severity: Severity
    span: Span
    cell: int | None = None
    places: tuple[Place, ...] = ()
    repair: Repair | None = None
    alternatives: tuple[Repair, ...] = field(default=())
