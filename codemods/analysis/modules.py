"""torch.nn modules: making them, their parameters, calling them."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from collections.abc import Sequence as Seq
from typing import Final

from .guards import ALWAYS, Guard
from .knowledge import torch_operations
from .knowledge.torch_modules import MODULES, ModuleKind
from .recording import Recorder
from .tape import Node, Operand
from .values import (
    DictCell,
    External,
    FunctionValue,
    Instance,
    ListCell,
    Parameters,
    Phi,
    Sequence,
    Symbol,
    Tensor,
    TorchModule,
    TupleValue,
    Value,
)

TABLES: Final = frozenset({"_modules", "_parameters", "_buffers"})
"""Where a module keeps what is registered with it, by its name."""
MOST_MODULES: Final = 32
"""A loop over modules runs all of them up to this many: what it does to each is told apart."""
DROPOUTS: Final = frozenset(name for name in MODULES if "Dropout" in name)
"""They hand back their input in evaluation mode."""


class Modules(Recorder):
    """The recorder with modules."""

    def make_module(
        self, name: str, arguments: Seq[Operand], keywords: dict[str, Operand], site: ast.AST
    ) -> TorchModule:
        """``torch.nn.NAME(…)``"""
        module = TorchModule(name, self.fresh("module", name), self.where(site))
        kind = MODULES[name]
        module.slots["training"] = True
        for keyword, operand in keywords.items():
            module.slots[keyword] = operand.value
        if name == "Sequential":
            if len(arguments) == 1 and type(self.resolve(arguments[0].value)) is DictCell:
                module.slots["children"] = arguments[0].value
            else:
                module.slots["children"] = ListCell(tuple((ALWAYS, o.value) for o in arguments))
        elif name in {"ModuleList", "ParameterList"}:
            items, exact = self.elements(arguments[0].value, site) if arguments else ([], True)
            module.slots["children"] = ListCell(tuple(items), more=not exact)
        elif name in {"ModuleDict", "ParameterDict"}:
            given = self.resolve(arguments[0].value) if arguments else None
            module.slots["children"] = given if type(given) is DictCell else DictCell()
        else:
            self.add_parameters(module, kind, keywords, site)
        if 0 <= kind.in_place_position < len(arguments):
            module.slots.setdefault("inplace", arguments[kind.in_place_position].value)
        return module

    def add_parameters(
        self, module: TorchModule, kind: ModuleKind, keywords: dict[str, Operand], site: ast.AST
    ) -> None:
        for parameter in kind.parameters:
            if parameter == "bias" and "bias" in keywords and keywords["bias"].value is False:
                module.slots["bias"] = None
                continue
            if any(
                switch in keywords and keywords[switch].value is False for switch in kind.switches if switch != "bias"
            ):
                continue
            tensor = Tensor()
            tensor.slots["node"] = self.make_leaf(
                (module.key, parameter), f"{module.name}.{parameter}", site, tensor.storage
            )
            module.slots[parameter] = tensor

    def elements(self, value: Value, site: ast.AST) -> tuple[list[tuple[Guard, Value]], bool]:
        raise NotImplementedError

    # -- parameters ------------------------------------------------------------------------------------------------

    def symbol_leaf(self, symbol: Symbol, site: ast.AST) -> Node:
        """The parameters of an unknown module, as one leaf."""
        return self.make_leaf(("params", symbol.key), "parameters", site)

    def parameters_of(self, value: Value, site: ast.AST) -> Parameters:
        """What ``value.parameters()`` gives."""
        leaves: dict[Node, str] = {}
        whole = self.collect(value, site, leaves, set(), "")
        return Parameters(tuple(leaves), whole)

    def collect(self, value: Value, site: ast.AST, leaves: dict[Node, str], seen: set[int], name: str) -> bool:
        """Add the leaves of ``value`` with their dotted names to ``leaves``; false where there may be more."""
        value = self.resolve(value)
        kind = type(value)
        if id(value) in seen:
            return True
        seen.add(id(value))
        if kind is Tensor:
            node = value.slots["node"]
            if isinstance(node, Node) and node.kind == "leaf":
                leaves.setdefault(node, name)
            return True
        if kind is TorchModule or kind is Instance:
            whole = True
            for part, child in self.registered(value):
                whole = self.collect(child, site, leaves, seen, f"{name}.{part}" if name else part) and whole
            if kind is Instance and ("unfinished" in value.slots or self.has_unknown_base(value.cls)):
                leaves.setdefault(self.make_leaf(("params", value.key), "parameters", site), name)
                whole = False
            return whole
        if kind is Parameters:
            for leaf in value.leaves:
                leaves.setdefault(leaf, name)
            return bool(value.whole)
        if kind is Phi:
            for _, alternative in value.alternatives:
                self.collect(alternative, site, leaves, seen, name)
            return False
        if kind is Symbol:
            leaves.setdefault(self.symbol_leaf(value, site), name)
            return True
        whole = True
        for item in contents(value):
            whole = self.collect(item, site, leaves, seen, name) and whole
        return whole

    def registered(self, module: Value) -> list[tuple[str, Value]]:
        """The parameters and sub-modules of ``module`` by name, in order."""
        found: list[tuple[str, Value]] = []
        for key, slot in list(module.slots.items()):
            slot = self.resolve(slot)
            kind = type(slot)
            if key == "children" and type(module) is TorchModule:
                if kind is ListCell:
                    found += [(str(index), item) for index, (_, item) in enumerate(slot.slots["items"])]
                elif kind is DictCell:
                    found += [(str(k[1]), v) for k, v in slot.slots.items() if isinstance(k, tuple) and k[0] == "key"]
            elif kind is TorchModule or (kind is Instance and self.is_module(slot)) or kind is Phi:
                found.append((str(key), slot))
            elif kind is Tensor and key != "grad":
                node = slot.slots["node"]
                if isinstance(node, Node) and node.kind == "leaf":
                    found.append((str(key), slot))
            elif kind is Symbol and type(module) is Instance and _may_be_module(slot):
                found.append((str(key), slot))
        return found

    def modules_of(self, module: Value) -> list[Value]:
        """``module`` and all modules below it."""
        return [one for _, one in self.named_modules(module, set(), "")]

    def named_modules(self, module: Value, seen: set[int], name: str) -> list[tuple[str, Value]]:
        """``module`` and all modules below it, each once, by their dotted names."""
        module = self.resolve(module)
        if type(module) not in (TorchModule, Instance) or id(module) in seen:
            return []
        seen.add(id(module))
        found: list[tuple[str, Value]] = [(name, module)]
        for part, child in self.registered(module):
            found += self.named_modules(child, seen, f"{name}.{part}" if name else part)
        return found

    def submodules(self, module: Value) -> list[tuple[str, Value]]:
        """The modules right below ``module``, by their names."""
        return [(name, one) for name, one in self.registered(module) if type(one) in (TorchModule, Instance)]

    def are_modules(self, items: Seq[tuple[Guard, Value]]) -> bool:
        """Whether these are objects, and so few that what a loop does to each can be told apart.

        ``named_modules()`` and its like give pairs of a name and an object.
        """
        return len(items) <= MOST_MODULES and all(
            type(value.items[-1] if type(value) is TupleValue and value.items else value) in (TorchModule, Instance)
            for _, value in items
        )

    def table_of(self, module: Value, name: str) -> DictCell:
        """``module._modules`` and its like: what is stored in the table becomes an attribute of the module."""
        table = DictCell()
        if name == "_modules":
            table.slots = {("key", part): one for part, one in self.submodules(module)}
        else:
            parts = module.slots.items()
            table.slots = {("key", part): one for part, one in parts if type(self.resolve(one)) is Tensor}
        self.tables[id(table.slots)] = (table, module)
        return table

    def is_module(self, value: Value) -> bool:
        """Whether ``value`` is an instance of ``torch.nn.Module``."""
        raise NotImplementedError

    def has_unknown_base(self, cls: Value) -> bool:
        raise NotImplementedError

    def call_function(
        self, function: FunctionValue, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        raise NotImplementedError

    def call_value(self, callee: Value, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST) -> Value:
        raise NotImplementedError

    # -- calling ---------------------------------------------------------------------------------------------------

    def call_module(
        self, module: TorchModule, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        """``module(*arguments)``"""
        name = module.name
        if name == "Sequential":
            return self.call_sequential(module, arguments, keywords, call)
        kind = MODULES[name]
        operands = [*arguments, *keywords.values()]
        if kind.in_place_option and self.resolve(module.slots.get("inplace", False)) is True and arguments:
            given = self.resolve(arguments[0].value)
            if type(given) is Tensor:
                if name in DROPOUTS and self.resolve(module.slots.get("training")) is not True:
                    return given
                self.change(given, kind.operation, call, [], arguments[0].expression, module=module)
                return given
        differentiated = [] if kind.operation in torch_operations.TAKES_INDICES else operands
        tracked = any(self.edges_of(operand.value) for operand in differentiated)
        weights: list[Operand] = []
        saved: list[Value] = []
        for parameter in kind.parameters:
            tensor = module.slots.get(parameter)
            if type(tensor) is Tensor:
                weights.append(Operand(None, tensor))
                keeps = kind.saves_parameters if tracked else kind.saves_parameters_untracked
                if parameter in keeps:
                    saved.append(tensor)
        trained = any(self.edges_of(weight.value) for weight in weights)
        if kind.saves_input and (trained or not kind.parameters):
            saved += [operand.value for operand in operands]
        reduction = self.resolve(module.slots.get("reduction", "mean"))
        return self.module_result(
            kind.returns,
            self.record(
                name,
                call,
                [*differentiated, *weights],
                saved=saved,
                saves=kind.internal or bool(saved),
                saves_result=kind.saves_result,
                scalar=kind.loss and reduction != "none",
            ),
            call,
        )

    def module_result(self, returns: str, output: Tensor, call: ast.AST) -> Value:
        def sibling(name: str) -> Tensor:
            tensor = Tensor(None, cuts=output.cuts)
            if output.node is not None:
                tensor.slots["node"] = Node(
                    "operation", name, self.where(call), self.path, self.edges_of(output), saves=False
                )
            return tensor

        if returns == "recurrent":
            return TupleValue((output, sibling("hidden")))
        if returns == "lstm":
            return TupleValue((output, TupleValue((sibling("hidden"), sibling("cell")))))
        if returns == "lstm_cell":
            return TupleValue((output, sibling("cell")))
        if returns == "attention":
            return TupleValue((output, sibling("weights")))
        if returns == "pair":
            return TupleValue((output, Tensor()))
        return output

    def call_sequential(
        self, module: TorchModule, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        children = self.resolve(module.slots["children"])
        if type(children) is DictCell:
            stages = [value for key, value in children.slots.items() if isinstance(key, tuple) and key[0] == "key"]
        elif type(children) is ListCell:
            stages = [value for _, value in children.slots["items"]]
        else:
            stages = []
        current = list(arguments)
        result: Value = current[0].value if current else None
        for stage in stages:
            result = self.call_value(stage, current, keywords, call)
            current = [Operand(current[0].expression if current else None, result)]
            keywords = {}
        if type(children) is ListCell and children.slots["more"]:
            result = self.unknown_call(Symbol(module.key), current, {}, call)
        return result

    def unknown_call(
        self, callee: Value, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST, key: Hashable = None
    ) -> Value:
        raise NotImplementedError


def contents(value: Value) -> list[Value]:
    """The elements of a container; empty for anything else."""
    if type(value) not in (ListCell, Sequence, TupleValue, DictCell):
        return []
    if type(value) is ListCell:
        return [item for _, item in value.slots["items"]]
    if type(value) is Sequence:
        return [item for _, item in value.items]
    if type(value) is TupleValue:
        return list(value.items)
    return list(value.slots.values())


def _may_be_module(symbol: Symbol) -> bool:
    key = symbol.key
    return isinstance(key, tuple) and bool(key) and key[0] in {"call", "param", "fresh", "external"}


__all__ = ["External", "Modules", "contents"]
