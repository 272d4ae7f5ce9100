"""A finding as plain JSON values; the shape that ``json`` and ``json-lines`` share. Rows and columns count from 1.

A place or an edit names its file or cell only where that is not the finding's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradmend.codemods.finding import Edit, Finding, Place, Repair, Span


def as_object(finding: Finding) -> dict[str, Any]:
    """The object for one finding."""
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "filename": finding.filename,
        "severity": finding.severity.value,
        "cell": finding.cell,
        **_stretch(finding.span),
        "places": [_place(place, finding) for place in finding.places],
        "fix": _fix(finding.repair, finding) if finding.repair is not None else None,
    }


def _stretch(span: Span) -> dict[str, Any]:
    return {
        "location": {"row": span.row, "column": span.column},
        "end_location": {"row": span.end_row, "column": span.end_column},
    }


def _place(place: Place, finding: Finding) -> dict[str, Any]:
    shape = {"role": place.role.value, "filename": place.filename, **_stretch(place.span), "label": place.label}
    return shape | _cell_elsewhere(place, finding)


def _fix(repair: Repair, finding: Finding) -> dict[str, Any]:
    return {
        "applicability": repair.safety.value,
        "message": repair.message,
        "edits": [_edit(edit, finding) for edit in repair.edits],
    }


def _edit(edit: Edit, finding: Finding) -> dict[str, Any]:
    shape = {**_stretch(edit.span), "content": edit.content} | _cell_elsewhere(edit, finding)
    return shape | ({"filename": edit.filename} if edit.filename != finding.filename else {})


def _cell_elsewhere(part: Place | Edit, finding: Finding) -> dict[str, Any]:
    return {"cell": part.cell} if (part.filename, part.cell) != (finding.filename, finding.cell) else {}
