"""What holds for every case and sample: suppressions silence whatever is found, and each run says the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradmend.cli.add_ignore import suppressed
from gradmend.codemods import Project, mend_file, scan_file

ROOT = Path(__file__).parent.parent
SCRIPTS = [*sorted((ROOT / "tests" / "cases").glob("*/before.py")), *sorted((ROOT / "samples").glob("*.py"))]
SAY_ALL = """\
import json, sys
from gradmend.codemods import Project, scan_file
# Objects lie elsewhere in every process: nothing may depend on it.
elsewhere = [object() for _ in range(int(sys.argv[1]))]
for path in sys.argv[2:]:
    print(json.dumps([path, repr(scan_file(path, open(path, "rb").read(), Project()))]))
"""


@pytest.mark.parametrize("path", SCRIPTS, ids=[f"{path.parent.name}/{path.stem}" for path in SCRIPTS])
def test_suppressions_silence_it(path: Path) -> None:
    raw = path.read_bytes()
    findings = scan_file(str(path), raw, Project()).findings
    if not findings:
        return
    silent = suppressed(str(path), raw, findings, "for now")
    assert silent is not None
    report = scan_file(str(path), silent, Project())
    assert report.findings == ()
    assert len(report.suppressed) == len(findings)
    assert mend_file(str(path), silent, Project(), unsafe=True).source == silent


def test_each_run_says_the_same() -> None:
    def run(seed: int) -> list[list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", SAY_ALL, str(seed * 1000), *map(str, SCRIPTS)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert run(1) == run(2)
