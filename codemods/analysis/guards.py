"""Path conditions: what has been assumed on the way to a point of the program.

A guard is a conjunction of facts, each "this condition has that value". Conditions are named by hashable keys that the
interpreter derives from the values they test, so that the same test on the same value is the same condition wherever it
stands, and a test on the next iteration's value is another one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

Together = frozenset[tuple[Hashable, Hashable]]
"""Facts that hold at once."""
ALL_OF: Final = "all of"
UNKNOWN: Final = object()
NOTHING: Final[Mapping[Hashable, Hashable]] = {}


class Guard:
    """An immutable conjunction of ``condition key -> value`` facts.

    The fact ``(ALL_OF, facts) -> False`` says that not all of these facts hold; ``without`` are those of this guard.
    """

    __slots__ = ("_hash", "facts", "without")

    def __init__(self, facts: dict[Hashable, Hashable], without: tuple[Together, ...] = ()) -> None:
        """``facts`` is the guard's own from now on."""
        self.facts: Final = facts
        self.without: Final = without
        self._hash: int | None = None

    @classmethod
    def not_all(cls, facts: Together) -> Guard:
        """The guard of all paths on which not all of ``facts`` hold."""
        return cls({(ALL_OF, facts): False}, (facts,))

    def also(self, key: Hashable, value: Hashable) -> Guard | None:
        """This guard with one more fact, or None where that contradicts it."""
        if key in self.facts:
            return self if self.facts[key] == value else None
        further = Guard({**self.facts, key: value}, self.without)
        return None if self.without and further.contradicts(self.without) else further

    def meet(self, other: Guard) -> Guard | None:
        """Both guards together, or None where they contradict each other."""
        if not other.facts or self is other:
            return self
        if not self.facts:
            return other
        if not self.compatible(other):
            return None
        return Guard({**self.facts, **other.facts}, self.without_of_both(other))

    def without_of_both(self, other: Guard) -> tuple[Together, ...]:
        if not other.without or self.without == other.without:
            return self.without
        return tuple(dict.fromkeys(self.without + other.without)) if self.without else other.without

    def contradicts(self, without: tuple[Together, ...], also: Mapping[Hashable, Hashable] = NOTHING) -> bool:
        """Whether all facts of one of ``without`` hold here, or here and in ``also``."""
        own = self.facts
        return any(
            all(own.get(key, UNKNOWN) == value or also.get(key, UNKNOWN) == value for key, value in together)
            for together in without
        )

    def compatible(self, other: Guard) -> bool:
        """Whether both can hold on one path."""
        small, large = self.facts, other.facts
        if small is large:
            return True
        if len(small) > len(large):
            small, large = large, small
        # Loops, here and below: these are the innermost operations of a run, and a generator costs as much again.
        for key, value in small.items():
            if key in large and large[key] != value:
                return False
        without = self.without_of_both(other)
        return not without or not self.contradicts(without, other.facts)

    def beyond(self, base: Guard) -> Guard:
        """The facts that ``base`` does not hold already."""
        if not base.facts or not self.facts:
            return self
        return self.part({key: value for key, value in self.facts.items() if key not in base.facts})

    def common(self, other: Guard) -> Guard:
        """The facts that both hold."""
        mine, others = self.facts, other.facts
        if mine is others or not mine:
            return self
        if not others:
            return other
        return self.part({k: v for k, v in mine.items() if k in others and others[k] == v})

    def part(self, facts: dict[Hashable, Hashable]) -> Guard:
        """The guard of these of its facts."""
        return Guard(facts, tuple(one for one in self.without if (ALL_OF, one) in facts) if self.without else ())

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
