"""Where a finding is, in the words of other tools: relative paths with slashes, and an identity that outlives edits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from gradmend.cli.wanted import fingerprint

from .texts import Texts

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding


def relative(filename: str) -> str:
    """The path as CI systems want it: from the working folder, where the file lies in it, with ``/``."""
    here = os.path.join(os.getcwd(), "")
    return os.path.abspath(filename).removeprefix(here).replace(os.sep, "/")


def in_words(finding: Finding) -> str:
    """Row and column for people, with the cell of a notebook."""
    cell = f"cell {finding.cell}, " if finding.cell is not None else ""
    return f"{cell}line {finding.span.row}, column {finding.span.column}"


def with_identity(findings: Iterable[Finding], texts: Texts) -> Iterator[tuple[Finding, str]]:
    """Each finding with a text that stays the same when lines around it come and go; unique in the run."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for finding in findings:
        key = (relative(finding.filename), *fingerprint(finding, texts.lines))
        seen[key] += 1
        yield finding, sha256("\0".join((*key, str(seen[key]))).encode("utf-8", "replace")).hexdigest()[:32]
