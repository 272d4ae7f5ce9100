"""The README says what is so."""

from __future__ import annotations

import pytest

from gradmend.codemods import registry
from tests import transcripts

TEXT = transcripts.README.read_text(encoding="utf-8")
TRANSCRIPTS = transcripts.find(TEXT)


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=[transcript.command for transcript in TRANSCRIPTS])
def test_transcript_is_what_the_command_prints(transcript: transcripts.Transcript) -> None:
    assert transcript.run() == transcript.text, "python -m tests.transcripts writes them anew"


def test_every_rule_has_its_row() -> None:
    table = [line.split("|") for line in TEXT.splitlines() if line.startswith("| GM")]
    rows = {(code.strip(), name.strip()) for _, code, name, *_ in table}
    assert rows >= {(rule.code, rule.name) for rule in registry.RULES}


def test_ci_runs_the_test_command() -> None:
    script = (transcripts.ROOT / ".ci" / "run").read_text(encoding="utf-8").replace("--quiet ", "")
    (line,) = (line for line in TEXT.splitlines() if line.endswith("pytest -q -n auto"))
    for command in line.split(" && "):
        assert f"\n{command}\n" in script
