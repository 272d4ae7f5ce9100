"""The README and the pages under ``docs/`` show what is so."""

from __future__ import annotations

import pytest

from gradmend.cli.review_screen import HELP
from tests import rules_table, transcripts

TEXT = transcripts.README.read_text(encoding="utf-8")
TEXTS = [page.read_text(encoding="utf-8") for page in transcripts.PAGES]
TRANSCRIPTS = list(dict.fromkeys(transcript for text in TEXTS for transcript in transcripts.find(text)))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=[transcript.command for transcript in TRANSCRIPTS])
def test_transcript_is_what_the_command_prints(transcript: transcripts.Transcript) -> None:
    assert transcript.run() == transcript.text, "python -m tests.transcripts writes them anew"


def test_table_lists_the_rules() -> None:
    assert rules_table.TABLE.findall(TEXT) == [rules_table.table()], "python -m tests.transcripts writes it anew"


def test_keys_are_those_of_the_review() -> None:
    (keys,) = (found for text in TEXTS for found in transcripts.KEYS.findall(text))
    assert keys == HELP, "python -m tests.transcripts writes them anew"


def test_ci_runs_the_test_command() -> None:
    script = (transcripts.ROOT / ".ci" / "run").read_text(encoding="utf-8").replace("--quiet ", "")
    (line,) = (line for line in TEXT.splitlines() if line.endswith("pytest -q -n auto"))
    for command in line.split(" && "):
        assert f"\n{command}\n" in script
