"""GitLab's code quality report."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gradmend.cli.printable import printable

from . import Listing
from .places import in_words, relative, with_identity

SEVERITIES = {"error": "critical", "warning": "major", "note": "info"}


def render(listing: Listing) -> Iterator[str]:
    entries = []
    for finding, identity in with_identity(listing.findings, listing.texts):
        inside = f" ({in_words(finding)})" if finding.cell is not None else ""
        # A notebook's file has other rows than its cells.
        row, end_row = (1, 1) if finding.cell is not None else (finding.span.row, finding.span.end_row)
        entries.append(
            {
                "check_name": finding.code,
                "description": f"{finding.code} {finding.name}: {printable(finding.message)}{inside}",
                "categories": ["Bug Risk"],
                "severity": SEVERITIES[finding.severity.value],
                "fingerprint": identity,
                "location": {"path": relative(finding.filename), "lines": {"begin": row, "end": end_row}},
            }
        )
    yield json.dumps(entries, indent=2) + "\n"
