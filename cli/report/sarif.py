"""SARIF 2.1.0, for code scanning.

A finding that a comment or the baseline suppresses is there and marked: if it vanished, the service would close its
alert and reopen it later. A notebook's findings have no region, for its file has other rows than its cells; the cell
and row stand in the logical location.

The model is written out here as plain values. The one library of SARIF classes in Python that asks for no framework
has stood still since 2019; the tests hold the output against the published schema instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gradmend.codemods.registry import RULES, page

from . import Listing
from .places import relative, with_identity

if TYPE_CHECKING:
    from gradmend.codemods.finding import Edit, Finding, Place, Repair, Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(listing: Listing) -> Iterator[str]:
    index = {rule.code: number for number, rule in enumerate(RULES)}
    results = []
    for findings, suppression in (
        (listing.findings, None),
        (listing.ignored, {"kind": "inSource", "status": "accepted"}),
        (listing.known, {"kind": "external", "status": "accepted", "justification": "in the baseline"}),
    ):
        for finding, identity in with_identity(findings, listing.texts):
            result = _result(finding, identity)
            if finding.code in index:
                result["ruleIndex"] = index[finding.code]
            if suppression is not None:
                result["suppressions"] = [suppression]
            results.append(result)
    run = {
        "tool": {"driver": {"name": "gradmend", "version": _version(), "rules": [_rule(rule.code) for rule in RULES]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(listing)],
        "results": results,
    }
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _version() -> str:
    try:
        return version("gradmend")
    except PackageNotFoundError:
        return "0"


def _rule(code: str) -> dict[str, Any]:
    rule = next(rule for rule in RULES if rule.code == code)
    text = page(code).strip()
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": text, "markdown": text},
    }


def _invocation(listing: Listing) -> dict[str, Any]:
    notes = [
        {
            "level": "error",
            "message": {"text": reason},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(filename)}}],
        }
        for filename, reason in listing.failed.items()
    ]
    return {"executionSuccessful": not notes, "toolExecutionNotifications": notes}


def _result(finding: Finding, identity: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": finding.severity.value,
        "message": {"text": finding.message},
        "locations": [_location(finding.filename, finding.cell, finding.span)],
        "partialFingerprints": {"gradmendLine/v1": identity},
    }
    related = [_related(number, place) for number, place in enumerate(finding.places, 1)]
    if related:
        result["relatedLocations"] = related
    if finding.repair is not None and all(edit.cell is None for edit in finding.repair.edits):
        result["fixes"] = [_fix(finding.repair)]
    return result


def _related(number: int, place: Place) -> dict[str, Any]:
    message = {"text": f"{place.role.value}: {place.label}"}
    return {"id": number, **_location(place.filename, place.cell, place.span), "message": message}


def _location(filename: str, cell: int | None, span: Span) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(filename)}
    if cell is None:
        return {"physicalLocation": physical | {"region": _region(span)}}
    name = f"cell {cell}, line {span.row}, column {span.column}"
    return {"physicalLocation": physical, "logicalLocations": [{"name": name, "kind": "module"}]}


def _artifact(filename: str) -> dict[str, str]:
    path = relative(filename)
    uri = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.row,
        "startColumn": span.column,
        "endLine": span.end_row,
        "endColumn": span.end_column,
    }


def _fix(repair: Repair) -> dict[str, Any]:
    def name(edit: Edit) -> str:
        return edit.filename

    changes = [
        {
            "artifactLocation": _artifact(filename),
            "replacements": [
                {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}} for edit in edits
            ],
        }
        for filename, edits in groupby(sorted(repair.edits, key=name), name)
    ]
    return {"description": {"text": f"{repair.message} ({repair.safety.value})"}, "artifactChanges": changes}
