"""The review on a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no pseudo-terminal there")

ROOT = Path(__file__).parents[2]
# The size is the terminal's own.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
ENVIRONMENT["PYTHONPATH"] = str(ROOT)
PROMPT = r"\]\? "
Review = Callable[..., Any]


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    """Start ``gradmend review`` on the toy core in a terminal of its own."""
    children = []

    def start(*arguments: str, columns: int = 90, module: str = "tests.cli.fake_core", **environment: str) -> Any:
        child = pexpect.spawn(
            sys.executable,
            ["-m", module, "review", *arguments],
            cwd=str(tmp_path),
            env={**ENVIRONMENT, "TERM": "xterm", "NO_COLOR": "1", **environment},
            dimensions=(40, columns),
            encoding="utf-8",
            timeout=20,
        )
        child.delaybeforesend = None
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def answer(child: Any, key: str) -> str:
    """Wait for the question, give the answer; gives what was shown before it."""
    child.expect(PROMPT)
    shown: str = child.before
    child.send(key)
    return shown.replace("\r\n", "\n")


def end(child: Any) -> tuple[str, int]:
    """What was shown last, and the exit status."""
    child.expect(pexpect.EOF)
    child.close()
    return child.before.replace("\r\n", "\n"), child.exitstatus


def put(folder: Path, **contents: str) -> None:
    for name, content in contents.items():
        (folder / f"{name}.py").write_text(content)


def test_yes_and_no(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\nleak(z)\n")
    child = review()
    first = answer(child, "y")
    assert "1 of 3" in first
    assert "safe repair 1 of 2" in first
    assert "GM102 [*] accumulated-loss: `x` leaks" in first
    assert "1 + leak(x.item())" in first
    assert "2 of 3" in answer(child, "n")
    assert "3 of 3" in answer(child, "y")
    shown, status = end(child)
    assert "2 applied, 1 skipped in 1 file; `git diff` shows them.\n" in shown
    assert status == 1
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nleak(y)\nleak(z.item())\n"


def test_all_applied_is_0(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review()
    answer(child, "y")
    assert end(child)[1] == 0


def test_enter_applies_a_safe_repair_and_never_an_unsafe_one(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nmaybe(x)\n")
    child = review()
    assert "[Y,n,a" in answer(child, "\r")
    assert "unsafe repair" in answer(child, "\r")
    assert "1 applied, 1 skipped" in end(child)[0]
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nmaybe(x)\n"


def test_file_is_written_when_it_is_left_and_not_before(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\n", b="leak(x)\n")
    child = review()
    answer(child, "y")
    child.expect(PROMPT)
    assert (tmp_path / "a.py").read_text() == "leak(x)\nleak(y)\n"
    child.send("n")
    child.expect(PROMPT)
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nleak(y)\n"


def test_d_leaves_the_file_and_keeps_what_was_accepted(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\nleak(z)\n", b="leak(x)\n")
    child = review()
    answer(child, "y")
    answer(child, "d")
    assert "4 of 4" in answer(child, "y")
    assert "2 applied, 2 left undecided in 2 files" in end(child)[0]
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nleak(y)\nleak(z)\n"
    assert (tmp_path / "b.py").read_text() == "leak(x.item())\n"


@pytest.mark.parametrize(("key", "status"), [("q", 1), ("\x03", 130), ("\x04", 1)])
def test_q_and_ctrl_c_keep_what_was_accepted_and_nothing_else(
    tmp_path: Path, review: Review, key: str, status: int
) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\n", b="leak(x)\n")
    child = review()
    answer(child, "y")
    answer(child, key)
    shown, left_with = end(child)
    assert "1 applied, 2 left undecided in 1 file" in shown
    assert left_with == status
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nleak(y)\n"
    assert (tmp_path / "b.py").read_text() == "leak(x)\n"


def test_a_applies_the_rest_of_the_rule_in_this_file(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nmaybe(x)\nleak(y)\nleak(z)\n", b="leak(x)\n")
    child = review()
    answer(child, "a")
    shown = answer(child, "n")
    assert "Applied 3 repairs." in shown
    assert "maybe(x)" in shown
    assert "b.py" in answer(child, "q")
    end(child)
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nmaybe(x)\nleak(y.item())\nleak(z.item())\n"


def test_u_takes_the_last_decision_back(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\nleak(z)\n")
    child = review()
    answer(child, "u")
    assert "Nothing to undo in this file." in answer(child, "y")
    answer(child, "n")
    assert "3 of 3" in answer(child, "u")
    assert "2 of 3" in answer(child, "u")
    assert "1 of 3" in answer(child, "n")
    answer(child, "y")
    answer(child, "q")
    end(child)
    assert (tmp_path / "a.py").read_text() == "leak(x)\nleak(y.item())\nleak(z)\n"


def test_j_and_k_move_and_come_back_to_what_is_undecided(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\nleak(z)\n")
    child = review()
    assert "1 of 3" in answer(child, "j")
    assert "2 of 3" in answer(child, "j")
    assert "3 of 3" in answer(child, "j")
    assert "last finding of this file" in answer(child, "k")
    assert "2 of 3" in answer(child, "y")
    assert "3 of 3" in answer(child, "n")
    assert "`x` leaks" in answer(child, "\x1b[B")
    assert "skipped before" in answer(child, "\x1b[A")
    answer(child, "y")
    assert end(child)[1] == 1
    assert (tmp_path / "a.py").read_text() == "leak(x.item())\nleak(y.item())\nleak(z)\n"


def test_tab_shows_the_next_way_to_repair(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review()
    assert "leak(x.item())" in answer(child, "\t")
    shown = answer(child, "\t")
    assert "safe repair 2 of 2" in shown
    assert "leak(x.detach())" in shown
    assert "leak(x.item())" in answer(child, "\x1b[Z")
    answer(child, "y")
    end(child)
    assert (tmp_path / "a.py").read_text() == "leak(x.detach())\n"


def test_s_writes_a_suppression_with_its_reason(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n    \nleak(y)\n")
    child = review()
    answer(child, "s")
    child.expect("Reason")
    child.sendline("kept on purpose")
    assert "2 of 2" in answer(child, "s")
    child.expect("Reason")
    child.sendline("")
    shown, status = end(child)
    assert "2 suppressed in 1 file" in shown
    assert status == 0
    assert (tmp_path / "a.py").read_text() == (
        "# gradmend: ignore[GM102] kept on purpose\nleak(x)\n    \n# gradmend: ignore[GM102]\nleak(y)\n"
    )


def editor(folder: Path, *script: str) -> str:
    """An editor that does what ``script`` (sed's) says and notes its arguments."""
    path = folder / "edit.sh"
    steps = "\n".join(script)
    path.write_text(f'#!/bin/sh\nprintf "%s " "$@" >> {folder}/arguments\n{steps}\n')
    path.chmod(0o755)
    return str(path)


def test_e_edits_by_hand_and_looks_again(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="x = 1\nleak(x)\nleak(y)\n")
    child = review(EDITOR=editor(tmp_path, 'sed -i "s/leak(x)/fine(x)/" "$2"'))
    answer(child, "e")
    shown = answer(child, "n")
    assert "Analysed again: 2 findings before, 1 now." in shown
    assert "`y` leaks" in shown
    assert "1 edited, 1 skipped in 1 file" in end(child)[0]
    assert (tmp_path / "a.py").read_text() == "x = 1\nfine(x)\nleak(y)\n"
    assert re.match(r"\+2 .*/a\.py ", (tmp_path / "arguments").read_text())


def test_e_that_breaks_the_file_is_not_taken_and_can_be_gone_on_with(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review(VISUAL=editor(tmp_path, 'sed -i "s/^leak/((leak/" "$2"'))
    answer(child, "e")
    assert "Your text line 1 does not parse" in answer(child, "e")
    child.expect(r"\(\(\(\(leak|\]\? ")
    child.send("q")
    end(child)
    assert (tmp_path / "a.py").read_text() == "leak(x)\n"


@pytest.mark.parametrize(
    ("script", "said"), [(":", "Nothing was changed."), ("exit 3", "The editor ended with status 3")]
)
def test_e_that_changes_nothing(tmp_path: Path, review: Review, script: str, said: str) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review(EDITOR=editor(tmp_path, script))
    answer(child, "e")
    assert said in answer(child, "q")
    end(child)


def test_e_without_an_editor(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review(EDITOR="no-such-editor")
    answer(child, "e")
    assert "The editor cannot be run" in answer(child, "q")
    end(child)


def test_e_edits_a_notebooks_cell_alone(tmp_path: Path, review: Review) -> None:
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {
        "cells": [{**cell, "source": ["%time\n", "leak(x)"]}, {**cell, "source": ["ok = 1"]}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook, indent=1))
    child = review(EDITOR=editor(tmp_path, 'sed -i "s/leak(x)/fine(x)/" "$2"'))
    assert "n.ipynb:cell 1:2:1" in answer(child, "e")
    assert "1 edited in 1 file" in end(child)[0]
    cells = json.loads((tmp_path / "n.ipynb").read_text())["cells"]
    assert cells[0]["source"] == ["%time\n", "fine(x)"]
    assert "n-cell-1.py" in (tmp_path / "arguments").read_text()


def test_finding_without_a_repair_is_shown_and_can_be_left(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="hopeless(x)\n")
    child = review()
    assert "No repair is offered here" in answer(child, "y")
    assert "There is no repair to apply here" in answer(child, "\r")
    assert "1 skipped" in end(child)[0]


def test_help_lists_the_keys(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review()
    answer(child, "?")
    shown = answer(child, "q")
    for key in ("y ", "n ", "a ", "d ", "e ", "s ", "u ", "j k", "Tab", "q ", "?"):
        assert re.search(rf"^{re.escape(key)}", shown, re.MULTILINE), key
    end(child)


def test_keys_typed_ahead_are_not_lost(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\nleak(y)\nleak(z)\n")
    child = review()
    answer(child, "yny")
    assert "2 applied, 1 skipped" in end(child)[0]


def test_file_changed_by_someone_else_is_left_alone(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    child = review()
    child.expect(PROMPT)
    put(tmp_path, a="leak(x)\n# somebody's\n")
    child.send("y")
    shown, status = end(child)
    assert "error: a.py: has changed since it was read" in shown
    assert status == 2
    assert (tmp_path / "a.py").read_text() == "leak(x)\n# somebody's\n"


def test_broken_file_is_told_and_the_others_are_reviewed(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(\n", b="leak(x)\n")
    child = review()
    assert "error: a.py: " in answer(child, "y")
    assert end(child)[1] == 2
    assert (tmp_path / "b.py").read_text() == "leak(x.item())\n"


def test_nothing_to_review(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="x = 1\n")
    shown, status = end(review())
    assert shown == "No findings in 1 file.\n"
    assert status == 0


def test_narrow_terminal(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="for every_single_item in a_rather_long_name_of_a_loader:\n    z = 1\n    leak(x)\n")
    child = review(columns=40)
    shown = answer(child, "q")
    end(child)
    # Whole stay what has to be read whole: the message, the changed lines and the question.
    drawing = shown[shown.index("-->") : shown.index("safe repair:")]
    assert max(len(line) for line in drawing.splitlines()) <= 40


def test_no_escape_sequences_without_colour_and_some_with(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="# \x1b[2J\nleak(x)\n")
    child = review()
    assert "\x1b" not in answer(child, "q")
    end(child)
    child = review(NO_COLOR="", FORCE_COLOR="1")
    shown = answer(child, "q")
    assert "\x1b[" in shown
    assert "\x1b[2J" not in shown
    end(child)


def test_plain_speaks_in_sentences_and_takes_lines(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="z = 1\nleak(x)\nleak(y)\n")
    child = review("--plain")
    shown = answer(child, "y\n")
    for sentence in (
        "Finding 1 of 2, GM102 accumulated-loss, safe repair 1 of 2.",
        "File a.py, line 2.",
        "Iteration 1: line 2 records: recorded here.",
        "Remove line 2: leak(x)",
        "Add line 2: leak(x.item())",
    ):
        assert sentence in shown
    assert not set(shown) & set("|^─●┐")
    answer(child, "\n")
    end(child)
    assert (tmp_path / "a.py").read_text() == "z = 1\nleak(x.item())\nleak(y.item())\n"


def test_terminal_is_as_it_was_afterwards(tmp_path: Path, review: Review) -> None:
    put(tmp_path, a="leak(x)\n")
    script = f"trap : INT; stty -a > before; {sys.executable} -m tests.cli.fake_core review; stty -a > after"
    child = pexpect.spawn(
        "/bin/sh",
        ["-c", script],
        cwd=str(tmp_path),
        env=ENVIRONMENT,
        encoding="utf-8",
        timeout=20,
    )
    answer(child, "\x03")
    end(child)
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


def test_without_a_terminal_one_line_names_the_batch_commands(tmp_path: Path) -> None:
    put(tmp_path, a="leak(x)\n")
    result = subprocess.run(
        [sys.executable, "-m", "tests.cli.fake_core", "review"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "gradmend fix --yes" in result.stderr


def test_real_analysis_on_a_sample(tmp_path: Path, review: Review) -> None:
    sample = ROOT / "samples" / "accumulated_loss.py"
    (tmp_path / "train.py").write_bytes(sample.read_bytes())
    child = review("train.py", module="gradmend.cli")
    shown = answer(child, "a")
    assert "GM102" in shown
    assert "iteration 1" in shown
    assert "applied in 1 file" in end(child)[0]
    assert "running_loss += loss.item()" in (tmp_path / "train.py").read_text()
