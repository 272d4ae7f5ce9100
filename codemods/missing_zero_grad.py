"""# missing-zero-grad (GM402)

## What it does

Finds an optimizer that steps in a loop with gradients which it has applied before: nothing clears them between the
steps, so each `backward()` adds to them.

## Why is this bad?

`backward()` adds to `.grad`, and `step()` does not clear it. Without `zero_grad()` the n-th step applies the sum of the
gradients of all n iterations, those of long outdated weights included. Nothing fails; training is bad or diverges.

## Example

```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(4, 5, 3):
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(4, 5, 3):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety

Unsafe: it changes every update after the first, and gradients can be summed on purpose. It is offered only where the
tape shows every call between two steps.

## When to leave it

Accumulation that ends with a step and then clears, whatever the number of batches, is not reported; nor is a loop in
which anything that cannot be seen might clear the gradients, or one that handles `.grad` itself.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
- https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .analysis.facts import Facts, frame_statement, frames_of
from .analysis.knowledge.optimizers import NEEDS_CLOSURE, WRAPPING_OPTIMIZERS
from .analysis.source import Source
from .analysis.tape import Handed, Loop, Node, Step, Traversal, Where
from .analysis.values import (
    DictCell,
    Instance,
    ListCell,
    Optimizer,
    Parameters,
    Sequence,
    TorchModule,
    TupleValue,
    Value,
)
from .draft import Allowance, Context, Draft, Edits, Plan, Rule
from .finding import Role, Safety, Severity
from .rewrite.builders import insert_before
from .rewrite.out_of_place import is_place
from .rewrite.reordering import block_around
from .step_between_repairs import common_frame

RULE = Rule("GM402", "missing-zero-grad", "A step applies gradients that an earlier step has applied already")
DEEPEST = 4
CLEARING_WORDS = ("zero_grad", "zerograd", "reset_grad", "clear_grad", "zero_gradients", "optimize_parameters")
"""Parts of names of functions that clear gradients."""
OVERWRITING = frozenset({"zero_", "fill_", "mul_", "copy_", "zero", "set_"})


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Two steps of one optimizer in consecutive iterations, and a gradient that both apply."""

    loop: Loop
    earlier: Step
    step: Step
    leaf: Node
    old: Traversal
    new: Traversal


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every step that applies a gradient for the second time."""
    seen: set[ast.AST] = set()
    for repeated in _repeated(context.facts):
        if repeated.step.call not in seen and _is_sure(context, repeated):
            seen.add(repeated.step.call)
            yield _draft(context, repeated)


def _repeated(facts: Facts) -> Iterator[_Repeated]:
    last: dict[tuple[Optimizer, ast.AST], Step] = {}
    for step in facts.steps:
        if step.optimizer is None or step.parameters is None:
            continue
        if step.optimizer.name in WRAPPING_OPTIMIZERS | NEEDS_CLOSURE:
            continue
        earlier = last.get((step.optimizer, step.call))
        last[step.optimizer, step.call] = step
        parted = facts.parting(earlier.where, step.where) if earlier is not None else None
        if earlier is None or parted is None:
            continue
        for leaf, gradients in step.applied.items():
            known = {traversal for _, traversal in earlier.applied.get(leaf, ())}
            old = [t for guard, t in gradients if t in known and t.accumulates and guard.compatible(earlier.path)]
            new = [t for _, t in gradients if t.index > earlier.index]
            same = [(o, n) for o in old for n in new if o.call is n.call]
            if same and not leaf.assumed:
                yield _Repeated(parted[0], earlier, step, leaf, *same[-1])
                break


# -- doubts --------------------------------------------------------------------------------------------------------


def _is_sure(context: Context, repeated: _Repeated) -> bool:
    """Whether nothing clears the gradients between the two steps, and nothing says that they are summed on purpose."""
    facts, step, earlier = context.facts, repeated.step, repeated.earlier
    if not _is_unconditional(repeated):
        return False
    for clear in facts.clears:
        within = earlier.index < clear.index < step.index or clear.where.turn(repeated.loop) is not None
        if within and (clear.parameters is None or repeated.leaf in clear.cleared):
            return False
    for handed in facts.tape.of(Handed):
        if earlier.index < handed.index < step.index and _may_clear(handed, repeated):
            return False
    frames = {frame for where in (step.where, repeated.new.where) for frame in frames_of(where)}
    sources = [context.source_of(filename) for filename in sorted({frame.module.filename for frame in frames})]
    run: set[ast.AST] = {f.function.node if f.function is not None else f.module.tree for f in frames}
    seen = {clear.call for clear in facts.clears}
    return not any(s is None or _handles_gradients(s) or _clears_unseen(s, run, seen) for s in sources)


def _is_unconditional(repeated: _Repeated) -> bool:
    """Whether each iteration steps: a step on a condition ends an accumulation."""
    traversal, step = repeated.new, repeated.step
    return not step.path.beyond(traversal.path).facts and not repeated.earlier.path.beyond(repeated.old.path).facts


def _may_clear(handed: Handed, repeated: _Repeated) -> bool:
    if handed.callee is not None:
        return True
    return any(_holds(value, repeated, 0) for value in handed.values)


def _holds(value: Value, repeated: _Repeated, depth: int) -> bool:
    """Whether the optimizer or the parameter can be got at through ``value``."""
    kind = type(value)
    if kind is Optimizer:
        return value is repeated.step.optimizer
    if kind is Parameters:
        return repeated.leaf in value.leaves
    if depth > DEEPEST:
        return False
    parts: list[Any] = []
    if kind in (TorchModule, Instance, DictCell):
        parts = list(value.slots.values())
    elif kind is ListCell:
        parts = [item for _, item in value.slots["items"]]
    elif kind is TupleValue:
        parts = list(value.items)
    elif kind is Sequence:
        parts = [item for _, item in value.items]
    elif hasattr(value, "slots") and isinstance(value.slots, dict):
        return value.slots.get("node") is repeated.leaf
    return any(_holds(part, repeated, depth + 1) for part in parts)


def _clears_unseen(source: Source, run: set[ast.AST], seen: set[ast.AST]) -> bool:
    """Whether a function that was ``run``, or its class, clears gradients in a place that the tape never came to."""
    classes = {source.parent(function) for function in run} - {source.tree, None}
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Attribute) and node.attr == "zero_grad") or source.parent(node) in seen:
            continue
        outer = source.parent(node)
        while outer is not None:
            if outer in run - {source.tree} or outer in classes:
                return True
            if outer is source.tree:
                return source.tree in run and not _is_inside_definition(source, node)
            outer = source.parent(outer)
    return False


def _is_inside_definition(source: Source, node: ast.AST) -> bool:
    outer = source.parent(node)
    while outer is not None:
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return True
        outer = source.parent(outer)
    return False


def _handles_gradients(source: Source) -> bool:
    """Whether the file overwrites ``.grad`` itself, or calls something that sounds as if it cleared gradients."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in {"grad", "_grad"} and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name != "zero_grad" and any(word in name.lower() for word in CLEARING_WORDS):
                return True
            if name in OVERWRITING and isinstance(node.func, ast.Attribute) and _mentions_gradient(node.func.value):
                return True
            if name in {"setattr", "delattr"} and any(
                isinstance(a, ast.Constant) and a.value == "grad" for a in node.args
            ):
                return True
    return False


def _mentions_gradient(expression: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(expression))


# -- drafts --------------------------------------------------------------------------------------------------------


def _draft(context: Context, repeated: _Repeated) -> Draft:
    step = repeated.step
    outside = any(repeated.leaf in clear.cleared for clear in context.facts.clears if clear.index < step.index)
    why = "zero_grad() stands outside this loop" if outside else "no zero_grad() clears them"
    draft = Draft(
        RULE,
        f"from the second iteration on this step applies gradients that an earlier one has applied already: {why}",
        Severity.ERROR,
        step.call,
        context.filename(step.where),
        [
            (Role.RECORDED, repeated.new.where, "adds to the gradients of the iteration before"),
            (Role.REACHED, step.where, "applies them all"),
        ],
    )
    calls = {t.call for leaf in step.applied for _, t in (*step.applied[leaf],)}
    owned = set(step.applied)
    draft.plans = [
        Plan(
            Safety.UNSAFE,
            "Clear the gradients before the first backward() of each iteration",
            lambda: _cleared(context, repeated),
            Allowance(gradients=lambda leaf, traversal: leaf in owned and traversal.call in calls),
        )
    ]
    return draft


def _cleared(context: Context, repeated: _Repeated) -> Edits | None:
    """Edits that clear the gradients before everything of this iteration that fills them."""
    step = repeated.step
    filling = [
        traversal
        for traversal in context.facts.traversals
        if repeated.earlier.index < traversal.index < step.index
        and traversal.where.turn(repeated.loop) == step.where.turn(repeated.loop)
        and any(leaf in traversal.reached for leaf in step.applied)
        and traversal.accumulates
    ]
    frame = common_frame(*(t.where for t in filling), step.where)
    source = context.source_of(frame.module.filename) if frame is not None else None
    spelled = _receiver(step.call)
    if frame is None or source is None or spelled is None or step.where.frame is not frame:
        return None
    statements = [_statement(source, frame_statement(where, frame)) for where in _places(filling, step)]
    if None in statements:
        return None
    block, members = block_around(source, [s for s in statements if s is not None])
    first = min(members, key=block.index)
    return {source.filename: insert_before(source, first, [f"{source.segment(spelled)}.zero_grad()"])}


def _places(filling: list[Traversal], step: Step) -> list[Where]:
    return [*(traversal.where for traversal in filling), step.where]


def _receiver(call: ast.AST) -> ast.expr | None:
    """The optimizer as the step spells it: ``optimizer.step()``, ``scaler.step(optimizer)``."""
    if not isinstance(call, ast.Call):
        return None
    found = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    return found if found is not None and is_place(found) else None


def _statement(source: Source, node: object) -> ast.stmt | None:
    while isinstance(node, ast.AST) and not isinstance(node, ast.stmt):
        node = source.parent(node)
    return node if isinstance(node, ast.stmt) else None


__all__ = ["RULE", "find"]
