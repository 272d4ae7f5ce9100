"""Every codemod as a command of ``libcst.tool``, named as its rule is, in capitals: ``CarriedHiddenState``.

    python -m libcst.tool codemod -x gradmend.codemods.libcst_commands.CarriedHiddenState --no-format FILE_OR_FOLDER

``-x`` says that the name is a module's own, and ``--no-format`` keeps ``libcst.tool`` from handing the whole file to a
formatter; ``-u 3`` before the path shows a diff and writes nothing. The repairs are those of ``gradmend fix``, proved
like them, one file at a time: one that would change two files at once is left to ``gradmend fix``. What is found and
not mended is a warning.

Nothing else imports this module, since importing ``libcst.codemod`` takes longer than most runs of gradmend.
"""

from __future__ import annotations

import argparse
from typing import ClassVar

import libcst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from . import registry
from .analysis.project import Project
from .analysis.source import SourceError
from .api import Mended, mend


class RuleCommand(CodemodCommand):
    """Mends the findings of one rule; the rules' own commands are made from this one."""

    CODE: ClassVar[str]

    def __init__(self, context: CodemodContext, unsafe: bool = False) -> None:
        super().__init__(context)
        self._unsafe = unsafe

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Adds ``--unsafe`` to the command line of ``libcst.tool``."""
        arg_parser.add_argument(
            "--unsafe", action="store_true", help="apply repairs whose author may have meant otherwise, too"
        )

    def transform_module_impl(self, tree: libcst.Module) -> libcst.Module:
        """The module with all proved repairs of the rule; ``SkipFile`` where gradmend cannot read it."""
        try:
            mended = self._mended(tree.code, Project())
            if mended.others:
                mended = self._mended(tree.code, Project(None))
        except SourceError as error:
            raise SkipFile(str(error)) from None
        for finding in mended.left:
            self.warn(f"line {finding.span.row}, column {finding.span.column}: {finding.code} {finding.message}")
        if mended.source == tree.code:
            return tree
        return libcst.parse_module(mended.source, tree.config_for_parsing)

    def _mended(self, code: str, project: Project) -> Mended[str]:
        filename = self.context.filename or "<string>"
        return mend(code, filename, unsafe=self._unsafe, select=frozenset({self.CODE}), project=project)


def _command(rule: registry.RuleInfo) -> type[RuleCommand]:
    name = "".join(word.capitalize() for word in rule.name.split("-"))
    # Worker processes find the class by its module and name.
    members = {"CODE": rule.code, "DESCRIPTION": f"{rule.code}: {rule.summary}", "__doc__": rule.summary}
    return type(name, (RuleCommand,), {**members, "__module__": __name__})


COMMANDS: dict[str, type[RuleCommand]] = {rule.code: _command(rule) for rule in registry.RULES}
"""The command of each rule, by its code."""

globals().update((command.__name__, command) for command in COMMANDS.values())
