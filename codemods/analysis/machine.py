"""The state of the abstract interpreter and the operations on it that every layer above needs."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final

from .guards import ALWAYS, Guard
from .heap import MISSING, Delta, Heap, Slots
from .tape import Cut, Edge, Escape, Loop, Node, Stored, Tape, Turn, Where
from .values import (
    NO_CUTS,
    ClassValue,
    DictCell,
    Frame,
    Imported,
    Instance,
    ListCell,
    Parameters,
    Phi,
    Sequence,
    Storage,
    Symbol,
    Tensor,
    TorchModule,
    TupleValue,
    Value,
)

if TYPE_CHECKING:
    from .project import Project

MOST_READS: Final = 4
"""So many reads of a slot on different paths are kept for one iteration."""
MOST_COMPARED: Final = 24
"""So many alternatives are merged without looking which of them are the same."""
LONGEST_LIST: Final = 64
"""A list that grows on many paths keeps this many elements: its first and its last."""
MOST_ALTERNATIVES: Final = 8
"""Beyond so many different values of one variable the paths are merged."""
DEEPEST_CONTAINER: Final = 5
"""How deep containers are searched for graphs."""


UNBOUND: Final = Symbol(("unbound",))
"""What a slot holds on the paths on which it has not been filled."""
CARRYING: Final = frozenset({Tensor, Symbol, Phi, TupleValue, ListCell, DictCell, Sequence})
"""Kinds of values that can carry a graph."""


class TooComplex(Exception):  # noqa: N818
    """The budget of tape steps is used up."""


class Machine:
    """Where the interpreter stands: heap, tape, path, loops, frame, and whether operations are recorded."""

    def __init__(self, project: Project, budget: int) -> None:
        self.project: Final = project
        self.heap: Final = Heap()
        self.tape = Tape()
        self.path: Guard = ALWAYS
        self.loops: tuple[Turn, ...] = ()
        self.frame: Frame
        self.recording: Value = True
        self.budget = budget
        self.floor = 0
        """Where the budget of the present call ends."""
        self.serial = 0
        self.symbol_slots: dict[Hashable, Slots] = {}
        self.tables: dict[int, tuple[DictCell, Value]] = {}
        """Dicts that hold the parts of a module, with the module."""
        self.objects: dict[Hashable, Instance] = {}
        """The objects of the project's classes by their keys."""
        self.reads: dict[tuple[int, Hashable], dict[tuple[Turn, ...], list[tuple[int, Guard]]]] = {}
        """For each slot, the first moments (indices of the tape) at which each iteration read it, with the
        paths."""
        self.plain: set[ast.expr] = set()
        """Expressions whose value was no tensor at least once."""

    # -- places and names ------------------------------------------------------------------------------------------

    def where(self, node: ast.AST) -> Where:
        return Where(node, self.frame, self.loops)

    def fresh(self, *parts: Hashable) -> Hashable:
        """A key that nothing else has."""
        self.serial += 1
        return ("fresh", self.serial, *parts)

    def make_instance(self, cls: ClassValue, key: Hashable) -> Instance:
        instance = self.objects[key] = Instance(cls, key)
        return instance

    def spend(self, steps: int = 1) -> None:
        self.budget -= steps
        if self.budget < self.floor:
            raise TooComplex

    def write(self, slots: Slots, key: Hashable, value: Value) -> None:
        statement = self.frame.statement
        where = Where(statement, self.frame, self.loops) if statement is not None else None
        self.heap.write(slots, key, value, where)

    def note_plain(self, expression: ast.expr | None, value: Value) -> None:
        """Note that ``expression`` was something else than a tensor at least once."""
        if expression is not None and type(value) is not Tensor and type(value) is not Phi:
            self.plain.add(expression)

    def note_read(self, slots: Slots, key: Hashable, value: Value) -> None:
        """Note that something that may carry a graph is read."""
        if self.loops and type(value) in CARRYING:
            reads = self.reads.setdefault((id(slots), key), {}).setdefault(self.loops, [])
            if not reads or (len(reads) < MOST_READS and reads[-1][1] is not self.path):
                reads.append((len(self.tape.events), self.path))

    def note_store(self, slots: Slots, key: Hashable, value: Value, source: ast.expr | None) -> None:
        """Note an assignment of something that may carry a graph."""
        self.note_plain(source, value)
        if type(value) in CARRYING and self.frame.statement is not None:
            where = self.where(self.frame.statement)
            self.tape.add(Stored(self.tape.next_index, where, self.path, slots, key, value, source))

    # -- values ----------------------------------------------------------------------------------------------------

    def resolve(self, value: Value) -> Value:
        """What ``value`` is on the present path: a Phi loses the alternatives that the path excludes."""
        if type(value) is not Phi:
            if type(value) is Symbol and value.key in self.symbol_slots:
                return self.as_tensor(value, self.symbol_slots[value.key].get("tensor", value))
            return self.imported(value) if type(value) is Imported else value
        left = [(g, v) for g, v in value.alternatives if g.compatible(self.path)]
        if len(left) == 1:
            return self.resolve(left[0][1])
        if len(left) == len(value.alternatives):
            return value
        return Phi(tuple(left)) if left else Symbol(self.fresh("unreachable"))

    def as_tensor(self, symbol: Symbol, tensor: Value) -> Value:
        """``symbol``, known to be ``tensor`` on the paths on which it was treated as one."""
        if type(tensor) is not Phi:
            return tensor
        twin = Symbol(("untreated", symbol.key), symbol.node, symbol.above, symbol.cuts)
        return self.resolve(Phi(tuple((g, twin if v is UNBOUND else v) for g, v in tensor.alternatives)))

    def bound(self, value: Value) -> Value:
        """``value`` as the program reads it: on a path on which it is not bound, reading it raises."""
        value = self.resolve(value)
        if type(value) is not Phi:
            return value
        left = tuple((guard, one) for guard, one in value.alternatives if one is not UNBOUND)
        if not left or len(left) == len(value.alternatives):
            return value
        return self.resolve(left[0][1]) if len(left) == 1 else Phi(left)

    def imported(self, value: Imported) -> Value:
        """What an imported name stands for."""
        raise NotImplementedError

    def alternatives(self, value: Value) -> tuple[tuple[Guard, Value], ...]:
        """All values that ``value`` may be on the present path, each with its guard."""
        value = self.resolve(value)
        if type(value) is Phi:
            return tuple(value.alternatives)
        return ((ALWAYS, value),)

    def phi(self, pairs: Iterable[tuple[Guard, Value]]) -> Value:
        """One value that is each of ``pairs`` on its path."""
        flat: list[tuple[Guard, Value]] = []
        for guard, value in pairs:
            for inner, alternative in value.alternatives if type(value) is Phi else ((ALWAYS, value),):
                both = guard.meet(inner)
                if both is not None:
                    flat.append((both, alternative))
        if not flat:
            return Symbol(self.fresh("unreachable"))
        first = flat[0][1]
        if all(same_value(first, value) for _, value in flat[1:]):
            return first
        if len(flat) == 2:
            return Phi(tuple(flat))
        if len(flat) > MOST_COMPARED:
            return self.blur(flat)
        grouped = _grouped(flat)
        if len(grouped) == 1:
            return grouped[0][1]
        if len(grouped) > MOST_ALTERNATIVES:
            return self.blur(grouped)
        return Phi(tuple(grouped))

    def blur(self, pairs: Iterable[tuple[Guard, Value]]) -> Value:
        """One unknown value that may carry every graph that any of ``pairs`` carries."""
        pairs = list(pairs)
        edges: list[Edge] = []
        for guard, value in pairs:
            edges += [Edge(both, e.node) for e in self.edges_of(value) if (both := guard.meet(e.guard)) is not None]
        unique = tuple(dict.fromkeys(edges))
        tensors = all(type(value) is Tensor for _, value in pairs)
        node = self.merge_node(unique) if unique else None
        if tensors:
            return Tensor(node, scalar=all(value.scalar for _, value in pairs))
        return Symbol(self.fresh("blur"), node)

    def merge_node(self, edges: tuple[Edge, ...]) -> Node:
        statement = self.frame.statement or self.frame.module.tree
        return Node("operation", "merge", self.where(statement), self.path, edges)

    def edges_of(self, value: Value, depth: int = 0) -> tuple[Edge, ...]:
        """The tape nodes that ``value``, or what it contains, points at."""
        kind = type(value)
        if kind is Tensor:
            return self.tensor_edges(value)
        if kind is Symbol:
            return (Edge(ALWAYS, value.node),) if value.node is not None else ()
        if kind is Phi:
            found: list[Edge] = []
            for guard, alternative in value.alternatives:
                if guard.compatible(self.path):
                    for edge in self.edges_of(alternative, depth):
                        both = guard.meet(edge.guard)
                        if both is not None:
                            found.append(Edge(both, edge.node))
            return tuple(found)
        if kind is Parameters:
            return tuple(e for leaf in value.leaves for e in self.leaf_edges(leaf))
        if depth > DEEPEST_CONTAINER:
            return ()
        if kind is TupleValue:
            return tuple(e for item in value.items for e in self.edges_of(item, depth + 1))
        if kind is ListCell:
            return self.guarded_edges(value.slots["items"], depth)
        if kind is Sequence:
            return self.guarded_edges(value.items, depth)
        if kind is DictCell:
            return tuple(e for item in list(value.slots.values()) for e in self.edges_of(item, depth + 1))
        if kind is Instance and value.cls.dataclass_fields is not None:
            return tuple(e for item in list(value.slots.values()) for e in self.edges_of(item, depth + 1))
        return ()

    def guarded_edges(self, items: Iterable[tuple[Guard, Value]], depth: int) -> tuple[Edge, ...]:
        return tuple(
            Edge(both, e.node)
            for guard, item in items
            for e in self.edges_of(item, depth + 1)
            if (both := guard.meet(e.guard)) is not None
        )

    def tensor_edges(self, tensor: Tensor) -> tuple[Edge, ...]:
        node = tensor.slots["node"]
        if node is None:
            return ()
        if type(node) is Phi:
            return tuple(
                Edge(guard, alternative)
                for guard, alternative in node.alternatives
                if alternative is not None and guard.compatible(self.path)
            )
        if node.kind == "leaf":
            return self.leaf_edges(node)
        return (Edge(ALWAYS, node),)

    def leaf_edges(self, leaf: Node) -> tuple[Edge, ...]:
        """An edge to a leaf, on the paths where it requires a gradient."""
        requires = self.resolve(leaf.slots.get("requires_grad", True))
        if requires is True:
            return (Edge(ALWAYS, leaf),)
        if type(requires) is Phi:
            return tuple(Edge(g, leaf) for g, v in requires.alternatives if v is True)
        if type(requires) is Symbol:
            return (Edge(Guard({("truth", requires.key): True}), leaf),)
        return ()

    def cuts_of(self, value: Value, depth: int = 0) -> frozenset[Cut]:
        """The graphs that went into ``value`` and were lost on the way."""
        kind = type(value)
        if kind is Tensor or kind is Symbol:
            cuts: frozenset[Cut] = value.cuts
            return cuts
        if depth > DEEPEST_CONTAINER:
            return NO_CUTS
        if kind is Phi:
            found = [self.cuts_of(v, depth + 1) for g, v in value.alternatives if g.compatible(self.path)]
        elif kind is TupleValue:
            found = [self.cuts_of(item, depth + 1) for item in value.items]
        elif kind is ListCell:
            found = [self.cuts_of(item, depth + 1) for _, item in value.slots["items"]]
        elif kind is Sequence:
            found = [self.cuts_of(item, depth + 1) for _, item in value.items]
        else:
            return NO_CUTS
        return frozenset().union(*found) if found else NO_CUTS

    def escape(self, value: Value, node: ast.AST, how: str) -> None:
        """``value`` goes where this analysis cannot follow it."""
        edges = self.edges_of(value)
        if edges:
            self.tape.add(Escape(self.tape.next_index, self.where(node), self.path, value, edges, how))

    # -- recording -------------------------------------------------------------------------------------------------

    def recording_guards(self) -> tuple[Guard, ...]:
        """The paths on which operations are recorded."""
        state = self.resolve(self.recording)
        if state is True:
            return (ALWAYS,)
        if type(state) is Symbol:
            return (Guard({("truth", state.key): True}),)
        if type(state) is Phi:
            return tuple(g for g, v in state.alternatives if v is not False and v is not None)
        return (ALWAYS,) if state else ()

    # -- branches --------------------------------------------------------------------------------------------------

    def join(self, base: Guard, outcomes: list[tuple[Guard, Delta]]) -> None:
        """Go on from all of ``outcomes`` at once: (path, what was changed on it) pairs that exclude each other.

        All changes must have been undone. Sets the path to what the outcomes have in common.
        """
        if len(outcomes) == 1:
            self.path = outcomes[0][0]
            self.heap.apply(outcomes[0][1])
            return
        guards = [path.beyond(base) for path, _ in outcomes]
        self.heap.join([delta for _, delta in outcomes], lambda values: self.merge(guards, values))
        common = outcomes[0][0]
        for path, _ in outcomes[1:]:
            common = common.common(path)
        self.path = common

    def merge(self, guards: list[Guard], values: list[Any]) -> Any:
        """The value of one slot after a join."""
        pairs = list(zip(guards, values, strict=True))
        if all(type(value) is tuple for value in values):
            return _merge_items(pairs)
        if any(value is MISSING for value in values):
            pairs = [(g, UNBOUND if v is MISSING else v) for g, v in pairs]
        if any(_holds_node(value) for value in values) and all(value is None or _holds_node(value) for value in values):
            return _merge_nodes(pairs)
        return self.phi(pairs)


def same_value(one: Value, other: Value) -> bool:
    """Whether two values are certainly the same."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (int, float, str, bytes)):
        return bool(one == other)
    if type(one) is Symbol:
        return bool(one.key == other.key and one.node is other.node)
    return False


def _grouped(pairs: list[tuple[Guard, Value]]) -> list[tuple[Guard, Value]]:
    """Join neighbours that are the same value under guards that differ in one fact only."""
    grouped: list[tuple[Guard, Value]] = []
    for guard, value in pairs:
        for index, (other_guard, other) in enumerate(grouped):
            if same_value(value, other):
                common = guard.common(other_guard)
                if len(common.facts) >= max(len(guard.facts), len(other_guard.facts)) - 1 and _complementary(
                    guard, other_guard, common
                ):
                    grouped[index] = (common, value)
                    break
        else:
            grouped.append((guard, value))
    return grouped


def _complementary(one: Guard, other: Guard, common: Guard) -> bool:
    left, right = one.beyond(common).facts, other.beyond(common).facts
    if not left or not right:
        return True
    if left.keys() != right.keys() or len(left) != 1:
        return False
    first, second = next(iter(left.values())), next(iter(right.values()))
    return isinstance(first, bool) and isinstance(second, bool) and first is not second


def _holds_node(value: Any) -> bool:
    """Whether this is what the grad_fn slot of a tensor holds: a node, or nodes on different paths."""
    if type(value) is Phi:
        return any(isinstance(alternative, Node) for _, alternative in value.alternatives)
    return isinstance(value, Node)


def _merge_nodes(pairs: list[tuple[Guard, Any]]) -> Any:
    flat: list[tuple[Guard, Any]] = []
    for guard, node in pairs:
        for inner, alternative in node.alternatives if type(node) is Phi else ((ALWAYS, node),):
            both = guard.meet(inner)
            if both is not None:
                flat.append((both, alternative))
    if all(node is flat[0][1] for _, node in flat):
        return flat[0][1]
    return Phi(tuple(flat))


def _merge_items(pairs: list[tuple[Guard, tuple[Any, ...]]]) -> tuple[Any, ...]:
    """Join the contents of a list: what all begin with stays, the rest is there on its path only."""
    contents = [items for _, items in pairs]
    shared = 0
    for column in zip(*contents, strict=False):
        if all(entry is column[0] for entry in column):
            shared += 1
        else:
            break
    merged = list(contents[0][:shared])
    for guard, items in pairs:
        for entry in items[shared:]:
            if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], Guard):
                both = guard.meet(entry[0])
                if both is not None:
                    merged.append((both, entry[1]))
            elif entry not in merged:
                merged.append(entry)
    if len(merged) > LONGEST_LIST:
        merged = merged[: LONGEST_LIST // 2] + merged[-LONGEST_LIST // 2 :]
    return tuple(merged)


__all__ = [
    "Loop",
    "Machine",
    "Parameters",
    "Storage",
    "TooComplex",
    "TorchModule",
    "same_value",
]
