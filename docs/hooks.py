"""Makes the rules' pages while the site is built: each is the docstring of its module, word for word.

A line ``<!-- example: GM101 -->`` on any other page becomes the example of that rule's page, before and after.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import TYPE_CHECKING

from gradmend.codemods.registry import RULES, RuleInfo, page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

EXAMPLE = re.compile(r"^<!-- example: (GM\d{3}) -->$", re.MULTILINE)
BARE_LINK = re.compile(r"^- (https://\S+)", re.MULTILINE)


def pages() -> dict[str, str]:
    """The generated pages: path under ``docs/`` → markdown."""
    made = {_path(rule): BARE_LINK.sub(r"- <\1>", page(rule.code)) for rule in RULES}
    rows = [f"| [{rule.code}]({_path(rule).removeprefix('rules/')}) | {rule.name} | {rule.summary} |" for rule in RULES]
    head = ["# Rules", "", "| code | name | the mistake |", "| --- | --- | --- |"]
    return {"rules/index.md": "\n".join([*head, *rows, ""]), **made}


def with_examples(markdown: str) -> str:
    """``markdown`` with the examples that it asks for."""
    return EXAMPLE.sub(lambda found: _example(found[1]), markdown)


def _example(code: str) -> str:
    rule = next(rule for rule in RULES if rule.code == code)
    tabs = []
    for tab, heading in (("Before", "Example"), ("After", "Use instead")):
        text = page(code).partition(f"\n## {heading}\n")[2].partition("\n## ")[0].strip()
        tabs.append(f'=== "{tab}"\n\n{indent(text, "    ")}\n')
    return "\n".join([*tabs, f"[{rule.name} ({code})](../{_path(rule)}) says the rest."])


def _path(rule: RuleInfo) -> str:
    return f"rules/{rule.name}.md"


# What MkDocs calls ---------------------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> None:
    """Put the rules into the navigation."""
    (rules,) = (entry["Rules"] for entry in config.nav or () if isinstance(entry, dict) and "Rules" in entry)
    rules += [{f"{rule.code} {rule.name}": _path(rule)} for rule in RULES]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages."""
    from mkdocs.structure.files import File

    for path, markdown in pages().items():
        files.append(File.generated(config, path, content=markdown))


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in examples."""
    return with_examples(markdown)
