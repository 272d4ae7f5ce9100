"""Path conditions: what has been assumed on the way to a point of the program.

A guard is a conjunction of facts, each "this condition has that value". Conditions are named by hashable keys that the
interpreter derives from the values they test, so that the same test on the same value is the same condition wherever it
stands, and a test on the next iteration's value is another one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final


class Guard:
    """An immutable conjunction of ``condition key -> value`` facts."""

    __slots__ = ("_hash", "facts")

    def __init__(self, facts: dict[Hashable, Hashable]) -> None:
        """``facts`` is the guard's own from now on."""
        self.facts: Final = facts
        self._hash: int | None = None

    def also(self, key: Hashable, value: Hashable) -> Guard | None:
        """This guard with one more fact, or None where that contradicts it."""
        if key in self.facts:
            return self if self.facts[key] == value else None
        return Guard({**self.facts, key: value})

    def meet(self, other: Guard) -> Guard | None:
        """Both guards together, or None where they contradict each other."""
        if not other.facts or self is other:
            return self
        if not self.facts:
            return other
        if not self.compatible(other):
            return None
        return Guard({**self.facts, **other.facts})

    def compatible(self, other: Guard) -> bool:
        """Whether both can hold on one path."""
        small, large = self.facts, other.facts
        if small is large:
            return True
        if len(small) > len(large):
            small, large = large, small
        # Loops, here and below: these are the innermost operations of a run, and a generator costs as much again.
        for key, value in small.items():  # noqa: SIM110
            if key in large and large[key] != value:
                return False
        return True

    def beyond(self, base: Guard) -> Guard:
        """The facts that ``base`` does not hold already."""
        if not base.facts or not self.facts:
            return self
        return Guard({key: value for key, value in self.facts.items() if key not in base.facts})

    def common(self, other: Guard) -> Guard:
        """The facts that both hold."""
        mine, others = self.facts, other.facts
        if mine is others or not mine:
            return self
        if not others:
            return other
        return Guard({k: v for k, v in mine.items() if k in others and others[k] == v})

    def either(self, other: Guard, name: Hashable) -> Guard:
        """What holds where this guard or ``other`` does: the facts of both, and ``name`` for the rest unless the two
        differ in one condition's outcome only."""
        common = self.common(other)
        left, right = self.beyond(common).facts, other.beyond(common).facts
        if not left or not right:
            return common
        if len(left) == 1 and left.keys() == right.keys():
            first, second = next(iter(left.values())), next(iter(right.values()))
            if isinstance(first, bool) and isinstance(second, bool) and first is not second:
                return common
        return common.also(name, True) or common

    def implies(self, other: Guard) -> bool:
        """Whether every fact of ``other`` is one of this guard's."""
        facts, wanted = self.facts, other.facts
        if len(wanted) > len(facts):
            return False
        for key, value in wanted.items():  # noqa: SIM110
            if key not in facts or facts[key] != value:
                return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and self.facts == other.facts

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.facts.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"Guard({self.facts})"


ALWAYS: Final = Guard({})
