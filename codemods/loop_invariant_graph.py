"""# loop-invariant-graph (GM103)

## What it does

Finds a value that is computed once, with its graph, before a loop (or in the loop's first iteration, and kept), while
every iteration's `backward()` walks through that graph again.

## Why is this bad?

The first walk frees the graph. The second one dies:

    RuntimeError: Trying to backward through the graph a second time

`retain_graph=True` does not help where an optimizer trains what the value was computed from: after its step the saved
weights are not those of the graph any more.

    RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation

And where nothing trains it, the flag lets every iteration walk a graph whose gradients nobody uses.

## Example

```python
import torch
from torch import nn

text, image = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Linear(4, 3)
optimizer = torch.optim.SGD([*text.parameters(), *image.parameters()], lr=0.1)
prompts = torch.randn(5, 2)
prototypes = text(prompts)
for batch in torch.randn(6, 8, 4):
    loss = -(image(batch) @ prototypes.t()).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

text, image = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Linear(4, 3)
optimizer = torch.optim.SGD([*text.parameters(), *image.parameters()], lr=0.1)
prompts = torch.randn(5, 2)
for batch in torch.randn(6, 8, 4):
    prototypes = text(prompts)
    loss = -(image(batch) @ prototypes.t()).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety

Where an optimizer trains what the value depends on, it is computed in the loop: safe where the same inputs are there
and nothing else needs the value, unsafe where random numbers would be drawn anew or code after the loop reads it. Where
no optimizer does, the value is detached, which changes no update: safe. Nothing is offered where both could be meant,
such as a cache that is filled once although its encoder is trained.

## When to leave it

A view of a parameter made before the loop keeps nothing and can be walked any number of times; it is not reported. Nor
are several losses of one forward pass, whose gradients are summed up and applied after the loop.

## References

- https://docs.pytorch.org/docs/stable/notes/autograd.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from .analysis.facts import Facts, edges_reach, frames_of
from .analysis.recording import owns
from .analysis.tape import Carried, Change, Edge, Loop, Node, Refreed, Stale, Traversal, Where
from .draft import Allowance, Context, Draft, Plan, Rule
from .finding import Role, Safety, Severity
from .loop_invariant_repairs import (
    Way,
    assigned_where_thrown_away,
    built,
    computed_where_used,
    detached,
    moved_into,
    name_of,
    site_of,
    trained_leaves,
)

RULE = Rule("GM103", "loop-invariant-graph", "A graph from before the loop is walked again on every iteration")


@dataclass(slots=True)
class Invariant:
    """A graph from before an iteration that this iteration's traversal walks again."""

    loop: Loop
    turn: int
    traversal: Traversal
    node: Node
    """Something in it that cannot be walked twice."""
    earlier: Traversal | None = None
    """The same call in an earlier iteration, where that walked it too."""
    change: Change | None = None
    cached: list[Carried] = field(default_factory=list)
    """The slots that kept it, where it was recorded in an earlier iteration."""
    frontier: dict[Node, list[Node]] = field(default_factory=dict)
    """The nodes of this graph that the iteration hangs on, each with the nodes of the iteration that do."""

    @property
    def traversals(self) -> list[Traversal]:
        return [self.traversal] if self.earlier is None else [self.earlier, self.traversal]

    def is_outside(self, where: Where) -> bool:
        """Whether a point lies before the iteration: before the loop, or where something is kept, in an earlier one."""
        if any(frame.yielded is not None for frame in frames_of(where)):
            # A generator runs while the loop takes its elements.
            return False
        turn = where.turn(self.loop)
        return turn is None or (bool(self.cached) and turn < self.turn)


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every graph that iterations share although each of them walks through it."""
    seen: set[ast.AST] = set()
    for invariant in (*_dying(context), *_retained(context)):
        draft = _draft(context, invariant)
        if draft is not None and draft.site not in seen:
            seen.add(draft.site)
            yield draft


# -- what is walked again ------------------------------------------------------------------------------------------


def _dying(context: Context) -> Iterator[Invariant]:
    """Graphs whose second walk raises."""
    facts = context.facts
    events: list[Refreed | Stale] = [*facts.refreed, *(e for e in facts.stale if e.change.step is not None)]
    for event in sorted(events, key=lambda e: e.index):
        change = event.change if isinstance(event, Stale) else None
        first = event.earlier if isinstance(event, Refreed) else event.change
        parted = facts.parting(first.where, event.traversal.where)
        if isinstance(event, Refreed) and facts.walks_parts(event):
            continue
        if parted is None or parted[1] >= parted[2]:
            continue
        loop, _, turn = parted
        invariant = Invariant(loop, turn, event.traversal, event.node, change=change)
        own = event.node.where.turn(loop)
        if own is not None:
            if own >= turn:
                continue
            invariant.cached = _cached(context, event, loop, turn)
            if not invariant.cached:
                continue
        if isinstance(event, Refreed):
            invariant.earlier = event.earlier
        else:
            invariant.earlier = _before(facts, event.traversal, loop, turn, event.node)
        if _fill_frontier(invariant):
            yield invariant


def _retained(context: Context) -> Iterator[Invariant]:
    """Graphs that are kept alive only so that every iteration can walk them."""
    facts = context.facts
    seen: set[tuple[ast.AST, Loop]] = set()
    for traversal in facts.traversals:
        for loop, turn in traversal.where.loops:
            if turn == 0 or not traversal.accumulates or (traversal.call, loop) in seen:
                continue
            earlier = _before(facts, traversal, loop, turn, None)
            if earlier is None or earlier.retain is not True or earlier.create is not False:
                continue
            seen.add((traversal.call, loop))
            shared = [
                node
                for node in traversal.reached
                if node in earlier.reached and _keeps(node) and node.where.turn(loop) is None
            ]
            if not shared or not facts.certain(shared[0]) or any(e.traversal is traversal for e in facts.stale):
                continue
            invariant = Invariant(loop, turn, traversal, shared[0], earlier)
            if not _fill_frontier(invariant) or _reads_gradients(context, invariant):
                continue
            if _fate(context, invariant) == "unused":
                yield invariant


def _before(facts: Facts, traversal: Traversal, loop: Loop, turn: int, node: Node | None) -> Traversal | None:
    """The last traversal by the same call in an earlier iteration of ``loop``, which reached ``node`` as well."""
    found = None
    for other in facts.traversals:
        if other.index >= traversal.index:
            break
        before = other.where.turn(loop)
        if other.call is not traversal.call or before is None or before >= turn:
            continue
        if node is None or node in other.reached:
            found = other
    return found


def _cached(context: Context, event: Refreed | Stale, loop: Loop, turn: int) -> list[Carried]:
    """The slots that brought the graph from an earlier iteration, if all were filled there and only read since."""
    carriers: list[Carried] = []
    crossed = {before for _, before in context.facts.crossings(event.traversal, loop, turn)}
    for boundary in context.facts.boundaries:
        if boundary.loop is loop and boundary.number == turn - 1:
            for carried in boundary.carried:
                if {edge.node for edge in context.machine.slot_edges(carried.value)} & crossed:
                    carriers.append(carried)
    for stored in context.facts.stored:
        for carried in carriers:
            if (
                stored.slots is carried.slots
                and stored.key == carried.key
                and stored.where.turn(loop) == turn
                and stored.path.compatible(event.path)
            ):
                return []
    return carriers


def _fill_frontier(invariant: Invariant) -> bool:
    """Find where the iteration hangs on the older graph; false where it does not directly."""
    traversal = invariant.traversal

    def add(node: Node, user: Node | None) -> None:
        if invariant.is_outside(node.where) and node.kind != "leaf" and _cannot_be_walked_twice(node, traversal):
            invariant.frontier.setdefault(node, []).extend([user] if user is not None else [])

    for edge in traversal.roots:
        add(edge.node, None)
    for user in traversal.reached:
        if user.where.turn(invariant.loop) == invariant.turn:
            for edge in user.edges:
                if edge.node in traversal.reached:
                    add(edge.node, user)
    return bool(invariant.frontier)


def _cannot_be_walked_twice(node: Node, traversal: Traversal) -> bool:
    below = edges_reach((Edge(node.path, node),))
    return any(_keeps(one) and one in traversal.reached for one in below)


def _keeps(node: Node) -> bool:
    """Whether walking ``node`` twice raises."""
    return node.saves is True and node.kind != "leaf"


# -- what becomes of its gradients ---------------------------------------------------------------------------------


def leaves_below(node: Node) -> set[Node]:
    """The leaves that ``node`` was computed from."""
    return {one for one in edges_reach((Edge(node.path, node),)) if one.kind == "leaf"}


def _fate(context: Context, invariant: Invariant, node: Node | None = None) -> str:
    """What the loop makes of the gradients below ``node`` (by default of all): ``trained`` by a step in the loop,
    ``accumulated`` for one after it, ``unused`` or ``unknown``."""
    facts = context.facts
    nodes = invariant.frontier if node is None else (node,)
    leaves = {leaf for one in nodes for leaf in leaves_below(one)}
    trained = trained_leaves(facts, invariant.loop, invariant.traversals)
    places = [where for leaf in leaves & trained.keys() for where in trained[leaf]]
    if any(where.turn(invariant.loop) is not None for where in places):
        return "trained"
    if places:
        return "accumulated"
    since = min(traversal.index for traversal in invariant.traversals)
    steps = [step for step in facts.steps if step.index > since]
    known = all(step.parameters is not None and step.parameters.whole for step in steps)
    # The parameters of a module that cannot be seen may belong to an optimizer by way of one that holds it.
    hidden = [leaf for leaf in leaves if leaf.operation == "parameters"]
    known = known and all(any(owns(s.parameters, leaf) for s in steps if s.parameters) for leaf in hidden)
    return "unused" if known and trained else "unknown"


def _reads_gradients(context: Context, invariant: Invariant) -> bool:
    """Whether tensors below are leaves whose ``.grad`` the file may read."""
    if all(leaf.operation != "leaf" for node in invariant.frontier for leaf in leaves_below(node)):
        return False
    source = context.source_of(context.filename(invariant.traversal.where))
    return source is None or any(
        isinstance(node, ast.Attribute) and node.attr == "grad" and not isinstance(source.parent(node), ast.Call)
        for node in ast.walk(source.tree)
    )


# -- the finding ---------------------------------------------------------------------------------------------------


def _draft(context: Context, invariant: Invariant) -> Draft | None:
    fates = {node: _fate(context, invariant, node) for node in invariant.frontier}
    if "accumulated" in fates.values():
        return None
    shared = _shared(invariant)
    if not shared:
        return _draft_of_losses(context, invariant)
    if any(fate == "unused" for fate in fates.values()) and _reads_gradients(context, invariant):
        fates = dict.fromkeys(fates, "unknown")
    first = min(shared, key=lambda n: getattr(n.where.node, "lineno", 0))
    site, where = site_of(context, invariant, first)
    name = name_of(context, invariant, first)
    once = "kept from an earlier iteration" if invariant.cached else "computed once, before the loop"
    draft = Draft(
        RULE,
        f"{name} is {once}, yet backward() walks through it on every iteration: {_consequence(invariant)}",
        Severity.WARNING if _survives(invariant) else Severity.ERROR,
        site,
        context.filename(where),
        _places(invariant, first),
        traversal=None if _survives(invariant) else invariant.traversal,
    )
    draft.plans = list(_plans(context, invariant, fates))
    return draft


def _draft_of_losses(context: Context, invariant: Invariant) -> Draft | None:
    """Graphs that were all made before the loop, and are walked one by one while the loop changes the weights."""
    change = invariant.change
    if change is None or invariant.loop.exact or invariant.cached:
        return None
    if not any(_fate(context, invariant, node) == "trained" for node in invariant.frontier):
        return None
    places = _places(invariant, invariant.node)
    return Draft(
        RULE,
        "the graphs that these iterations walk were all made before the loop, and each step changes the weights that"
        " the next backward() needs: compute them in the loop, or step once on the sum of the losses",
        Severity.ERROR,
        invariant.traversal.call,
        context.filename(invariant.traversal.where),
        places,
        traversal=invariant.traversal,
    )


def _shared(invariant: Invariant) -> list[Node]:
    """The nodes of the frontier that the same call walked in an earlier iteration."""
    earlier = invariant.earlier
    return [] if earlier is None else [node for node in invariant.frontier if node in earlier.reached]


def _survives(invariant: Invariant) -> bool:
    """Whether the loop runs, because the graph is retained and nothing changes what it saved."""
    return invariant.change is None and invariant.earlier is not None and invariant.earlier.retain is True


def _consequence(invariant: Invariant) -> str:
    if _survives(invariant):
        return "its gradients are computed each time and thrown away"
    if invariant.change is not None:
        return "the second walk needs weights that the optimizer has changed"
    return "the first walk frees it, the second raises"


def _places(invariant: Invariant, node: Node) -> list[tuple[Role, Where, str]]:
    before = "recorded here, once" if invariant.cached else "recorded here, before the loop"
    places = [(Role.RECORDED, node.where, before)]
    if invariant.change is not None:
        places.append((Role.FREED, invariant.change.where, "what it saved is changed here"))
    elif invariant.earlier is not None and not _survives(invariant):
        places.append((Role.FREED, invariant.earlier.where, "freed here"))
    places.append((Role.REACHED, invariant.traversal.where, "reached again here on the next iteration"))
    return places


def _plans(context: Context, invariant: Invariant, fates: dict[Node, str]) -> Iterator[Plan]:
    below = {leaf for node in fates for leaf in leaves_below(node)}
    for way in assigned_where_thrown_away(context, list(fates)):
        allowance = Allowance(lost=_lost(invariant), gradients=lambda leaf, _: leaf in below)
        yield Plan(Safety.SAFE, "Assign the detached value", partial(built, way.parts), allowance)
    if "unknown" in fates.values():
        return
    trained = [node for node, fate in fates.items() if fate == "trained"]
    unused = [node for node, fate in fates.items() if fate == "unused"]
    if trained and invariant.cached:
        # Whether the cache or the training is the mistake cannot be known.
        return
    allowance = Allowance(lost=_lost(invariant), gained=bool(trained))
    computed = [*moved_into(context, invariant, trained), *computed_where_used(context, invariant, trained)]
    for way in computed if trained else [Way()]:
        for cut in detached(context, invariant, unused) if unused else [Way()]:
            yield Plan(
                Safety.UNSAFE if way.changes_meaning else Safety.SAFE,
                "Compute it in the loop" if trained else "Detach it",
                partial(built, (*way.parts, *cut.parts)),
                allowance,
                moved=way.moved,
            )


def _lost(invariant: Invariant) -> Callable[[Node, Traversal], bool]:
    """What the loop's traversals need not reach any more: the graph from before it."""
    places = {
        (one.where.node, one.operation) for node in invariant.frontier for one in edges_reach((Edge(node.path, node),))
    }
    return lambda node, traversal: (
        (node.where.node, node.operation) in places
        and any(loop.statement is invariant.loop.statement for loop, _ in traversal.where.loops)
    )


__all__ = ["RULE", "Invariant", "find", "leaves_below"]
