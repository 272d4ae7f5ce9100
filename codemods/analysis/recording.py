"""What PyTorch records: operations, in-place changes, traversals, gradients, optimizer steps."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Seq
from typing import Final

from .guards import ALWAYS, Guard
from .knowledge.torch_operations import IN_PLACE_KEEPS_RESULT, MAY_RETURN_INPUT, OPERATIONS, Keeps, Operation
from .machine import Machine
from .tape import (
    Change,
    Cut,
    Edge,
    Flat,
    Node,
    OnceOnly,
    Operand,
    Refreed,
    Saved,
    Stale,
    Step,
    Traversal,
    Unused,
    ZeroGrad,
    edges_under,
    reach,
    sure_nodes,
)
from .values import (
    NO_CUTS,
    ListCell,
    Optimizer,
    Parameters,
    Phi,
    Storage,
    Symbol,
    Tensor,
    TorchModule,
    TupleValue,
    Value,
)

ADDITIVE: Final = frozenset({"add", "sub", "rsub", "sum", "iadd"})
"""Operations that put a term beside others: a term without a graph is then a constant of the loss."""
PIECEWISE_LINEAR: Final = frozenset(
    {"relu", "leaky_relu", "abs", "hardtanh", "dropout", "max_pool1d", "max_pool2d", "max_pool3d", "relu6", "threshold"}
)
"""Their second derivative is zero: the saved result carries no graph into the derivative."""
KEEPS_RESULT: Final = Operation(Keeps.NEVER, Keeps.NEVER, True)
APPLY: Final = "apply"
"""The operation of a ``torch.autograd.Function`` of the project."""
MOST_CUTS: Final = 6


class Recorder(Machine):
    """The machine with a tape."""

    saves_copies = False
    """Whether what operations save may be copies, so that no later change makes them stale."""

    def record(
        self,
        operation: str,
        site: ast.AST,
        operands: Seq[Operand],
        *,
        kind: str = "operation",
        saved: Iterable[Value] = (),
        saves: bool | None = False,
        saves_result: bool = False,
        scalar: bool = False,
        storage: Storage | None = None,
        key: Hashable = None,
    ) -> Tensor:
        """The result of an operation on ``operands``: a tensor with a node where any of them has a graph."""
        self.spend()
        edges: list[Edge] = []
        cuts: set[Cut] = set()
        for operand in operands:
            found = self.edges_of(operand.value)
            if found:
                edges.extend(found)
            else:
                cuts |= self.cuts_of(operand.value)
        result = Tensor(None, storage, scalar)
        guards = self.recording_guards()
        if not edges or not guards:
            if edges:
                cuts.add(Cut("no_grad", self.where(site), tuple(edges), None))
            result.cuts = _few(cuts)
            return result
        unique = tuple(dict.fromkeys(edges))
        if guards[0] is not ALWAYS:
            unique = tuple(narrowed for guard in guards for narrowed in edges_under(unique, guard))
        node = Node(kind, operation, self.where(site), self.path, unique, operands=tuple(operands), key=key)
        node.saved = tuple(s for value in saved for s in self.saved_tensors(value))
        if self.saves_copies:
            node.saved = tuple(Saved(Storage(), None, one.edges) for one in node.saved)
        node.saves = True if node.saved or saves_result else saves
        if saves_result:
            own = () if operation in PIECEWISE_LINEAR else (Edge(ALWAYS, node),)
            node.saved += (Saved(result.storage, result.storage.slots["version"], own),)
        if cuts and operation in ADDITIVE:
            node.terms = _few(cuts)
        result.slots["node"] = node
        return result

    def saved_tensors(self, value: Value) -> tuple[Saved, ...]:
        """What a node keeps when it keeps ``value``."""
        value = self.resolve(value)
        kind = type(value)
        if kind is Tensor:
            return (Saved(value.storage, value.storage.slots["version"], self.edges_of(value)),)
        if kind is Parameters:
            return tuple(
                Saved(leaf.slots["storage"], leaf.slots["storage"].slots["version"], self.leaf_edges(leaf))
                for leaf in value.leaves
            )
        if kind is Symbol or kind is Phi or kind is TupleValue or kind is ListCell:
            edges = self.edges_of(value)
            return (Saved(Storage(), None, edges),) if edges else ()
        return ()

    def operate(
        self,
        name: str,
        site: ast.AST,
        operands: Seq[Operand],
        scalar: bool = False,
        operation: Operation | None = None,
    ) -> Tensor:
        """The result of the torch operation ``name``; ``operation`` overrides its entry in the knowledge table."""
        operation = operation or OPERATIONS.get(name)
        if operation is None:
            return self.record(name, site, operands, saves=None, scalar=scalar)
        tracked = [bool(self.edges_of(operand.value)) for operand in operands]
        saved: list[Value] = []
        for index, operand in enumerate(operands):
            keeps = operation.input if index == 0 else operation.other
            others = any(tracked[:index] + tracked[index + 1 :])
            if (
                keeps is Keeps.ALWAYS
                or (keeps is Keeps.IF_OTHER_TRACKED and others)
                or (keeps is Keeps.IF_TRACKED and tracked[index])
                or (keeps is Keeps.IF_FURTHER_TRACKED and any(tracked[1:index] + tracked[index + 1 :]))
            ):
                saved.append(operand.value)
        first = self.resolve(operands[0].value) if operands else None
        viewed: Tensor | None = None
        if operation.view and name not in MAY_RETURN_INPUT and type(first) is Tensor:
            viewed = first
        result = self.record(
            name,
            site,
            operands,
            saved=saved,
            saves=operation.internal or bool(saved),
            saves_result=operation.result,
            scalar=scalar or operation.returns == "scalar",
            storage=viewed.storage if viewed is not None else None,
        )
        if viewed is not None:
            result.base = viewed.base or viewed
            result.shares = viewed.shares
        elif name in MAY_RETURN_INPUT and type(first) is Tensor:
            result.shares = first.shares or first.storage
        return result

    # -- leaves ----------------------------------------------------------------------------------------------------

    def make_leaf(self, key: Hashable, operation: str, site: ast.AST, storage: Storage | None = None) -> Node:
        """The leaf named ``key``; made once per tape."""
        leaf = self.tape.leaves.get(key)
        if leaf is None:
            leaf = Node("leaf", operation, self.where(site), ALWAYS, key=key)
            leaf.slots["requires_grad"] = self.requires_grad_of_whole(key)
            leaf.slots["grads"] = ()
            leaf.slots["storage"] = storage or Storage()
            self.tape.leaves[key] = leaf
        return leaf

    def requires_grad_of_whole(self, key: Hashable) -> Value:
        """Whether parameters require a gradient, as those of the unknown module do that they belong to."""
        while isinstance(key, tuple) and len(key) == 2 and key[0] == "params":
            inner = key[1]
            if not (isinstance(inner, tuple) and len(inner) == 3 and inner[0] in {"attr", "member"}):
                break
            key = ("params", inner[1])
            whole = self.tape.leaves.get(key)
            if whole is not None:
                return whole.slots["requires_grad"]
        return True

    def require_grad(self, tensor: Tensor, site: ast.AST, requires: Value = True) -> None:
        """``tensor.requires_grad_(requires)``"""
        node = tensor.slots["node"]
        if isinstance(node, Node):
            if node.kind == "leaf":
                self.write(node.slots, "requires_grad", requires)
            return
        if requires is False:
            return
        leaf = self.make_leaf(self.fresh("leaf"), "leaf", site, tensor.storage)
        leaf.slots["cuts"] = tensor.cuts
        if requires is not True:
            leaf.slots["requires_grad"] = requires
        self.write(tensor.slots, "node", leaf)

    # -- in place --------------------------------------------------------------------------------------------------

    def change(
        self,
        tensor: Tensor,
        operation: str,
        site: ast.AST,
        operands: Seq[Operand],
        target: ast.expr | None,
        module: TorchModule | None = None,
        leaf: Node | None = None,
    ) -> None:
        """``tensor`` is overwritten in place with the result of ``operation`` on itself and ``operands``.

        Its grad_fn becomes the new operation; everything that saved its memory before is stale. ``leaf`` is given where
        ``tensor`` stands for one.
        """
        before = tensor.slots["node"]
        if operation in {"copy", "setitem", "fill", "zero"}:
            # Also what is overwritten whole is walked: it gets a gradient of zeros.
            result = self.record(operation, site, [Operand(target, tensor), *operands], saves=False)
        else:
            rule = KEEPS_RESULT if operation in IN_PLACE_KEEPS_RESULT else None
            # Where the derivative needs the old value, a private copy of it is saved.
            old = Tensor(before, scalar=tensor.scalar, cuts=tensor.cuts)
            result = self.operate(operation, site, [Operand(target, old), *operands], operation=rule)
        if leaf is None and isinstance(before, Node) and before.kind == "leaf":
            leaf = before
        event = Change(
            self.tape.next_index,
            self.where(site),
            self.path,
            (tensor.storage,),
            operation,
            self.frame.statement or site,
            tensor,
            target,
            leaf=leaf if leaf is not None and self.refuses_change(leaf) else None,
            module=module,
        )
        self.tape.add(event)
        self.write(tensor.storage.slots, "version", event)
        node = result.slots["node"]
        if node is not None:
            node.saved = tuple(self.saved_in_place(saved, tensor, result, event) for saved in node.saved)
            self.write(tensor.slots, "node", node)
            self.change_base(tensor, node, site)

    def change_base(self, tensor: Tensor, node: Node, site: ast.AST) -> None:
        """What a view is changed to, its base is changed to in that part."""
        base = tensor.base
        if base is not None:
            edges = (*self.edges_of(base), Edge(ALWAYS, node))
            rebased = Node("operation", "copy_slices", self.where(site), self.path, edges, saves=False)
            self.write(base.slots, "node", rebased)

    def refuses_change(self, leaf: Node) -> bool:
        """Whether changing ``leaf`` in place raises: surely it requires a gradient and operations are recorded."""
        requires = self.resolve(leaf.slots.get("requires_grad", True))
        return requires is True and self.recording_guards() == (ALWAYS,)

    def saved_in_place(self, saved: Saved, tensor: Tensor, result: Tensor, event: Change) -> Saved:
        """What an in-place operation saves: the tensor as it is afterwards where its result is needed."""
        return Saved(tensor.storage, event, saved.edges) if saved.storage is result.storage else saved

    # -- traversals ------------------------------------------------------------------------------------------------

    def traverse(
        self,
        call: ast.Call,
        operand: ast.expr | None,
        value: Value,
        *,
        retain: bool | None = False,
        create: bool | None = False,
        accumulates: bool = True,
        inputs: tuple[Node, ...] | None = None,
        gradient_argument: bool = False,
        flag: ast.expr | None = None,
        framework: bool = False,
    ) -> Traversal:
        """Walk back from ``value``; report what was freed or changed before, free what is reached."""
        self.spend()
        roots = self.edges_of(value)
        where = self.where(call)
        event = Traversal(
            self.tape.next_index,
            where,
            self.path,
            roots,
            operand,
            call,
            retain,
            create,
            accumulates,
            inputs,
            gradient_argument,
            value=value,
            flag=flag,
            framework=framework,
        )
        self.tape.add(event)
        resolved = self.resolve(value)
        if not roots and type(resolved) is Tensor:
            event.flat = True
            self.tape.add(Flat(self.tape.next_index, where, self.path, call, operand, resolved.cuts, inputs))
            return event
        if len(roots) == 1:
            roots[0].node.slots["tensor"] = True
        reached = reach(roots, self.path)
        if inputs is not None:
            missing = [node for node in inputs if node not in reached]
            if missing and roots and not accumulates:
                self.tape.add(Unused(self.tape.next_index, where, self.path, call))
            reached = _towards(reached, inputs)
        event.reached = reached
        event.sure = sure_nodes(roots) & reached.keys()
        self.spend(len(reached) // 8)
        self.report_double(event)
        for node, guard in reached.items():
            if node.kind == "derivative" and node.slots.get("once only"):
                function = node.slots["once only"][0]
                self.tape.add(OnceOnly(self.tape.next_index, where, guard, function, node, event))
        for node, guard in reached.items():
            if node.kind == "leaf":
                if accumulates:
                    self.write(node.slots, "grads", (*node.slots["grads"], (guard, event)))
                    self.write(node.slots, "gradient", event)
            elif retain is False:
                node.freed.append(event)
        return event

    def report_double(self, event: Traversal) -> None:
        seen: set[Traversal] = set()
        stale: set[int] = set()
        for node, guard in event.reached.items():
            if node not in event.sure:
                continue
            if node.saves is True:
                for earlier in node.freed:
                    if earlier not in seen and earlier.path.compatible(guard) and node in earlier.reached:
                        both = guard.meet(earlier.reached[node])
                        if both is not None:
                            seen.add(earlier)
                            self.tape.add(Refreed(self.tape.next_index, event.where, both, node, earlier, event))
            for saved in node.saved:
                for change_guard, change in self.changes_since(saved, guard):
                    if id(change) not in stale:
                        stale.add(id(change))
                        self.tape.add(
                            Stale(self.tape.next_index, event.where, change_guard, node, change, event, saved.storage)
                        )

    def changes_since(self, saved: Saved, guard: Guard) -> list[tuple[Guard, Change]]:
        """The in-place change that made ``saved`` stale, with its path; empty where it is as it was."""
        version = saved.storage.slots["version"]
        if version is saved.version:
            return []
        found: list[tuple[Guard, Change]] = []
        for inner, change in version.alternatives if type(version) is Phi else ((ALWAYS, version),):
            both = guard.meet(inner)
            if both is None or change is saved.version or not isinstance(change, Change):
                continue
            if type(saved.version) is Phi and any(old is change for _, old in saved.version.alternatives):
                continue
            narrowed = both.meet(change.path)
            if narrowed is not None and change.step is not None:
                narrowed = _with_gradient(change.step, saved.storage, narrowed)
            if narrowed is not None:
                found.append((narrowed, change))
        return found

    def gradient(self, event: Traversal, site: ast.AST, scalar: bool = False) -> Tensor:
        """The tensor that a traversal gives for one of its inputs (or leaves in ``.grad``)."""
        roots = event.roots
        if event.flat:
            return Tensor(None, scalar=scalar)
        if event.create is not True:
            if event.create is None:
                return self.perhaps_tracked(event, scalar)
            cut = Cut("derivative", event.where, roots, event)
            return Tensor(None, scalar=scalar, cuts=frozenset({cut}) if roots else NO_CUTS)
        edges: list[Edge] = []
        for node, guard in event.reached.items():
            if node.saves is None or node.operation in {"merge", APPLY} or node.kind == "unknown":
                edges.extend(edges_under(node.edges, guard))
            for saved in node.saved:
                edges.extend(edges_under(saved.edges, guard))
        unique = tuple(dict.fromkeys(edges))
        if not unique and (not event.reached or any(node.saves is None for node in event.reached)):
            return self.perhaps_tracked(event, scalar)
        if not unique:
            cut = Cut("constant", event.where, roots, event)
            return Tensor(None, scalar=scalar, cuts=frozenset({cut}))
        node = Node("derivative", "derivative", event.where, self.path, unique, saves=True, key=event)
        node.slots["once only"] = [one for one in event.reached if one.slots.get("once only") is True]
        return Tensor(node, scalar=scalar)

    def perhaps_tracked(self, event: Traversal, scalar: bool) -> Tensor:
        """A gradient of which it is not known whether it has a graph."""
        return Tensor(Node("unknown", "gradient", event.where, self.path, saves=None), scalar=scalar)

    # -- optimizers ------------------------------------------------------------------------------------------------

    def owned(self, parameters: Parameters | None) -> tuple[Node, ...]:
        """All leaves of the tape that belong to ``parameters``."""
        if parameters is None:
            return ()
        return tuple(leaf for leaf in self.tape.leaves.values() if owns(parameters, leaf))

    def step(self, call: ast.AST, optimizer: Optimizer | None, parameters: Parameters | None) -> None:
        event = Step(self.tape.next_index, self.where(call), self.path, optimizer, parameters, call)
        owned = self.owned(parameters)
        event.applied = {leaf: leaf.slots["grads"] for leaf in owned}
        self.tape.add(event)
        # An optimizer skips a parameter whose .grad is None.
        storages = tuple(
            leaf.slots["storage"]
            for leaf, gradients in event.applied.items()
            if any(guard.compatible(self.path) for guard, _ in gradients)
        )
        change = Change(
            self.tape.next_index,
            self.where(call),
            self.path,
            storages,
            "step",
            self.frame.statement or call,
            step=event,
        )
        self.tape.add(change)
        for storage in storages:
            self.write(storage.slots, "version", change)

    def zero_grad(self, call: ast.AST, parameters: Parameters | None) -> None:
        event = ZeroGrad(self.tape.next_index, self.where(call), self.path, parameters, call)
        owned = self.owned(parameters)
        event.cleared = {leaf: leaf.slots["grads"] for leaf in owned}
        self.tape.add(event)
        for leaf in owned:
            self.write(leaf.slots, "grads", ())
            self.write(leaf.slots, "gradient", None)


def _with_gradient(step: Step, storage: Storage, path: Guard) -> Guard | None:
    """The part of ``path`` on which ``step`` has a gradient for the parameter in ``storage``; None for nowhere."""
    for leaf, gradients in step.applied.items():
        if leaf.slots["storage"] is storage:
            for guard, _ in gradients:
                both = path.meet(guard)
                if both is not None:
                    return both
    return None


def _few(cuts: set[Cut]) -> frozenset[Cut]:
    """At most so many of ``cuts``, of each place one before any place has two; always the same ones."""
    if len(cuts) <= MOST_CUTS:
        return frozenset(cuts)
    places: dict[tuple[int, int, str], int] = {}
    ranked: list[tuple[int, tuple[int, int, str], int, Cut]] = []
    for number, cut in enumerate(sorted(cuts, key=_place_of)):
        place = _place_of(cut)
        places[place] = places.get(place, 0) + 1
        ranked.append((places[place], place, number, cut))
    return frozenset(cut for *_, cut in sorted(ranked, key=lambda entry: entry[:3])[:MOST_CUTS])


def _place_of(cut: Cut) -> tuple[int, int, str]:
    node = cut.where.node
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0), cut.kind


def owns(parameters: Parameters, leaf: Node) -> bool:
    """Whether ``leaf`` is one of ``parameters``, itself or as a part of an unknown module among them."""
    if leaf in parameters.members:
        return True
    key = leaf.key
    while isinstance(key, tuple) and len(key) == 2 and key[0] == "params":
        inner = key[1]
        if not (isinstance(inner, tuple) and len(inner) == 3 and inner[0] == "attr"):
            return False
        key = ("params", inner[1])
        if key in parameters.keys:
            return True
    return False


def _towards(reached: dict[Node, Guard], inputs: tuple[Node, ...]) -> dict[Node, Guard]:
    """The part of ``reached`` that lies on a way to one of ``inputs``; only that is walked."""
    wanted = set(inputs)
    parents: dict[Node, list[Node]] = {}
    for node in reached:
        for edge in node.edges:
            parents.setdefault(edge.node, []).append(node)
    on_way: set[Node] = set()
    stack = [node for node in wanted if node in reached]
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in on_way:
                on_way.add(parent)
                stack.append(parent)
    kept = {node: guard for node, guard in reached.items() if node in on_way}
    for node in wanted:
        if node in reached and node.kind == "leaf":
            kept[node] = reached[node]
    return kept
