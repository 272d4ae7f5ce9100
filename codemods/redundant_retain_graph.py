"""# redundant-retain-graph (GM303)

## What it does

Finds `create_graph=True, retain_graph=True` in one call.

## Why is this bad?

It is only noise: `retain_graph` defaults to the value of `create_graph`. Two flags make the reader ask which of them
matters.

## Example

```python
import torch

x = torch.randn(3, requires_grad=True)
(slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True, retain_graph=True)
print(slope.sum().backward())
```

## Use instead

```python
import torch

x = torch.randn(3, requires_grad=True)
(slope,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
print(slope.sum().backward())
```

## Fix safety

Safe: PyTorch does the same with and without the flag.

## When to leave it

Style only: `ignore = ["GM303"]` is a reasonable setting.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.source import Source
from .draft import Context, Draft, Edits, Plan, Rule
from .finding import Role, Safety, Severity
from .rewrite.builders import remove_keyword

RULE = Rule("GM303", "redundant-retain-graph", "`retain_graph=True` beside `create_graph=True`, which implies it")
SYNTACTIC = True


def find(context: Context) -> Iterator[Draft]:
    """Nothing is asked of the tape; see :func:`find_in_source`."""
    return iter(())


def find_in_source(source: Source) -> Iterator[Draft]:
    """Drafts for every call of ``grad`` or ``backward`` with both flags set."""
    if "create_graph" not in source.text or "retain_graph" not in source.text or "torch" not in source.text:
        return
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.Call)
            and _differentiates(node)
            and _true(node, "create_graph")
            and _true(node, "retain_graph")
        ):
            yield _draft(source, node)


def _differentiates(call: ast.Call) -> bool:
    name = (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )
    return name == "backward" or name == "grad" or name.endswith("_grad")


def _true(call: ast.Call, flag: str) -> bool:
    return any(k.arg == flag and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords)


def _draft(source: Source, call: ast.Call) -> Draft:
    def build() -> Edits:
        return {source.filename: remove_keyword(source, call, "retain_graph")}

    return Draft(
        RULE,
        "`retain_graph=True` is redundant: `create_graph=True` implies it",
        Severity.NOTE,
        call,
        source.filename,
        [],
        [Plan(Safety.SAFE, "Remove `retain_graph=True`", build, proof=False)],
        explains=False,
    )


__all__ = ["RULE", "Role", "find", "find_in_source"]
