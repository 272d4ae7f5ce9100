"""Mutable abstract state with a trail, so that branches can be run one after the other and joined.

Everything that the program can change (variables, attributes, list and dict contents, a tensor's grad_fn, a storage's
version) lives in a ``dict`` of slots and is changed only through :meth:`Heap.write`. The trail remembers what stood
there before and which statement wrote it, which gives three things for the price of one: undoing a branch, joining two
branches, and knowing what one loop iteration handed to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

Slots = dict[Any, Any]


class Missing:
    """Stands for a slot that does not exist."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class Entry(NamedTuple):
    """One write: where, what stood there before, and the place in the program that wrote."""

    slots: Slots
    key: Hashable
    old: Any
    where: Any


class Location(NamedTuple):
    """One slot that a stretch of execution changed."""

    slots: Slots
    key: Hashable
    value: Any
    where: Any


@dataclass(frozen=True, slots=True)
class Delta:
    """What a stretch of execution changed: the new values, keyed by slot."""

    changes: dict[tuple[int, Hashable], Location]


class Heap:
    """The trail of all writes since the start."""

    def __init__(self) -> None:
        self.trail: list[Entry] = []

    def mark(self) -> int:
        return len(self.trail)

    def write(self, slots: Slots, key: Hashable, value: Any, where: Any = None) -> None:
        self.trail.append(Entry(slots, key, slots.get(key, MISSING), where))
        if value is MISSING:
            slots.pop(key, None)
        else:
            slots[key] = value

    def delta(self, mark: int) -> Delta:
        """What changed since ``mark``."""
        changes: dict[tuple[int, Hashable], Location] = {}
        for entry in self.trail[mark:]:
            changes[id(entry.slots), entry.key] = Location(
                entry.slots, entry.key, entry.slots.get(entry.key, MISSING), entry.where
            )
        return Delta(changes)

    def undo(self, mark: int) -> None:
        """Put everything back as it was at ``mark``."""
        trail = self.trail
        while len(trail) > mark:
            slots, key, old, _ = trail.pop()
            if old is MISSING:
                slots.pop(key, None)
            else:
                slots[key] = old

    def apply(self, delta: Delta) -> None:
        for slots, key, value, where in delta.changes.values():
            self.write(slots, key, value, where)

    def join(self, deltas: Iterable[Delta], merge: Callable[[list[Any]], Any]) -> None:
        """Write, for every slot that any of ``deltas`` changed, ``merge`` of its values in each of them."""
        deltas = list(deltas)
        for slots, key, where in _touched(deltas):
            old = slots.get(key, MISSING)
            name = (id(slots), key)
            values = [d.changes[name].value if name in d.changes else old for d in deltas]
            first = values[0]
            merged = first if all(value is first for value in values) else merge(values)
            self.write(slots, key, merged, where)


def _touched(deltas: list[Delta]) -> Iterator[tuple[Slots, Hashable, Any]]:
    seen: set[tuple[int, Hashable]] = set()
    for delta in deltas:
        for name, location in delta.changes.items():
            if name not in seen:
                seen.add(name)
                yield location.slots, location.key, location.where
