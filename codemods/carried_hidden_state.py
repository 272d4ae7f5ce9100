"""# carried-hidden-state (GM101)

## What it does

Finds a state (a hidden state, a memory, a membrane potential) that goes from one iteration into the next together with
the graph that computed it, while both iterations are traversed; or while nothing ever is, and the graph only grows.

## Why is this bad?

On the tape the state of the second iteration hangs on the nodes of the first. The first `backward()` frees those nodes;
the second one walks back into them:

    RuntimeError: Trying to backward through the graph a second time

`retain_graph=True` only trades this for another error ("one of the variables needed for gradient computation has been
modified by an inplace operation", because the optimizer has changed the weights since) or for memory that grows with
every iteration. Truncated backpropagation through time wants the state's value and not its past.

## Example

```python
import torch

rnn = torch.nn.LSTM(3, 4)
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
hidden = None
for window in torch.randn(4, 5, 2, 3):
    output, hidden = rnn(window, hidden)
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

rnn = torch.nn.LSTM(3, 4)
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
hidden = None
for window in torch.randn(4, 5, 2, 3):
    output, hidden = rnn(window, hidden)
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    hidden = tuple(h.detach() for h in hidden)
    optimizer.step()
```

## Fix safety

Safe where the state crosses: the gradients within an iteration stay as they are, which the repair is proved to do
before it is offered. No repair where a trained parameter gets its gradient only through earlier iterations (a weight
that evolves): there a detach would change what is trained.

## When to leave it

Backpropagation over several iterations on purpose, with one `backward()` after all of them, is not reported.

## References

- https://docs.pytorch.org/docs/stable/notes/autograd.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.facts import LINEAR, additions, edges_reach, frame_statement, frames_of
from .analysis.functions import MODULE_BASES
from .analysis.guards import ALWAYS, Guard
from .analysis.machine import same_value
from .analysis.source import Source
from .analysis.tape import Boundary, Carried, Discarded, Loop, Node, Refreed, Stale, Stored, Traversal, reach
from .analysis.values import External, Frame, Instance, TorchModule, Value
from .draft import Allowance, Context, Draft, Edits, Plan, Rule, combined
from .finding import Role, Safety, Severity
from .rewrite.builders import insert_after
from .rewrite.detaching import detach_expression, detached, shape_of, torch_name
from .rewrite.discarding import assigned

RULE = Rule("GM101", "carried-hidden-state", "State goes from one iteration into the next with its graph")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every state that crosses from one iteration into the next and is traversed again there."""
    yield from _traversed(context)
    yield from _never_traversed(context)


def _traversed(context: Context) -> Iterator[Draft]:
    facts = context.facts
    seen: set[tuple[ast.AST, Traversal]] = set()
    events: list[Refreed | Stale] = [*facts.refreed, *(e for e in facts.stale if e.change.step is not None)]
    for event in sorted(events, key=lambda e: e.index):
        parted = facts.parting(event.node.where, event.traversal.where)
        if parted is None:
            continue
        loop, before, turn = parted
        if before >= turn or (loop.statement, event.traversal) in seen:
            continue
        carriers = crossing_carriers(context, event.traversal, loop, turn)
        if not carriers or all(_is_cached(context, carrier, loop, turn) for carrier in carriers):
            continue
        seen.add((loop.statement, event.traversal))
        if turn > before + 1:
            continue
        yield _draft(context, event, loop, turn, carriers)


def crossing_carriers(context: Context, traversal: Traversal, loop: Loop, turn: int) -> list[Carried]:
    """The slots that brought nodes of an earlier iteration of ``loop`` into what ``traversal`` reaches."""
    facts = context.facts
    crossed = {before for _, before in facts.crossings(traversal, loop, turn)}
    found: list[Carried] = []
    boundary = _boundary(context, loop, turn - 1)
    if boundary is None:
        return found
    for carried in boundary.carried:
        nodes = {edge.node for edge in carried.edges}
        if nodes & crossed and read_first(context, carried, loop, turn, traversal.path):
            found.append(carried)
    named = [c for c in found if isinstance(c.key, str) and c.key not in {"items", "node"}]
    return named or found


def read_first(context: Context, carried: Carried, loop: Loop, turn: int, path: Guard = ALWAYS) -> bool:
    """Whether iteration ``turn`` reads the slot, on a way that goes with ``path``, before it writes it."""
    reads = context.machine.reads.get((id(carried.slots), carried.key), {})
    moments = [moment for loops, found in reads.items() if (loop, turn) in loops for moment in found]
    if not moments:
        return carried.key == "node"
    writes = [
        stored
        for stored in context.facts.stored
        if stored.slots is carried.slots and stored.key == carried.key and stored.where.turn(loop) == turn
    ]
    return any(
        not any(write.index < index and reading.implies(write.path) for write in writes)
        for index, reading in moments
        if reading.compatible(path)
    )


def _boundary(context: Context, loop: Loop, number: int) -> Boundary | None:
    for boundary in context.facts.boundaries:
        if boundary.loop is loop and boundary.number == number:
            return boundary
    return None


def _is_cached(context: Context, carrier: Carried, loop: Loop, turn: int) -> bool:
    """Whether the slot was filled once and is only read in later iterations."""
    return not any(
        stored.slots is carrier.slots and stored.key == carrier.key and stored.where.turn(loop) == turn
        for stored in context.facts.stored
    )


def _draft(context: Context, event: Refreed | Stale, loop: Loop, turn: int, carriers: list[Carried]) -> Draft:
    first = carriers[0]
    site = first.where.node if first.where is not None else event.traversal.call
    where = first.where or event.traversal.where
    name = describe(first.key)
    crash = (
        "backward() walks into the previous iteration's graph, which is freed"
        if isinstance(event, Refreed)
        else "backward() needs the previous iteration's weights, which the optimizer has changed"
    )
    freed = event.earlier.where if isinstance(event, Refreed) else event.change.where
    draft = Draft(
        RULE,
        f"{name} goes into the next iteration with its graph: {crash}",
        Severity.ERROR,
        site,
        context.filename(where),
        [
            (Role.RECORDED, event.node.where, f"recorded here, and kept alive by {name}"),
            (Role.FREED, freed, "freed here" if isinstance(event, Refreed) else "changed in place here"),
            (Role.REACHED, event.traversal.where, "reached again here on the next iteration"),
        ],
        traversal=event.traversal,
    )
    allowance = Allowance(lost=lambda node, traversal: _is_earlier(node, traversal, loop.statement))
    if not _is_objective(event.traversal, carriers, context):
        draft.plans = list(_plans(context, loop, carriers, event.traversal, allowance))
    return draft


def _is_objective(traversal: Traversal, carriers: list[Carried], context: Context) -> bool:
    """Whether what is carried is a running total that is itself back-propagated: then what is meant cannot be known."""
    frontier = [edge.node for edge in traversal.roots]
    chain: set[Node] = set()
    while frontier:
        node = frontier.pop()
        if node in chain or (node.kind != "operation" or node.operation not in LINEAR):
            continue
        chain.add(node)
        frontier.extend(edge.node for edge in node.edges)
    held = {edge.node for carrier in carriers for edge in carrier.edges}
    return bool(chain & held)


def _is_earlier(node: Node, traversal: Traversal, loop: ast.AST) -> bool:
    for (one, turn), (_, other) in zip(node.where.loops, traversal.where.loops, strict=False):
        if one.statement is loop:
            return turn < other
    return False


def describe(key: object) -> str:
    """A slot as people call it."""
    if isinstance(key, str):
        return "the list" if key == "items" else "the tensor" if key == "node" else f"`{key}`"
    if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], str):
        return f"entry `{key[1]}`"
    return "the state"


# -- repairs -------------------------------------------------------------------------------------------------------


def _plans(
    context: Context, loop: Loop, carriers: list[Carried], traversal: Traversal, allowance: Allowance
) -> Iterator[Plan]:
    thrown_away = _thrown_away(context, loop, carriers)
    if thrown_away:
        yield Plan(
            Safety.SAFE,
            "Assign the detached state",
            lambda: combined(assigned(context.source_of(context.filename(e.where)), e) for e in thrown_away),
            allowance,
        )
    at_write = lambda: combined(_at_write(context, loop, carrier) for carrier in carriers)  # noqa: E731
    after = lambda: _after(context, loop, carriers, traversal)  # noqa: E731
    inside = lambda: _in_traversal_frame(context, carriers, traversal)  # noqa: E731
    modules = lambda: _over_modules(context, loop, carriers, traversal)  # noqa: E731
    written = lambda: combined(_behind_write(context, carrier) for carrier in carriers)  # noqa: E731
    local = all(carrier.slots is loop.frame.slots for carrier in carriers)
    late = all(carrier.where is not None and _written_after(context, carrier, loop, traversal) for carrier in carriers)
    order = [at_write, after, inside, modules] if late or not local else [after, at_write, inside, modules]
    if traversal.framework:
        order.append(written)
    for build in order:
        yield Plan(Safety.SAFE, "Detach the state where the iteration ends", build, allowance)


def _thrown_away(context: Context, loop: Loop, carriers: list[Carried]) -> list[Discarded]:
    """The statements of the loop that detach a carried state and throw the result away, one for each place."""
    held = {edge.node for carrier in carriers for edge in context.machine.slot_edges(carrier.value)}
    found: dict[ast.AST, Discarded] = {}
    for event in context.facts.discarded:
        if event.where.turn(loop) is not None and held & {edge.node for edge in event.edges}:
            found.setdefault(event.statement, event)
    return list(found.values())


def _written_after(context: Context, carrier: Carried, loop: Loop, traversal: Traversal) -> bool:
    writes = [s for s in context.facts.stored if s.slots is carrier.slots and s.key == carrier.key]
    same_turn = [s for s in writes if s.where.turn(loop) == traversal.where.turn(loop)]
    return bool(same_turn) and all(s.index > traversal.index for s in same_turn)


def _at_write(context: Context, loop: Loop, carrier: Carried) -> Edits | None:
    """Detach in the assignments that fill the slot."""
    parts: list[Edits | None] = []
    done: set[ast.AST] = set()
    for stored in context.facts.stored:
        if stored.slots is not carrier.slots or stored.key != carrier.key or stored.where.turn(loop) is None:
            continue
        if not context.machine.edges_of(stored.value):
            continue
        if stored.source is None:
            return None
        if stored.source in done:
            continue
        done.add(stored.source)
        parts.append(_detach_source(context, stored))
    return combined(parts) if parts else None


def _detach_source(context: Context, stored: Stored) -> Edits | None:
    source = context.source_of(stored.where.frame.module.filename)
    if source is None or stored.source is None:
        return None
    edits = detach_expression(context.machine, source, stored.source, stored.value)
    return {source.filename: edits} if edits else None


def _after(context: Context, loop: Loop, carriers: list[Carried], traversal: Traversal) -> Edits | None:
    """Detach behind the statement of the loop that traverses, or that writes if that comes later."""
    frame = loop.frame
    anchor = frame_statement(traversal.where, frame)
    for carrier in carriers:
        written = frame_statement(carrier.where, frame) if carrier.where is not None else None
        if (
            isinstance(written, ast.stmt)
            and isinstance(anchor, (ast.stmt, ast.expr))
            and written.lineno > anchor.lineno
        ):
            anchor = written
    return _insert(context, frame, anchor, carriers)


def _in_traversal_frame(context: Context, carriers: list[Carried], traversal: Traversal) -> Edits | None:
    """Detach behind the traversal, in the function that traverses."""
    for frame in frames_of(traversal.where):
        anchor = frame_statement(traversal.where, frame)
        edits = _insert(context, frame, anchor, carriers)
        if edits is not None:
            return edits
    return None


def _behind_write(context: Context, carrier: Carried) -> Edits | None:
    """Detach behind the assignment, in the function that makes it: what traverses is no code of the project."""
    return _insert(context, carrier.where.frame, carrier.where.node, [carrier]) if carrier.where is not None else None


def _insert(context: Context, frame: Frame, anchor: object, carriers: list[Carried]) -> Edits | None:
    source = context.source_of(frame.module.filename)
    statement = _statement(source, anchor)
    if source is None or statement is None:
        return None
    lines: list[str] = []
    for carrier in carriers:
        spelled = spelling(carrier, frame)
        if spelled is None:
            return None
        code = detached(spelled, shape_of(carrier.value), torch_name(source))
        if code is None:
            return None
        lines.append(f"{spelled} = {code}")
    return {source.filename: insert_after(source, statement, lines)} if lines else None


def _statement(source: Source | None, node: object) -> ast.stmt | None:
    """The statement that ``node`` is or lies in."""
    while source is not None and isinstance(node, ast.AST):
        if isinstance(node, ast.stmt):
            return node
        node = source.parent(node)
    return None


def spelling(carrier: Carried, frame: Frame) -> str | None:
    """How ``frame`` spells the slot: a variable, or an attribute of something that a variable holds."""
    if not isinstance(carrier.key, str):
        return None
    if carrier.slots is frame.slots:
        return carrier.key
    for name, value in frame.slots.items():
        if not isinstance(name, str) or not name.isidentifier():
            continue
        path = _path_to(value, carrier.slots, 2)
        if path is not None:
            return ".".join([name, *path, carrier.key])
    return None


def _path_to(value: Value, slots: dict[object, Value], depth: int) -> list[str] | None:
    if not isinstance(value, (Instance, TorchModule)):
        return None
    if value.slots is slots:
        return []
    if depth == 0:
        return None
    for name, inner in value.slots.items():
        if isinstance(name, str) and name.isidentifier() and name != "children":
            path = _path_to(inner, slots, depth - 1)
            if path is not None:
                return [name, *path]
    return None


def _over_modules(context: Context, loop: Loop, carriers: list[Carried], traversal: Traversal) -> Edits | None:
    """Detach the attribute of every sub-module of its class, for a state that modules inside a model hold."""
    frame = loop.frame
    source = context.source_of(frame.module.filename)
    anchor = _statement(source, frame_statement(traversal.where, frame))
    if source is None or anchor is None:
        return None
    attributes: dict[tuple[str, str], object] = {}
    holders: list[dict[object, Value]] = []
    for carrier in carriers:
        if not isinstance(carrier.key, str) or carrier.key in {"items", "node"}:
            return None
        holders.append(carrier.slots)
    for name, value in frame.slots.items():
        if not isinstance(value, (Instance, TorchModule)) or not isinstance(name, str):
            continue
        modules = context.machine.modules_of(value)
        owners = [(m, c) for c in carriers for m in modules if m.slots is c.slots]
        if len(owners) != len(carriers) or not all(isinstance(m, Instance) for m, _ in owners):
            continue
        lines = [f"for module in {name}.modules():"]
        for module, carrier in owners:
            cls = module.cls.name
            code = detached(f"module.{carrier.key}", shape_of(carrier.value), torch_name(source))
            if (
                code is None
                or frame.module.frame is None
                or not same_value(frame.module.frame.slots.get(cls), module.cls)
            ):
                return None
            if (cls, str(carrier.key)) not in attributes:
                attributes[cls, str(carrier.key)] = None
                lines += [f"    if isinstance(module, {cls}):", f"        module.{carrier.key} = {code}"]
        if "module" in frame.slots:
            return None
        return {source.filename: insert_after(source, anchor, lines)}
    return None


# -- states that nothing traverses ---------------------------------------------------------------------------------


def _never_traversed(context: Context) -> Iterator[Draft]:
    """States whose graph grows from iteration to iteration although nothing is ever back-propagated through it."""
    facts = context.facts
    for boundary in facts.boundaries:
        if boundary.number != 1 or boundary.loop.exact:
            continue
        earlier = _boundary(context, boundary.loop, 0)
        if earlier is None:
            continue
        for carried in boundary.carried:
            before = next((c for c in earlier.carried if c.slots is carried.slots and c.key == carried.key), None)
            if before is None or not isinstance(carried.key, str) or carried.key in {"items", "node"}:
                continue
            concern = (RULE.code, boundary.loop.statement, carried.key)
            if _is_traversed(context, carried):
                context.veto(*concern)
                continue
            if not context.shows_all(carried.where):
                continue
            if not _grows_untraversed(context, boundary, before, carried):
                continue
            name = describe(carried.key)
            draft = Draft(
                RULE,
                f"{name} carries the graph of every iteration so far, and nothing is ever back-propagated: memory "
                "grows with each one",
                Severity.WARNING,
                carried.where.node,
                context.filename(carried.where),
                [(Role.RECORDED, carried.where, "every iteration adds its graph here")],
            )
            draft.concerns = concern
            allowance = Allowance()
            plans = [
                lambda carried=carried, loop=boundary.loop: _at_write(context, loop, carried),
                lambda carried=carried, loop=boundary.loop: _insert(
                    context, loop.frame, frame_statement(carried.where, loop.frame), [carried]
                ),
            ]
            draft.plans = [Plan(Safety.SAFE, "Detach the state where the iteration ends", p, allowance) for p in plans]
            yield draft


def _is_traversed(context: Context, carried: Carried) -> bool:
    """Whether the state is back-propagated through, or goes where it may be."""
    below = edges_reach(carried.edges)
    if any(node in context.facts.reached_by for node in below if node.kind != "leaf"):
        return True
    return any({edge.node for edge in escape.edges} & below for escape in context.facts.escapes if escape.edges)


def _only_numbers(context: Context, loop: Loop) -> bool:
    """Whether every iteration turns what it computed into a number, a choice or an array: nothing else is wanted."""
    return any(cut.where.turn(loop) == 1 for cut in context.facts.tape.cuts)


def _in_module(context: Context, loop: Loop) -> bool:
    """Whether the loop runs inside a method of a module: over layers, time steps or generated words."""
    frame: Frame | None = loop.frame
    while frame is not None:
        owner = frame.function.owner if frame.function is not None else None
        if owner is not None:
            bases = context.machine.linearised(owner)
            if any(isinstance(base, External) and base.dotted in MODULE_BASES for base in bases):
                return True
        frame = frame.scope_of or frame.caller
    return False


def _grows_untraversed(context: Context, boundary: Boundary, before: Carried, after: Carried) -> bool:
    facts, loop = context.facts, boundary.loop
    old = {edge.node for edge in before.edges}
    edges = after.edges
    guards = reach(edges, boundary.path)
    below = {node for node, guard in guards.items() if boundary.path.implies(guard)}
    if not _only_numbers(context, loop) or _in_module(context, loop):
        return False
    if not old & below or not all(facts.certain(edge.node) for edge in edges) or not edges:
        return False
    recent = {node for node in below if node.where.turn(loop) == 1}
    if not recent or any(node in facts.reached_by for node in recent | old):
        return False
    if additions(edges, old, loop, 1):
        return False
    return not any(escape.index > 0 and {edge.node for edge in escape.edges} & recent for escape in facts.escapes)
