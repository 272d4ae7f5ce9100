"""# unused-suppression (GM001)

## What it does

Finds comments that are to silence a finding and silence none: the mistake is mended, the comment has moved away from
it, or no rule is called what it names.

## Why is this bad?

It hides the next mistake on that statement, and it tells the reader of a mistake that is not there. A misspelled rule
silences nothing at all.

## Example

```python
import torch

x = torch.randn(3, requires_grad=True)
loss = (x**2).sum()
loss.backward()  # gradmend: ignore[GM304] the graph is used again
```

## Use instead

```python
import torch

x = torch.randn(3, requires_grad=True)
loss = (x**2).sum()
loss.backward()
```

## Fix safety

Safe: only a comment goes, and of several rules in one comment only those that silence nothing. Unsafe where no rule is
called so: the nearest name is written, or the word goes; a newer gradmend may know it.

## When to leave it

A comment is judged only if its rules were looked for: one for a rule that `select` or `ignore` leaves out stays, and so
does every comment in a file that is too complex to be followed to its end. In a file that other files import, comments
inside functions and classes are not judged, for the mistake may show only from there. `ignore[GM001]` beside the other
names keeps a comment, `ignore-file[GM001]` all of a file.

## References

- https://docs.astral.sh/ruff/rules/unused-noqa/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .analysis.source import Source
from .analysis.suppression import Name, Suppression, Suppressions
from .draft import Context, Draft, Rule
from .finding import Edit, Finding, Repair, Safety, Severity, Span

RULE = Rule("GM001", "unused-suppression", "A comment that is to silence a finding and silences none")


def find(context: Context) -> Iterator[Draft]:
    """Nothing is asked of the tape: what has served is known after all rules; see :func:`unused`."""
    return iter(())


def unused(
    source: Source,
    suppressions: Suppressions,
    looked_for: frozenset[str] | None,
    nearest: Callable[[str], str | None],
    is_judged: Callable[[Suppression], bool],
) -> list[Finding]:
    """The findings of this rule, once ``suppressions`` have been asked about all others.

    ``looked_for`` are the codes that a finding could have had, None for all; ``nearest`` gives the rule's name that a
    word comes near to; ``is_judged`` says whether all that could show on what a suppression covers is known.
    """
    found: list[tuple[Suppression, Finding]] = []
    for one in suppressions.all:
        if one.fault is not None:
            found.append((one, _finding(source, one.span, one.fault, ())))
            continue
        found += [
            (one, _unknown(source, one, name, nearest(name.text)))
            for name in one.names or ()
            if not suppressions.codes(name)
        ]
        idle = _idle(one, suppressions, looked_for)
        if idle is not None and is_judged(one):
            found.append((one, _serves_nothing(source, one, idle)))
    kept = [finding for one, finding in found if not _silenced(one, suppressions)]
    # Those that are to silence this rule come last, and nothing silences what is said of them.
    for one in suppressions.all:
        own = [
            name
            for name in one.names or ()
            if suppressions.codes(name) == {RULE.code} and (one, name.text) not in suppressions.served
        ]
        if own and is_judged(one):
            kept.append(_serves_nothing(source, one, own))
    return kept


def _silenced(one: Suppression, suppressions: Suppressions) -> bool:
    """Whether a finding about ``one`` is silenced itself: by its rule's name, or in a file where everything is."""
    silent = False
    for other in suppressions.all:
        if other.fault is not None or not (other.whole_file or other.rows == one.rows):
            continue
        if other.names is None:
            # Not unless it serves otherwise: it would serve by being unused.
            silent |= other.whole_file and (other, None) in suppressions.served
        for name in other.names or ():
            if suppressions.codes(name) == {RULE.code}:
                suppressions.served.add((other, name.text))
                silent = True
    return silent


def _idle(one: Suppression, suppressions: Suppressions, looked_for: frozenset[str] | None) -> list[Name] | None:
    """The names that silence nothing; an empty list where none is named and nothing silenced, None where all serve."""
    if one.names is None:
        return [] if looked_for is None and (one, None) not in suppressions.served else None
    idle = [
        name
        for name in one.names
        if (codes := suppressions.codes(name) - {RULE.code})
        and (looked_for is None or codes <= looked_for)
        and (one, name.text) not in suppressions.served
    ]
    return idle or None


def _serves_nothing(source: Source, one: Suppression, idle: Sequence[Name]) -> Finding:
    """``idle`` are the names that silence nothing; none where the suppression names none."""
    where = "in this file" if one.whole_file else "on this statement" if one.rows != (0, 0) else "below this comment"
    names = _listed(idle)
    what = f"there is no {names} {where} to silence" if idle else f"there is nothing {where} to silence"
    left = [name for name in one.names or () if name not in idle]
    message = f"Remove {names} from the suppression" if left else "Remove the suppression"
    repair = Repair(Safety.SAFE, message, (_edit(source, one, left),))
    span = idle[0].span if left else one.span
    return _finding(source, span, what, (repair,))


def _unknown(source: Source, one: Suppression, name: Name, near: str | None) -> Finding:
    left = [other for other in one.names or () if other is not name]
    without = Repair(Safety.UNSAFE, f"Remove `{name.text}`", (_edit(source, one, left),))
    if near is None:
        return _finding(source, name.span, f"no rule is called `{name.text}`", (without,))
    cell, span = source.locate(name.span)
    corrected = Repair(Safety.UNSAFE, f"Write `{near}`", (Edit(source.filename, span, near, cell),))
    message = f"no rule is called `{name.text}`; did you mean `{near}`?"
    return _finding(source, name.span, message, (corrected, without))


def _edit(source: Source, one: Suppression, left: Sequence[Name]) -> Edit:
    """The edit that leaves only the names ``left``; with none, nothing of the suppression, nor of its line if that is
    all that the line holds."""
    span, content = one.span, ""
    line = source.lines[span.row - 1]
    before, after = line[: span.column - 1], line[span.end_column - 1 :]
    if left:
        assert one.names is not None
        first, last = one.names[0].span, one.names[-1].span
        span, content = Span(first.row, first.column, last.row, last.end_column), ", ".join(n.text for n in left)
    elif after.strip():
        # Another tool's comment goes on here.
        span = Span(span.row, span.column, span.row, len(line) - len(after.lstrip()) + 1)
    elif before.strip() or span.row == len(source.lines):
        span = Span(span.row, len(before.rstrip()) + 1, span.row, len(line) + 1)
    else:
        span = Span(span.row, 1, span.row + 1, 1)
    cell, span = source.locate(span)
    return Edit(source.filename, span, content, cell)


def _listed(names: Sequence[Name]) -> str:
    """`GM101`, `GM102` or `GM103`."""
    texts = [f"`{name.text}`" for name in dict.fromkeys(names)]
    return " or ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def _finding(source: Source, span: Span, message: str, repairs: tuple[Repair, ...]) -> Finding:
    cell, place = source.locate(span)
    return Finding(
        RULE.code,
        RULE.name,
        message,
        source.filename,
        Severity.NOTE,
        place,
        cell,
        repair=repairs[0] if repairs else None,
        alternatives=repairs[1:],
    )
