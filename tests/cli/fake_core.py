"""A core of three toy rules, so that the command line is tested for itself and not for what the analysis can see.

A line ``leak(x)`` is a GM102 with a safe repair (``leak(x.item())``) and an alternative (``.detach()``); ``maybe(x)``
is a GM101 whose repair is unsafe; ``hopeless(x)`` is a GM501 without a repair; ``crash`` makes the analysis
itself fail, ``slow`` makes it slow.
``# gradmend: ignore`` at the end of the line or alone on the line above suppresses.
"""

from __future__ import annotations

import difflib
import re
import sys
import time
import types
from dataclasses import dataclass, field
from typing import Any

from gradmend.codemods.finding import Edit, Finding, Place, Repair, Role, Safety, Severity, Span

CODES = {"leak": "GM102", "maybe": "GM101", "hopeless": "GM501"}
NAMES = {"GM102": "accumulated-loss", "GM101": "carried-hidden-state", "GM501": "full-hessian"}
SEVERITIES = {"GM102": Severity.WARNING, "GM101": Severity.ERROR, "GM501": Severity.NOTE}
IGNORE = re.compile(r"# gradmend: ignore(?:\[([^\]]*)\])?")
CALL = re.compile(r"\b(leak|maybe|hopeless)\((\w+)\)")


@dataclass(frozen=True)
class Rule:
    code: str
    name: str
    summary: str
    safety_text: str = ""
    module: str = ""


class UnknownRule(Exception):  # noqa: N818
    def __init__(self, word: str, suggestion: str | None = None) -> None:
        super().__init__(word)
        self.word, self.suggestion = word, suggestion


RULES = tuple(Rule(code, name, f"what {name} is") for code, name in sorted(NAMES.items()))


def resolve(word: str) -> frozenset[str]:
    found = frozenset(code for code, name in NAMES.items() if word in ("ALL", name) or code.startswith(word.upper()))
    if not found:
        raise UnknownRule(word, next(iter(difflib.get_close_matches(word, [*NAMES, *NAMES.values()], 1)), None))
    return found


@dataclass
class FileReport:
    filename: str
    findings: tuple[Finding, ...]
    cut: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    suppressed: tuple[Finding, ...] = ()


@dataclass
class Mended:
    source: bytes
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    others: dict[str, bytes] = field(default_factory=dict)


def _finding(word: str, argument: str, filename: str, row: int, match: re.Match[str], cell: int | None) -> Finding:
    code = CODES[word]
    span = Span(row, match.start() + 1, row, match.end() + 1)
    at = Span(row, match.end(), row, match.end())
    safety = Safety.SAFE if word == "leak" else Safety.UNSAFE
    repairs = [
        Repair(safety, f"{how} `{argument}`", (Edit(filename, at, f".{how}()", cell),)) for how in ("item", "detach")
    ]
    places = (
        Place(Role.RECORDED, filename, span, "recorded here", cell),
        Place(Role.FREED, filename, Span(max(row - 1, 1), 1, max(row - 1, 1), 2), "freed here", cell),
    )
    offered = (None, ()) if word == "hopeless" else (repairs[0], tuple(repairs[1:]))
    return Finding(
        code, NAMES[code], f"`{argument}` leaks", filename, SEVERITIES[code], span, cell, places, offered[0], offered[1]
    )


def scan_file(path: str, raw: bytes, project: object, select: frozenset[str] | None = None) -> FileReport:
    from gradmend.codemods.analysis.source import Source

    source = Source.from_bytes(raw, path)
    _ = source.tree
    lines = source.text.split("\n")
    found: dict[bool, list[Finding]] = {True: [], False: []}
    for row, line in enumerate(lines, 1):
        if line.startswith("slow"):
            time.sleep(0.4)
        if line.startswith("crash"):
            raise ZeroDivisionError("a fault of ours")
        above = lines[row - 2].strip() if row > 1 else ""
        for match in CALL.finditer(line):
            if select is not None and CODES[match[1]] not in select:
                continue
            cell, span = source.locate(Span(row, 1, row, 1))
            finding = _finding(match[1], match[2], path, span.row, match, cell)
            comments = [IGNORE.search(text) for text in (line, above if above.startswith("#") else "")]
            quiet = any(comment is not None and finding.code in (comment[1] or finding.code) for comment in comments)
            found[quiet].append(finding)
    cut = tuple(f"line {row}: too complex" for row, line in enumerate(lines, 1) if line.startswith("too_complex"))
    return FileReport(path, tuple(found[False]), cut, source.problems, tuple(found[True]))


def mend_file(
    path: str, raw: bytes, project: object, *, unsafe: bool = False, select: frozenset[str] | None = None, **_: Any
) -> Mended:
    from gradmend.codemods.analysis.source import Source
    from gradmend.codemods.rewrite.edits import TextEdit

    findings = scan_file(path, raw, project, select).findings
    source = Source.from_bytes(raw, path)
    applied = [f for f in findings if f.repair is not None and (unsafe or f.repair.safety is Safety.SAFE)]
    edits = [
        TextEdit(source.unlocate(edit.cell, edit.span), edit.content)
        for finding in applied
        if finding.repair is not None
        for edit in finding.repair.edits
    ]
    new = source.apply(edits)
    return Mended(new, tuple(applied), scan_file(path, new, project, select).findings)


def may_matter(raw: bytes, filename: str) -> bool:
    return any(word in raw for word in (b"leak", b"maybe", b"hopeless", b"crash", b"slow", b"too_complex"))


class Project:
    def __init__(self, *_: object) -> None:
        pass


def modules() -> dict[str, types.ModuleType]:
    """The modules that stand in for the core's, by the names they are imported by."""
    contents: dict[str, dict[str, object]] = {
        "gradmend.codemods.registry": {
            "RULES": RULES, "resolve": resolve, "UnknownRule": UnknownRule, "page": lambda code: f"Page of {code}.\n"
        },
        "gradmend.codemods.analysis.prefilter": {"may_matter": may_matter},
        "gradmend.codemods.analysis.project": {"Project": Project},
    }  # fmt: skip
    made = {}
    for name, members in contents.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        made[name] = module
    return made


def install() -> None:
    """Put the toy core in place for the rest of this process."""
    import gradmend.codemods

    sys.modules.update(modules())
    vars(gradmend.codemods).update(scan_file=scan_file, mend_file=mend_file)


if __name__ == "__main__":
    install()
    from gradmend.cli.__main__ import main

    main()
