"""The abstract tape: what PyTorch would have recorded, and what walked back over it.

Facts about autograd are those of https://docs.pytorch.org/docs/stable/notes/autograd.html: a node keeps the tensors its
backward needs ("saved tensors"), a traversal without ``retain_graph`` frees them, walking a freed node again raises,
and a saved tensor that was changed in place since (its version counter moved) raises too. ``.detach()`` shares the
version counter, ``.data`` does not.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .guards import ALWAYS, Guard
from .values import Frame, Optimizer, Parameters, Storage, TorchModule, Value


class Loop:
    """One run of a loop statement (or of a framework's training loop)."""

    __slots__ = ("exact", "frame", "statement")

    def __init__(self, statement: ast.AST, frame: Frame, exact: bool) -> None:
        self.statement = statement
        self.frame = frame
        self.exact = exact


Turn = tuple[Loop, int]
"""A loop and the number of its iteration."""


class Where(NamedTuple):
    """A point of the execution: the statement, the frame it runs in and the loops around it, outermost first."""

    node: ast.AST
    frame: Frame
    loops: tuple[Turn, ...]

    def turn(self, loop: Loop) -> int | None:
        """The iteration of ``loop`` that this point lies in, None where it lies outside."""
        for around, number in self.loops:
            if around is loop:
                return number
        return None


class Saved(NamedTuple):
    """A tensor that a node keeps for its backward."""

    storage: Storage
    version: Any
    edges: tuple[Edge, ...]


class Edge(NamedTuple):
    """From a node to one of its inputs, on the paths where ``guard`` holds."""

    guard: Guard
    node: Node


class Operand(NamedTuple):
    """An input of a node as the source spells it."""

    expression: ast.expr | None
    value: Value


class Node:
    """One recorded operation, or a leaf (a parameter, a tensor with ``requires_grad``)."""

    __slots__ = (
        "assumed",
        "edges",
        "freed",
        "identity",
        "key",
        "kind",
        "operands",
        "operation",
        "path",
        "saved",
        "saves",
        "slots",
        "terms",
        "where",
    )

    def __init__(
        self,
        kind: str,
        operation: str,
        where: Where,
        path: Guard,
        edges: tuple[Edge, ...] = (),
        saved: tuple[Saved, ...] = (),
        saves: bool | None = False,
        operands: tuple[Operand, ...] = (),
        key: Hashable = None,
        identity: int = 0,
    ) -> None:
        self.kind = kind
        """``leaf``, ``operation``, ``unknown`` (an opaque call), ``derivative``."""
        self.operation = operation
        self.where = where
        self.path = path
        self.edges = edges
        self.saved = saved
        self.saves = saves
        """Whether walking it twice raises: it keeps something. None where that is not known."""
        self.operands = operands
        self.key = key
        self.identity = identity
        self.freed: list[Traversal] = []
        self.terms: frozenset[Cut] = frozenset()
        """Graphs that were lost in a term that this node adds to something that has one."""
        self.slots: dict[Any, Any] = {}
        """For leaves: ``requires_grad`` and ``grad``; ``tensor`` for what was back-propagated and so is a tensor."""
        self.assumed = kind == "unknown"

    def __repr__(self) -> str:
        return f"<{self.kind} {self.operation} line {getattr(self.where.node, 'lineno', '?')}>"


class Cut(NamedTuple):
    """A place where a value lost its graph."""

    kind: str
    """``detach``, ``data``, ``item``, ``no_grad``, ``derivative`` (a gradient taken without create_graph)."""
    where: Where
    edges: tuple[Edge, ...]
    gradient: Traversal | None


Gradients = tuple[tuple[Guard, "Traversal"], ...]
"""The traversals that a leaf's ``.grad`` holds the sum of."""


@dataclass(eq=False, slots=True)
class Event:
    """Something that happened, in order."""

    index: int
    where: Where
    path: Guard


@dataclass(eq=False, slots=True)
class Refreed(Event):
    """A traversal reached ``node``, which ``earlier`` had freed."""

    node: Node
    earlier: Traversal
    traversal: Traversal


@dataclass(eq=False, slots=True)
class Stale(Event):
    """A traversal reached ``node``, one of whose saved tensors ``change`` had changed in place."""

    node: Node
    change: Change
    traversal: Traversal
    storage: Storage


@dataclass(eq=False, slots=True)
class Traversal(Event):
    """A walk back over the tape."""

    roots: tuple[Edge, ...]
    operand: ast.expr | None
    call: ast.Call
    retain: bool | None
    create: bool | None
    accumulates: bool
    """``backward`` fills ``.grad``; ``autograd.grad`` does not."""
    inputs: tuple[Node, ...] | None = None
    gradient_argument: bool = False
    reached: dict[Node, Guard] = field(default_factory=dict)
    sure: set[Node] = field(default_factory=set)
    """The part of what it reaches that does not hang on guesses about unknown calls."""
    flat: bool = False
    """What was to be walked has no graph: PyTorch raises."""
    value: Value = None
    flag: ast.expr | None = None
    """The expression given as retain_graph, where there is one."""
    framework: bool = False


@dataclass(eq=False, slots=True)
class Change(Event):
    """Data changed in place, by an operation or by an optimizer's step."""

    storages: tuple[Storage, ...]
    operation: str
    statement: ast.AST
    tensor: Value = None
    target: ast.expr | None = None
    step: Step | None = None
    leaf: Node | None = None
    """The leaf that is changed while operations are recorded: PyTorch raises."""
    module: TorchModule | None = None
    """The module with ``inplace=True`` that changed its input."""


@dataclass(eq=False, slots=True)
class Step(Event):
    """``optimizer.step()``; ``parameters`` is None where it is not known what it owns."""

    optimizer: Optimizer | None
    parameters: Parameters | None
    call: ast.AST
    applied: dict[Node, Gradients] = field(default_factory=dict)
    """What each owned leaf had in its ``.grad``."""


@dataclass(eq=False, slots=True)
class ZeroGrad(Event):
    """Gradients cleared; ``parameters`` is None where it is not known whose."""

    parameters: Parameters | None
    call: ast.AST
    cleared: dict[Node, Gradients] = field(default_factory=dict)
    """What each of the leaves had in its ``.grad`` before."""


@dataclass(eq=False, slots=True)
class Escape(Event):
    """A value with a graph goes where this analysis cannot follow."""

    value: Value
    edges: tuple[Edge, ...]
    how: str


@dataclass(eq=False, slots=True)
class Handed(Event):
    """A call that cannot be seen gets objects that own parameters; ``callee`` names what is called."""

    values: tuple[Value, ...]
    callee: Hashable


@dataclass(eq=False, slots=True)
class Boundary(Event):
    """The end of an iteration: what it wrote that carries a graph."""

    loop: Loop
    number: int
    carried: tuple[Carried, ...]


class Carried(NamedTuple):
    """A slot that one iteration left with a graph in it."""

    slots: dict[Any, Any]
    key: Hashable
    value: Value
    before: Value
    where: Where
    edges: tuple[Edge, ...]
    """What it pointed at then: the value itself may have changed in place since."""


@dataclass(eq=False, slots=True)
class Discarded(Event):
    """``x.detach()`` as a statement, its result thrown away."""

    statement: ast.Expr
    receiver: ast.expr
    edges: tuple[Edge, ...]


@dataclass(eq=False, slots=True)
class Stored(Event):
    """An assignment, or an element added to a container: the slot, the value and the expression that gave it."""

    slots: dict[Any, Any]
    key: Hashable
    value: Value
    source: ast.expr | None


@dataclass(eq=False, slots=True)
class Unused(Event):
    """``autograd.grad`` with an input that the output does not depend on: PyTorch raises."""

    call: ast.Call


@dataclass(eq=False, slots=True)
class Misuse(Event):
    """A tensor's method asked of a number that ``.item()`` made: Python raises."""

    call: ast.AST


@dataclass(eq=False, slots=True)
class Flat(Event):
    """A differentiation of something that has no graph: PyTorch raises."""

    call: ast.Call
    operand: ast.expr | None
    cuts: frozenset[Cut]
    inputs: tuple[Node, ...] | None


@dataclass(eq=False, slots=True)
class OnceOnly(Event):
    """A traversal reached ``derivative``, a gradient that went through ``node``, whose backward is marked as
    differentiable once only: PyTorch raises."""

    node: Node
    derivative: Node
    traversal: Traversal


class Tape:
    """Everything recorded in one run of the interpreter."""

    def __init__(self, leaves: dict[Hashable, Node] | None = None) -> None:
        self.events: list[Any] = []
        self.leaves: dict[Hashable, Node] = dict(leaves or {})
        self.cuts: list[Cut] = []
        """Where values were detached."""

    def add(self, event: Any) -> None:
        self.events.append(event)

    @property
    def next_index(self) -> int:
        return len(self.events)

    def of(self, kind: type[Any]) -> list[Any]:
        """All events of one class, in order."""
        return [event for event in self.events if type(event) is kind]


PERHAPS: Final = "perhaps"
"""The operation of a node for what a slot may still hold after a call that cannot be seen has had its object."""
MOST_VISITS: Final = 3
"""A node that so many ways lead to is taken to be reached whatever they assume."""


def reach(roots: Iterable[Edge], path: Guard) -> dict[Node, Guard]:
    """All nodes that a walk from ``roots`` gets to on ``path``, each with the guard of one way to it."""
    reached: dict[Node, Guard] = {}
    visits: dict[Node, int] = {}
    stack: list[Edge] = []
    for edge in roots:
        guard = path.meet(edge.guard)
        if guard is not None:
            stack.append(Edge(guard, edge.node))
    while stack:
        guard, node = stack.pop()
        known = reached.get(node)
        if known is not None:
            if known is path or known is guard or guard.implies(known):
                continue
            visits[node] = visits.get(node, 0) + 1
            guard = known.either(guard, ("ways", id(node)))
            if guard == known:
                continue
            if visits[node] > MOST_VISITS:
                reached[node] = guard
                continue
        reached[node] = guard
        for edge in node.edges:
            further = guard.meet(edge.guard)
            if further is not None:
                stack.append(Edge(further, edge.node))
    return reached


def sure_nodes(roots: Iterable[Edge]) -> set[Node]:
    """What a walk from ``roots`` surely gets to.

    A call that cannot be seen may or may not depend on what it is given. It does where it is all that a traversal's
    root hangs on, and where it is the call of a module whose parameters are known.
    """
    sure: set[Node] = set()
    stack = [edge.node for edge in roots]
    while stack:
        node = stack.pop()
        if node in sure:
            continue
        sure.add(node)
        if node.operation == PERHAPS or (node.operation == "merge" and len(node.edges) > 1):
            continue
        inputs = [edge.node for edge in node.edges if not (edge.node.kind == "leaf" and edge.node.assumed)]
        if node.kind == "unknown" and len(inputs) > 1 and not any(one.kind == "leaf" for one in inputs):
            continue
        stack += [one for one in inputs if len(inputs) == 1 or one.kind != "unknown" or is_module_call(one)]
    return sure


def is_module_call(node: Node) -> bool:
    """Whether an unknown call is one of a module whose parameters are known."""
    return any(edge.node.kind == "leaf" and not edge.node.assumed for edge in node.edges)


def edges_under(edges: Iterable[Edge], guard: Guard) -> tuple[Edge, ...]:
    """``edges`` as far as they are possible under ``guard``, each narrowed by it."""
    if guard is ALWAYS:
        return tuple(edges)
    narrowed = []
    for edge in edges:
        both = guard.meet(edge.guard)
        if both is not None:
            narrowed.append(Edge(both, edge.node))
    return tuple(narrowed)
