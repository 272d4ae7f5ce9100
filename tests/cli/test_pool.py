from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradmend.cli import pool
from gradmend.cli.run import Job, Outcome
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]


def test_two_processes_give_what_one_gives(folder: Path, gradmend: Run) -> None:
    for number in range(70):
        (folder / f"{number:02}.py").write_text("leak(x)\n" * (number % 5) + "crash\n" * (number % 7 == 6))
    one = gradmend("check", "--output-format", "json", "--jobs", "1")
    two = gradmend("check", "--output-format", "json", "--jobs", "2")
    assert (one.exit_code, one.stdout, one.stderr) == (two.exit_code, two.stdout, two.stderr)


def test_few_files_start_no_pool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_in_processes", lambda *_: pytest.fail("a pool was started"))
    (folder / "a.py").write_text("x = 1\n")
    jobs = [Job("a.py", False, None)] * pool.FEW
    assert list(pool.run_all(jobs, None)) == [Outcome("a.py")] * pool.FEW


@pytest.mark.skipif(os.name == "nt", reason="the patch reaches forked processes only")
def test_killed_worker_costs_its_file_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fatal(job: Job) -> Outcome:
        if job.path == "13.py":
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(job.path)

    monkeypatch.setattr(pool, "process", fatal)
    outcomes = list(pool.run_all([Job(f"{number}.py", False, None) for number in range(40)], 2))
    assert [outcome.path for outcome in outcomes] == [f"{number}.py" for number in range(40)]
    assert [outcome.path for outcome in outcomes if outcome.error] == ["13.py"]


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number}.py").write_text("slow(1)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.fake_core", "check", "--jobs", "3"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    time.sleep(1)
    process.kill()
    # Every worker holds the pipe; it ends when the last of them is gone.
    assert process.communicate(timeout=20)[0] == b""


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_the_run_with_130_and_no_traceback(tmp_path: Path, jobs: str) -> None:
    # The toy core is slow for a file of many lines, which is what is wanted here.
    for number in range(200):
        (tmp_path / f"{number}.py").write_text("leak(x)\n" * 2000)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.fake_core", "check", "--jobs", jobs],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(1)
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, "", "Interrupted.")
    assert time.monotonic() - start < 5
