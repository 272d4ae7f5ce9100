"""All codemods, and what people may call them."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from . import (
    accumulated_loss,
    carried_hidden_state,
    detached_derivative,
    discarded_detach,
    full_hessian,
    inplace_on_graph,
    loop_invariant_graph,
    missing_create_graph,
    missing_retain_graph,
    missing_zero_grad,
    needless_retain_graph,
    redundant_retain_graph,
    retain_for_create,
    step_between_backwards,
    undetached_fake,
    unused_suppression,
)
from .draft import Context, Draft, Rule


class Codemod(Protocol):
    """What a codemod's module offers."""

    RULE: Rule

    def find(self, context: Context) -> Iterator[Draft]: ...


MODULES: tuple[ModuleType, ...] = (
    undetached_fake,
    loop_invariant_graph,
    carried_hidden_state,
    accumulated_loss,
    discarded_detach,
    retain_for_create,
    missing_create_graph,
    detached_derivative,
    redundant_retain_graph,
    step_between_backwards,
    missing_retain_graph,
    inplace_on_graph,
    missing_zero_grad,
    needless_retain_graph,
    full_hessian,
    unused_suppression,
)
CODEMODS: tuple[Codemod, ...] = MODULES


class UnknownRule(ValueError):  # noqa: N818
    """A word that names no rule; ``suggestion`` is the nearest that does, if any is near."""

    def __init__(self, word: str, suggestion: str | None) -> None:
        hint = f"; did you mean {suggestion}?" if suggestion else ""
        super().__init__(f"unknown rule {word!r}{hint}")
        self.word = word
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule as the command line lists it."""

    code: str
    name: str
    summary: str
    safety: str
    module: str


def _info(module: ModuleType) -> RuleInfo:
    rule: Rule = module.RULE
    page = module.__doc__ or ""
    safety = " ".join(page.partition("## Fix safety\n")[2].partition("\n## ")[0].split())
    return RuleInfo(rule.code, rule.name, rule.summary, safety, module.__name__)


def _collected() -> tuple[RuleInfo, ...]:
    rules = sorted((_info(module) for module in MODULES), key=lambda rule: rule.code)
    for one, other in itertools.pairwise(rules):
        if one.code == other.code:
            raise RuntimeError(f"two codemods are called {one.code}")
    return tuple(rules)


RULES: tuple[RuleInfo, ...] = _collected()


def resolve(word: str) -> frozenset[str]:
    """The codes that a code, a name, a prefix of codes or ``ALL`` stands for.

    Raises :class:`UnknownRule` where it stands for none.
    """
    if word.upper() == "ALL":
        return frozenset(rule.code for rule in RULES)
    codes = frozenset(rule.code for rule in RULES if rule.code.startswith(word.upper()) or rule.name == word.lower())
    if not codes or not word:
        words = [*(rule.code for rule in RULES), *(rule.name for rule in RULES)]
        near = difflib.get_close_matches(word, words, 1) or difflib.get_close_matches(word.upper(), words, 1)
        raise UnknownRule(word, near[0] if near else None)
    return codes


def resolve_all(words: Iterable[str]) -> frozenset[str]:
    """The codes that any of ``words`` stands for."""
    codes: frozenset[str] = frozenset()
    for word in words:
        codes |= resolve(word)
    return codes


def page(code: str) -> str:
    """The rule's page: the docstring of its module.

    Raises :class:`UnknownRule`.
    """
    wanted = resolve(code)
    for module in MODULES:
        if module.RULE.code in wanted:
            return (module.__doc__ or "").strip() + "\n"
    raise UnknownRule(code, None)
