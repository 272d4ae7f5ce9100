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

from .analysis.facts import LINEAR, edges_reach, frames_of
from .analysis.tape import Boundary, Carried, Edge, Loop, Node, Stored
from .analysis.values import Frame, Phi, Symbol, Tensor, Value
from .carried_hidden_state import describe
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
            if before is None:
                continue
            grown = _growth(context, boundary.loop, boundary.number, before, carried)
            if grown:
                draft = _draft(context, boundary, carried, grown)
                if draft is not None:
                    yield draft


def _previous(boundaries: list[Boundary], boundary: Boundary) -> Boundary | None:
    for other in boundaries:
        if other.loop is boundary.loop and other.number == boundary.number - 1:
            return other
    return None


def _growth(context: Context, loop: Loop, turn: int, before: Carried, after: Carried) -> set[Node]:
    """The nodes of iteration ``turn`` that the slot adds to those of the iterations before; empty where it does not
    accumulate, or where what it holds is back-propagated or may be."""
    facts = context.facts
    edges = after.edges
    old = {edge.node for edge in before.edges}
    container = isinstance(after.value, tuple)
    if container:
        new = {edge.node for edge in edges} - old
        kept = {edge.node for edge in edges} & old
        added = {node for node in new if node.where.turn(loop) == turn}
        totals: set[Node] = set()
    else:
        chain = _chain(edges, loop, turn)
        kept = {edge.node for node in chain for edge in node.edges} & old
        kept |= {edge.node for edge in edges} & old
        totals = chain
        added = {
            edge.node
            for node in chain
            for edge in node.edges
            if edge.node not in chain and edge.node not in old and edge.node.where.turn(loop) == turn
        }
    if not kept or not added or not any(facts.certain(node) for node in added):
        return set()
    if _traversed_later(context, loop, turn, totals, added | kept, container):
        return set()
    return added


def _chain(edges: tuple[Edge, ...], loop: Loop, turn: int) -> set[Node]:
    """The additions of iteration ``turn`` at the top of a running total."""
    chain: set[Node] = set()
    stack = [edge.node for edge in edges]
    while stack:
        node = stack.pop()
        if node in chain or node.operation not in LINEAR or node.where.turn(loop) != turn:
            continue
        chain.add(node)
        stack.extend(edge.node for edge in node.edges)
    return chain


def _traversed_later(
    context: Context, loop: Loop, turn: int, totals: set[Node], parts: set[Node], container: bool
) -> bool:
    """Whether what has been accumulated is back-propagated, or may be where it cannot be seen."""
    facts = context.facts
    if any(node in facts.reached_by for node in totals):
        return True
    for node in parts:
        own = node.where.turn(loop)
        for traversal in facts.reached_by.get(node, ()):
            if traversal.where.turn(loop) != own:
                return True
    spent = all(_spent(context, node) for node in parts)
    if spent:
        return False
    watched = totals | parts
    for escape in facts.escapes:
        nodes = {edge.node for edge in escape.edges}
        if nodes & totals or (nodes & parts and (container or escape.how == "return") and len(nodes & parts) > 1):
            return True
        if escape.how == "return" and nodes & watched:
            return True
    return _may_be_used_elsewhere(context, parts)


def _spent(context: Context, node: Node) -> bool:
    """Whether a traversal has freed what lies behind ``node``, so that nothing can traverse it again."""
    below = edges_reach((Edge(node.path, node),))
    return any(one.saves is True and one.freed for one in below)


def _may_be_used_elsewhere(context: Context, parts: set[Node]) -> bool:
    """Whether methods that this run did not enter may still back-propagate what an object holds."""
    return "." in context.facts.run.entry


def _draft(context: Context, boundary: Boundary, carried: Carried, grown: set[Node]) -> Draft | None:
    facts = context.facts
    writes = _writes(context, boundary.loop, carried)
    if not writes:
        return None
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
            (Role.RECORDED, next(iter(sorted(grown, key=_position))).where, "this graph is recorded in every iteration"),
            (Role.REACHED, last.where, f"and {name} holds on to all of them"),
        ],
        explains=False,
    )
    numbers = lambda: _plan(context, writes, carried, grown, ".item()")  # noqa: E731
    tensors = lambda: _plan(context, writes, carried, grown, ".detach()")  # noqa: E731
    outside = lambda: _at_calls(context, writes, grown)  # noqa: E731
    if _wants_number(context, carried, writes):
        draft.plans.append(Plan(Safety.SAFE, "Accumulate the number with `.item()`", numbers, Allowance()))
    draft.plans.append(Plan(Safety.SAFE, "Accumulate the value with `.detach()`", tensors, Allowance()))
    draft.plans.append(Plan(Safety.SAFE, "Hand on the value with `.detach()`", outside, Allowance()))
    return draft


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


def _wants_number(context: Context, carried: Carried, writes: list[Stored]) -> bool:
    """Whether the total began as a Python number and only scalars are added."""
    if isinstance(carried.value, tuple) or carried.key == "node":
        return False
    began = [e.old for e in context.machine.heap.trail if e.slots is carried.slots and e.key == carried.key]
    if not any(isinstance(value, (int, float)) and not isinstance(value, bool) for value in began):
        return False
    return all(isinstance(w.value, Tensor) and w.value.scalar for w in writes)


def _plan(
    context: Context, writes: list[Stored], carried: Carried, grown: set[Node], call: str
) -> Edits | None:
    """Cut what every store adds, in the expression that is stored."""
    return combined(_cut_store(context, stored, carried, grown, call) for stored in writes)


def _cut_store(
    context: Context, stored: Stored, carried: Carried, grown: set[Node], call: str
) -> Edits | None:
    source = context.source_of(context.filename(stored.where))
    if source is None or stored.source is None:
        return None
    value = stored.value
    if isinstance(stored.where.node, ast.AugAssign):
        value = _added(context, stored)
    if call == ".detach()" or not isinstance(value, Tensor):
        edits = detach_expression(context.machine, source, stored.source, value)
    else:
        edits = detach_expression(context.machine, source, stored.source, value, call)
    return {source.filename: edits} if edits else None


def _added(context: Context, stored: Stored) -> Value:
    """What ``x += expression`` adds: the operand of the addition that the expression gave."""
    for edge in context.machine.edges_of(stored.value):
        for operand in edge.node.operands:
            if operand.expression is stored.source:
                return operand.value
    return stored.value


def _at_calls(context: Context, writes: list[Stored], grown: set[Node]) -> Edits | None:
    """Cut the argument with which the graph comes into the function that stores it, at the nearest caller that can."""
    parts: list[Edits | None] = []
    for stored in writes:
        parts.append(_at_call(context, stored, grown))
    return combined(parts)


def _at_call(context: Context, stored: Stored, grown: set[Node]) -> Edits | None:
    for frame in frames_of(stored.where):
        if frame.caller is None:
            return None
        for operand in frame.arguments:
            if operand.expression is None or isinstance(operand.expression, ast.Starred):
                continue
            below = edges_reach(context.machine.edges_of(operand.value))
            if not below & grown:
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
