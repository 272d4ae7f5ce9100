"""The command line in a fresh folder, on the toy core."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli import fake_core

Run = Callable[..., Result]


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """Ctrl-C reaches the commands that the tests start, also where the tests run in a script's background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder, and the process in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy core in the place of the real one."""
    import gradmend.codemods
    from gradmend.cli.run import forget_project

    forget_project()
    for name, module in fake_core.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    # The real ones are imported when they are first asked for, which must not happen here.
    monkeypatch.setitem(vars(gradmend.codemods), "scan_file", fake_core.scan_file)
    monkeypatch.setitem(vars(gradmend.codemods), "mend_file", fake_core.mend_file)
    yield
    forget_project()


@pytest.fixture
def gradmend(folder: Path, toy: None) -> Run:
    """Run ``gradmend`` with arguments and give click's result."""
    from gradmend.cli.app import app

    def run(*arguments: str, given: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(app, list(arguments), input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
