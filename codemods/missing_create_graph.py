"""# missing-create-graph (GM302)

## What it does

Finds a gradient that was taken without `create_graph=True` and is differentiated again.

## Why is this bad?

The gradient has no graph. If it is all that is differentiated, PyTorch stops:

    RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn

If it is one term of a loss, that term is silently a constant and trains nothing. In meta-learning the outer loss loses
its second-order part: the method becomes its first-order variant without a word.

## Example

```python
import torch

x = torch.linspace(0, 1, 5, requires_grad=True)
(first,) = torch.autograd.grad((x**3).sum(), x)
(second,) = torch.autograd.grad(first.sum(), x)
print(second)
```

## Use instead

```python
import torch

x = torch.linspace(0, 1, 5, requires_grad=True)
(first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print(second)
```

## Fix safety

Safe where the code raises, or where a whole term of the loss is constant. Unsafe for inner steps of meta-learning:
first-order may be meant, and only the author knows.

## When to leave it

First-order MAML, adaptive weights, targets and forces for evaluation.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.tape import Edge, Flat, Traversal
from .draft import Context, Draft, Rule
from .finding import Role, Safety, Severity
from .retain_for_create import Use, differentiated_again, draft_for

RULE = Rule("GM302", "missing-create-graph", "The gradient is differentiated again and has no graph")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for gradients without a graph whose derivative is wanted, and for derivatives that cannot exist."""
    for use in differentiated_again(context):
        gradient = use.cut.gradient
        if gradient is not None and gradient.retain is not True and gradient.create is False:
            yield draft_for(context, use, RULE)
    yield from _constant(context)
    yield from _first_order(context)


def _constant(context: Context) -> Iterator[Draft]:
    """Differentiations of a derivative that is constant: no flag helps."""
    for flat in context.facts.flats:
        constants = [cut for cut in flat.cuts if cut.kind == "constant" and cut.gradient is not None]
        if not constants or any(cut.kind == "derivative" for cut in flat.cuts):
            continue
        first = constants[0]
        yield Draft(
            RULE,
            "this derivative is a constant (what was differentiated is linear): it has no graph although "
            "`create_graph=True` is set, and differentiating it raises",
            Severity.ERROR,
            flat.call,
            context.filename(flat.where),
            [
                (Role.RECORDED, first.where, "the first derivative, a constant"),
                (Role.REACHED, flat.where, "differentiated again here"),
            ],
            explains=False,
        )


def _first_order(context: Context) -> Iterator[Draft]:
    """Inner steps whose updated parameters are trained through, without the second-order part."""
    facts = context.facts
    seen: set[ast.AST] = set()
    for traversal in facts.traversals:
        for node in traversal.reached:
            if node.operation not in {"sub", "add", "addcmul"} or not node.terms:
                continue
            for cut in sorted(node.terms, key=lambda c: getattr(c.where.node, "lineno", 0)):
                gradient = cut.gradient
                if cut.kind != "derivative" or gradient is None or gradient.call in seen or gradient.accumulates:
                    continue
                if not _is_update(node.edges, gradient):
                    continue
                seen.add(gradient.call)
                draft = draft_for(context, Use(cut, traversal.where, error=False), RULE)
                draft.message = (
                    "an inner step without `create_graph=True`: the outer loss is differentiated as if the inner "
                    "gradient were a constant (first-order)"
                )
                draft.severity = Severity.WARNING
                for plan in draft.plans:
                    plan.safety = Safety.UNSAFE
                yield draft


def _is_update(edges: tuple[Edge, ...], gradient: Traversal) -> bool:
    """Whether a parameter that the gradient was taken for is moved by it."""
    moved = {edge.node for edge in edges}
    return bool(gradient.inputs and moved & set(gradient.inputs))


__all__ = ["RULE", "Flat", "find"]
