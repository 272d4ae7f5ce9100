"""# accumulated-loss (GM102)

## What it does

Finds a running total, a list, a dict or a meter that keeps the graph of every iteration and that nothing ever
back-propagates.

## Why is this bad?

A tensor that carries a graph keeps the whole tape behind it alive. `total += loss` hangs every iteration's tape on one
variable: none of it can be freed until the variable goes. Before its `backward()` that is every activation of the
iteration; after it only the nodes, which still grow by the iteration until the job dies:

    torch.OutOfMemoryError: CUDA out of memory

## Example

```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for batch in torch.randn(4, 5, 3):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total / 4)
```

## Use instead

```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for batch in torch.randn(4, 5, 3):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total / 4)
```

## Fix safety

Safe: only what nothing back-propagates is cut. `.item()` is written where a number is wanted and every later use takes
one, `.detach()` where a tensor is; `accumulate-with` in the configuration chooses.

## When to leave it

A sum that is itself back-propagated, here or by a caller, is never reported; nor is one that goes where the analysis
cannot follow while its graph is still whole.

## References

- https://docs.pytorch.org/docs/stable/notes/faq.html ("My model reports cuda runtime error(2): out of memory")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .analysis.facts import LINEAR, additions, edges_reach, frames_of
from .analysis.tape import Boundary, Carried, Edge, Loop, Node, Refreed, Stored
from .analysis.values import Frame, FunctionValue, Phi, Symbol, Tensor, Value
from .carried_hidden_state import describe, read_first
from .draft import Allowance, Context, Draft, Edits, Plan, Rule, combined
from .finding import Role, Safety, Severity
from .rewrite.builders import replace_node
from .rewrite.detaching import detach_expression, torch_name

RULE = Rule("GM102", "accumulated-loss", "A running total or list keeps the graph of every iteration")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every slot whose graph grows by the iteration and is no traversal's root."""
    boundaries = context.facts.boundaries
    for boundary in boundaries:
        if boundary.number == 0:
            continue
        earlier = _previous(boundaries, boundary)
        if earlier is None:
            continue
        for carried in boundary.carried:
            before = next((c for c in earlier.carried if c.slots is carried.slots and c.key == carried.key), None)
            if before is None or not context.shows_all(carried.where):
                continue
            grown = _growth(context, boundary.loop, boundary.number, before, carried)
            if grown is None or _overwrites(_writes(context, boundary.loop, carried), boundary.loop):
                continue
            if _feeds_state(context, boundary, carried, grown):
                continue
            if grown.wanted:
                context.veto(RULE.code, boundary.loop.statement, carried.key)
            else:
                draft = _draft(context, boundary, carried, grown)
                if draft is not None:
                    draft.concerns = (RULE.code, boundary.loop.statement, carried.key)
                    yield draft


def _previous(boundaries: list[Boundary], boundary: Boundary) -> Boundary | None:
    for other in boundaries:
        if other.loop is boundary.loop and other.number == boundary.number - 1:
            return other
    return None


@dataclass(frozen=True, slots=True)
class Growth:
    """What one iteration adds to a slot: the nodes added, and the additions that add them."""

    added: frozenset[Node]
    totals: frozenset[Node]
    wanted: bool = False
    """Whether it is back-propagated, or may be: then the same code must not be reported elsewhere either."""
    twice: Refreed | None = None
    """Set where the total is back-propagated although its parts have been."""


def _growth(context: Context, loop: Loop, turn: int, before: Carried, after: Carried) -> Growth | None:
    """What iteration ``turn`` adds to what the slot held before; None where it does not accumulate, or where what it
    holds is back-propagated or may be."""
    facts = context.facts
    old = {edge.node for edge in before.edges}
    container = isinstance(after.value, tuple)
    if container:
        held = {edge.node for edge in after.edges}
        kept = held & old
        added = {node for node in held - old if node.where.turn(loop) == turn}
        totals: set[Node] = set()
    else:
        totals = additions(after.edges, old, loop, turn)
        kept = {edge.node for node in totals for edge in node.edges} & old
        added = {
            edge.node
            for node in totals
            for edge in node.edges
            if edge.node not in totals and edge.node not in old and edge.node.where.turn(loop) == turn
        }
    if not kept or not added or not any(facts.certain(node) for node in added) or _in_forward(context, loop):
        return None
    if not _records_anew(added, loop, turn) or _may_be_plain(context, loop, after, added, totals):
        return None
    growth = Growth(frozenset(added), frozenset(totals))
    if _traversed_later(context, loop, growth, kept, container):
        twice = _back_propagated_twice(context, growth)
        return replace(growth, twice=twice, wanted=twice is None)
    return growth


def _feeds_state(context: Context, boundary: Boundary, carried: Carried, growth: Growth) -> bool:
    """Whether another state of the loop is calculated from the total: what it is for shows in iterations that are not
    run."""
    if isinstance(carried.value, tuple):
        return False
    watched = growth.totals | growth.added
    for other in boundary.carried:
        if other.slots is carried.slots and other.key == carried.key:
            continue
        if isinstance(other.value, tuple) or not read_first(context, other, boundary.loop, boundary.number):
            continue
        held = {edge.node for edge in other.edges}
        if not held <= watched and edges_reach(other.edges) & _inherited(growth):
            return True
    return False


def _inherited(growth: Growth) -> set[Node]:
    """The total as the iteration before left it, and as this one leaves it."""
    below = {edge.node for node in growth.totals for edge in node.edges} - growth.added
    return below | growth.totals


def _records_anew(added: set[Node], loop: Loop, turn: int) -> bool:
    """Whether the iteration records more than sums of what was there before: a forward pass of its own."""
    below = edges_reach(tuple(Edge(node.path, node) for node in added))
    return any(
        node.where.turn(loop) == turn
        and node.kind != "leaf"
        and node.operation not in LINEAR
        and node.saves is not False
        for node in below
    )


def _may_be_plain(context: Context, loop: Loop, carried: Carried, added: set[Node], totals: set[Node]) -> bool:
    """Whether what is accumulated may be a number or a text that a call that cannot be seen gives beside a loss."""
    stored = [write.value for write in _writes(context, loop, carried)] if isinstance(carried.value, tuple) else []
    values = [*stored, *(operand.value for node in totals for operand in node.operands)]
    brought = [v for v in values if any(edge.node in added for edge in context.machine.edges_of(v))]
    return bool(brought) and all(context.facts.may_be_plain(value) for value in brought)


def _in_forward(context: Context, loop: Loop) -> bool:
    """Whether the loop is part of a calculation: over layers, dimensions or time steps, not over batches.

    It is where a module does it, and where a function that is given something with a graph makes more of it.
    """
    frame: Frame | None = loop.frame
    while frame is not None:
        if frame.function is not None and (_is_of_module(context, frame.function) or _is_given_graph(context, frame)):
            return not any(t.accumulates and t.where.turn(loop) is not None for t in context.facts.traversals)
        frame = frame.scope_of or frame.caller
    return False


def _is_of_module(context: Context, function: FunctionValue) -> bool:
    owner = function.owner
    return function.name in {"forward", "__call__"} or (owner is not None and context.machine.is_module_class(owner))


def _is_given_graph(context: Context, frame: Frame) -> bool:
    values = [context.machine.resolve(operand.value) for operand in frame.arguments]
    return any(type(value) in (Tensor, Symbol, Phi) and context.machine.edges_of(value) for value in values)


def _traversed_later(context: Context, loop: Loop, growth: Growth, kept: set[Node], container: bool) -> bool:
    """Whether what has been accumulated is back-propagated, or may be where it cannot be seen."""
    facts = context.facts
    totals, parts = growth.totals, growth.added | kept
    if any(node in facts.reached_by for node in totals):
        return True
    for node in parts:
        own = node.where.turn(loop)
        for traversal in facts.reached_by.get(node, ()):
            if traversal.where.turn(loop) != own:
                return True
    if all(_spent(context, node) for node in parts):
        return False
    watched = totals | parts
    if any(cut.kind in {"detach", "data"} and edges_reach(cut.edges) & watched for cut in facts.tape.cuts):
        return True
    for escape in facts.escapes:
        nodes = {edge.node for edge in escape.edges}
        if nodes & totals or (nodes & parts and container and len(nodes & parts) > 1):
            return True
        if escape.how != "call" and edges_reach(escape.edges) & watched:
            return True
    return "." in facts.run.entry


def _back_propagated_twice(context: Context, growth: Growth) -> Refreed | None:
    """The failure of a total's own traversal where every part has been traversed already."""
    for event in context.facts.refreed:
        if growth.totals & event.traversal.reached.keys() and all(_spent(context, node) for node in growth.added):
            return event
    return None


def _spent(context: Context, node: Node) -> bool:
    """Whether a traversal has freed what lies behind ``node``, so that nothing can traverse it again."""
    below = edges_reach((Edge(node.path, node),))
    return any(one.saves is True and one.freed for one in below)


def _draft(context: Context, boundary: Boundary, carried: Carried, growth: Growth) -> Draft | None:
    grown = growth.added
    writes = _writes(context, boundary.loop, carried)
    if not writes:
        return _in_place_draft(context, boundary, carried, growth) if carried.key == "node" else None
    last = writes[-1]
    name = describe(carried.key)
    spent = any(_spent(context, node) for node in grown)
    cost = (
        "its nodes stay in memory, and more with every iteration"
        if spent
        else "every activation of every iteration stays in memory"
    )
    draft = Draft(
        RULE,
        f"{name} keeps the graph of every iteration although nothing back-propagates it: {cost}",
        Severity.WARNING,
        last.where.node,
        context.filename(last.where),
        [
            (
                Role.RECORDED,
                next(iter(sorted(grown, key=_position))).where,
                "this graph is recorded in every iteration",
            ),
            (Role.REACHED, last.where, f"and {name} holds on to all of them"),
        ],
        explains=False,
    )
    if growth.twice is not None:
        draft.message = (
            f"{name} is back-propagated although each of its parts has been: only one of the two can be meant"
        )
        draft.severity = Severity.ERROR
        draft.places.append((Role.FREED, growth.twice.earlier.where, "each part is back-propagated here"))
        draft.places.append((Role.REACHED, growth.twice.traversal.where, "and all of them again here"))
        draft.traversal, draft.explains = growth.twice.traversal, True
        return draft
    numbers = lambda: _plan(context, writes, growth, ".item()")  # noqa: E731
    tensors = lambda: _plan(context, writes, growth, ".detach()")  # noqa: E731
    outside = lambda: _at_calls(context, writes, growth)  # noqa: E731
    # What others give to a function of another file is not seen: it may be a number there.
    fed = any(_feeding(context, stored, growth) for stored in writes)
    inside = Safety.UNSAFE if fed else Safety.SAFE
    handed_on = Plan(Safety.SAFE, "Hand on the value with `.detach()`", outside, Allowance())
    if fed:
        draft.plans.append(handed_on)
    if _wants_number(context, carried, writes):
        draft.offers_alternatives = True
        draft.plans.append(Plan(inside, "Accumulate the number with `.item()`", numbers, Allowance()))
    draft.plans.append(Plan(inside, "Accumulate the value with `.detach()`", tensors, Allowance()))
    if not fed:
        draft.plans.append(handed_on)
    return draft


def _feeding(context: Context, stored: Stored, growth: Growth) -> bool:
    """Whether the graph comes from another file, as an argument of the function that stores it."""
    frame = stored.where.frame
    if frame.caller is None or frame.caller.module is frame.module:
        return False
    below = edges_reach(tuple(Edge(node.path, node) for node in growth.added))
    return any({edge.node for edge in context.machine.edges_of(one.value)} & below for one in frame.arguments)


def _position(node: Node) -> tuple[int, int]:
    return getattr(node.where.node, "lineno", 0), getattr(node.where.node, "col_offset", 0)


def _writes(context: Context, loop: Loop, carried: Carried) -> list[Stored]:
    """The stores in ``loop`` that put a graph into the slot, one for each place in the source."""
    found: dict[ast.AST, Stored] = {}
    for stored in context.facts.stored:
        same = (stored.slots is carried.slots and stored.key == carried.key) or (
            carried.key == "node" and isinstance(stored.value, Tensor) and stored.value.slots is carried.slots
        )
        if same and stored.where.turn(loop) is not None and context.machine.edges_of(stored.value):
            found[stored.source or stored.where.node] = stored
    return list(found.values())


def _overwrites(writes: list[Stored], loop: Loop) -> bool:
    """Whether all stores go to places that were there before the iteration: a list grows by none of them, and holds as
    much as it is long. A place that ``loop`` itself counts is another one in every iteration."""
    counted = _counted_by(loop.statement)
    indices = [_names_of_index(write) for write in writes]
    return bool(writes) and all(names is not None and not names & counted for names in indices)


def _names_of_index(write: Stored) -> set[str] | None:
    """The variables in the index that ``write`` stores at; None where it stores at no index."""
    statement = write.where.node
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    flat = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Subscript)]
    if not flat:
        return None
    return {name.id for part in flat for name in ast.walk(part.slice) if isinstance(name, ast.Name)}


def _counted_by(loop: ast.AST) -> set[str]:
    """The variables that an iteration of ``loop`` gives another value: its own, and the counters in its body."""
    target = [loop.target] if isinstance(loop, (ast.For, ast.AsyncFor)) else []
    body = loop.body if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) else []
    counters = [one.target for part in body for one in ast.walk(part) if isinstance(one, ast.AugAssign)]
    return {name.id for part in (*target, *counters) for name in ast.walk(part) if isinstance(name, ast.Name)}


def _wants_number(context: Context, carried: Carried, writes: list[Stored]) -> bool:
    """Whether the total began as a Python number and only scalars are added."""
    if isinstance(carried.value, tuple) or carried.key == "node":
        return False
    began = [e.old for e in context.machine.heap.trail if e.slots is carried.slots and e.key == carried.key]
    if not any(isinstance(value, (int, float)) and not isinstance(value, bool) for value in began):
        return False
    return all(isinstance(w.value, Tensor) and w.value.scalar for w in writes)


def _plan(context: Context, writes: list[Stored], growth: Growth, call: str) -> Edits | None:
    """Cut what every store adds, in the expression that is stored."""
    return combined(_cut_store(context, stored, growth, call) for stored in writes)


def _cut_store(context: Context, stored: Stored, growth: Growth, call: str) -> Edits | None:
    source = context.source_of(context.filename(stored.where))
    if source is None:
        return None
    terms = _terms(context, stored.value, growth)
    if terms:
        parts = [detach_expression(context.machine, source, e, v, call) for e, v in terms]
        if any(part is None for part in parts):
            return None
        return {source.filename: tuple(edit for part in parts if part for edit in part)}
    extends = stored.key == "items"
    if stored.source is None or (isinstance(stored.where.node, ast.AugAssign) and not extends):
        return None
    shape = ".detach()" if not isinstance(stored.value, Tensor) else call
    edits = detach_expression(context.machine, source, stored.source, stored.value, shape)
    return {source.filename: edits} if edits else None


def _terms(context: Context, value: Value, growth: Growth) -> list[tuple[ast.expr, Value]]:
    """The operands of the additions in ``value`` that bring in an iteration's graph, as the source spells them."""
    found: dict[ast.expr, Value] = {}
    stack = [edge.node for edge in context.machine.edges_of(value)]
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node in seen or node.operation not in LINEAR:
            continue
        seen.add(node)
        own = [o for o in node.operands if o.expression is not None and context.machine.edges_of(o.value)]
        total = [o for o in own if _is_total(context, o.value, growth, node)]
        if not total:
            continue
        for operand in own:
            nodes = {edge.node for edge in context.machine.edges_of(operand.value)}
            if operand in total:
                stack += nodes
            elif operand.expression is not None:
                found[operand.expression] = operand.value
    return list(found.items())


def _is_total(context: Context, value: Value, growth: Growth, addition: Node) -> bool:
    """Whether an operand is the running total itself, as it was an iteration before or within this one."""
    places = {(node.where.node, node.operation) for node in growth.totals}
    for edge in context.machine.edges_of(value):
        if edge.node in growth.totals or (edge.node.where.node, edge.node.operation) in places:
            return True
    held = value.slots.get("node") if isinstance(value, Tensor) else None
    return isinstance(held, Node) and held in growth.totals


def _in_place_draft(context: Context, boundary: Boundary, carried: Carried, growth: Growth) -> Draft | None:
    """The draft for a buffer that in-place methods fill: ``running.mul_(…).add_(…)``."""
    additions = [node for node in growth.totals if any(edge.node in growth.added for edge in node.edges)]
    if not additions:
        return None
    first = min(additions, key=_position)
    where = first.where

    def build() -> Edits | None:
        parts: list[Edits | None] = []
        for node in additions:
            source = context.source_of(context.filename(node.where))
            for operand in node.operands:
                nodes = {edge.node for edge in context.machine.edges_of(operand.value)}
                if operand.expression is None or not nodes & growth.added or source is None:
                    continue
                edits = detach_expression(context.machine, source, operand.expression, operand.value)
                parts.append({source.filename: edits} if edits else None)
        return combined(parts) if parts else None

    return Draft(
        RULE,
        "a buffer that is updated in place keeps the graph of every iteration although nothing back-propagates it",
        Severity.WARNING,
        where.node,
        context.filename(where),
        [(Role.RECORDED, where, "every iteration adds its graph here")],
        [Plan(Safety.SAFE, "Update the buffer with the value, by `.detach()`", build, Allowance())],
        explains=False,
    )


def _at_calls(context: Context, writes: list[Stored], growth: Growth) -> Edits | None:
    """Cut the argument with which the graph comes into the function that stores it, at the nearest caller that can."""
    parts: list[Edits | None] = []
    for stored in writes:
        parts.append(_at_call(context, stored, growth))
    return combined(parts)


def _at_call(context: Context, stored: Stored, growth: Growth) -> Edits | None:
    below = edges_reach(tuple(Edge(node.path, node) for node in growth.added))
    for frame in frames_of(stored.where):
        if frame.caller is None:
            return None
        for operand in frame.arguments:
            if operand.expression is None or isinstance(operand.expression, ast.Starred):
                continue
            nodes = {edge.node for edge in context.machine.edges_of(operand.value)}
            if not nodes & below:
                continue
            edits = _cut_argument(context, frame, operand.expression, operand.value)
            if edits is not None:
                return edits
    return None


def _cut_argument(context: Context, frame: Frame, expression: ast.expr, value: Value) -> Edits | None:
    assert frame.caller is not None
    source = context.source_of(frame.caller.module.filename)
    if source is None:
        return None
    edits = detach_expression(context.machine, source, expression, value)
    torch = torch_name(source)
    if edits is None and torch and isinstance(expression, ast.Name) and isinstance(value, (Phi, Symbol, Tensor)):
        text = source.segment(expression)
        edits = replace_node(source, expression, f"{text}.detach() if {torch}.is_tensor({text}) else {text}")
    return {source.filename: edits} if edits else None
