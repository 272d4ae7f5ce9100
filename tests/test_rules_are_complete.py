"""Every rule is whole: a page with all its parts, an example that is found, a repair, a sample, a name of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradmend import codemods
from gradmend.codemods import registry
from gradmend.codemods.registry import RuleInfo
from tests import runtime

SAMPLES = Path(__file__).parent.parent / "samples"
HEADINGS = [
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "Fix safety",
    "When to leave it",
    "References",
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ABOUT_COMMENTS = "GM001"

every_rule = pytest.mark.parametrize("rule", registry.RULES, ids=[rule.code for rule in registry.RULES])


def part(rule: RuleInfo, heading: str) -> str:
    """What a page says under a heading."""
    return registry.page(rule.code).partition(f"\n## {heading}\n")[2].partition("\n## ")[0].strip()


def snippet(rule: RuleInfo, heading: str) -> str:
    """The code under a heading."""
    (code,) = BLOCK.findall(part(rule, heading) + "\n")
    assert isinstance(code, str)
    return code


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in registry.RULES}) == len(registry.RULES)
    assert len({rule.name for rule in registry.RULES}) == len(registry.RULES)


@every_rule
def test_code_and_name(rule: RuleInfo) -> None:
    assert re.fullmatch(r"GM\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
    # What is wrong, not what to do about it, nor what to use.
    assert not re.match(r"(no|use|avoid|prefer|add|remove|check|fix|detach)-", rule.name)
    assert rule.module.rpartition(".")[2] == rule.name.replace("-", "_")
    assert registry.resolve(rule.name) == registry.resolve(rule.code) == {rule.code}


@every_rule
def test_summary_is_a_line(rule: RuleInfo) -> None:
    assert 0 < len(rule.summary) <= 80
    assert "\n" not in rule.summary
    assert not rule.summary.endswith(".")
    assert "|" not in rule.summary, "it stands in a table"


@every_rule
def test_page_has_all_its_parts(rule: RuleInfo) -> None:
    page = registry.page(rule.code)
    assert page.startswith(f"# {rule.name} ({rule.code})\n")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
    for heading in HEADINGS:
        assert part(rule, heading), f"nothing under {heading}"


@every_rule
def test_references_are_links(rule: RuleInfo) -> None:
    for line in part(rule, "References").splitlines():
        assert re.match(r"- https://\S+( \(.*\))?$", line), line


@every_rule
def test_example_is_found_by_exactly_this_rule(rule: RuleInfo) -> None:
    example = snippet(rule, "Example")
    assert {finding.code for finding in codemods.scan(example)} == {rule.code}
    assert {finding.code for finding in codemods.scan(example, select=frozenset({rule.code}))} == {rule.code}


@every_rule
def test_use_instead_is_clean(rule: RuleInfo) -> None:
    assert codemods.scan(snippet(rule, "Use instead")) == []


@every_rule
def test_what_is_repaired_is_what_to_use_instead(rule: RuleInfo) -> None:
    """Where the repair is safe it makes of the example what the page says."""
    example = snippet(rule, "Example")
    mended = codemods.mend(example).source
    assert mended in (example, snippet(rule, "Use instead"))


def error_of(code: str) -> str | None:
    """What ends a snippet under PyTorch."""
    return runtime.run_source(f"{code}\n\ndef main():\n    pass\n".encode()).error


@every_rule
def test_page_says_what_pytorch_says(rule: RuleInfo) -> None:
    error = error_of(snippet(rule, "Example"))
    assert error is None or " ".join(error.split())[:60] in " ".join(part(rule, "Why is this bad?").split())


@every_rule
def test_use_instead_runs(rule: RuleInfo) -> None:
    assert error_of(snippet(rule, "Use instead")) is None


@every_rule
def test_sample(rule: RuleInfo) -> None:
    sample = SAMPLES / f"{rule.name.replace('-', '_')}.py"
    assert sample.is_file() or rule.code == ABOUT_COMMENTS
