"""The hooks, under the real pre-commit, on real commits in a real repository.

What is real: git, pre-commit, this project's ``.pre-commit-hooks.yaml``, and the package that pre-commit builds and
installs from a repository of this project's files. What is not: no index is asked. setuptools comes from the wheel that
virtualenv carries, and the packages that gradmend depends on from the environment of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the environment is laid out otherwise there")

ROOT = Path(__file__).parents[2]
SHIPPED = (".pre-commit-hooks.yaml", "LICENSE", "README.md", "cli", "codemods", "pyproject.toml")
DEPENDENCIES = ("click", "junitparser", "libcst", "pathspec", "pygments", "yaml", "yaml_ft", "_yaml")
CLEAN = """\
import torch

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0.0
for x in torch.randn(100, 4, 3):
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)
"""
MISTAKE = CLEAN.replace(".item()", "")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Nothing of the user's: no configuration of git, no cache of pre-commit, no index of packages."""
    home = tmp_path_factory.mktemp("home")
    dependencies = home / "dependencies"
    dependencies.mkdir()
    for name in DEPENDENCIES:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            path = Path(found.origin)
            path = path.parent if path.name == "__init__.py" else path
            (dependencies / path.name).symlink_to(path)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PIP_", "PRE_COMMIT"))}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's word for: none
        "VIRTUALENV_SETUPTOOLS": "bundle",
        "PYTHONPATH": str(dependencies),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }


@pytest.fixture(scope="module")
def hooks(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of this project, as one that ``repo:`` names."""
    repository = tmp_path_factory.mktemp("gradmend")
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, repository / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, repository / name)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"], ["tag", "v1.0"]):
        subprocess.run(["git", *words], cwd=repository, env=environment, check=True)
    return repository


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run a program in the repository that commits are made in."""

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert "InstallationError" not in done.stdout
        assert "An unexpected error" not in done.stdout, done.stdout
        return done

    return start


@pytest.fixture
def use(run: Run, hooks: Path, tmp_path: Path) -> Callable[[str], None]:
    """Make the repository, with one of the hooks installed."""

    def prepare(hook: str) -> None:
        (tmp_path / ".pre-commit-config.yaml").write_text(
            f"repos:\n  - repo: {hooks}\n    rev: v1.0\n    hooks:\n      - id: {hook}\n"
        )
        assert run("git", "init", "-q").returncode == 0
        run("git", "add", ".")
        run("git", "commit", "-qm", "Start")
        assert run("pre-commit", "install").returncode == 0

    return prepare


def test_commit_with_a_mistake_is_stopped_and_mended_and_the_second_passes(
    tmp_path: Path, use: Callable[[str], None], run: Run
) -> None:
    use("gradmend")
    (tmp_path / "train.py").write_text(MISTAKE)
    (tmp_path / "notes.txt").write_text("total += loss\n")
    run("git", "add", ".")
    first = run("git", "commit", "-m", "Train")
    assert first.returncode == 1
    assert "files were modified by this hook" in first.stderr
    assert "Mended 1 finding in 1 file." in first.stderr
    assert (tmp_path / "train.py").read_text() == CLEAN
    run("git", "add", ".")
    second = run("git", "commit", "-m", "Train")
    assert (second.returncode, "Passed" in second.stderr) == (0, True)
    assert run("git", "show", "HEAD:train.py").stdout == CLEAN


def test_what_is_not_staged_is_neither_lost_nor_committed(tmp_path: Path, use: Callable[[str], None], run: Run) -> None:
    use("gradmend")
    (tmp_path / "train.py").write_text("import os\n\n\n\n" + MISTAKE)
    run("git", "add", ".")
    (tmp_path / "train.py").write_text("import sys\n\n\n\n" + MISTAKE)
    assert run("git", "commit", "-m", "Train").returncode == 1
    assert (tmp_path / "train.py").read_text() == "import sys\n\n\n\n" + CLEAN
    assert run("git", "show", ":train.py").stdout == "import os\n\n\n\n" + MISTAKE


def test_all_files_of_a_tree_with_unstaged_changes(tmp_path: Path, use: Callable[[str], None], run: Run) -> None:
    use("gradmend")
    (tmp_path / "train.py").write_text(CLEAN)
    run("git", "add", ".")
    assert run("git", "commit", "-m", "Train").returncode == 0
    (tmp_path / "train.py").write_text(MISTAKE + "print(1)\n")
    done = run("pre-commit", "run", "--all-files")
    assert (done.returncode, "files were modified by this hook" in done.stdout) == (1, True)
    assert (tmp_path / "train.py").read_text() == CLEAN + "print(1)\n"
    assert run("pre-commit", "run", "--all-files").returncode == 0


def test_what_only_unsafe_repairs_mend_stops_the_commit_and_is_told(
    tmp_path: Path, use: Callable[[str], None], run: Run
) -> None:
    use("gradmend")
    shutil.copy(ROOT / "samples" / "missing_zero_grad.py", tmp_path / "train.py")
    run("git", "add", ".")
    done = run("git", "commit", "-m", "Train")
    assert done.returncode == 1
    assert "files were modified" not in done.stderr
    assert "train.py:21:9: GM402" in done.stderr


def test_excluded_files_are_left_although_pre_commit_names_them(
    tmp_path: Path, use: Callable[[str], None], run: Run
) -> None:
    use("gradmend")
    (tmp_path / "pyproject.toml").write_text('[tool.gradmend]\nexclude = ["old"]\n')
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text(MISTAKE)
    run("git", "add", ".")
    assert run("git", "commit", "-m", "Train").returncode == 0
    assert (tmp_path / "old" / "train.py").read_text() == MISTAKE


def test_notebook_is_mended(tmp_path: Path, use: Callable[[str], None], run: Run) -> None:
    use("gradmend")
    cell: dict[str, object] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {"cells": [{**cell, "source": MISTAKE}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "train.ipynb").write_text(json.dumps(notebook, indent=1) + "\n")
    run("git", "add", ".")
    assert run("git", "commit", "-m", "Train").returncode == 1
    assert json.loads((tmp_path / "train.ipynb").read_text())["cells"][0]["source"] == CLEAN


def test_check_stops_the_commit_and_changes_nothing(tmp_path: Path, use: Callable[[str], None], run: Run) -> None:
    use("gradmend-check")
    (tmp_path / "train.py").write_text(MISTAKE)
    run("git", "add", ".")
    first = run("git", "commit", "-m", "Train")
    assert first.returncode == 1
    assert "GM102 [*] accumulated-loss" in first.stderr
    assert (tmp_path / "train.py").read_text() == MISTAKE
    (tmp_path / "train.py").write_text(CLEAN)
    run("git", "add", ".")
    assert run("git", "commit", "-m", "Train").returncode == 0


def test_hook_as_the_readme_writes_it(tmp_path: Path, run: Run) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    configuration = readme[readme.index("# .pre-commit-config.yaml") :].partition("```")[0]
    (tmp_path / ".pre-commit-config.yaml").write_text(configuration)
    (tmp_path / "train.py").write_text(MISTAKE)
    run("git", "init", "-q")
    assert run("pre-commit", "install").returncode == 0
    run("git", "add", ".")
    assert run("git", "commit", "-m", "Train").returncode == 1
    assert (tmp_path / "train.py").read_text() == CLEAN
    run("git", "add", ".")
    assert run("git", "commit", "-m", "Train").returncode == 0
