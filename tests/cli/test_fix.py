from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run

LEAK = "for x in y:\n    z = 1\n    leak(x)\n"
MENDED = "for x in y:\n    z = 1\n    leak(x.item())\n"


def test_without_a_terminal_and_without_yes_it_writes_nothing_and_says_so(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    result = gradmend("fix")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--yes" in result.stderr
    assert (folder / "a.py").read_text() == LEAK


def test_yes_mends_and_is_0_when_nothing_is_left(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    result = gradmend("fix", "--yes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Mended 1 finding in 1 file.\n     1  GM102 accumulated-loss\n"
    assert (folder / "a.py").read_text() == MENDED
    again = gradmend("fix", "--yes")
    assert (again.exit_code, again.stderr) == (0, "Nothing to mend in 1 file.\n")


def test_what_is_left_is_listed_and_is_1(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\nmaybe(x)\nhopeless(x)\n")
    result = gradmend("fix", "--yes")
    assert result.exit_code == 1
    assert result.stdout == "a.py:2:1: GM101 [*] `x` leaks\na.py:3:1: GM501 `x` leaks\n"
    assert (folder / "a.py").read_text() == "leak(x.item())\nmaybe(x)\nhopeless(x)\n"


@pytest.mark.parametrize("flag", ["--unsafe", "--unsafe-fixes"])
def test_unsafe_repairs_need_the_flag(folder: Path, gradmend: Run, flag: str) -> None:
    (folder / "a.py").write_text("maybe(x)\n")
    assert gradmend("fix", "--yes").exit_code == 1
    assert gradmend("fix", "--yes", flag).exit_code == 0
    assert (folder / "a.py").read_text() == "maybe(x.item())\n"


def test_summary_counts_by_rule_and_by_file(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\nleak(y)\n")
    (folder / "b.py").write_text("leak(x)\nmaybe(y)\n")
    assert gradmend("fix", "--yes", "--unsafe").stderr == (
        "Mended 4 findings in 2 files.\n"
        "     1  GM101 carried-hidden-state\n"
        "     3  GM102 accumulated-loss\n"
        "\n"
        "     2  a.py\n"
        "     2  b.py\n"
    )


def test_broken_file_is_2_and_the_others_are_mended(folder: Path, gradmend: Run) -> None:
    (folder / "bad.py").write_text("leak(x\n")
    (folder / "good.py").write_text(LEAK)
    assert gradmend("fix", "--yes").exit_code == 2
    assert (folder / "bad.py").read_text() == "leak(x\n"
    assert (folder / "good.py").read_text() == MENDED


def test_check_fix_is_ruffs_spelling(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    assert gradmend("check", "--fix").exit_code == 0
    assert (folder / "a.py").read_text() == MENDED


def test_ruffs_exit_flags(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\nhopeless(x)\n")
    result = gradmend("check", "--fix", "--fix-only", "--show-fixes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "mended a.py:1:1: GM102" in result.stderr
    (folder / "a.py").write_text("leak(x)\n")
    assert gradmend("check", "--fix", "--exit-non-zero-on-fix").exit_code == 1


def test_line_ends_bom_and_encoding_stay(folder: Path, gradmend: Run) -> None:
    (folder / "crlf.py").write_bytes(b"\xef\xbb\xbfx = 1\r\nleak(x)\r\n")
    (folder / "latin.py").write_bytes(b"# coding: latin-1\n# \xe9\nleak(x)\n")
    assert gradmend("fix", "--yes").exit_code == 0
    assert (folder / "crlf.py").read_bytes() == b"\xef\xbb\xbfx = 1\r\nleak(x.item())\r\n"
    assert (folder / "latin.py").read_bytes() == b"# coding: latin-1\n# \xe9\nleak(x.item())\n"


def test_standard_input_gives_the_mended_source(gradmend: Run) -> None:
    result = gradmend("fix", "-", "--stdin-filename", "a.py", given=b"x = 1\r\nleak(x)\r\n")
    assert (result.exit_code, result.stdout_bytes) == (0, b"x = 1\r\nleak(x.item())\r\n")
    result = gradmend("fix", "-", given="hopeless(x)\n")
    assert (result.exit_code, result.stdout) == (1, "hopeless(x)\n")
    assert "GM501" in result.stderr
    result = gradmend("check", "--fix", "-", given="nothing = 1\n")
    assert (result.exit_code, result.stdout) == (0, "nothing = 1\n")


def test_standard_input_that_does_not_parse_prints_no_source(gradmend: Run) -> None:
    result = gradmend("fix", "-", given="leak(x\n")
    assert (result.exit_code, result.stdout) == (2, "")


class TestUncommittedChanges:
    @pytest.fixture
    def repository(self, folder: Path) -> Path:
        (folder / "a.py").write_text(LEAK)
        (folder / "b.py").write_text("x = 1\n")
        self.git(folder, "init", "-q")
        self.git(folder, "add", ".")
        self.git(folder, "commit", "-qm", "start")
        return folder

    @staticmethod
    def git(folder: Path, *words: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)

    def test_file_to_be_written_that_is_dirty_stops_the_run(self, repository: Path, gradmend: Run) -> None:
        (repository / "a.py").write_text(LEAK + "# mine\n")
        result = gradmend("fix", "--yes")
        assert result.exit_code == 2
        assert "unstaged changes in a.py" in result.stderr
        assert (repository / "a.py").read_text() == LEAK + "# mine\n"
        assert gradmend("fix", "--yes", "--allow-dirty").exit_code == 0
        assert (repository / "a.py").read_text() == MENDED + "# mine\n"

    def test_other_files_may_be_dirty(self, repository: Path, gradmend: Run) -> None:
        (repository / "b.py").write_text("x = 2\n")
        assert gradmend("fix", "--yes").exit_code == 0

    def test_staged_changes_are_safe_in_the_index(self, repository: Path, gradmend: Run) -> None:
        (repository / "a.py").write_text(LEAK + "# mine\n")
        self.git(repository, "add", "a.py")
        assert gradmend("fix", "--yes").exit_code == 0

    def test_untracked_file_does_not_count(self, repository: Path, gradmend: Run) -> None:
        (repository / "new.py").write_text(LEAK)
        assert gradmend("fix", "--yes", "new.py").exit_code == 0

    def test_repository_cannot_run_a_program(self, repository: Path, gradmend: Run) -> None:
        witness = repository / "witness"
        script = repository / "evil.sh"
        script.write_text(f"#!/bin/sh\ntouch {witness}\ncat\n")
        script.chmod(0o755)
        for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.external", "diff.evil.textconv"):
            self.git(repository, "config", key, str(script))
        (repository / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
        (repository / "a.py").write_text(LEAK + "# mine\n")
        gradmend("fix", "--yes")
        gradmend("check", "--since", "HEAD")
        assert not witness.exists()

    @pytest.mark.parametrize("url", ["ext::{script}", "{folder}"])
    def test_partial_clone_fetches_nothing_by_a_program_of_its_own(
        self, repository: Path, gradmend: Run, url: str
    ) -> None:
        witness = repository / "witness"
        script = repository / "evil.sh"
        script.write_text(f"#!/bin/sh\ntouch {witness}\n")
        script.chmod(0o755)
        for path in (repository / ".git" / "objects").glob("??/*"):
            if self.kind(repository, path.parent.name + path.name) == "blob":
                path.unlink()
        for key, value in {
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "origin",
            "protocol.ext.allow": "always",
            "protocol.file.allow": "always",
            "remote.origin.promisor": "true",
            "remote.origin.uploadpack": str(script),
            "remote.origin.url": url.format(script=script, folder=repository),
        }.items():
            self.git(repository, "config", key, value)
        (repository / "a.py").write_text(LEAK + "# mine\n")
        result = gradmend("check", "--since", "HEAD")
        assert result.exit_code == 2
        assert gradmend("fix", "--yes").exit_code == 2
        assert not witness.exists()

    @staticmethod
    def kind(folder: Path, name: str) -> str:
        done = subprocess.run(["git", "cat-file", "-t", name], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def test_many_files_and_odd_names(self, repository: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gradmend.cli.git.MOST_NAMES", 1)
        for name in ("é.py", "*.py", "new\nline.py", ":(glob)x.py"):
            (repository / name).write_text(LEAK)
        self.git(repository, "add", ".")
        assert gradmend("fix", "--yes").exit_code == 0
        for path in repository.glob("*.py"):
            path.write_text(LEAK + "# mine\n")
        said = gradmend("fix", "--yes").stderr
        assert "unstaged changes in *.py, :(glob)x.py, a.py, b.py, new\\nline.py and 1 more" in said

    def test_hook_of_another_repository(self, repository: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_DIR", "/nowhere/.git")
        (repository / "a.py").write_text(LEAK + "# mine\n")
        assert gradmend("fix", "--yes").exit_code == 2


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("path", ["link", "link/a.py", "far.py"])
def test_way_through_a_link_out_of_the_tree_is_read_and_not_written(
    folder: Path, gradmend: Run, tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.py").write_text(LEAK)
    (folder / "link").symlink_to(outside)
    (folder / "far.py").symlink_to(outside / "a.py")
    assert gradmend("check", path).exit_code == 1
    result = gradmend("fix", "--yes", path)
    assert result.exit_code == 2
    assert f"leads out of the tree by a link; name {outside}/a.py" in result.stderr
    assert (outside / "a.py").read_text() == LEAK
    assert gradmend("fix", "--yes", str(outside / "a.py")).exit_code == 0


def test_read_only_file_is_left_and_told(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    (folder / "b.py").write_text(LEAK)
    (folder / "a.py").chmod(0o444)
    result = gradmend("fix", "--yes")
    assert result.exit_code == 2
    assert "error: a.py: is read-only, left as it is\n" in result.stderr
    assert "Mended 1 finding in 1 file." in result.stderr
    assert (folder / "a.py").read_text() == LEAK
    assert (folder / "b.py").read_text() == MENDED


def test_ctrl_c_between_files_says_how_far_it_came(
    folder: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (folder / name).write_text(LEAK)
    real = os.replace

    def replace(draft: str, path: str) -> None:
        if path.endswith("b.py"):
            raise KeyboardInterrupt
        real(draft, path)

    monkeypatch.setattr(os, "replace", replace)
    result = gradmend("fix", "--yes")
    assert result.exit_code == 130
    assert "Mended 1 finding before the interruption" in result.stderr
    assert [(folder / name).read_text() for name in ("a.py", "b.py", "c.py")] == [MENDED, LEAK, LEAK]
