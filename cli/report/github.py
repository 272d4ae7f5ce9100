"""Workflow commands that GitHub Actions turns into annotations on the pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradmend.cli.printable import printable

from . import Listing
from .concise import where
from .places import relative

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def render(listing: Listing) -> Iterator[str]:
    for finding in listing.findings:
        parts = {"title": f"gradmend ({finding.code})", "file": relative(finding.filename), **_rows(finding)}
        properties = ",".join(f"{key}={_property(value)}" for key, value in parts.items())
        message = f"{where(finding)}: {finding.code} {finding.message}"
        if finding.repair is not None:
            message += f"\n  help: {finding.repair.message}"
        yield f"::{LEVELS[finding.severity.value]} {properties}::{_data(message)}\n"


def _rows(finding: Finding) -> dict[str, str]:
    """The rows; none in a notebook, whose file has other rows than its cells."""
    if finding.cell is not None:
        return {}
    span = finding.span
    rows = {"line": str(span.row), "endLine": str(span.end_row)}
    if span.row == span.end_row:
        rows |= {"col": str(span.column), "endColumn": str(span.end_column)}
    return rows


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
