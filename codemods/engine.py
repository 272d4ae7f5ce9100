"""From a source to proved findings, and from findings to the mended source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Final

from .analysis.facts import Facts, frames_of
from .analysis.interpreter import Analysis, Interpreter, Run
from .analysis.prefilter import may_go_wrong
from .analysis.project import Project
from .analysis.source import Source, SourceError
from .draft import Context, Draft, Edits, Plan, combined
from .finding import Edit, Finding, Place, Repair, Safety, Severity
from .registry import CODEMODS, Codemod
from .rewrite.edits import EditConflict, EditRefused, PositionMap, TextEdit, splice
from .rewrite.proof import objection, portray
from .silencing import Silencing

MOST_ROUNDS: Final = 20
"""Repairs that make further ones possible are followed up this many times."""


@dataclass(slots=True)
class Candidate:
    """A plan with its edits made."""

    plan: Plan
    edits: Edits


@dataclass(slots=True)
class Examined:
    """One version of a file (with the project around it) on the tape."""

    source: Source
    analysis: Analysis
    drafts: list[Draft] = field(default_factory=list)
    candidates: dict[int, list[Candidate]] = field(default_factory=dict)
    machine: Interpreter | None = None
    changed: dict[str, Source] = field(default_factory=dict)
    """The files that edits changed to make this version."""
    foreign: set[int] = field(default_factory=set)
    """Drafts about other files, from runs of scripts: told only with a repair."""

    def keys(self, locate: Callable[[str, ast.AST], tuple[str, int, int]]) -> set[tuple[str, tuple[str, int, int]]]:
        return {(draft.rule.code, locate(draft.filename, draft.site)) for draft in self.drafts}


@dataclass(frozen=True, slots=True)
class Found:
    """What there is to say about one file."""

    findings: list[Finding]
    suppressed: list[Finding]
    """Those that a comment silences."""
    analysis: Analysis


class Engine:
    """Examines one file; ``select`` limits which codemods report."""

    def __init__(self, project: Project, select: frozenset[str] | None = None) -> None:
        self.project = project
        self.select = select
        self.sources: dict[str, Source] = {}
        self.vanished: set[int] = set()
        self.silencing = Silencing(project, self.source_of)

    # -- examining -------------------------------------------------------------------------------------------------

    def source_of(self, filename: str) -> Source | None:
        return self.sources.get(filename) or self.project.source(filename)

    def examine(self, source: Source, plans: bool) -> Examined:
        """Run ``source`` on the tape and ask every codemod; with ``plans``, also for its edits."""
        self.sources[source.filename] = source
        machine = Interpreter(self.project)
        examined = Examined(source, Analysis(), machine=machine)
        drafts: dict[tuple[str, str, ast.AST], Draft] = {}
        explained: set[object] = set()
        vetoes: set[tuple[object, ...]] = set()

        def ended(run: Run) -> None:
            context = Context(Facts(run), machine, self.source_of, source)
            context.vetoes = vetoes
            for codemod in CODEMODS:
                for draft in codemod.find(context):
                    if run.script and draft.filename != source.filename:
                        if not self.is_reported_with(source, draft):
                            continue
                        examined.foreign.add(id(draft))
                    if draft.traversal is not None and draft.explains:
                        crash = context.facts.crash(draft.traversal)
                        if crash in explained:
                            continue
                        explained.add(crash)
                    if draft.key in drafts:
                        continue
                    drafts[draft.key] = draft
                    if plans:
                        examined.candidates[id(draft)] = list(_built(draft))

        for codemod in CODEMODS:
            find_in_source = getattr(codemod, "find_in_source", None)
            for draft in find_in_source(source) if find_in_source is not None else ():
                drafts[draft.key] = draft
                if plans:
                    examined.candidates[id(draft)] = list(_built(draft))
        examined.analysis = machine.analyse(source.tree, source.filename, ended)
        examined.drafts = sorted(
            (d for d in drafts.values() if d.concerns is None or d.concerns not in vetoes),
            key=lambda d: (d.filename, _line(d.site), d.rule.code),
        )
        return examined

    def is_reported_with(self, source: Source, draft: Draft) -> bool:
        """Whether a draft about another file, which a script's run shows, is told with the analysed one, ``source``."""
        frames = (frame for _, where, _ in draft.places for frame in frames_of(where))
        if all(frame.module.filename != source.filename for frame in frames):
            return False
        raw = self.project.reader(draft.filename) if self.project.reader is not None else None
        return raw is not None and not may_go_wrong(raw)

    # -- proving ---------------------------------------------------------------------------------------------------

    def findings(self, source: Source) -> Found:
        """All findings of a file with their proved repairs.

        A draft that is gone once another one is mended is that one's consequence, and is not reported beside it, nor
        where a comment silences that one.
        """
        examined = self.examine(source, plans=True)
        drafts, suppressed, consequences = self.wanted(examined)
        mended: list[tuple[Draft, list[Repair]]] = []
        for draft in drafts:
            if id(draft) in consequences:
                continue
            repairs, gone = self.repairs(examined, draft)
            mended.append((draft, repairs))
            consequences |= gone
        found = [
            self.finding(draft, repairs)
            for draft, repairs in mended
            if id(draft) not in consequences and (repairs or id(draft) not in examined.foreign)
        ]
        found += self.silencing.unused(source, examined.analysis, self.select)
        return Found(found, [self.finding(draft, repairs) for draft, repairs in suppressed], examined.analysis)

    def first_repair(
        self, source: Source, unsafe: bool, refused: Container[tuple[object, ...]] = frozenset()
    ) -> Finding | None:
        """The first finding of a file that has a repair to apply; not one of ``refused``, which names findings by code,
        file, cell and span."""
        examined = self.examine(source, plans=True)
        drafts, _, consequences = self.wanted(examined)
        drafts = [draft for draft in drafts if id(draft) not in consequences]
        if refused:
            plain = ((draft, self.finding(draft, [])) for draft in drafts)
            drafts = [d for d, f in plain if (f.code, f.filename, f.cell, f.span) not in refused]
        chosen: tuple[Draft, list[Repair]] | None = None
        for draft in drafts:
            repairs, gone = self.repairs(examined, draft)
            if not repairs or not (unsafe or repairs[0].safety is Safety.SAFE):
                continue
            if chosen is None or id(chosen[0]) in gone:
                chosen = (draft, repairs)
            if not any(id(other) in gone for other in drafts[: drafts.index(draft)]):
                break
        return self.finding(*chosen) if chosen is not None else None

    def repairs(self, examined: Examined, draft: Draft) -> tuple[list[Repair], set[int]]:
        """The proved repairs of a draft, the one to apply first; and the other drafts that the first makes go."""
        proved: list[Repair] = []
        gone: set[int] = set()
        for candidate in examined.candidates.get(id(draft), ()):
            self.vanished = set()
            edits = self.proved(examined, draft, candidate)
            if edits is None or self.silencing.keeps_out(draft, edits):
                continue
            repair = self.repair(candidate.plan, edits)
            if repair in proved:
                continue
            proved.append(repair)
            gone = gone or self.vanished
            enough = 2 if draft.offers_alternatives else 1
            if len(proved) >= max(enough, 2 if proved[0].safety is not Safety.SAFE else enough):
                break
        return proved, gone

    def proved(self, examined: Examined, draft: Draft, candidate: Candidate) -> Edits | None:
        """The edits of ``candidate`` if the tape shows that they mend ``draft`` and nothing else; with a retain_graph
        that only served the mistake taken along."""
        if not candidate.plan.proof:
            return candidate.edits
        after = self.applied(examined.source, candidate.edits)
        if after is None:
            return None
        moved = candidate.plan.moved
        locate = self.locator(candidate.edits)
        if moved:
            (filename,) = after.changed
            original = examined.source if filename == examined.source.filename else self.source_of(filename)
            assert original is not None
            locate = self.locator(candidate.edits, relocated(moved, locate, original, after.changed[filename]))
        old = examined.keys(locate)
        here = self.locator({})
        left = after.keys(here)
        mine = (draft.rule.code, locate(draft.filename, draft.site))
        if mine in left and (moved or not candidate.plan.allowance.reordered):
            return None
        plasters = {key for key in left - old if key[0] == "GM304"}
        if left - old - plasters:
            return None
        portraits = {run.entry: portray(run, here) for run in after.analysis.runs}
        before = [(run, portray(run, locate)) for run in examined.analysis.runs]
        order = (locate, here) if moved else None
        reason = objection(before, portraits, candidate.plan.allowance, order)
        if reason is not None:
            self.explain(draft, candidate, reason)
            return None
        self.vanished = {
            id(other)
            for other in examined.drafts
            if other is not draft and (other.rule.code, locate(other.filename, other.site)) not in left
        }
        if plasters:
            more = self.without_plasters(examined, after, plasters, locate)
            if more is not None:
                together = combined([candidate.edits, more])
                if together is not None and self.applied(examined.source, together) is not None:
                    return together
        return candidate.edits

    def explain(self, draft: Draft, candidate: Candidate, reason: str) -> None:
        """Hook for finding out why a repair was refused."""

    def without_plasters(
        self,
        examined: Examined,
        after: Examined,
        plasters: set[tuple[str, tuple[str, int, int]]],
        locate: Callable[[str, ast.AST], tuple[str, int, int]],
    ) -> Edits | None:
        """Edits of the source before the repair that drop the retain_graph flags which the repair made needless."""
        from . import needless_retain_graph

        parts: list[Edits | None] = []
        done: set[ast.AST] = set()
        for run in examined.analysis.runs:
            for traversal in Facts(run).traversals:
                filename = traversal.where.frame.module.filename
                if traversal.call in done or ("GM304", locate(filename, traversal.call)) not in plasters:
                    continue
                done.add(traversal.call)
                source = examined.source if filename == examined.source.filename else self.source_of(filename)
                parts.append(needless_retain_graph.dropped(source, traversal))
        return combined(parts) if parts else None

    def applied(self, source: Source, edits: Edits) -> Examined | None:
        """The project with ``edits`` made, on the tape; None where they cannot be made."""
        changed: dict[str, Source] = {}
        try:
            for filename, parts in edits.items():
                original = source if filename == source.filename else self.source_of(filename)
                if original is None:
                    return None
                text = splice(original.text, parts)
                changed[filename] = _reparsed(original, text)
        except (EditConflict, SourceError, IndexError):
            return None
        main = changed.get(source.filename, source)
        project = self.project.overlaid({name: s for name, s in changed.items() if name != source.filename})
        engine = Engine(project, self.select)
        engine.sources = {**self.sources, **changed}
        examined = engine.examine(main, plans=False)
        examined.changed = changed
        return examined

    def locator(
        self, edits: Edits, moved: dict[ast.AST, tuple[str, int, int]] | None = None
    ) -> Callable[[str, ast.AST], tuple[str, int, int]]:
        maps = {filename: PositionMap(parts) for filename, parts in edits.items()}
        known = dict(moved or {})

        def locate(filename: str, node: ast.AST) -> tuple[str, int, int]:
            place = known.get(node)
            if place is None:
                row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
                if filename in maps:
                    row, column = maps[filename].map(row, column)
                place = known[node] = (filename, row, column)
            return place

        return locate

    # -- suppressions ----------------------------------------------------------------------------------------------

    def wanted(self, examined: Examined) -> tuple[list[Draft], list[tuple[Draft, list[Repair]]], set[int]]:
        """The drafts that are asked for; those that a comment silences; and which of all are their consequences."""
        # All are asked about, selected or not: what a comment serves for does not depend on what is selected now.
        silenced = {id(draft) for draft in examined.drafts if self.silencing.silences(draft)}
        drafts = [d for d in examined.drafts if self.select is None or d.rule.code in self.select]
        suppressed: list[tuple[Draft, list[Repair]]] = []
        consequences: set[int] = set()
        for draft in drafts:
            if id(draft) in silenced and id(draft) not in consequences:
                repairs, gone = self.repairs(examined, draft)
                suppressed.append((draft, repairs))
                consequences |= gone
        return [draft for draft in drafts if id(draft) not in silenced], suppressed, consequences

    # -- findings --------------------------------------------------------------------------------------------------

    def repair(self, plan: Plan, edits: Edits) -> Repair:
        made: list[Edit] = []
        for filename, parts in sorted(edits.items()):
            source = self.source_of(filename)
            for part in parts:
                cell, span = source.locate(part.span) if source else (None, part.span)
                made.append(Edit(filename, span, part.content, cell))
        made.sort(key=lambda edit: (edit.filename, edit.cell or 0, edit.span))
        return Repair(plan.safety, plan.message, tuple(made))

    def finding(self, draft: Draft, repairs: list[Repair]) -> Finding:
        source = self.source_of(draft.filename)
        assert source is not None
        cell, span = source.locate(source.span(draft.site))
        places = []
        for role, where, label in draft.places:
            filename = where.frame.module.filename
            other = self.source_of(filename)
            if other is not None and hasattr(where.node, "lineno"):
                place_cell, place_span = other.locate(other.span(where.node))
                places.append(Place(role, filename, place_span, label, place_cell))
        return Finding(
            draft.rule.code,
            draft.rule.name,
            draft.message,
            draft.filename,
            draft.severity,
            span,
            cell,
            tuple(places),
            repairs[0] if repairs else None,
            tuple(repairs[1:]),
        )


def relocated(
    moved: Iterable[ast.stmt], unmoved: Callable[[str, ast.AST], tuple[str, int, int]], old: Source, new: Source
) -> dict[ast.AST, tuple[str, int, int]]:
    """Where each node of the ``moved`` statements of ``old`` is found in ``new``.

    ``unmoved`` says where everything else has gone.
    """
    wanted: dict[str, list[ast.stmt]] = {}
    for statement in moved:
        wanted.setdefault(ast.dump(statement), []).append(statement)
    # What is written the same elsewhere in the file stays there.
    stay = {
        unmoved(old.filename, node)
        for node in ast.walk(old.tree)
        if isinstance(node, ast.stmt) and node not in wanted.get(ast.dump(node), (node,))
    }
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(new.tree):
        if isinstance(node, ast.stmt) and (old.filename, *_position(node)) not in stay:
            found.setdefault(ast.dump(node), []).append(node)
    places: dict[ast.AST, tuple[str, int, int]] = {}
    for text, statements in wanted.items():
        news = sorted(found.get(text, ()), key=_line)
        if len(news) != len(statements):
            continue
        for statement, now in zip(statements, news, strict=True):
            for one, other in zip(ast.walk(statement), ast.walk(now), strict=True):
                places[one] = (old.filename, *_position(other))
    return places


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1


def _built(draft: Draft) -> Iterable[Candidate]:
    for plan in draft.plans:
        try:
            edits = plan.build()
        except EditRefused:
            continue
        if edits:
            yield Candidate(plan, edits)


def _line(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _reparsed(original: Source, text: str) -> Source:
    source = Source.from_text(text, original.filename if not original.is_notebook else original.filename + ".py")
    if original.is_notebook:
        source.filename = original.filename
    _ = source.tree
    return source


__all__ = ["Codemod", "Engine", "Severity", "TextEdit"]
