"""The repairs of GM403: the loss behind the step, the traversal before it, or a fresh value in place of a stale one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from .analysis.facts import edges_reach, frame_statement, frames_of
from .analysis.source import Source
from .analysis.tape import Edge, Node, Stale, Step, Traversal, Where, ZeroGrad
from .analysis.values import Frame
from .draft import Allowance, Context, Edits, Plan, combined
from .finding import Safety
from .missing_retain_graph import retained
from .rewrite.builders import move_statements, replace_node
from .rewrite.edits import EditRefused
from .rewrite.reordering import Order, block_around


@dataclass(slots=True)
class Clash:
    """A traversal, and the steps that changed what it needs."""

    traversal: Traversal
    events: list[Stale]

    @property
    def steps(self) -> list[Step]:
        """The steps in order."""
        return sorted({e.change.step for e in self.events if e.change.step is not None}, key=lambda step: step.index)


def common_frame(*places: Where) -> Frame | None:
    """The innermost function that all places lie in, themselves or through what it calls."""
    first, *others = [frames_of(where) for where in places]
    return next((frame for frame in first if all(any(frame is f for f in other) for other in others)), None)


def plans(context: Context, clash: Clash) -> Iterator[Plan]:
    """The ways to mend a clash, the likeliest first."""
    yield _moving("Compute the loss after the step", partial(_loss_later, context, clash))
    yield _fresh(context, clash)
    for first in ("zero_grad", "traversal", "step"):
        for with_step in (True, False):
            move = partial(_traversal_earlier, context, clash, first, with_step)
            yield _moving("Traverse before the step", move)
    yield _moving("Step after both traversals", partial(_step_later, context, clash))


Move = tuple[Source, Sequence[ast.stmt], Edits]


def _moving(message: str, move: Callable[[], Move]) -> Plan:
    plan = Plan(Safety.UNSAFE, message, lambda: None, Allowance())

    def build() -> Edits:
        _, statements, edits = move()
        plan.moved = tuple(statements)
        return edits

    plan.build = build
    return plan


# -- moving --------------------------------------------------------------------------------------------------------


class _Block:
    """The block in which the statements of several events follow each other."""

    def __init__(self, context: Context, places: Sequence[Where]) -> None:
        frame = common_frame(*places)
        source = context.source_of(frame.module.filename) if frame is not None else None
        if frame is None or source is None:
            raise EditRefused("no function holds it all")
        self.context, self.source, self.frame = context, source, frame
        statements, _ = block_around(source, [self._statement(where) for where in places])
        self.order = Order(source, statements)

    def _statement(self, where: Where) -> ast.stmt:
        node = frame_statement(where, self.frame)
        while isinstance(node, ast.AST) and not isinstance(node, ast.stmt):
            node = self.source.parent(node)
        if not isinstance(node, ast.stmt):
            raise EditRefused("its statement is not found")
        return node

    def index(self, where: Where) -> int | None:
        """Which statement of the block a point lies in; None outside."""
        if not any(frame is self.frame for frame in frames_of(where)):
            return None
        node: ast.AST | None = self._statement(where)
        while node is not None:
            for position, member in enumerate(self.order.statements):
                if member is node:
                    return position
            node = self.source.parent(node)
        return None

    def at(self, where: Where) -> int:
        found = self.index(where)
        if found is None:
            raise EditRefused("it lies outside the block")
        return found

    def moved(self, indices: Sequence[int], *, before: int | None = None, after: int | None = None) -> Move:
        """The edits that move statements of the block."""
        statements = [self.order.statements[index] for index in sorted(indices)]
        if before is not None:
            self.order.check(indices, before)
            edits = move_statements(self.source, statements, before=self.order.statements[before])
        else:
            assert after is not None
            self.order.check(indices, after)
            edits = move_statements(self.source, statements, after=self.order.statements[after])
        return self.source, statements, {self.source.filename: edits}


def _loss_later(context: Context, clash: Clash) -> Move:
    """Move what was recorded with the old parameters behind the last step that changes them."""
    recorded = [event.node.where for event in clash.events]
    block = _Block(context, [*recorded, *(step.where for step in clash.steps), clash.traversal.where])
    last = max(block.at(step.where) for step in clash.steps)
    end = block.at(clash.traversal.where)
    chosen = {index for node in _outdated(clash) if (index := block.index(node.where)) is not None and index < end}
    chosen = {index for index in chosen if index <= last}
    if not chosen or last >= end:
        raise EditRefused("nothing can be computed later")
    chosen = block.order.readers(chosen, last)
    for event in (*context.facts.steps, *context.facts.clears, *context.facts.traversals):
        if clash.events[0].node.where.loops == event.where.loops and block.index(event.where) in chosen:
            raise EditRefused("the loss is needed before the step")
    return block.moved(sorted(chosen), after=last)


def _outdated(clash: Clash) -> set[Node]:
    """The nodes on the way from the traversal's roots to what the steps changed."""
    stale = {
        node
        for node in clash.traversal.reached
        for saved in node.saved
        if any(saved.storage is event.storage for event in clash.events)
    }
    return {
        node
        for node in clash.traversal.reached
        if node.kind != "leaf" and (node in stale or edges_reach((Edge(node.path, node),)) & stale)
    }


def _traversal_earlier(context: Context, clash: Clash, first: str, with_step: bool) -> Move:
    """Move the traversal, with the clearing before it and its own step, before the first step that is in its way."""
    block = _Block(context, [*(step.where for step in clash.steps), clash.traversal.where])
    changing = [block.at(step.where) for step in clash.steps]
    here = block.at(clash.traversal.where)
    target = _start_of_update(block, clash.steps[0], first)
    if max(changing) >= here or target is None:
        raise EditRefused("the step does not come before")
    end = here
    if with_step:
        own = [
            index
            for step in context.facts.first_steps(clash.traversal)
            if step.where.loops == clash.traversal.where.loops and (index := block.index(step.where)) is not None
        ]
        if not own or max(own) == here:
            raise EditRefused("it has no step of its own to move")
        end = max(own)
    if any(event.traversal is clash.traversal for event in context.facts.refreed):
        raise EditRefused("it would have to retain the graph")
    return block.moved(range(max(changing) + 1, end + 1), before=target)


def _start_of_update(block: _Block, step: Step, first: str) -> int | None:
    """The statement with which the update that ends in ``step`` begins."""
    facts = block.context.facts
    if first == "step":
        return block.index(step.where)
    kind: type[Traversal | ZeroGrad] = Traversal if first == "traversal" else ZeroGrad
    events: list[Traversal | ZeroGrad] = [*facts.traversals, *facts.clears]
    before = [
        index
        for event in events
        if type(event) is kind and event.index < step.index and _concerns(event, step)
        if event.where.loops == step.where.loops and (index := block.index(event.where)) is not None
    ]
    return before[-1] if before else None


def _concerns(event: Traversal | ZeroGrad, step: Step) -> bool:
    leaves = event.reached if isinstance(event, Traversal) else event.cleared
    return any(leaf in leaves for leaf in step.applied)


def _step_later(context: Context, clash: Clash) -> Move:
    """Move the steps behind the traversal."""
    block = _Block(context, [*(step.where for step in clash.steps), clash.traversal.where])
    changing = sorted({block.at(step.where) for step in clash.steps})
    here = block.at(clash.traversal.where)
    if changing[-1] >= here:
        raise EditRefused("the step does not come before")
    return _retaining(context, clash, block.moved(changing, after=here))


def _retaining(context: Context, clash: Clash, move: Move) -> Move:
    """With the graph retained by whichever traversal comes first, where it is walked twice."""
    source, statements, edits = move
    for event in context.facts.refreed:
        if event.traversal is clash.traversal:
            more = retained(context, event.earlier)
            together = combined([edits, more])
            if together is None:
                raise EditRefused("the graph is walked twice")
            edits = together
    return source, statements, edits


# -- a fresh value -------------------------------------------------------------------------------------------------


def _fresh(context: Context, clash: Clash) -> Plan:
    """Read the variable that this pass has computed instead of the attribute of the same name from before the step."""
    call = clash.traversal.call
    return Plan(
        Safety.UNSAFE,
        "Use the value that was computed after the step",
        lambda: _fresh_edits(context, clash),
        Allowance(lost=lambda _, t: t.call is call, gained=lambda _, t: t.call is call),
    )


def _fresh_edits(context: Context, clash: Clash) -> Edits | None:
    outdated = _outdated(clash)
    parts: list[Edits | None] = []
    done: set[ast.AST] = set()
    for node in clash.traversal.reached:
        for operand in node.operands:
            expression = operand.expression
            if not isinstance(expression, ast.Attribute) or expression in done:
                continue
            old = {edge.node for edge in context.machine.edges_of(operand.value)}
            if not old & outdated or not _is_computed_anew(context, node.where.frame, expression, old):
                continue
            done.add(expression)
            source = context.source_of(context.filename(node.where))
            if source is not None:
                parts.append({source.filename: replace_node(source, expression, expression.attr)})
    return combined(parts) if parts else None


def _is_computed_anew(context: Context, frame: Frame, expression: ast.Attribute, old: set[Node]) -> bool:
    """Whether a variable of the function has the attribute's name and comes from the same parameters."""
    for stored in context.facts.stored:
        if stored.slots is frame.slots and stored.key == expression.attr:
            new = {edge.node for edge in context.machine.edges_of(stored.value)}
            written = getattr(stored.where.node, "lineno", 0) < expression.lineno
            if written and new and not new & old and _leaves(old) <= _leaves(new):
                return True
    return False


def _leaves(nodes: set[Node]) -> set[Node]:
    return {leaf for node in nodes for leaf in edges_reach((Edge(node.path, node),)) if leaf.kind == "leaf"}


__all__ = ["Clash", "common_frame", "plans"]
