"""How a value of a given shape is cut from its graph, as source text."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from ..analysis.machine import Machine
from ..analysis.source import Source
from ..analysis.values import (
    ClassValue,
    DictCell,
    ListCell,
    NamedTupleClass,
    Parameters,
    Phi,
    Sequence,
    Symbol,
    Tensor,
    TupleValue,
    Value,
)
from .builders import append_call, replace_node
from .edits import TextEdit

TENSOR: Final = "tensor"
MIXED: Final = "mixed"
NONE_OR_TENSOR: Final = "none or tensor"
NOTHING: Final = "nothing"
UNKNOWN: Final = "unknown"


class Container(NamedTuple):
    """A container and what its elements look like."""

    kind: str
    """``tuple``, ``namedtuple``, ``dict``, ``optional`` (None or the elements' shape itself), or a list's kind."""
    inner: Shape
    name: str = ""
    """The class of a namedtuple."""


Shape = str | Container
"""One of the words above, or a container."""


def shape_of(value: Value, depth: int = 0) -> Shape:
    """What ``value`` looks like."""
    kind = type(value)
    if kind is Tensor or kind is Parameters:
        return TENSOR
    if value is None:
        return NONE_OR_TENSOR
    if isinstance(value, (bool, int, float, str)):
        return MIXED
    if kind is Symbol:
        if value.node is None:
            return MIXED
        return TENSOR if value.node.slots.get("tensor") else UNKNOWN
    if depth > 3:
        return UNKNOWN
    if kind is Phi:
        return _joined([shape_of(v, depth + 1) for _, v in value.alternatives])
    if kind is TupleValue:
        inner = _joined([shape_of(v, depth + 1) for v in value.items])
        if value.cls is not None:
            return Container("namedtuple", inner, _class_name(value.cls))
        return Container("tuple", inner)
    if kind is ListCell:
        return Container(value.kind, _joined([shape_of(v, depth + 1) for _, v in value.slots["items"]]))
    if kind is DictCell:
        return Container("dict", _joined([shape_of(v, depth + 1) for v in value.slots.values()]))
    return UNKNOWN


def _joined(shapes: list[Shape]) -> Shape:
    if not shapes:
        return NOTHING
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    plain = {shape for shape in shapes if isinstance(shape, str)}
    if len(plain) == len(set(map(str, shapes))):
        if plain <= {TENSOR, NONE_OR_TENSOR}:
            return "optional"
        if UNKNOWN not in plain:
            return MIXED
    containers = [shape for shape in shapes if not isinstance(shape, str)]
    if containers and plain <= {NONE_OR_TENSOR} and all(c == containers[0] for c in containers):
        return Container("optional", containers[0])
    return UNKNOWN


def _class_name(cls: ClassValue | NamedTupleClass) -> str:
    return cls.name


def detached(text: str, shape: Shape, torch: str | None, name: str = "h") -> str | None:
    """``text``, an expression of that shape, cut from its graph; None where that cannot be written safely.

    ``torch`` is the name under which torch is imported, needed where tensors and other values are mixed.
    """
    if shape == TENSOR:
        return f"{text}.detach()"
    if shape == "optional":
        return f"None if {text} is None else {text}.detach()"
    if shape == MIXED:
        return f"{text}.detach() if {torch}.is_tensor({text}) else {text}" if torch else None
    if isinstance(shape, str):
        return None
    kind, inner, cls = shape
    if kind == "optional":
        filled = detached(text, inner, torch, name)
        return f"None if {text} is None else {filled}" if filled else None
    if kind == "namedtuple":
        element = detached(name, inner, torch, name + name[-1])
        return f"{cls}(*({element} for {name} in {text}))" if element else None
    if kind == "dict":
        element = detached("value", inner, torch, name)
        return f"{{key: {element} for key, value in {text}.items()}}" if element else None
    following = {"h": "part", "part": "piece"}.get(name, name + "_part")
    element = detached(name, inner, torch, following)
    if element is None:
        return None
    if kind == "tuple":
        return f"tuple({element} for {name} in {text})"
    if kind == "list":
        return f"[{element} for {name} in {text}]"
    return None


def torch_name(source: Source) -> str | None:
    """The name under which the file's top level imports torch."""
    for statement in source.tree.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name == "torch":
                    return alias.asname or "torch"
                if alias.name.startswith("torch.") and alias.asname is None:
                    return "torch"
    return None


def detach_expression(
    machine: Machine, source: Source, expression: ast.expr, value: Value, call: str = ".detach()"
) -> tuple[TextEdit, ...] | None:
    """Edits that make ``expression``, whose value is ``value``, give the same without its graph."""
    if isinstance(expression, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in expression.elts):
        return _elements(machine, source, expression.elts, value, call)
    if isinstance(expression, ast.Dict):
        return _dictionary(machine, source, expression, value, call)
    if isinstance(expression, (ast.ListComp, ast.GeneratorExp)):
        return _comprehension(machine, source, expression, value, call)
    shape = shape_of(value)
    if shape == TENSOR and expression in machine.plain:
        shape = MIXED
    if shape == TENSOR:
        return append_call(source, expression, call)
    if call != ".detach()":
        return None
    text = source.segment(expression)
    if not isinstance(expression, (ast.Name, ast.Attribute)):
        if isinstance(shape, str) or shape.kind == "optional":
            return None
        if not isinstance(expression, (ast.Call, ast.Subscript)):
            text = f"({text})"
    code = detached(text, shape, torch_name(source))
    return replace_node(source, expression, code) if code else None


def _elements(
    machine: Machine, source: Source, elements: list[ast.expr], value: Value, call: str
) -> tuple[TextEdit, ...] | None:
    if isinstance(value, TupleValue):
        values = list(value.items)
    elif isinstance(value, ListCell):
        values = [item for _, item in value.slots["items"]]
    else:
        return None
    if len(values) != len(elements):
        return None
    edits: list[TextEdit] = []
    for element, part in zip(elements, values, strict=True):
        if machine.edges_of(part) and shape_of(part) != UNKNOWN:
            made = detach_expression(machine, source, element, part, call)
            if made is None:
                return None
            edits += made
    return tuple(edits) or None


def _comprehension(
    machine: Machine, source: Source, expression: ast.ListComp | ast.GeneratorExp, value: Value, call: str
) -> tuple[TextEdit, ...] | None:
    """Cut what the comprehension makes, where all of it looks alike."""
    if isinstance(value, ListCell):
        values = [item for _, item in value.slots["items"]]
    elif isinstance(value, Sequence):
        values = [item for _, item in value.items]
    else:
        return None
    if not values or any(shape_of(one) != shape_of(values[0]) for one in values):
        return None
    return detach_expression(machine, source, expression.elt, values[0], call)


def _dictionary(
    machine: Machine, source: Source, expression: ast.Dict, value: Value, call: str
) -> tuple[TextEdit, ...] | None:
    if not isinstance(value, DictCell):
        return None
    edits: list[TextEdit] = []
    for key, element in zip(expression.keys, expression.values, strict=True):
        if key is None or not isinstance(key, ast.Constant):
            return None
        part = value.slots.get(("key", key.value))
        if part is not None and machine.edges_of(part) and shape_of(part) != UNKNOWN:
            made = detach_expression(machine, source, element, part, call)
            if made is None:
                return None
            edits += made
    return tuple(edits) or None
