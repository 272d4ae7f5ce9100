"""What the tests of the codemods share: mend a source with one rule, twice."""

from __future__ import annotations

from textwrap import dedent

from gradmend import codemods
from gradmend.codemods import Finding


def findings(source: str, code: str) -> list[Finding]:
    """The findings of one rule."""
    return [finding for finding in codemods.scan(dedent(source)) if finding.code == code]


def mended(source: str, code: str, *, unsafe: bool = False) -> str:
    """The source with the repairs of one rule; mending that once more must change nothing."""
    once = codemods.mend(dedent(source), unsafe=unsafe, select=frozenset({code}))
    again = codemods.mend(once.source, unsafe=unsafe, select=frozenset({code}))
    assert again.source == once.source
    assert isinstance(once.source, str)
    return once.source


def changed_lines(source: str, code: str, *, unsafe: bool = False) -> list[str]:
    """The lines that mending took away and put in, as ``-old`` and ``+new`` without indentation."""
    before, after = dedent(source).splitlines(), mended(source, code, unsafe=unsafe).splitlines()
    gone = [f"-{line.strip()}" for line in before if before.count(line) > after.count(line)]
    new = [f"+{line.strip()}" for line in after if after.count(line) > before.count(line)]
    return list(dict.fromkeys([*gone, *new]))
