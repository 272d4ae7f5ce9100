"""The repairs of GM103: compute in the loop what an optimizer trains, detach what none does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .analysis.expressions import BUILTIN_NAMES
from .analysis.facts import Facts, edges_reach, frame_statement
from .analysis.knowledge.optimizers import CALLS_CLOSURE_AGAIN
from .analysis.source import Source
from .analysis.tape import Change, Discarded, Edge, Loop, Node, Step, Stored, Traversal, Where
from .analysis.values import Frame, Value
from .carried_hidden_state import describe
from .draft import Context, Edits, combined
from .rewrite.builders import insert_after, replace_node
from .rewrite.detaching import detach_expression, shape_of, torch_name
from .rewrite.detaching import detached as detached_code
from .rewrite.discarding import assigned
from .rewrite.edits import EditRefused, TextEdit
from .rewrite.sinking import DRAWING_CALLS, LoopStatement, called_names, check_repeatable, sinking

if TYPE_CHECKING:
    from .loop_invariant_graph import Invariant


Part = Callable[[], Edits | None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to mend a part of the finding."""

    parts: tuple[Part, ...] = ()
    changes_meaning: bool = False
    moved: tuple[ast.stmt, ...] = ()


def built(parts: tuple[Part, ...]) -> Edits | None:
    """The edits of all ``parts`` together; None where one of them cannot be made."""
    return combined(part() for part in parts)


def name_of(context: Context, invariant: Invariant, node: Node) -> str:
    """What people call the value that ``node`` gave."""
    stored = _handed_over(context, invariant, node)
    if stored is not None and isinstance(stored.key, str) and stored.key != "items":
        target = stored.where.node
        if isinstance(target, ast.Assign) and len(target.targets) == 1 and not isinstance(target.targets[0], ast.Tuple):
            return f"`{ast.unparse(target.targets[0])}`"
        return describe(stored.key)
    expression = node.where.node
    text = ast.unparse(expression) if isinstance(expression, ast.expr) else ""
    return f"`{text}`" if text and len(text) <= 40 else "this graph"


def site_of(context: Context, invariant: Invariant, node: Node) -> tuple[ast.AST, Where]:
    """Where the value comes from: what is assigned to a variable or attribute, else the operation itself."""
    stored = _handed_over(context, invariant, node)
    if stored is not None and stored.source is not None:
        return stored.source, stored.where
    return node.where.node, node.where


def _handed_over(context: Context, invariant: Invariant, node: Node) -> Stored | None:
    """The assignment that hands the value to the loop: what keeps it, or the last one in the outermost function."""
    if invariant.cached:
        return _kept(context, invariant, node)
    stores = _stores(context, node, invariant)
    return min(reversed(stores), key=lambda stored: stored.where.frame.depth, default=None)


# -- where things are ----------------------------------------------------------------------------------------------


def home(frame: Frame) -> Frame:
    """The frame of the function that a comprehension's frame belongs to."""
    while frame.scope_of is not None:
        frame = frame.scope_of
    return frame


def statement_in(source: Source, frame: Frame, where: Where) -> ast.stmt | None:
    """The innermost statement of ``frame`` that was running at ``where``, in it or in something that it called."""
    node = frame_statement(where, frame)
    while isinstance(node, ast.AST) and not isinstance(node, ast.stmt):
        node = source.parent(node)
    return node if isinstance(node, ast.stmt) else None


def _in_body(source: Source, loop: LoopStatement, statement: ast.stmt | None) -> ast.stmt | None:
    """The statement of the loop's own block that is or holds ``statement``."""
    node: ast.AST | None = statement
    while node is not None:
        if isinstance(node, ast.stmt) and any(member is node for member in loop.body):
            return node
        node = source.parent(node)
    return None


# -- into the loop -------------------------------------------------------------------------------------------------


def moved_into(context: Context, invariant: Invariant, nodes: list[Node]) -> Iterator[Way]:
    """Move the statements that compute ``nodes`` from trained parameters into the loop."""
    loop = invariant.loop.statement
    frame = home(invariant.loop.frame)
    source = context.source_of(frame.module.filename)
    if source is None or not isinstance(loop, LoopStatement):
        return
    statements: dict[ast.stmt, None] = {}
    for one in _leading_to_trained(context, invariant, nodes):
        statement = statement_in(source, frame, one.where)
        if statement is None:
            return
        statements[statement] = None
    if not statements or _writes_attributes(context, frame, source, set(statements)):
        return
    uses: list[ast.stmt] = []
    for node in nodes:
        for where in [user.where for user in invariant.frontier[node]] or [invariant.traversal.where]:
            if _is_repeated(context, frame, where):
                return
            use = _in_body(source, loop, statement_in(source, frame, where))
            if use is None:
                return
            uses.append(use)
    first = min(uses, key=lambda use: use.lineno)
    try:
        plan = sinking(source, list(statements), loop, first)
    except EditRefused:
        return
    yield Way((lambda: {source.filename: plan.edits(source)},), plan.changes_meaning, plan.statements)


def trained_leaves(facts: Facts, loop: Loop, traversals: list[Traversal]) -> dict[Node, list[Where]]:
    """The leaves that ``traversals`` change, with the places: steps, and updates by hand in ``loop``."""
    found: dict[Node, list[Where]] = {}
    for traversal in traversals:
        for leaf, steps in facts.applied(traversal).items():
            found.setdefault(leaf, []).extend(step.where for step in steps)
    leaves = {node for traversal in traversals for node in traversal.reached if node.kind == "leaf"}
    for change in facts.tape.of(Change):
        if change.step is None and change.where.turn(loop) is not None:
            for leaf in leaves:
                if any(storage is leaf.slots.get("storage") for storage in change.storages):
                    found.setdefault(leaf, []).append(change.where)
    return found


def _leading_to_trained(context: Context, invariant: Invariant, nodes: list[Node]) -> list[Node]:
    """What was recorded on the way from ``nodes`` to leaves that are trained."""
    trained = trained_leaves(context.facts, invariant.loop, invariant.traversals)
    below = {
        one
        for node in nodes
        for one in edges_reach((Edge(node.path, node),))
        if one in invariant.traversal.reached or one.kind == "leaf"
    }
    parents: dict[Node, list[Node]] = {}
    for one in below:
        for edge in one.edges:
            parents.setdefault(edge.node, []).append(one)
    found: set[Node] = set()
    stack = [leaf for leaf in below if leaf in trained]
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent in below and parent not in found:
                found.add(parent)
                stack.append(parent)
    return [one for one in found if one.operation != "merge"]


def _writes_attributes(context: Context, frame: Frame, source: Source, statements: set[ast.stmt]) -> bool:
    """Whether running one of ``statements`` leaves something in an object, or in a container made elsewhere."""
    written: dict[int, set[bool]] = {}
    for stored in context.facts.stored:
        slots = stored.slots
        if slots is stored.where.frame.slots or slots is home(stored.where.frame).slots:
            continue
        inside = statement_in(source, frame, stored.where) in statements
        if inside and isinstance(stored.key, str) and stored.key != "items":
            return True
        written.setdefault(id(slots), set()).add(inside)
    return any(len(places) == 2 for places in written.values())


def _is_repeated(context: Context, frame: Frame, where: Where) -> bool:
    """Whether ``where`` lies in a closure that an optimizer calls as often as it likes."""
    current: Frame | None = home(where.frame)
    while current is not None and current is not frame:
        for step in context.facts.tape.of(Step):
            if step.call is current.call and (step.optimizer is None or step.optimizer.name in CALLS_CLOSURE_AGAIN):
                return True
        current = home(current.caller) if current.caller is not None else None
    return False


# -- where it is used ----------------------------------------------------------------------------------------------


def computed_where_used(context: Context, invariant: Invariant, nodes: list[Node]) -> Iterator[Way]:
    """Replace an attribute by the expression that computed it, in the iterations that read it."""
    parts: list[Part] = []
    changes = False
    for node in nodes:
        stored = next(
            (
                s
                for s in reversed(_stores(context, node, invariant))
                if isinstance(s.key, str) and s.source is not None and s.slots is not s.where.frame.slots
            ),
            None,
        )
        if stored is None or stored.source is None:
            return
        uses = _attribute_uses(context, invariant, node, str(stored.key))
        if not uses or any(_is_repeated(context, home(invariant.loop.frame), frame_where) for _, frame_where in uses):
            return
        try:
            check_repeatable(stored.source)
        except EditRefused:
            return
        changes = changes or any(name in DRAWING_CALLS for name in called_names(stored.source))
        for use, where in uses:
            code = _written_for(context, stored, use, where.frame)
            source = context.source_of(where.frame.module.filename)
            if code is None or source is None:
                return
            parts.append(partial(_replaced, source, use, code))
    if parts:
        yield Way(tuple(parts), changes)


def _replaced(source: Source, expression: ast.expr, code: str) -> Edits:
    return {source.filename: replace_node(source, expression, code)}


def _attribute_uses(
    context: Context, invariant: Invariant, node: Node, attribute: str
) -> list[tuple[ast.Attribute, Where]]:
    """Where the iteration reads ``node`` from an attribute of that name; empty where it also gets it otherwise."""
    found: dict[ast.Attribute, Where] = {}
    users = invariant.frontier[node]
    for user in users:
        expressions = [
            operand.expression
            for operand in user.operands
            if node in {edge.node for edge in context.machine.edges_of(operand.value)}
        ]
        if not expressions:
            return []
        for expression in expressions:
            if not isinstance(expression, ast.Attribute) or expression.attr != attribute:
                return []
            found[expression] = user.where
    if not users:
        operand = invariant.traversal.operand
        if not isinstance(operand, ast.Attribute) or operand.attr != attribute:
            return []
        found[operand] = invariant.traversal.where
    return list(found.items())


def _written_for(context: Context, stored: Stored, use: ast.Attribute, frame: Frame) -> str | None:
    """The stored expression as it is written where ``use`` stands; None where it reads variables of its function."""
    source = context.source_of(stored.where.frame.module.filename)
    function = stored.where.frame.function
    expression = stored.source
    if source is None or expression is None or frame.module is not stored.where.frame.module:
        return None
    receiver = None
    if function is not None and not isinstance(function.node, ast.Lambda):
        parameters = [*function.node.args.posonlyargs, *function.node.args.args]
        receiver = parameters[0].arg if parameters else None
    own = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = [n for n in ast.walk(expression) if isinstance(n, ast.Name) and n.id not in own]
    if not any(n.id == receiver for n in names):
        return None
    globals_ = stored.where.frame.module.frame
    for name in names:
        if name.id == receiver:
            continue
        known = name.id in BUILTIN_NAMES or (globals_ is not None and name.id in globals_.slots)
        if not known or name.id in stored.where.frame.slots or name.id in frame.slots:
            return None
    start, _ = source.offsets(expression)
    text = source.segment(expression)
    replacement = ast.unparse(use.value)
    for name in sorted((n for n in names if n.id == receiver), key=lambda n: (n.lineno, n.col_offset), reverse=True):
        begin, end = source.offsets(name)
        text = text[: begin - start] + replacement + text[end - start :]
    return text


# -- detached ------------------------------------------------------------------------------------------------------


def detached(context: Context, invariant: Invariant, nodes: list[Node]) -> Iterator[Way]:
    """Cut ``nodes`` from their graph: where they are kept, where they are computed, or where the loop reads them."""
    for choose in (_kept, _computed, _last):
        stores = [choose(context, invariant, node) for node in nodes]
        parts = tuple(partial(_detach_store, context, stored) for stored in stores if stored is not None)
        if len(parts) == len(nodes):
            yield Way(parts)
    yield Way(tuple(partial(_detach_uses, context, invariant, node) for node in nodes))


def assigned_where_thrown_away(context: Context, nodes: list[Node]) -> Iterator[Way]:
    """Give the statements effect that detach one of ``nodes`` and throw the result away."""
    found: dict[ast.AST, Discarded] = {}
    for event in context.facts.discarded:
        if any(edge.node in nodes for edge in event.edges):
            found.setdefault(event.statement, event)
    if found:
        sources = [(context.source_of(context.filename(event.where)), event) for event in found.values()]
        yield Way(tuple(partial(assigned, source, event) for source, event in sources))


def _stores(context: Context, node: Node, invariant: Invariant) -> list[Stored]:
    """The assignments before the traversal of something that holds ``node``."""
    return [
        stored
        for stored in context.facts.stored
        if stored.index < invariant.traversal.index
        and invariant.is_outside(stored.where)
        and node in {edge.node for edge in context.machine.edges_of(stored.value)}
    ]


def _kept(context: Context, invariant: Invariant, node: Node) -> Stored | None:
    """The assignment to what is kept from the first iteration, else to a variable of the loop's own function."""
    stores = _stores(context, node, invariant)
    for stored in reversed(stores):
        if any(stored.slots is c.slots and stored.key == c.key for c in invariant.cached):
            return stored
    frame = home(invariant.loop.frame)
    return next((s for s in reversed(stores) if s.slots is frame.slots), None)


def _computed(context: Context, invariant: Invariant, node: Node) -> Stored | None:
    """The assignment whose right side recorded ``node``."""
    for stored in _stores(context, node, invariant):
        if stored.source is not None and any(inner is node.where.node for inner in ast.walk(stored.source)):
            return stored
    return None


def _last(context: Context, invariant: Invariant, node: Node) -> Stored | None:
    stores = _stores(context, node, invariant)
    return stores[-1] if stores else None


def _detach_store(context: Context, stored: Stored) -> Edits | None:
    source = context.source_of(stored.where.frame.module.filename)
    if source is None:
        return None
    if stored.source is not None:
        return _edits(source, detach_expression(context.machine, source, stored.source, stored.value))
    statement = stored.where.node
    is_variable = isinstance(stored.key, str) and stored.slots is stored.where.frame.slots
    if not is_variable or not isinstance(statement, ast.Assign):
        return None
    code = detached_code(str(stored.key), shape_of(stored.value), torch_name(source))
    return {source.filename: insert_after(source, statement, [f"{stored.key} = {code}"])} if code else None


def _detach_uses(context: Context, invariant: Invariant, node: Node) -> Edits | None:
    parts: list[Edits | None] = []
    for user in invariant.frontier[node]:
        source = context.source_of(user.where.frame.module.filename)
        operands: list[tuple[ast.expr, Value]] = [
            (operand.expression, operand.value)
            for operand in user.operands
            if operand.expression is not None and node in {e.node for e in context.machine.edges_of(operand.value)}
        ]
        if source is None or not operands:
            return None
        for expression, value in operands:
            parts.append(_edits(source, detach_expression(context.machine, source, expression, value)))
    return combined(parts) if parts else None


def _edits(source: Source, edits: tuple[TextEdit, ...] | None) -> Edits | None:
    return {source.filename: edits} if edits else None
