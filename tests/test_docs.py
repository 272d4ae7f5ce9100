"""The pages under ``docs/``: what they say of PyTorch and of gradmend is so, and the rules' pages are made for them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gradmend import codemods
from gradmend.codemods import registry
from tests.test_rules_are_complete import error_of, snippet

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ERRORS = sorted((DOCS / "errors").glob("*.md"))
SNIPPET = re.compile(r'^```python title="(fails|works)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)")


def _hooks() -> ModuleType:
    found = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


HOOKS = _hooks()
pages: Callable[[], dict[str, str]] = HOOKS.pages
each_error_page = pytest.mark.parametrize("path", ERRORS, ids=[path.stem for path in ERRORS])


def title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def test_every_rule_has_its_page() -> None:
    made = pages()
    for rule in registry.RULES:
        assert made[f"rules/{rule.name}.md"].startswith(registry.page(rule.code).partition("## References")[0])
        assert f"({rule.name}.md)" in made["rules/index.md"]


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    text = HOOKS.with_examples(path.read_text(encoding="utf-8"))
    assert "<!-- example" not in text
    for target in LINK.findall(text):
        if not target.startswith("https://"):
            page = (path.parent / target).resolve()
            assert page.is_file() or page.relative_to(DOCS).as_posix() in pages(), target


@each_error_page
def test_examples_give_this_very_error(path: Path) -> None:
    codes = HOOKS.EXAMPLE.findall(path.read_text(encoding="utf-8"))
    assert codes
    for code in codes:
        rule = next(rule for rule in registry.RULES if rule.code == code)
        assert title(path) in (error_of(snippet(rule, "Example")) or "")


@each_error_page
def test_snippets(path: Path) -> None:
    for kind, code in SNIPPET.findall(path.read_text(encoding="utf-8")):
        error = error_of(code)
        if kind == "fails":
            assert title(path) in (error or "")
        else:
            assert error is None
            assert codemods.scan(code) == []


@each_error_page
def test_message_is_quoted_as_pytorch_words_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    quoted = " ".join(line.removeprefix("> ") for line in text.splitlines() if line.startswith("> "))
    code = HOOKS.EXAMPLE.findall(text)[0]
    error = error_of(snippet(next(rule for rule in registry.RULES if rule.code == code), "Example"))
    assert error is not None
    # The tail of the hint depends on settings.
    assert error.startswith(quoted.removesuffix(" ...)."))


def test_what_gradmend_is_said_not_to_find() -> None:
    text = (DOCS / "errors" / "no-grad-fn.md").read_text(encoding="utf-8")
    found, unfound = text.split("## What gradmend does not find")
    assert [codemods.scan(code) for kind, code in SNIPPET.findall(unfound) if kind == "fails"] == [[]]
    for kind, code in SNIPPET.findall(found):
        assert [finding.code for finding in codemods.scan(code)] == (["GM306"] if kind == "fails" else [])
