"""# full-hessian (GM501)

## What it does

Finds a Hessian that is built row by row, by differentiating one component of a gradient after the other, where only its
product with a vector is used afterwards, or where it has a row for every parameter of a network.

## Why is this bad?

For n inputs this walks the graph of the gradient n times and keeps n² numbers. The product with a vector takes one
walk and n numbers: the gradient of the gradient, weighted with the vector. A network of a million parameters has a
Hessian of four terabytes.

## Example

```python
import torch

x, direction = torch.randn(50, requires_grad=True), torch.randn(50)
loss = (x.sin() * x.roll(1)).sum()
(gradient,) = torch.autograd.grad(loss, x, create_graph=True)
rows = []
for i in range(x.numel()):
    rows.append(torch.autograd.grad(gradient[i], x, retain_graph=True)[0])
product = torch.stack(rows) @ direction
```

## Use instead

```python
import torch

x, direction = torch.randn(50, requires_grad=True), torch.randn(50)
loss = (x.sin() * x.roll(1)).sum()
(gradient,) = torch.autograd.grad(loss, x, create_graph=True)
(product,) = torch.autograd.grad(gradient, x, grad_outputs=direction)
```

`torch.autograd.functional.hvp` does the same for a function, and `torch.func.jvp` of `torch.func.grad` does it in
forward mode. Eigenvalues, traces and solutions of linear systems need products only as well (Lanczos, Hutchinson,
conjugate gradients).

## Fix safety

Nothing is offered: the vector has to be brought to where the gradient is taken.

## When to leave it

A Hessian of a few coordinates, one that is inverted or handed on as a whole, and a Laplacian that needs its diagonal
are not reported.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html
- https://docs.pytorch.org/functorch/stable/notebooks/jacobians_hessians.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from .analysis.source import Source
from .analysis.tape import Loop, Node, Traversal
from .draft import Context, Draft, Rule
from .finding import Role, Severity
from .rewrite.sinking import scope_of

RULE = Rule("GM501", "full-hessian", "A Hessian row by row where its product with a vector serves")
PICKING: Final = frozenset(
    {"select", "index", "slice", "cat", "concat", "stack", "view", "reshape", "flatten", "contiguous", "merge",
     "squeeze", "unbind", "narrow", "clone", "ravel"}
)  # fmt: skip
"""Operations that only choose among, or arrange, the components of a gradient."""
STACKING: Final = frozenset({"stack", "cat", "vstack", "row_stack", "concat"})
ARRANGING: Final = frozenset({"view", "reshape", "squeeze", "detach", "to", "contiguous"})
PRODUCTS: Final = frozenset({"mv", "matmul", "mm", "dot"})
FEWEST_ROWS: Final = 16


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every loop over the components of a gradient that builds a whole Hessian for nothing."""
    seen: set[ast.AST] = set()
    for traversal in context.facts.traversals:
        if traversal.accumulates or not traversal.inputs or traversal.call in seen or not traversal.where.loops:
            continue
        loop, _ = traversal.where.loops[-1]
        gradient = _gradient(traversal, loop)
        source = context.source_of(context.filename(traversal.where))
        if gradient is None or source is None or loop.frame.module is not traversal.where.frame.module:
            continue
        seen.add(traversal.call)
        rows = _rows(source, traversal.call, loop.statement)
        if rows is None or not _goes_through_all(source, traversal, loop):
            continue
        large = _of_a_network(traversal.inputs)
        if large or _only_multiplied(source, rows):
            yield _draft(context, traversal, gradient, large)


def _gradient(traversal: Traversal, loop: Loop) -> Node | None:
    """The gradient, taken before the loop by the same inputs, of which ``traversal`` differentiates one component."""
    stack = [edge.node for edge in traversal.roots]
    seen: set[Node] = set()
    found: set[Node] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.kind == "derivative":
            found.add(node)
        elif node.operation in PICKING:
            stack += [edge.node for edge in node.edges]
        else:
            return None
    if not found or len(seen) == len(found):
        return None
    for node in found:
        first = node.key
        same = isinstance(first, Traversal) and first.inputs and set(first.inputs) == set(traversal.inputs or ())
        if not same or node.where.turn(loop) is not None:
            return None
    return next(iter(found))


def _of_a_network(inputs: tuple[Node, ...]) -> bool:
    """Whether the Hessian has a row for every parameter of a network."""
    if any(node.kind != "leaf" or node.operation in {"leaf", "Parameter"} for node in inputs):
        return False
    return len(inputs) > 1 or inputs[0].operation == "parameters"


# -- what is done with the rows ------------------------------------------------------------------------------------


def _rows(source: Source, call: ast.Call, loop: ast.AST) -> ast.Name | None:
    """The variable that collects the rows; None where there is none."""
    node: ast.AST | None = call
    names: set[str] = set()
    while node is not None and node is not loop and not isinstance(node, ast.stmt):
        node = source.parent(node)
    if isinstance(loop, ast.ListComp):
        return _target(source, loop)
    if not isinstance(loop, (ast.For, ast.While)) or not isinstance(node, ast.stmt):
        return None
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in ast.walk(target)]
        names = {part.id for part in targets if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for inner in ast.walk(loop):
        holds = any(part is call or (isinstance(part, ast.Name) and part.id in names) for part in _read_by(inner))
        if isinstance(inner, ast.Assign) and holds and isinstance(inner.targets[0], ast.Subscript):
            base = inner.targets[0].value
            return base if isinstance(base, ast.Name) else None
        method = inner.func if isinstance(inner, ast.Call) and holds else None
        if isinstance(method, ast.Attribute) and method.attr == "append":
            return method.value if isinstance(method.value, ast.Name) else None
    return None


def _read_by(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign):
        yield from ast.walk(node.value)
    elif isinstance(node, ast.Call):
        for argument in node.args:
            yield from ast.walk(argument)


def _target(source: Source, expression: ast.expr) -> ast.Name | None:
    """The variable that an expression, stacked or arranged, is assigned to."""
    node: ast.AST = expression
    outer = source.parent(node)
    while isinstance(outer, (ast.Call, ast.Attribute)) and _is_arranged(outer, node):
        node, outer = outer, source.parent(outer)
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        return outer.targets[0]
    return None


def _is_arranged(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether ``outer`` is all of ``inner`` in another arrangement."""
    if isinstance(outer, ast.Attribute):
        return outer.attr in ARRANGING
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute):
        return outer.func is inner or (outer.func.attr in STACKING and bool(outer.args) and outer.args[0] is inner)
    return False


def _goes_through_all(source: Source, traversal: Traversal, loop: Loop) -> bool:
    """Whether the loop takes one component after the other, and there may be many of them."""
    statement = loop.statement
    generator = statement.generators[0] if isinstance(statement, ast.ListComp) else statement
    if not isinstance(generator, (ast.For, ast.comprehension)) or not isinstance(generator.target, ast.Name):
        return False
    operand = traversal.operand
    index = generator.target.id
    if isinstance(operand, ast.Name) and operand.id == index:
        return True
    if not isinstance(operand, ast.Subscript) or not isinstance(operand.slice, ast.Name) or operand.slice.id != index:
        return False
    over = generator.iter
    if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Name) or over.func.id not in {"range", "trange"}:
        return False
    last = over.args[-1] if len(over.args) <= 2 and over.args else None
    return last is not None and not (
        isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value < FEWEST_ROWS
    )


def _only_multiplied(source: Source, rows: ast.Name) -> bool:
    """Whether all that is done with the rows is to multiply the matrix that they are with something."""
    scope = scope_of(source, rows)
    names, products = {rows.id}, 0
    waiting = [rows.id]
    while waiting:
        name = waiting.pop()
        for node in ast.walk(scope):
            if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
                continue
            use = _use(source, node)
            if use is None:
                return False
            if isinstance(use, ast.Name):
                if use.id not in names:
                    names.add(use.id)
                    waiting.append(use.id)
            elif use != "filled":
                products += 1
    return products > 0


def _use(source: Source, name: ast.Name) -> ast.Name | str | None:
    """What a use of the rows is: ``product``, ``filled``, the variable that they go on in; None for all else."""
    node: ast.AST = name
    outer = source.parent(node)
    if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Store):
        return "filled"
    if isinstance(outer, ast.Attribute) and outer.attr == "append":
        return "filled"
    while outer is not None and _is_arranged(outer, node):
        node, outer = outer, source.parent(outer)
    if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.MatMult):
        return "product"
    if isinstance(outer, ast.Attribute) and outer.attr in PRODUCTS and isinstance(source.parent(outer), ast.Call):
        return "product"
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and outer.func.attr in PRODUCTS:
        return "product"
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        return outer.targets[0]
    return None


def _draft(context: Context, traversal: Traversal, gradient: Node, large: bool) -> Draft:
    what = (
        "a Hessian with a row for every parameter of the network is built row by row"
        if large
        else "the whole Hessian is built row by row, and only multiplied by vectors"
    )
    return Draft(
        RULE,
        f"{what}: `torch.autograd.functional.hvp` gives the product with a vector without it",
        Severity.WARNING,
        traversal.call,
        context.filename(traversal.where),
        [
            (Role.RECORDED, gradient.where, "the gradient is taken here, with its graph"),
            (Role.REACHED, traversal.where, "and walked once for each of its components here"),
        ],
        explains=False,
    )


__all__ = ["RULE", "find"]
