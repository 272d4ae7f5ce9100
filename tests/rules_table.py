"""The README's table of rules, made from the registry."""

from __future__ import annotations

import re

from gradmend.codemods import registry

TABLE = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- /rules -->)", re.DOTALL)
SAFETY = re.compile(r"\b(?:un)?safe\b", re.IGNORECASE)


def table() -> str:
    """One row for each rule; what a page says under "Fix safety" is told in a word."""
    rows = [
        f"| {rule.code} | {rule.name} | {rule.summary} | {_repair(rule.safety)} |\n"
        for rule in sorted(registry.RULES, key=lambda rule: rule.code)
    ]
    return "| code | name | the mistake | repair |\n| --- | --- | --- | --- |\n" + "".join(rows)


def _repair(safety: str) -> str:
    words = {word.lower() for word in SAFETY.findall(safety)}
    return " or ".join(word for word in ("safe", "unsafe") if word in words) or "none"
