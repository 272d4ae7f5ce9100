"""Abstract values.

Python constants (numbers, strings, booleans, None) stand for themselves. Everything else is one of the classes below.
``Phi`` is a value that depends on the path; ``Symbol`` is anything that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .guards import Guard
from .heap import Slots

if TYPE_CHECKING:
    from .tape import Cut, Node, Operand

Value = Any
"""A Python constant or an instance of a class of this module."""

NO_CUTS: Final[frozenset[Cut]] = frozenset()


class Storage:
    """The memory behind one or more tensors; ``slots["version"]`` changes with every in-place write."""

    __slots__ = ("slots",)

    def __init__(self) -> None:
        self.slots: Slots = {"version": None}


class Tensor:
    """A tensor. ``slots["node"]`` is its grad_fn (a tape node, possibly guarded by paths) or None.

    ``base`` is what it is a view of, ``shares`` other memory that may be its own: ``y = x.float()`` can be ``x``.
    """

    __slots__ = ("base", "cuts", "gradient_of", "scalar", "shares", "slots", "storage")

    def __init__(
        self,
        node: Node | None = None,
        storage: Storage | None = None,
        scalar: bool = False,
        cuts: frozenset[Cut] = NO_CUTS,
    ) -> None:
        self.slots: Slots = {"node": node}
        self.storage = storage or Storage()
        self.scalar = scalar
        self.cuts = cuts
        self.base: Tensor | None = None
        self.shares: Storage | None = None

    @property
    def node(self) -> Node | None:
        node: Node | None = self.slots["node"]
        return node


class Symbol:
    """Something unknown, named by ``key``: equal keys are the same value.

    ``node`` is set where it may be a tensor with a graph (the result of an unknown call on graph tensors); ``above`` is
    a lower bound where it is known to be a counter.
    """

    __slots__ = ("above", "cuts", "key", "node")

    def __init__(
        self,
        key: Hashable,
        node: Node | None = None,
        above: float | None = None,
        cuts: frozenset[Cut] = NO_CUTS,
    ) -> None:
        self.key = key
        self.node = node
        self.above = above
        self.cuts = cuts

    def __repr__(self) -> str:
        return f"Symbol({self.key})"


class Phi:
    """Different values on different, mutually exclusive paths."""

    __slots__ = ("alternatives",)

    def __init__(self, alternatives: tuple[tuple[Guard, Value], ...]) -> None:
        self.alternatives = alternatives


class TupleValue:
    """A tuple; ``cls`` is its class where it is a namedtuple."""

    __slots__ = ("cls", "items")

    def __init__(self, items: tuple[Value, ...], cls: ClassValue | NamedTupleClass | None = None) -> None:
        self.items = items
        self.cls = cls


class ListCell:
    """A list, set or deque. ``slots["items"]`` holds (guard, value) pairs; ``slots["more"]`` says that an unknown
    number of further elements like these may follow."""

    __slots__ = ("kind", "site", "slots")

    def __init__(self, items: tuple[tuple[Guard, Value], ...], more: bool = False, kind: str = "list") -> None:
        self.slots: Slots = {"items": items, "more": more}
        self.kind = kind
        self.site: ast.AST | None = None


class DictCell:
    """A dict. Constant keys are slots ``("key", k)``; ``slots["rest"]`` is what unknown keys may hold; ``factory``
    makes missing values (defaultdict)."""

    __slots__ = ("factory", "slots")

    def __init__(self, factory: Value = None) -> None:
        self.slots: Slots = {}
        self.factory = factory


@dataclass(eq=False, slots=True)
class NamedTupleClass:
    """What ``collections.namedtuple`` returns."""

    name: str
    fields: tuple[str, ...]


class Instance:
    """An object of a class of the project; ``slots`` are its attributes."""

    __slots__ = ("cls", "key", "slots")

    def __init__(self, cls: ClassValue, key: Hashable) -> None:
        self.cls = cls
        self.key = key
        self.slots: Slots = {}


class TorchModule:
    """An instance of a class of torch.nn. ``name`` is the bare class name; ``slots`` hold parameters and options;
    ``slots["children"]`` the sub-modules of a container as a ListCell or DictCell. ``site`` is where it was made."""

    __slots__ = ("key", "name", "site", "slots")

    def __init__(self, name: str, key: Hashable, site: Any = None) -> None:
        self.name = name
        self.key = key
        self.site = site
        self.slots: Slots = {}


class Optimizer:
    """A torch optimizer; ``slots["groups"]`` are the :class:`Parameters` that it owns."""

    __slots__ = ("name", "site", "slots")

    def __init__(self, name: str, site: Any) -> None:
        self.name = name
        self.site = site
        self.slots: Slots = {"groups": ()}


class Parameters:
    """A set of leaves, as ``module.parameters()`` gives it. ``whole`` is false where more may belong to it."""

    __slots__ = ("keys", "leaves", "members", "whole")

    def __init__(self, leaves: tuple[Node, ...], whole: bool = True) -> None:
        self.leaves: Final = leaves
        self.members: Final = frozenset(leaves)
        self.keys: Final = frozenset(leaf.key for leaf in leaves)
        self.whole = whole


class Frame:
    """One activation of a function (or module): its variables and where it was called from."""

    __slots__ = (
        "arguments",
        "call",
        "caller",
        "caller_loops",
        "caller_statement",
        "closure",
        "depth",
        "function",
        "globals_declared",
        "module",
        "returned",
        "scope_of",
        "slots",
        "statement",
        "yielded",
    )

    def __init__(
        self,
        function: FunctionValue | None,
        module: ModuleValue,
        closure: Frame | None,
        caller: Frame | None = None,
        call: ast.AST | None = None,
    ) -> None:
        self.slots: Slots = {}
        self.function = function
        self.module = module
        self.closure = closure
        self.caller = caller
        self.call = call
        self.depth: int = caller.depth + 1 if caller else 0
        self.arguments: list[Operand] = []
        self.statement: ast.stmt | None = None
        self.caller_statement: ast.stmt | None = caller.statement if caller else None
        self.caller_loops: Any = ()
        self.globals_declared: set[str] = set()
        self.yielded: list[tuple[Guard, Value]] | None = None
        self.returned: bool = False
        self.scope_of: Frame | None = None
        """The frame that a comprehension's own scope belongs to."""


@dataclass(eq=False, slots=True)
class ModuleValue:
    """A Python module of the project: its file and its global variables."""

    name: str
    filename: str
    tree: ast.Module
    frame: Frame | None = None
    pending: dict[str, list[ast.stmt]] | None = None
    """For an imported module: the statements that bind each name and have not been run, ``*`` for star imports."""


@dataclass(eq=False, slots=True)
class Imported:
    """A name imported from a module of the project, looked up when it is first used."""

    module: ModuleValue
    name: str
    value: Any = None
    known: bool = False


@dataclass(eq=False, slots=True)
class FunctionValue:
    """A function of the project with what it closes over."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: ModuleValue
    closure: Frame
    name: str
    owner: ClassValue | None = None
    defaults: tuple[Value, ...] = ()
    keyword_defaults: dict[str, Value] | None = None
    records: bool | None = None
    """False under a ``no_grad`` decorator, None where the caller decides."""
    kind: str = "function"
    """function, staticmethod, classmethod, property"""
    wrapped: bool = False
    """Whether an unknown decorator stands around it."""
    once_differentiable: bool = False
    """Whether it is a backward that says that it cannot be differentiated itself."""


@dataclass(eq=False, slots=True)
class ClassValue:
    """A class of the project."""

    node: ast.ClassDef
    module: ModuleValue
    name: str
    bases: tuple[Value, ...]
    slots: Slots
    dataclass_fields: tuple[tuple[str, Value], ...] | None = None
    is_namedtuple: bool = False
    namedtuple_fields: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class BoundMethod:
    """A method with the object it is bound to."""

    function: FunctionValue
    receiver: Value


@dataclass(frozen=True, slots=True)
class External:
    """A name of a library (``torch.nn.Linear``) or of builtins (``builtins.zip``), by its dotted name."""

    dotted: str


@dataclass(eq=False, slots=True)
class Method:
    """An attribute of a value that is not a project object, about to be called: ``tensor.backward``."""

    receiver: Value
    name: str
    receiver_node: ast.expr | None = None


@dataclass(eq=False, slots=True)
class Partial:
    """What ``functools.partial`` returns."""

    function: Value
    arguments: tuple[Value, ...]
    keywords: dict[str, Value]


@dataclass(eq=False, slots=True)
class Sequence:
    """Something that can be iterated once or often, already worked out: zip, enumerate, map, a generator.

    ``exact`` says that these are all of its elements and that there are no others.
    """

    items: tuple[tuple[Guard, Value], ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class Range:
    """``range(start, stop, step)``; None where a bound is unknown."""

    start: Any
    stop: Any
    step: Any
    key: Hashable


@dataclass(eq=False, slots=True)
class SuperValue:
    """``super()`` inside a method."""

    owner: ClassValue
    receiver: Value
