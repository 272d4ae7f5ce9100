"""Questions that the codemods ask of one tape."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Final

from .interpreter import Run
from .tape import (
    PERHAPS,
    Boundary,
    Change,
    Discarded,
    Edge,
    Escape,
    Flat,
    Loop,
    Node,
    Refreed,
    Stale,
    Step,
    Stored,
    Traversal,
    Where,
    ZeroGrad,
    is_module_call,
)
from .values import Frame, Symbol, Value

LINEAR: Final = frozenset(
    {
        "add",
        "sub",
        "rsub",
        "sum",
        "mul",
        "div",
        "neg",
        "merge",
        "lerp",
        "iadd",
        "mean",
        "scale",
        "true_divide",
        "multiply",
    }
)
"""Operations through which a running total carries on."""
PICKING: Final = frozenset(
    {
        "select",
        "slice",
        "squeeze",
        "view",
        "reshape",
        "sum",
        "mean",
        "mul",
        "div",
        "neg",
        "add",
        "sub",
        "merge",
        "scale",
    }
)
"""Operations that make a loss of a part of something, or weigh it."""
SCALING: Final = frozenset({"mul", "div", "true_divide", "multiply", "lerp"})


class Facts:
    """One run's tape with the questions that more than one codemod asks, each answered once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tape = run.tape

    @cached_property
    def traversals(self) -> list[Traversal]:
        return self.tape.of(Traversal)

    @cached_property
    def steps(self) -> list[Step]:
        return self.tape.of(Step)

    @cached_property
    def clears(self) -> list[ZeroGrad]:
        return self.tape.of(ZeroGrad)

    @cached_property
    def refreed(self) -> list[Refreed]:
        """Second walks over what certainly exists."""
        return [event for event in self.tape.of(Refreed) if self.certain(event.node)]

    @cached_property
    def stale(self) -> list[Stale]:
        """Walks that need what was changed, by something that certainly exists."""
        return [event for event in self.tape.of(Stale) if self.certain(event.node)]

    @cached_property
    def flats(self) -> list[Flat]:
        return self.tape.of(Flat)

    @cached_property
    def boundaries(self) -> list[Boundary]:
        return self.tape.of(Boundary)

    @cached_property
    def stored(self) -> list[Stored]:
        return self.tape.of(Stored)

    @cached_property
    def escapes(self) -> list[Escape]:
        return self.tape.of(Escape)

    @cached_property
    def discarded(self) -> list[Discarded]:
        return self.tape.of(Discarded)

    @cached_property
    def reached_by(self) -> dict[Node, list[Traversal]]:
        """For every node, the traversals that reach it, in order."""
        found: dict[Node, list[Traversal]] = {}
        for traversal in self.traversals:
            for node in traversal.reached:
                found.setdefault(node, []).append(traversal)
        return found

    # -- certainty -------------------------------------------------------------------------------------------------

    @cached_property
    def confirmed(self) -> set[Node]:
        """Nodes of unknown calls that must have been recorded, because something that depends on nothing else was
        back-propagated."""
        confirmed: set[Node] = set()
        stack = [edge.node for t in self.traversals for edge in t.roots if len(t.roots) == 1 and not edge.guard.facts]
        while stack:
            node = stack.pop()
            if node in confirmed:
                continue
            confirmed.add(node)
            if node.operation == PERHAPS:
                continue
            inputs = [edge.node for edge in node.edges]
            if len(inputs) == 1:
                stack.append(inputs[0])
            elif node.kind == "unknown" and len(inputs) == 2 and any(i.kind == "leaf" and i.assumed for i in inputs):
                pass
        return confirmed

    def certain(self, node: Node) -> bool:
        """Whether ``node`` surely exists under PyTorch: it does not hang on guesses about unknown calls alone."""
        seen: set[Node] = set()
        stack = [node]
        while stack:
            one = stack.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in self.confirmed or (one.kind == "leaf" and not one.assumed):
                return True
            if one.kind != "unknown" or is_module_call(one):
                stack.extend(edge.node for edge in one.edges)
        return False

    @cached_property
    def differentiated(self) -> set[Hashable]:
        """Keys of unknown values that must be tensors with a graph: what was back-propagated depends on them alone."""
        roots = [t.value for t in self.traversals]
        operands = [o.value for node in self.confirmed if len(node.edges) == 1 for o in node.operands]
        return {value.key for value in (*roots, *operands) if type(value) is Symbol and value.node is not None}

    def may_be_plain(self, value: Value) -> bool:
        """Whether ``value`` is one of several results of a call that cannot be seen, and not known to be a tensor."""
        if type(value) is not Symbol or value.key in self.differentiated:
            return False
        return isinstance(value.key, tuple) and value.key[0] in {"item", "attr"}

    def coincide(self, event: Refreed | Stale) -> bool:
        """Whether the two events that clash are known to happen in one run.

        No condition of the first must meet an independent one of the second, unless they clash on either side of that.
        """
        first = _first(event)
        if not first.path.beyond(event.traversal.path).facts:
            return True
        events: list[Refreed | Stale] = [*self.refreed, *self.stale]
        siblings = [
            other
            for other in events
            if type(other) is type(event)
            and other.traversal.call is event.traversal.call
            and other.traversal.where.loops == event.traversal.where.loops
            and other.node.where.node is event.node.where.node
            and _first(other).where.node is first.where.node
        ]
        left = dict(event.path.beyond(first.path).facts)
        for key, value in list(left.items()):
            if any(key in other.path.facts and other.path.facts[key] != value for other in siblings):
                del left[key]
                if isinstance(key, tuple) and isinstance(key[-1], tuple) and key[-1][0] == "equal":
                    left.pop(("value", key[-1][1]), None)
        return not left

    def walks_parts(self, event: Refreed) -> bool:
        """Whether a loop walks back from one part after the other of what was computed before it: from the rows of a
        result, or from a list of losses."""
        parted = self.parting(event.earlier.where, event.traversal.where)
        if parted is None or event.node.where.turn(parted[0]) is not None:
            return False
        loop = parted[0]
        if {edge.node for edge in event.earlier.roots} == {edge.node for edge in event.traversal.roots}:
            return False
        for traversal in (event.earlier, event.traversal):
            turn = traversal.where.turn(loop)
            for node in traversal.reached:
                own = node.where.turn(loop)
                if node.kind == "leaf" or own is None:
                    continue
                picks = node.operation in PICKING and all(edge.node.kind != "leaf" for edge in node.edges)
                if own != turn or not picks:
                    return False
        return not any(event.earlier.index < step.index < event.traversal.index for step in self.steps)

    def reaches_plainly(self, traversal: Traversal, node: Node) -> bool:
        """Whether ``traversal`` gets to ``node`` through operations alone, past no call that cannot be seen."""
        seen: set[Node] = set()
        stack = [edge.node for edge in traversal.roots]
        while stack:
            one = stack.pop()
            if one is node:
                return True
            if one in seen or one not in traversal.reached or one.operation == "merge":
                continue
            seen.add(one)
            if one.kind == "unknown" and not (one in self.confirmed and len(one.edges) == 1):
                continue
            stack.extend(edge.node for edge in one.edges)
        return False

    def crash(self, traversal: Traversal) -> Hashable:
        """What ends the run at ``traversal``: the same for the same mistake in another iteration."""
        causes = frozenset(
            [
                ("freed", event.earlier.call, event.node.where.node)
                for event in self.refreed
                if event.traversal is traversal
            ]
            + [
                ("changed", event.change.where.node, event.node.where.node)
                for event in self.stale
                if event.traversal is traversal
            ]
        )
        return (traversal.call, *(frame.caller_statement for frame in frames_of(traversal.where)), causes)

    # -- loops -----------------------------------------------------------------------------------------------------

    def parting(self, one: Where, other: Where) -> tuple[Loop, int, int] | None:
        """The outermost loop of which two points lie in different iterations, with both iteration numbers."""
        for (loop, turn), (other_loop, other_turn) in zip(one.loops, other.loops, strict=False):
            if loop is not other_loop:
                return None
            if turn != other_turn:
                return loop, turn, other_turn
        return None

    def crossings(self, traversal: Traversal, loop: Loop, turn: int) -> list[tuple[Node, Node]]:
        """Edges of what ``traversal`` reaches that lead from iteration ``turn`` of ``loop`` into an earlier one."""
        found = []
        for node in traversal.reached:
            own = node.where.turn(loop)
            if own != turn and node is not None and own is not None:
                continue
            for edge in node.edges:
                before = edge.node.where.turn(loop)
                if before is not None and before < turn and edge.node in traversal.reached and edge.node.kind != "leaf":
                    found.append((node, edge.node))
        return found

    # -- gradients -------------------------------------------------------------------------------------------------

    def applied(self, traversal: Traversal) -> dict[Node, list[Step]]:
        """The leaves whose gradient from ``traversal`` some step applies, with those steps."""
        found: dict[Node, list[Step]] = {}
        for step in self.steps:
            if step.index < traversal.index:
                continue
            for leaf, gradients in step.applied.items():
                if any(t is traversal for _, t in gradients):
                    found.setdefault(leaf, []).append(step)
        return found

    def first_steps(self, traversal: Traversal) -> list[Step]:
        """The steps between ``traversal`` and the next traversal, or else the first group of steps after it."""
        found: list[Step] = []
        for event in self.tape.events[traversal.index + 1 :]:
            if type(event) is Step and event.path.compatible(traversal.path):
                found.append(event)
            elif type(event) is Traversal and event.accumulates and found:
                break
        return found

    def cleared(self, leaf: Node, traversal: Traversal) -> bool:
        """Whether the gradient of ``leaf`` from ``traversal`` is cleared before any step applies it."""
        for clear in self.clears:
            if clear.index > traversal.index and any(t is traversal for _, t in clear.cleared.get(leaf, ())):
                return True
        return False


def _first(event: Refreed | Stale) -> Traversal | Change:
    """What made the traversal of ``event`` fail."""
    return event.earlier if isinstance(event, Refreed) else event.change


def frame_statement(where: Where, frame: Frame) -> object | None:
    """The statement of ``frame`` that was running at ``where``, in it or in something that it called."""
    current: Frame | None = where.frame
    node: object = where.node
    while current is not None:
        if current is frame:
            return node
        if current.scope_of is not None:
            current = current.scope_of
        else:
            node, current = current.caller_statement, current.caller
    return None


def edges_reach(edges: Iterable[Edge]) -> set[Node]:
    """All nodes below ``edges``, on whatever path."""
    stack = [edge.node for edge in edges]
    found: set[Node] = set()
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [edge.node for edge in node.edges]
    return found


def frames_of(where: Where) -> list[Frame]:
    """The frame of ``where`` and its callers, innermost first."""
    frames = []
    frame: Frame | None = where.frame
    while frame is not None:
        frames.append(frame)
        frame = frame.caller
    return frames


def additions(edges: Iterable[Edge], old: set[Node], loop: Loop, turn: int) -> set[Node]:
    """The additions of iteration ``turn`` between a running total (``edges``) and what it was before (``old``).

    A product counts where only one of its factors has a graph: a weight, a decay.
    """
    chain: set[Node] = set()
    refused: set[Node] = set()

    def leads(node: Node) -> bool:
        if node in chain or node in refused:
            return node in chain
        refused.add(node)
        if node.operation not in LINEAR or node.operation == "merge" or node.where.turn(loop) != turn:
            return False
        inputs = {edge.node for edge in node.edges}
        if node.operation in SCALING and len(inputs) > 1:
            return False
        if any([one in old or leads(one) for one in inputs]):  # noqa: C419 - all of them are followed
            chain.add(node)
            return True
        return False

    for edge in edges:
        for inner in edge.node.edges if edge.node.operation == "merge" else (edge,):
            leads(inner.node)
    return chain
