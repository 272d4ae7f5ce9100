"""# undetached-fake (GM201)

## What it does

Finds a loss whose `backward()` walks through a network that another optimizer trains, although the gradients that it
leaves there are thrown away, or spoil that network's own update. The usual case is a GAN's discriminator step that
traverses the generator because the fake is not detached; an advantage that still hangs on the critic is another.

## Why is this bad?

The traversal frees the generator's graph. If the generator's loss uses the same fake, its own `backward()` dies:

    RuntimeError: Trying to backward through the graph a second time

If it draws a new fake, the walk through the generator is merely wasted, as long as its gradients are cleared before its
own step; where they are not, the generator is trained to help the discriminator.

## Example

```python
import torch
from torch import nn

G, D = nn.Linear(2, 3), nn.Linear(3, 1)
g_optimizer = torch.optim.SGD(G.parameters(), lr=0.1)
d_optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
for real in torch.randn(4, 5, 3):
    fake = G(torch.randn(5, 2))
    d_loss = D(fake).mean() - D(real).mean()
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = -D(fake).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

G, D = nn.Linear(2, 3), nn.Linear(3, 1)
g_optimizer = torch.optim.SGD(G.parameters(), lr=0.1)
d_optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
for real in torch.randn(4, 5, 3):
    fake = G(torch.randn(5, 2))
    d_loss = D(fake.detach()).mean() - D(real).mean()
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = -D(fake).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
```

## Fix safety

Safe: the detach stands at the argument in the step that does not train the generator, never where the fake is made; the
gradients of the stepped network are proved to stay as they are.

## When to leave it

The generator's own step, which needs the path through the discriminator; an actor that is trained through its critic
(DDPG); networks that both optimizers step on together.

## References

- https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from .analysis.facts import Facts, edges_reach, frames_of
from .analysis.recording import ADDITIVE, owns
from .analysis.tape import Edge, Node, Step, Traversal
from .analysis.values import Frame, Tensor, Value
from .draft import Allowance, Context, Draft, Edits, Plan, Rule, combined
from .finding import Role, Safety, Severity
from .rewrite.detaching import detach_expression
from .rewrite.discarding import assigned

RULE = Rule("GM201", "undetached-fake", "A loss walks through a network that its step does not train")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for traversals that walk through a network upstream of the one that is stepped."""
    facts = context.facts
    if len({id(step.optimizer) for step in facts.steps if step.optimizer is not None}) < 2:
        return
    seen: set[ast.AST] = set()
    for traversal in facts.traversals:
        if not traversal.accumulates or traversal.call in seen:
            continue
        found = upstream(facts, traversal)
        if found is not None:
            seen.add(traversal.call)
            yield _draft(context, traversal, *found)


def upstream(facts: Facts, traversal: Traversal) -> tuple[set[Node], list[tuple[Node, Node]], str] | None:
    """The leaves that ``traversal`` fills in vain, the edges at which to cut, and what becomes of those gradients."""
    first = facts.first_steps(traversal)
    if not first or any(step.parameters is None for step in first):
        return None
    leaves = {node for node in traversal.sure if node.kind == "leaf"}
    trained = {leaf for leaf in leaves if any(step.parameters and owns(step.parameters, leaf) for step in first)}
    if not trained:
        return None
    above = _reaching(traversal, trained)
    wasted: set[Node] = set()
    fates: set[str] = set()
    for step in facts.steps:
        if step.parameters is None or not step.parameters.leaves or step.optimizer is None:
            continue
        owned = {leaf for leaf in leaves - trained if owns(step.parameters, leaf)}
        if not owned or step.optimizer in {s.optimizer for s in first}:
            continue
        if any(edge.node in owned for node in above for edge in node.edges):
            continue
        fate = _fate(facts, traversal, owned, trained)
        if fate is not None:
            wasted |= owned
            fates.add(fate)
    if not wasted:
        return None
    below = _reaching(traversal, wasted) | wasted
    edges = [
        (node, edge.node) for node in above for edge in node.edges if edge.node in below and edge.node not in above
    ]
    if not edges or any(_is_term(traversal, node) for node, _ in edges):
        return None
    # Sets of nodes have no order of their own, and the first edge is where the finding stands.
    edges.sort(key=lambda edge: (_position(edge[0]), _position(edge[1])))
    fate = "crash" if "crash" in fates else "spoilt" if "spoilt" in fates else "cleared"
    return wasted, edges, fate


def _position(node: Node) -> tuple[int, int]:
    return getattr(node.where.node, "lineno", 0), getattr(node.where.node, "col_offset", 0)


def _is_term(traversal: Traversal, node: Node) -> bool:
    """Whether ``node`` only adds up terms of the loss: cutting one would leave a constant, which nobody adds."""
    stack = [edge.node for edge in traversal.roots]
    seen: set[Node] = set()
    while stack:
        one = stack.pop()
        if one in seen or one.operation not in ADDITIVE:
            continue
        if one is node:
            return True
        seen.add(one)
        stack += [edge.node for edge in one.edges]
    return False


def _reaching(traversal: Traversal, leaves: set[Node]) -> set[Node]:
    """The nodes that ``traversal`` reaches from which one of ``leaves`` is reached."""
    parents: dict[Node, list[Node]] = {}
    for node in traversal.sure:
        for edge in node.edges:
            parents.setdefault(edge.node, []).append(node)
    found: set[Node] = set()
    stack = list(leaves)
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in found:
                found.add(parent)
                stack.append(parent)
    return found


def _fate(facts: Facts, traversal: Traversal, owned: set[Node], trained: set[Node]) -> str | None:
    """What becomes of the gradients of ``owned``: None where they may be wanted."""
    applied = facts.applied(traversal)
    if any(leaf in applied for leaf in owned):
        return "spoilt" if _adversarial(facts, traversal, owned, trained) else None
    if any(
        event.earlier is traversal and not owned.isdisjoint(n for n in event.traversal.reached if n.kind == "leaf")
        for event in facts.refreed
    ):
        return "crash"
    if any(facts.cleared(leaf, traversal) for leaf in owned):
        return "cleared"
    return None


def _adversarial(facts: Facts, traversal: Traversal, owned: set[Node], trained: set[Node]) -> bool:
    """Whether ``owned`` has a loss of its own that goes through ``trained`` without training it."""
    for other in facts.traversals:
        if other is traversal or other.call is traversal.call:
            continue
        steps = facts.first_steps(other)
        if not steps or any(step.parameters is None for step in steps):
            continue
        stepped = [step.parameters for step in steps if step.parameters is not None]
        leaves = {node for node in other.reached if node.kind == "leaf"}
        if not (leaves & owned) or not (leaves & trained):
            continue
        if any(owns(p, leaf) for p in stepped for leaf in leaves & owned) and not any(
            owns(p, leaf) for p in stepped for leaf in leaves & trained
        ):
            return True
    return False


def _draft(
    context: Context, traversal: Traversal, wasted: set[Node], edges: list[tuple[Node, Node]], fate: str
) -> Draft:
    facts = context.facts
    below = _reaching(traversal, wasted) | wasted
    names = {"crash": "frees the graph that the other network's own backward() needs",
             "spoilt": "leaves gradients there that the other network's next step applies",
             "cleared": "computes gradients there that are thrown away"}  # fmt: skip
    entry = edges[0]
    expression, where_frame = _site(context, entry, below)
    site: ast.AST = expression or entry[0].where.node
    filename = (where_frame or entry[0].where.frame).module.filename
    draft = Draft(
        RULE,
        f"backward() walks through a network that another optimizer trains and {names[fate]}",
        Severity.WARNING if fate == "cleared" else Severity.ERROR,
        site,
        filename,
        [
            (Role.RECORDED, entry[1].where, "recorded here, by the network that is not stepped"),
            (Role.FREED, traversal.where, "walked through here"),
        ],
    )
    clash = next((e for e in facts.refreed if e.earlier is traversal), None)
    if clash is not None:
        draft.places.append((Role.REACHED, clash.traversal.where, "reached again here"))
        draft.traversal = clash.traversal
    lost = _lost_places(below)
    allowance = Allowance(
        lost=lambda node, t: t.call is traversal.call and lost(node),
        gradients=lambda leaf, t: t.call is traversal.call and leaf in wasted,
    )
    for event in facts.discarded:
        if event.index < traversal.index and any(edge.node in below for edge in event.edges):
            source = context.source_of(context.filename(event.where))
            draft.plans.append(
                Plan(Safety.SAFE, "Assign the detached tensor", partial(assigned, source, event), allowance)
            )
    for call in (".detach()", ".detach().requires_grad_()"):
        for choose in (_at_module, _outermost, _innermost, _at_creation):
            draft.plans.append(
                Plan(
                    Safety.SAFE,
                    "Detach what comes from the network that is not stepped",
                    partial(_cuts, context, edges, below, choose, call),
                    allowance,
                )
            )
    return draft


def _lost_places(below: set[Node]) -> Callable[[Node], bool]:
    places = {(node.where.node, node.operation) for node in below}
    inputs = {(n.where.node, n.operation) for n in edges_reach(tuple(Edge(node.path, node) for node in below))}
    return lambda node: (node.where.node, node.operation) in places or (node.where.node, node.operation) in inputs


Site = tuple[ast.expr, Value, Frame, bool]
"""An expression, its value, the frame it stands in, and whether it is where a variable got that value."""
Choose = Callable[[tuple[Node, Node], list[Site]], Site | None]
"""Which of the sites of an edge is cut."""


def _sites(context: Context, edge: tuple[Node, Node], below: set[Node]) -> list[Site]:
    """The expressions, innermost first, that bring the graph into the operation at ``edge``."""
    node, upstream = edge
    machine = context.machine
    sources = edges_reach((Edge(upstream.path, upstream),)) & below
    found: list[Site] = []
    for operand in node.operands:
        nodes = {e.node for e in machine.edges_of(operand.value)}
        if operand.expression is not None and nodes & {upstream}:
            found.append((operand.expression, operand.value, node.where.frame, False))
    for frame in frames_of(node.where):
        if frame.caller is None:
            break
        for operand in frame.arguments:
            if operand.expression is None or isinstance(operand.expression, ast.Starred):
                continue
            nodes = {e.node for e in machine.edges_of(operand.value)}
            if nodes & sources:
                found.append((operand.expression, operand.value, frame.caller, False))
    around = set(frames_of(node.where))
    for stored in context.facts.stored:
        if stored.where.frame not in around or stored.source is None or not isinstance(stored.value, Tensor):
            continue
        if {e.node for e in machine.edges_of(stored.value)} & sources:
            found.append((stored.source, stored.value, stored.where.frame, True))
    return found


def _site(context: Context, edge: tuple[Node, Node], below: set[Node]) -> tuple[ast.expr | None, Frame | None]:
    chosen = _at_module(edge, _sites(context, edge, below))
    return (chosen[0], chosen[2]) if chosen else (None, None)


def _innermost(edge: tuple[Node, Node], sites: list[Site]) -> Site | None:
    return next((site for site in sites if not site[3]), None)


def _outermost(edge: tuple[Node, Node], sites: list[Site]) -> Site | None:
    return next((site for site in reversed(sites) if not site[3]), None)


def _at_creation(edge: tuple[Node, Node], sites: list[Site]) -> Site | None:
    """Where the variable that is handed over got its value; for a fake that nothing else uses."""
    return next((site for site in sites if site[3]), None)


def _at_module(edge: tuple[Node, Node], sites: list[Site]) -> Site | None:
    """The argument of the outermost call of a module, else the outermost expression."""
    chosen: Site | None = None
    for frame in frames_of(edge[0].where):
        function = frame.function
        if function is None or function.name not in {"forward", "__call__"} or frame.caller is None:
            continue
        for site in sites:
            if not site[3] and site[2] is frame.caller and any(o.expression is site[0] for o in frame.arguments):
                chosen = site
    return chosen or _outermost(edge, sites)


def _cuts(
    context: Context, edges: Iterable[tuple[Node, Node]], below: set[Node], choose: Choose, call: str
) -> Edits | None:
    return combined(_cut(context, edge, below, choose, call) for edge in edges)


def _cut(context: Context, edge: tuple[Node, Node], below: set[Node], choose: Choose, call: str) -> Edits | None:
    site = choose(edge, _sites(context, edge, below))
    if site is None:
        return None
    expression, value, frame, _ = site
    source = context.source_of(frame.module.filename)
    if source is None:
        return None
    edits = detach_expression(context.machine, source, expression, value, call)
    return {source.filename: edits} if edits else None


__all__ = ["RULE", "Step", "find", "upstream"]
