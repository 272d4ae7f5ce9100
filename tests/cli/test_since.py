from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path) -> Path:
    (folder / "a.py").write_text("leak(x)\na = 1\nb = 2\nc = 3\nd = 4\n")
    (folder / "b.py").write_text("leak(x)\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "start")
    return folder


def found(gradmend: Run, revision: str, *arguments: str) -> list[str]:
    result = gradmend("check", "--since", revision, "--output-format", "concise", *arguments)
    assert result.exit_code < 2, result.stderr
    return [line.split(" ")[0] for line in result.stdout.splitlines()]


def test_nothing_changed_nothing_shown(repository: Path, gradmend: Run) -> None:
    for command in (["check"], ["diff"], ["fix", "--yes"]):
        result = gradmend(*command, "--since", "HEAD")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "No Python file or notebook here has changed since HEAD.\n"


def test_only_what_the_changed_lines_touch(repository: Path, gradmend: Run) -> None:
    (repository / "a.py").write_text("leak(x)\na = 1\nb = 2\nc = 3\nd = 4\nleak(y)\n")
    (repository / "new.py").write_text("leak(x)\n")
    assert found(gradmend, "HEAD") == ["a.py:6:1:", "new.py:1:1:"]


def test_line_deleted_beside_counts(repository: Path, gradmend: Run) -> None:
    (repository / "a.py").write_text("leak(x)\nb = 2\nc = 3\nd = 4\n")
    assert found(gradmend, "HEAD") == ["a.py:1:1:"]


def test_committed_and_staged_changes_count_too(repository: Path, gradmend: Run) -> None:
    (repository / "a.py").write_text("leak(x)\na = 1\nb = 2\nc = 3\nd = 4\nleak(y)\n")
    git(repository, "commit", "-qam", "more")
    (repository / "c.py").write_text("leak(x)\n")
    git(repository, "add", "c.py")
    assert found(gradmend, "HEAD~1") == ["a.py:6:1:", "c.py:1:1:"]
    assert found(gradmend, "HEAD") == ["c.py:1:1:"]


def test_three_dots_mean_the_fork_point(repository: Path, gradmend: Run) -> None:
    git(repository, "checkout", "-qb", "work")
    (repository / "w.py").write_text("leak(x)\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "work")
    git(repository, "checkout", "-q", "main")
    (repository / "b.py").write_text("leak(x)\nz = 1\n")
    git(repository, "commit", "-qam", "main goes on")
    git(repository, "checkout", "-q", "work")
    assert found(gradmend, "main") == ["b.py:1:1:", "w.py:1:1:"]
    assert found(gradmend, "main...") == ["w.py:1:1:"]


def test_fix_mends_only_what_changed(repository: Path, gradmend: Run) -> None:
    text = "p = 0\nq = 0\nleak(x)\na = 1\nb = 2\nc = 3\nd = 4\n"
    (repository / "a.py").write_text(text)
    git(repository, "commit", "-qam", "more")
    (repository / "a.py").write_text("leak(w)\n" + text + "leak(z)\n")
    assert gradmend("fix", "--yes", "--since", "HEAD", "--allow-dirty").exit_code == 0
    assert (repository / "a.py").read_text() == "leak(w.item())\n" + text + "leak(z.item())\n"


def test_crlf_in_the_working_tree_is_no_change(repository: Path, gradmend: Run) -> None:
    (repository / "b.py").write_bytes(b"leak(x)\r\n")
    assert found(gradmend, "HEAD") == []


def test_unknown_revision_is_one_line(repository: Path, gradmend: Run) -> None:
    for revision in ("nonsense", "--output=x", ""):
        result = gradmend("check", f"--since={revision}")
        assert result.exit_code == 2
        assert "--since" in result.stderr
        assert result.stderr.count("\n") == 1


def test_outside_of_git_is_one_line(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    result = gradmend("check", "--since", "HEAD")
    assert result.exit_code == 2
    assert "a.py is in no git working tree" in result.stderr


def test_run_from_a_folder_below(repository: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "n.py").write_text("leak(x)\n")
    (repository / "b.py").write_text("leak(y)\n")
    monkeypatch.chdir(repository / "sub")
    assert found(gradmend, "HEAD") == ["n.py:1:1:"]
    assert found(gradmend, "HEAD", "..") == ["../b.py:1:1:", "../sub/n.py:1:1:"]
