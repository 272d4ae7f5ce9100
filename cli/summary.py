"""Findings counted by rule and by file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .printable import printable_name

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

FILES_SHOWN = 20


def statistics_lines(findings: Sequence[Finding], output_format: str) -> Iterator[str]:
    """``count code [*] name`` lines, the commonest first; a list of objects for the JSON formats."""
    counts = Counter(finding.code for finding in findings)
    names = {finding.code: finding.name for finding in findings}
    repairable = Counter(finding.code for finding in findings if finding.repair is not None)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if output_format.startswith("json"):
        yield (
            json.dumps(
                [
                    {"code": code, "name": names[code], "count": count, "repairable": repairable[code]}
                    for code, count in rows
                ],
                indent=2,
            )
            + "\n"
        )
        return
    for code, count in rows:
        mark = "[*]" if repairable[code] == count else "[-]" if repairable[code] else "[ ]"
        yield f"{count}\t{code}\t{mark} {names[code]}\n"


def table(applied: Iterable[Finding]) -> Iterator[str]:
    """What was mended, by rule and by file."""
    findings = list(applied)
    by_rule = Counter((finding.code, finding.name) for finding in findings)
    for (code, name), count in sorted(by_rule.items()):
        yield f"{count:>6}  {code} {name}"
    by_file = sorted(Counter(finding.filename for finding in findings).items(), key=lambda item: (-item[1], item[0]))
    if len(by_file) > 1:
        yield ""
        for filename, count in by_file[:FILES_SHOWN]:
            yield f"{count:>6}  {printable_name(filename)}"
        if len(by_file) > FILES_SHOWN:
            yield f"        and {len(by_file) - FILES_SHOWN} more files"
