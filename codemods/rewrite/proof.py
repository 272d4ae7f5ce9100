"""Whether a repair does what it should and nothing else: the tape before it against the tape after it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..analysis.facts import frames_of
from ..analysis.interpreter import Run
from ..analysis.tape import Flat, Misuse, Node, Refreed, Stale, Step, Traversal, Unused
from ..analysis.values import Frame
from ..draft import Allowance

Place = tuple[str, int, int]
Locate = Callable[[str, ast.AST], Place]
"""A node of the source as (file, row, column) in the text after the repair."""


Key = tuple[object, ...]
"""What identifies a node in both runs: its place, the calls that led there, the operation and the iterations."""


@dataclass(slots=True)
class Walk:
    """What one traversal reached, and which of it hangs directly on which."""

    nodes: dict[Key, Node] = field(default_factory=dict)
    edges: dict[Key, set[Key]] = field(default_factory=dict)


@dataclass(slots=True)
class Portrait:
    """What one run did that a repair must keep: for each traversal what it reached, for each step what it applied."""

    traversals: list[tuple[Traversal, Walk]] = field(default_factory=list)
    applied: list[tuple[Step, dict[Key, tuple[Node, list[Traversal]]]]] = field(default_factory=list)
    failures: set[Key] = field(default_factory=set)
    deaths: set[Key] = field(default_factory=set)
    """The traversals that raise, because something was freed or changed before."""


def portray(run: Run, locate: Locate) -> Portrait:
    """The portrait of a run."""
    portrait = Portrait()
    names = _leaf_names(run, locate)
    keys = _Keys(locate, names)
    for event in run.tape.events:
        kind = type(event)
        if kind is Traversal:
            walk = Walk()
            for node in event.reached:
                if node.operation != "merge":
                    key = keys.of(node)
                    walk.nodes[key] = node
                    walk.edges.setdefault(key, set()).update(keys.of(inner) for inner in _inputs(node, event))
            portrait.traversals.append((event, walk))
        elif kind is Step:
            applied: dict[Key, tuple[Node, list[Traversal]]] = {
                ("leaf", names.get(leaf)): (leaf, [t for _, t in gradients])
                for leaf, gradients in event.applied.items()
            }
            portrait.applied.append((event, applied))
        elif kind in (Refreed, Stale):
            portrait.deaths.add(_place(event.traversal, locate))
        elif kind in (Misuse, Unused, Flat):
            portrait.failures.add((kind.__name__, locate(event.where.frame.module.filename, event.where.node)))
    return portrait


class _Keys:
    """The keys of one run's nodes, each made once."""

    def __init__(self, locate: Locate, names: dict[Node, Key]) -> None:
        self._locate = locate
        self._names = names
        self._known: dict[Node, Key] = {}
        self._calls: dict[Frame, Key] = {}

    def of(self, node: Node) -> Key:
        key = self._known.get(node)
        if key is None:
            if node.kind == "leaf":
                key = ("leaf", self._names.get(node))
            else:
                turns = tuple(turn for _, turn in node.where.loops)
                place = self._locate(_file(node), node.where.node)
                key = (place, self._led_to(node.where.frame), node.operation, turns)
            self._known[node] = key
        return key

    def _led_to(self, frame: Frame) -> Key:
        calls = self._calls.get(frame)
        if calls is None:
            calls = ()
            if frame.caller is not None and frame.call is not None:
                calls = (self._locate(frame.caller.module.filename, frame.call), *self._led_to(frame.caller))
            self._calls[frame] = calls
        return calls


def _inputs(node: Node, traversal: Traversal) -> Iterator[Node]:
    """The nodes that ``node`` hangs on as far as ``traversal`` gets there."""
    stack = [edge.node for edge in node.edges]
    seen: set[Node] = set()
    while stack:
        inner = stack.pop()
        if inner in seen or inner not in traversal.reached:
            continue
        seen.add(inner)
        if inner.operation == "merge":
            stack += [edge.node for edge in inner.edges]
        else:
            yield inner


def _file(node: Node) -> str:
    return node.where.frame.module.filename


def _leaf_names(run: Run, locate: Locate) -> dict[Node, Key]:
    names: dict[Node, Key] = {}
    counts: dict[Key, int] = {}
    for leaf in run.tape.leaves.values():
        place = (locate(_file(leaf), leaf.where.node), leaf.operation)
        counts[place] = counts.get(place, 0) + 1
        names[leaf] = (*place, counts[place])
    return names


def objection(
    before: Iterable[tuple[Run, Portrait]],
    after: dict[str, Portrait],
    allowance: Allowance,
    places: tuple[Locate, Locate] | None = None,
) -> str | None:
    """Why the repair must not be made, in words for people who mend gradmend; None where it is proved.

    ``places`` is given where traversals or steps may come in another order than before: where those of before are found
    in the text after the repair, and where those of after are. What happens at one place is then compared.
    """
    for run, old in before:
        new = after.get(run.entry)
        if new is None:
            return f"{run.entry} is not entered any more"
        if new.failures - old.failures:
            return (
                f"{run.entry}: an operation would fail that did not: {sorted(map(str, new.failures - old.failures))[0]}"
            )
        if new.deaths - old.deaths:
            return f"{run.entry}: a traversal would fail that did not: {sorted(map(str, new.deaths - old.deaths))[0]}"
        if len(old.traversals) != len(new.traversals) or len(old.applied) != len(new.applied):
            return f"{run.entry}: other traversals or steps than before"
        if places is not None and not _arranged(old, new, *places):
            return f"{run.entry}: traversals or steps are not found again"
        order = {event: index for index, (event, _) in enumerate(old.traversals)}
        new_order = {event: index for index, (event, _) in enumerate(new.traversals)}
        if not allowance.reordered:
            for (traversal, walk), (_, now) in zip(old.traversals, new.traversals, strict=True):
                problem = _compare(traversal, walk, now, allowance)
                if problem:
                    return f"{run.entry}: {problem}"
        for (_, applied), (_, now_applied) in zip(old.applied, new.applied, strict=True):
            problem = _compare_steps(applied, now_applied, order, new_order, allowance)
            if problem:
                return f"{run.entry}: {problem}"
    return None


def _arranged(old: Portrait, new: Portrait, locate_old: Locate, locate_new: Locate) -> bool:
    """Put what ``new`` did in the order of ``old``; false where it does not do the same things."""
    traversals = _in_order_of(old.traversals, locate_old, new.traversals, locate_new)
    applied = _in_order_of(old.applied, locate_old, new.applied, locate_new)
    if traversals is None or applied is None:
        return False
    new.traversals, new.applied = traversals, applied
    return True


Happened = TypeVar("Happened", bound=tuple[Traversal, Any] | tuple[Step, Any])


def _in_order_of(
    old: list[Happened], locate_old: Locate, new: list[Happened], locate_new: Locate
) -> list[Happened] | None:
    waiting: dict[tuple[object, ...], list[Happened]] = {}
    for one in new:
        waiting.setdefault(_place(one[0], locate_new), []).append(one)
    found: list[Happened] = []
    for one in old:
        here = waiting.get(_place(one[0], locate_old))
        if not here:
            return None
        found.append(here.pop(0))
    return found


def _place(event: Traversal | Step, locate: Locate) -> tuple[object, ...]:
    """The call, the statements that led there, and the iterations around it."""
    calls = [
        locate(frame.caller.module.filename, frame.caller_statement)
        for frame in frames_of(event.where)
        if frame.caller is not None and frame.caller_statement is not None
    ]
    turns = tuple(turn for _, turn in event.where.loops)
    return (locate(event.where.frame.module.filename, event.where.node), *calls, turns)


def _compare(traversal: Traversal, walk: Walk, now: Walk, allowance: Allowance) -> str | None:
    known: dict[Node, bool] = {}
    for key in walk.nodes.keys() - now.nodes.keys():
        node = walk.nodes[key]
        if node.kind != "leaf" and not _may_be_lost(node, traversal, allowance, known):
            return f"a traversal no longer reaches {node}"
    if allowance.gained is not True:
        for key in now.nodes.keys() - walk.nodes.keys():
            node = now.nodes[key]
            if node.kind != "leaf" and not (allowance.gained and allowance.gained(node, traversal)):
                return f"a traversal reaches {node} now"
    for key, inputs in walk.edges.items():
        if key not in now.nodes:
            continue
        for inner in inputs - now.edges[key]:
            if inner not in now.nodes or _leads_to(key, inner, walk, now):
                continue
            if not any(_may_be_lost(walk.nodes[one], traversal, allowance, known) for one in (key, inner)):
                return f"a traversal no longer gets from {walk.nodes[key]} to {walk.nodes[inner]}"
    return None


def _leads_to(start: Key, wanted: Key, walk: Walk, now: Walk) -> bool:
    """Whether ``now`` gets from one node to the other through nodes that were not there before."""
    stack, seen = [start], {start}
    while stack:
        for inner in now.edges[stack.pop()]:
            if inner == wanted:
                return True
            if inner not in walk.nodes and inner not in seen:
                seen.add(inner)
                stack.append(inner)
    return False


def _may_be_lost(node: Node, traversal: Traversal, allowance: Allowance, known: dict[Node, bool]) -> bool:
    """Whether ``node`` may vanish: the repair means it to, or all that it hangs on may."""
    if allowance.lost is None:
        return False
    if allowance.lost(node, traversal):
        return True
    if node not in known:
        inner = node.kind != "leaf" and bool(node.edges)
        known[node] = inner and all(_may_be_lost(edge.node, traversal, allowance, known) for edge in node.edges)
    return known[node]


def _compare_steps(
    applied: dict[Key, tuple[Node, list[Traversal]]],
    now_applied: dict[Key, tuple[Node, list[Traversal]]],
    order: dict[Traversal, int],
    new_order: dict[Traversal, int],
    allowance: Allowance,
) -> str | None:
    for name, (leaf, traversals) in applied.items():
        old = {order[t] for t in traversals if t in order}
        new = {new_order[t] for t in now_applied.get(name, (leaf, []))[1] if t in new_order}
        for lost in old - new:
            traversal = next(t for t, index in order.items() if index == lost)
            if allowance.gradients is None or not allowance.gradients(leaf, traversal):
                return f"a step no longer applies the gradient of {leaf}"
        if new - old and allowance.gained is not True:
            return f"a step applies another gradient of {leaf}"
    return None
