"""What a codemod hands over before anything is proved: a mistake and the ways in which it might be mended."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .analysis.facts import Facts, frames_of
from .analysis.source import Source
from .analysis.tape import Node, Traversal, Where
from .analysis.values import Frame
from .finding import Role, Safety, Severity

if TYPE_CHECKING:
    from .analysis.interpreter import Interpreter
    from .rewrite.edits import TextEdit

Edits = Mapping[str, tuple["TextEdit", ...]]
"""The edits of each file."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One codemod, as people name it."""

    code: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a repair may change of the gradients, besides making the finding go.

    ``lost`` says which nodes a traversal need not reach any more; by default none. ``gained`` allows a traversal to
    reach more than before, and steps to apply it; a function says which nodes a traversal may reach, and then steps
    must apply no more than before. ``unused`` allows leaves to lose a gradient that no step applies. ``reordered``: the
    repair moves code, so places are not compared, only which traversals reach which step's parameters.
    """

    lost: Callable[[Node, Traversal], bool] | None = None
    gained: bool | Callable[[Node, Traversal], bool] = False
    unused: bool = False
    reordered: bool = False
    gradients: Callable[[Node, Traversal], bool] | None = None
    """Gradients (leaf, traversal) that steps need not apply any more."""


@dataclass(slots=True)
class Plan:
    """One way to mend a draft; ``build`` makes the edits (it may raise ``EditRefused``)."""

    safety: Safety
    message: str
    build: Callable[[], Edits | None]
    allowance: Allowance = field(default_factory=Allowance)
    proof: bool = True
    """False where the edit changes nothing that a tape could show."""
    moved: tuple[ast.stmt, ...] = ()
    """Statements of one file that the edits move, in their new order: what they do is looked for at their new place."""


@dataclass(slots=True)
class Draft:
    """A mistake found on one tape."""

    rule: Rule
    message: str
    severity: Severity
    site: ast.AST
    filename: str
    places: list[tuple[Role, Where, str]]
    plans: list[Plan] = field(default_factory=list)
    traversal: Traversal | None = None
    """The traversal that dies, where one does: only one codemod explains it."""
    explains: bool = True
    offers_alternatives: bool = False
    """Whether another proved repair is as good, so that the reader may choose."""
    concerns: tuple[object, ...] | None = None
    """What the draft is about, in words that hold for all runs: one run's veto silences the others' drafts."""

    @property
    def key(self) -> tuple[str, str, ast.AST]:
        return (self.rule.code, self.filename, self.site)


class Context:
    """What a codemod may look at: one run's facts, the project's sources."""

    def __init__(
        self, facts: Facts, machine: Interpreter, sources: Callable[[str], Source | None], source: Source
    ) -> None:
        self.facts = facts
        self.machine = machine
        self._sources = sources
        self.source = source
        self.vetoes: set[tuple[object, ...]] = set()

    def veto(self, *concern: object) -> None:
        """Say that what ``concern`` names is right in this run, so that no run may report it."""
        self.vetoes.add(concern)

    def source_of(self, filename: str) -> Source | None:
        """The source of a file of the project, None where it is not at hand."""
        return self.source if filename == self.source.filename else self._sources(filename)

    def filename(self, where: Where) -> str:
        return where.frame.module.filename

    def shows_all(self, where: Where | None) -> bool:
        """Whether what this run does not show is not done with what ``where`` leaves (None: a framework's own loop).

        One script shows what happens in a file that it imports, not what never does: another script may do it.
        """
        run = self.facts.run
        return run.complete and (not run.script or (where is not None and self.filename(where) == run.script))

    def is_expected(self, where: Where) -> bool:
        """Whether what happens at ``where`` is meant to fail: ``with pytest.raises(…):`` stands around it."""
        place: ast.AST | None = where.node
        for frame in frames_of(where):
            source = self.source_of(frame.module.filename)
            node = place
            while source is not None and node is not None:
                if isinstance(node, ast.With) and any("raises" in ast.unparse(i).lower() for i in node.items):
                    return True
                node = source.parent(node)
            place = frame.call
        return False

    def single(self, frame: Frame, edits: Iterable[TextEdit]) -> Edits:
        """Edits that all lie in the file of ``frame``."""
        return {frame.module.filename: tuple(edits)}


def combined(parts: Iterable[Edits | None]) -> Edits | None:
    """All of ``parts`` together, or None where one of them cannot be made."""
    merged: dict[str, tuple[TextEdit, ...]] = {}
    for part in parts:
        if part is None:
            return None
        for filename, edits in part.items():
            merged[filename] = tuple(dict.fromkeys((*merged.get(filename, ()), *edits)))
    return merged
