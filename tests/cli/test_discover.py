from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run

needs_links = pytest.mark.skipif(os.name == "nt", reason="links need rights there")


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("leak(x)\n")


def files(gradmend: Run, *arguments: str) -> list[str]:
    result = gradmend("check", "--show-files", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_python_and_notebooks_sorted(folder: Path, gradmend: Run) -> None:
    put(folder, "b.py", "a.py", "sub/c.ipynb", "d.txt", "sub/e.pyi")
    assert files(gradmend) == ["a.py", "b.py", "sub/c.ipynb"]


def test_paths_start_as_typed(folder: Path, gradmend: Run) -> None:
    put(folder, "sub/a.py")
    assert files(gradmend, "sub") == ["sub/a.py"]
    assert files(gradmend, "./sub/") == ["sub/a.py"]
    assert files(gradmend, str(folder)) == [str(folder / "sub" / "a.py")]


def test_usual_folders_are_left_out_and_other_hidden_ones_are_not(folder: Path, gradmend: Run) -> None:
    put(
        folder,
        ".venv/a.py",
        "node_modules/b.py",
        ".git/c.py",
        ".github/d.py",
        "x/__pycache__/e.py",
        "site-packages/f.py",
    )
    assert files(gradmend) == [".github/d.py"]


def test_virtual_environment_of_any_name_is_left_out(folder: Path, gradmend: Run) -> None:
    put(folder, "my-env/lib/a.py", "b.py")
    (folder / "my-env" / "pyvenv.cfg").write_text("")
    assert files(gradmend) == ["b.py"]


def test_path_that_is_named_wins_over_excludes(folder: Path, gradmend: Run) -> None:
    put(folder, ".venv/a.py", "old/b.py")
    assert files(gradmend, ".venv") == [".venv/a.py"]
    assert files(gradmend, "--exclude", "old", "old/b.py") == ["old/b.py"]
    assert files(gradmend, "--exclude", "old", "--force-exclude", "old/b.py") == []
    assert files(gradmend, "--force-exclude", ".venv/a.py") == []


@pytest.mark.parametrize(
    ("glob", "left"),
    [
        ("old", ["a.py", "src/new/old.py", "src/x_test.py"]),
        ("*_test.py", ["a.py", "old/b.py", "src/new/old.py"]),
        ("src/new", ["a.py", "old/b.py", "src/x_test.py"]),
        ("/src/**/old.py", ["a.py", "old/b.py", "src/x_test.py"]),
        ("src,old", ["a.py"]),
    ],
)
def test_exclude_reads_gitignore_globs(folder: Path, gradmend: Run, glob: str, left: list[str]) -> None:
    put(folder, "a.py", "old/b.py", "src/new/old.py", "src/x_test.py")
    assert files(gradmend, "--exclude", glob) == left


def test_exclude_of_the_configuration_is_relative_to_it(
    folder: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "src/old/a.py", "old/b.py", "src/c.py")
    (folder / "pyproject.toml").write_text('[tool.gradmend]\nexclude = ["src/old"]\n')
    assert files(gradmend) == ["old/b.py", "src/c.py"]
    monkeypatch.chdir(folder / "src")
    assert files(gradmend) == ["c.py"]
    assert files(gradmend, "--extend-exclude", "c.py") == []
    assert files(gradmend, "--exclude", "c.py") == ["old/a.py"]


class TestGitignore:
    def test_is_respected_at_every_level(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py", "data/b.py", "src/c.py", "src/gen/d.py", "src/gen/keep.py", "src/e.py")
        (folder / ".git").mkdir()
        (folder / ".gitignore").write_text("# comment\ndata/\n*.log\n")
        (folder / "src" / ".gitignore").write_text("gen/*\n!gen/keep.py\n/c.py\n")
        assert files(gradmend) == ["a.py", "src/e.py", "src/gen/keep.py"]

    def test_exclude_file_of_the_clone(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py", "b.py", ".git/info/x")
        (folder / ".git" / "info" / "exclude").write_text("b.py\n")
        assert files(gradmend) == ["a.py"]

    def test_file_above_the_walk_counts(self, folder: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        put(folder, "src/a.py", "src/b.py", "src/deep/c.py")
        (folder / ".git").mkdir()
        (folder / ".gitignore").write_text("/src/b.py\n")
        (folder / "src" / ".gitignore").write_text("deep\n")
        assert files(gradmend, "src") == ["src/a.py"]
        monkeypatch.chdir(folder / "src" / "deep")
        assert files(gradmend, "..") == ["../a.py"]

    def test_can_be_disregarded(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py")
        (folder / ".gitignore").write_text("*.py\n")
        assert files(gradmend) == []
        assert files(gradmend, "--no-respect-gitignore") == ["a.py"]
        assert files(gradmend, "a.py") == ["a.py"]

    def test_line_that_is_no_glob_is_passed_over(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py", "b.py")
        (folder / ".gitignore").write_text("!\nb.py\n\\\n")
        assert files(gradmend) == ["a.py"]

    def test_agrees_with_git(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py", "x/b.py", "x/y/c.py", "x/y/z/d.py", "y/e.py", "foo bar/f.py", "#g.py", "!h.py")
        (folder / ".gitignore").write_text("x/*\n!x/y/\nx/y/z\n/y/\nfoo\\ bar/\n\\#g.py\n\\!h.py\n")
        (folder / "x" / "y" / ".gitignore").write_text("*.py\n!c.py\n")
        subprocess.run(["git", "init", "-q"], check=True)
        listed = subprocess.run(
            ["git", "ls-files", "--others", "--exclude-standard", "*.py"], check=True, capture_output=True, text=True
        )
        assert files(gradmend) == sorted(listed.stdout.splitlines())


@needs_links
class TestLinks:
    def test_link_out_of_the_tree_is_told_and_not_followed(
        self, folder: Path, gradmend: Run, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside")
        put(outside, "far.py", "lib/far.py")
        put(folder, "a.py")
        (folder / "link.py").symlink_to(outside / "far.py")
        (folder / "lib").symlink_to(outside / "lib")
        result = gradmend("check", "--output-format", "concise")
        assert result.exit_code == 1
        assert result.stdout == "a.py:1:1: GM102 [*] `x` leaks\n"
        assert "warning: links that lead out of the tree are not followed: lib, link.py\n" in result.stderr

    def test_link_inside_the_tree_is_met_under_its_own_name(self, folder: Path, gradmend: Run) -> None:
        put(folder, "src/a.py")
        (folder / "again.py").symlink_to("src/a.py")
        (folder / "loop").symlink_to(folder)
        assert files(gradmend) == ["src/a.py"]

    def test_broken_link(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py")
        (folder / "broken.py").symlink_to("nowhere.py")
        assert files(gradmend) == ["a.py"]
        result = gradmend("check", "broken.py")
        assert result.exit_code == 2
        assert "error: broken.py: a link that leads nowhere\n" in result.stderr

    def test_fifo_and_device_do_not_hang_the_run(self, folder: Path, gradmend: Run) -> None:
        put(folder, "a.py")
        os.mkfifo(folder / "pipe.py")
        assert files(gradmend) == ["a.py"]
        result = gradmend("check", "pipe.py", "/dev/null")
        assert result.exit_code == 2
        assert "pipe.py: not a regular file" in result.stderr
        assert "/dev/null: not a regular file" in result.stderr

    def test_folder_that_cannot_be_read(self, folder: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        put(folder, "a.py", "closed/b.py")
        real = os.scandir

        def scandir(path: str) -> object:
            if path == "closed":
                raise PermissionError(13, "Permission denied")
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)
        result = gradmend("check", "--output-format", "concise")
        assert result.exit_code == 2
        assert "a.py:1:1" in result.stdout
        assert "error: closed: permission denied\n" in result.stderr


def test_path_given_twice_is_done_once(folder: Path, gradmend: Run) -> None:
    put(folder, "src/a.py")
    assert files(gradmend, "src/a.py", "src", "./src/a.py", str(folder / "src")) == ["src/a.py"]
