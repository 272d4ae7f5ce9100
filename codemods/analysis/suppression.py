"""Comments that silence findings: read from tokens, never from strings, and what each of them covers.

    # gradmend: ignore[GM101, accumulated-loss] and why
    # gradmend: ignore
    # gradmend: ignore-file[GM304]

A comment covers the statement that it stands in or, alone on its line, the one below it: all of its lines; of a
compound statement the header, with its decorators. A formatter that moves a comment within its statement changes
nothing.
"""

from __future__ import annotations

import difflib
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..finding import Span

if TYPE_CHECKING:
    from .source import Source

MARK: Final = "gradmend:"
"""What every suppression holds; a text without it is not looked at."""
STATEMENT: Final = "ignore"
FILE: Final = "ignore-file"
OTHER_TOOLS: Final = ("disable", "noqa", "off", "skip", "skip-file")
"""What such comments are called elsewhere: somebody who writes one here wants it to work."""

_DIRECTIVE: Final = re.compile(r"#\s*gradmend:[ \t]*(?P<verb>[A-Za-z][\w-]*)(?P<names>[ \t]*\[[^\]]*(?P<closed>\])?)?")
_NAME: Final = re.compile(r"[^\s,]+")
_NO_REASON: Final = re.compile(r"[ \t]*[:=]?[ \t]*(?:\(|GM\d)", re.IGNORECASE)
_OTHER_COMMENT: Final = re.compile(r"\s#\s*(?=[\w.-]+:|noqa\b|nosec\b|pragma\b)")
"""Where another tool's comment begins on the same line; any other text is the reason."""


@dataclass(frozen=True, slots=True)
class Name:
    """A rule named in the brackets, as it is written."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment, or the part of one that is gradmend's."""

    span: Span
    """In the analysis text, the reason included."""
    names: tuple[Name, ...] | None
    """None for all rules."""
    whole_file: bool
    rows: tuple[int, int]
    """First and last row of the statement that it covers; (0, 0) where nothing is below it in its block or cell."""
    fault: str | None = None
    """Why it cannot be read, in words for people; such a comment silences nothing."""

    def covers(self, row: int) -> bool:
        """Whether what begins on ``row`` is silenced, if its rule is named."""
        return self.fault is None and (self.whole_file or self.rows[0] <= row <= self.rows[1])


@dataclass(slots=True)
class _Statement:
    """A logical line with its decorators, as far as it is read."""

    first_row: int = 0
    last_row: int = 0
    column: int = 0
    decorator: bool = False
    above: list[tokenize.TokenInfo] = field(default_factory=list)
    inside: list[tokenize.TokenInfo] = field(default_factory=list)


def read(source: Source) -> tuple[Suppression, ...]:
    """All suppressions of a source, in the order of its text."""
    if MARK not in source.text:
        return ()
    return tuple(sorted(_read(source), key=lambda suppression: suppression.span))


def _read(source: Source) -> Iterator[Suppression]:
    for statement in _statements(source):
        rows = (statement.first_row, statement.last_row)
        for comment in statement.inside:
            yield from _directives(comment, rows)
        for comment in statement.above:
            deeper = _width(source, *comment.start) > statement.column
            below = rows[0] and not deeper and _cell(source, comment.start[0]) == _cell(source, rows[0])
            yield from _directives(comment, rows if below else (0, 0))


def _statements(source: Source) -> Iterator[_Statement]:
    """The logical lines that have comments in or above them; after the last, what stands above nothing."""
    current = _Statement()
    within = False
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT:
                (current.inside if within else current.above).append(token)
            elif token.type == tokenize.NEWLINE:
                within = False
                if not current.decorator:
                    yield current
                    current = _Statement()
            elif token.type == tokenize.ENDMARKER:
                yield current
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                if not current.first_row:
                    current.first_row = token.start[0]
                    current.column = _width(source, *token.start)
                if not within:
                    current.decorator = token.string == "@"
                    within = True
                current.last_row = token.end[0]
    except (tokenize.TokenError, SyntaxError):
        # The text parses, or nothing would be looked at; what this tokenizer cannot read is left alone.
        return


def _directives(comment: tokenize.TokenInfo, rows: tuple[int, int]) -> Iterator[Suppression]:
    row, column = comment.start
    text = comment.string

    def span(start: int, end: int) -> Span:
        return Span(row, column + start + 1, row, column + end + 1)

    for found in _DIRECTIVE.finditer(text):
        verb = found["verb"].lower()
        other = _OTHER_COMMENT.search(text, found.end())
        end = other.start() if other else len(text)
        whole = span(found.start(), found.start() + len(text[found.start() : end].rstrip()))
        fault = _fault(verb, found, text)
        if fault is None and verb not in (STATEMENT, FILE):
            continue
        names = None
        if found["names"] is not None:
            start, closed = found.start("names"), found.end("names")
            names = tuple(
                Name(name.group(), span(name.start(), name.end()))
                for name in _NAME.finditer(text, text.index("[", start) + 1, closed - (found["closed"] is not None))
            )
            if not names:
                fault = fault or "the brackets name no rule"
        yield Suppression(whole, names, verb == FILE, rows, fault)


def _fault(verb: str, found: re.Match[str], text: str) -> str | None:
    if verb not in (STATEMENT, FILE):
        near = difflib.get_close_matches(verb, (STATEMENT, FILE), 1, 0.7)
        if not near and verb not in OTHER_TOOLS:
            return None
        meant = near[0] if near else FILE if verb == "skip-file" else STATEMENT
        return f"`{verb}` silences nothing; did you mean `# gradmend: {meant}`?"
    if found["names"] is not None:
        return None if found["closed"] else "the brackets are not closed"
    if _NO_REASON.match(text, found.end()):
        # Read as a reason, it would silence every rule where one is meant.
        return f"a rule is named in brackets: `# gradmend: {verb}[GM101]`"
    return None


def _width(source: Source, row: int, column: int) -> int:
    before = source.lines[row - 1][:column]
    return len(before[before.rfind("\f") + 1 :].expandtabs())


def _cell(source: Source, row: int) -> int | None:
    return source.locate(Span(row, 1, row, 1))[0]


class Suppressions:
    """The suppressions of one file, and which of them have served."""

    __slots__ = ("_codes", "all", "served")

    def __init__(self, suppressions: tuple[Suppression, ...], resolve: Callable[[str], frozenset[str]]) -> None:
        """``resolve`` gives the codes that a name stands for, none for an unknown one."""
        self.all = suppressions
        self._codes = {name.text: resolve(name.text) for one in suppressions for name in one.names or ()}
        self.served: set[tuple[Suppression, str | None]] = set()
        """Suppression and name in it; None for one that names no rule."""

    def codes(self, name: Name) -> frozenset[str]:
        """What ``name`` stands for; empty where no rule is called so."""
        return self._codes[name.text]

    def silence(self, code: str, row: int) -> bool:
        """Whether a finding of the rule ``code`` that begins on ``row`` is silenced; every suppression that does so has
        served."""
        silent = False
        for suppression in self.all:
            if not suppression.covers(row):
                continue
            if suppression.names is None:
                self.served.add((suppression, None))
                silent = True
            for name in suppression.names or ():
                if code in self._codes[name.text]:
                    self.served.add((suppression, name.text))
                    silent = True
        return silent
