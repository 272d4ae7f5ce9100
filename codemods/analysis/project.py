"""The project's own files: finding what an import names, reading each file at most once.

Installed packages are never read. What an import names and the project does not hold becomes an ``External``.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .heap import MISSING
from .source import Source, SourceError
from .syntax import Syntax
from .values import External, Imported, ModuleValue, Symbol, Value

if TYPE_CHECKING:
    from .expressions import Expressions

LIBRARIES: Final = frozenset(
    {
        "torch", "numpy", "np", "math", "os", "sys", "time", "json", "random", "logging", "argparse", "collections",
        "typing", "functools", "itertools", "dataclasses", "pathlib", "copy", "re", "datetime", "tqdm", "matplotlib",
        "scipy", "sklearn", "pandas", "torchvision", "torchaudio", "transformers", "datasets", "wandb", "tensorboardX",
        "tensorboard", "gym", "gymnasium", "PIL", "cv2", "einops", "accelerate", "lightning", "pytorch_lightning",
        "builtins", "abc", "enum", "contextlib", "warnings", "pickle", "shutil", "subprocess", "glob", "string",
        "types", "inspect", "threading", "multiprocessing", "queue", "io", "csv", "yaml", "h5py", "tensorflow", "jax",
        "pytest", "unittest", "__future__",
    }
)  # fmt: skip
"""Top-level names that are never looked for among the project's files unless the project has a package of that name
beside the importing file."""
MOST_PARENTS: Final = 6
"""How far up from the importing file a package root is looked for."""
MOST_SOURCES: Final = 400
"""So many parsed files are kept; a run over a large tree then forgets them, and parses again what it still needs."""
LARGEST_FILE: Final = 1_000_000
"""Bytes; larger files are data, not code that is imported for its definitions."""

Reader = Callable[[str], bytes | None]


def read_file(path: str) -> bytes | None:
    """The content of ``path``; None where it is no regular, readable file of moderate size."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST_FILE:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


class Project:
    """Finds and parses modules; shared by all files of a run."""

    def __init__(self, reader: Reader | None = read_file) -> None:
        self.reader = reader
        self.sources: dict[str, Source | None] = {}
        self.paths: dict[tuple[str, str], str | None] = {}
        self.syntax = Syntax()
        self._exists: dict[str, bool] = {}
        self.folders: dict[str, dict[str, tuple[frozenset[bytes], bool]]] = {}
        """Of each folder, what its files import."""
        self.scripts: dict[str, tuple[str, ...]] = {}
        """Of each file, the scripts that run it."""
        self.reached: dict[str, frozenset[tuple[str, str]]] = {}
        """Of each script that was run to its end, the functions that it gets to, by file and name."""
        self.importers: dict[str, dict[str, frozenset[str]] | None] = {}
        """Of each top folder, what ``importers`` has found."""

    # -- files -----------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        known = self._exists.get(path)
        if known is None:
            known = self._exists[path] = os.path.isfile(path)
        return known

    def find(self, name: str, importer: str) -> str | None:
        """The file of the module ``name`` as seen from the file ``importer``."""
        if self.reader is None or importer.startswith("<"):
            return None
        folder = os.path.dirname(importer)
        key = (name, folder)
        if key not in self.paths:
            self.paths[key] = self._find(name, folder)
        return self.paths[key]

    def _find(self, name: str, folder: str) -> str | None:
        parts = name.split(".")
        top = parts[0]
        if (top in LIBRARIES or top in sys.stdlib_module_names) and self.exists(os.path.join(folder, "__init__.py")):
            # Inside a package, a file beside that has a library's name is not what `import` finds.
            return None
        level = 0
        while level <= MOST_PARENTS:
            for root in (folder, os.path.join(folder, "src")):
                path = os.path.join(root, *parts)
                if self.exists(path + ".py"):
                    return path + ".py"
                if self.exists(os.path.join(path, "__init__.py")):
                    return os.path.join(path, "__init__.py")
            if top in LIBRARIES:
                return None
            parent = os.path.dirname(folder)
            if parent == folder or os.path.exists(os.path.join(folder, ".git")):
                return None
            folder = parent
            level += 1
        return None

    def relative(self, level: int, name: str, importer: str) -> str | None:
        """The file of ``from ..name import``; without a name, the package itself."""
        if self.reader is None or importer.startswith("<"):
            return None
        folder = os.path.dirname(importer)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        path = os.path.join(folder, *name.split(".")) if name else folder
        if name and self.exists(path + ".py"):
            return path + ".py"
        package = os.path.join(path, "__init__.py")
        return package if self.exists(package) else None

    def source(self, path: str) -> Source | None:
        """The source in ``path``, None where it cannot be read or parsed. Each file is parsed at most once."""
        if path not in self.sources:
            if len(self.sources) >= MOST_SOURCES:
                self.sources.clear()
                self.syntax.clear()
            self.sources[path] = self._parse(path)
        return self.sources[path]

    def _parse(self, path: str) -> Source | None:
        raw = self.reader(path) if self.reader else None
        if raw is None:
            return None
        try:
            source = Source.from_bytes(raw, path)
            _ = source.tree
        except SourceError:
            return None
        return source

    def overlaid(self, changed: dict[str, Source]) -> Project:
        """The same project with other contents of some files."""
        if not changed:
            return self
        other = Project(self.reader)
        other.sources = {**self.sources, **changed}
        other.paths = self.paths
        other._exists, other.syntax = self._exists, self.syntax
        other.folders, other.scripts, other.reached = self.folders, self.scripts, self.reached
        other.importers = self.importers
        return other

    # -- what the interpreter asks ---------------------------------------------------------------------------------

    def load(self, machine: Expressions, path: str, name: str) -> ModuleValue | None:
        """The module in ``path``; its definitions are made when something is asked of it."""
        module = machine.modules.get(path)
        if module is None:
            source = self.source(path)
            if source is None:
                return None
            module = ModuleValue(name, path, source.tree)
            machine.modules[path] = module
        return module

    def import_module(self, machine: Expressions, name: str, alias: str | None) -> None:
        """``import name as alias``"""
        importer = machine.frame.module.filename
        wanted = name if alias else name.partition(".")[0]
        machine.store_name(alias or wanted, self.named(machine, wanted, importer))

    def named(self, machine: Expressions, name: str, importer: str) -> Value:
        path = self.find(name, importer)
        module = self.load(machine, path, name) if path and os.path.abspath(path) != os.path.abspath(importer) else None
        return module if module is not None else External(name)

    def import_from(self, machine: Expressions, statement: ast.ImportFrom) -> None:
        """``from module import a, b as c, *``"""
        importer = machine.frame.module.filename
        name = statement.module or ""
        if statement.level:
            path = self.relative(statement.level, name, importer)
            dotted = "." * statement.level + name
        else:
            path, dotted = self.find(name, importer), name
        module = self.load(machine, path, name) if path else None
        for alias in statement.names:
            value: Value
            if path and path == importer and alias.name == (alias.asname or alias.name):
                # A file that imports from itself: the name is what it is already.
                continue
            if alias.name == "*":
                self._star(machine, module, dotted)
                continue
            if module is not None:
                value = Imported(module, alias.name)
            else:
                value = self._member(machine, None, alias.name, dotted, statement.level, importer)
            machine.store_name(alias.asname or alias.name, value)

    def member(self, machine: Expressions, module: ModuleValue, name: str) -> Value:
        """``name`` of a module of the project."""
        return self._member(machine, module, name, module.name, 0, module.filename)

    def _member(
        self, machine: Expressions, module: ModuleValue | None, name: str, dotted: str, level: int, importer: str
    ) -> Value:
        if module is not None:
            found = machine.global_name(module, name)
            if found is not MISSING:
                return found
            inner = self.submodule(machine, module, name)
            if inner is not None:
                return inner
            return Symbol(("global", module.filename, name))
        if level:
            path = self.relative(level, f"{dotted.lstrip('.')}.{name}".strip("."), importer)
            inner = self.load(machine, path, name) if path else None
            if inner is not None:
                return inner
        else:
            path = self.find(f"{dotted}.{name}", importer)
            inner = self.load(machine, path, name) if path else None
            if inner is not None:
                return inner
        return External(f"{dotted}.{name}")

    def _star(self, machine: Expressions, module: ModuleValue | None, dotted: str) -> None:
        if module is None:
            for name in STAR_NAMES.get(dotted, ()):
                machine.store_name(name, External(f"{dotted}.{name}"))
            return
        frame = machine.module_frame(module)
        for star in (module.pending or {}).pop("*", []):
            machine.define(frame, [star])
        for name in [*frame.slots, *(module.pending or {})]:
            if not name.startswith("_"):
                machine.store_name(name, Imported(module, name))

    def submodule(self, machine: Expressions, module: ModuleValue, name: str) -> ModuleValue | None:
        """``package.name`` where that is a file of the package."""
        if os.path.basename(module.filename) != "__init__.py":
            return None
        path = os.path.join(os.path.dirname(module.filename), name)
        for candidate in (path + ".py", os.path.join(path, "__init__.py")):
            if self.exists(candidate):
                return self.load(machine, candidate, f"{module.name}.{name}")
        return None

    def external_attribute(self, machine: Expressions, receiver: External, name: str) -> Value:
        dotted = f"{receiver.dotted}.{name}"
        if not receiver.dotted.startswith(("torch", "builtins", ".")):
            path = self.find(dotted, machine.frame.module.filename) if self._may_hold(receiver, machine) else None
            module = self.load(machine, path, dotted) if path else None
            if module is not None:
                return module
        return External(canonical(dotted))

    def _may_hold(self, receiver: External, machine: Expressions) -> bool:
        """Whether the name is a package folder of the project without an ``__init__``."""
        top = receiver.dotted.partition(".")[0]
        folder = os.path.dirname(machine.frame.module.filename)
        return top not in LIBRARIES and os.path.isdir(os.path.join(folder, top))


STAR_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "torch": ("nn", "optim", "autograd", "no_grad", "tensor", "zeros", "ones", "randn", "cat", "stack"),
    "torch.autograd": ("Variable", "grad", "backward", "Function"),
    "torch.nn": ("Module", "Linear", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "Sequential", "ModuleList",
                 "Parameter", "functional", "Conv1d", "Conv2d", "Conv3d", "Embedding", "Dropout", "ReLU", "Tanh",
                 "Sigmoid", "BatchNorm1d", "BatchNorm2d", "LayerNorm", "CrossEntropyLoss", "MSELoss", "BCELoss",
                 "NLLLoss", "L1Loss", "init", "utils"),
    "torch.optim": ("Adam", "SGD", "RMSprop", "AdamW", "Adagrad", "LBFGS", "lr_scheduler"),
}  # fmt: skip
"""What a star import of a part of torch binds, as far as this analysis needs it."""

ALIASES: Final[dict[str, str]] = {
    "torch.nn.modules.module.Module": "torch.nn.Module",
    "torch.nn.Variable": "torch.autograd.Variable",
    "torch.Variable": "torch.autograd.Variable",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.nn.functional.grad": "torch.autograd.grad",
    "torch.optim.optimizer.Optimizer": "torch.optim.Optimizer",
}
"""Other names of the same thing."""


def canonical(dotted: str) -> str:
    """The name under which the tables know ``dotted``."""
    return ALIASES.get(dotted, dotted)
