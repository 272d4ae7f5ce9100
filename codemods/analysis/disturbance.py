"""What code that cannot be seen may have done to the objects that it got hold of.

``functional.reset_net(net)`` of a spiking library calls ``reset()`` of every module of ``net``, a callback may clear
what its trainer holds. After such a call an attribute still may hold what it held, and may not: nothing is sure about
it any more.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from typing import Final

from .functions import Functions
from .knowledge.frameworks import HOOKS
from .modules import contents
from .tape import PERHAPS, Edge, Node
from .values import External, Instance, Phi, Symbol, TorchModule, Value

FRAMEWORK_BASES: Final[frozenset[str]] = frozenset().union(*(hook.class_names for hook in HOOKS))
"""Base classes whose own methods leave alone what a subclass keeps in its attributes."""


class Disturbance(Functions):
    """The machine with objects that others may change."""

    def disturb(self, values: Iterable[Value], site: ast.AST) -> None:
        """Make doubtful every graph that an attribute of ``values``, or of an object below them, holds."""
        seen: set[int] = set()
        stack = list(values)
        while stack:
            value = self.resolve(stack.pop())
            if id(value) in seen:
                continue
            seen.add(id(value))
            if type(value) is Phi:
                stack += [one for _, one in value.alternatives]
            elif type(value) is Instance or type(value) is TorchModule:
                for key, slot in list(value.slots.items()):
                    edges = tuple(edge for edge in self.edges_of(slot) if edge.node.kind != "leaf")
                    if edges:
                        self.write(value.slots, key, self.perhaps(edges, site))
                    else:
                        stack.append(slot)
            else:
                stack += contents(value)

    def stored_elsewhere(self, value: Value, site: ast.AST) -> Value:
        """What an attribute gives back that a ``__setattr__`` of the project was given."""
        edges = tuple(edge for edge in self.edges_of(value) if edge.node.kind != "leaf")
        return self.perhaps(edges, site) if edges else value

    def perhaps(self, edges: tuple[Edge, ...], site: ast.AST) -> Symbol:
        """A value that may carry ``edges`` and may carry nothing."""
        node = Node("unknown", PERHAPS, self.where(site), self.path, edges, saves=None)
        return Symbol(self.fresh(PERHAPS), node)

    def owner_of(self, key: Hashable) -> list[Instance]:
        """The object whose inherited method, one that cannot be seen, has ``key``."""
        if not (isinstance(key, tuple) and len(key) == 3 and key[0] in {"attr", "member"}):
            return []
        owner = self.objects.get(key[1])
        return [owner] if owner is not None and self.has_strange_base(owner) else []

    def has_strange_base(self, instance: Instance) -> bool:
        """Whether it has a base class that cannot be seen and may share attributes with it."""
        return any(
            type(base) is Symbol
            or (
                type(base) is External
                and not base.dotted.startswith(("torch.", "builtins.", "abc.", "typing.", "enum."))
                and base.dotted not in FRAMEWORK_BASES
            )
            for base in self.linearised(instance.cls)
        )
