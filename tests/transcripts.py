"""What the README and the pages under ``docs/`` show of the program: found, made again, and written anew.

A transcript is a fenced block below a comment ``<!-- run: gradmend … -->``. A ``console`` block shows the command and
what it prints, any other only what it prints to standard output. Each command starts from fresh samples.

The README's table of rules and the list of keys under ``docs/`` are made from the program too.
``python -m tests.transcripts`` writes all of them as they are now.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gradmend.cli.review_screen import HELP
from tests import rules_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(
    r"^<!-- run: (?P<command>.+?) -->\n```(?P<kind>\w+)\n(?P<text>.*?)(?=^```$)", re.MULTILINE | re.DOTALL
)

KEYS = re.compile(r"^<!-- keys -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Transcript:
    """One fenced block, and the command that it is the transcript of."""

    command: str
    kind: str
    text: str

    def run(self) -> str:
        """What belongs into the block now."""
        arguments = shlex.split(self.command)
        assert arguments[0] == "gradmend"
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "samples", Path(folder) / "samples", ignore=shutil.ignore_patterns("__pycache__"))
            done = subprocess.run(
                [sys.executable, "-m", "gradmend.cli", *arguments[1:]],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if self.kind == "console" else subprocess.PIPE,
                text=True,
            )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{self.command}: exit status {done.returncode}\n{done.stdout}{done.stderr or ''}")
        return f"$ {self.command}\n{done.stdout}" if self.kind == "console" else done.stdout


def find(text: str) -> list[Transcript]:
    """All transcripts of a page."""
    return [Transcript(found["command"], found["kind"], found["text"]) for found in BLOCK.finditer(text)]


def renew(text: str) -> str:
    """The page with every transcript as its command prints it now, and the rules and keys as they are now."""

    def block(found: re.Match[str]) -> str:
        transcript = Transcript(found["command"], found["kind"], found["text"])
        return f"<!-- run: {transcript.command} -->\n```{transcript.kind}\n{transcript.run()}"

    text = rules_table.TABLE.sub(lambda _: rules_table.table(), BLOCK.sub(block, text))
    return KEYS.sub(lambda _: f"<!-- keys -->\n```text\n{HELP}```", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renew(page.read_text(encoding="utf-8")), encoding="utf-8")
