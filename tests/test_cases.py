"""Public reports and repository files, re-created small: what gradmend makes of them must behave as an expert's repair.

Each folder of ``tests/cases`` holds one, see the README there.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradmend import codemods
from tests import runtime

FOLDER = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Case:
    """One folder of ``tests/cases``."""

    folder: Path
    kind: str
    error: str

    @property
    def before(self) -> Path:
        return self.folder / "before.py"

    @property
    def expected(self) -> Path:
        return self.folder / "expected.py"


def _load(folder: Path) -> Case:
    description = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    return Case(folder, description["kind"], description.get("error", ""))


CASES = [_load(path.parent) for path in sorted(FOLDER.glob("*/case.toml"))]


def _cases(*kinds: str) -> pytest.MarkDecorator:
    chosen = [case for case in CASES if case.kind in kinds]
    return pytest.mark.parametrize("case", chosen, ids=[case.folder.name for case in chosen])


def _mend(case: Case) -> tuple[bytes, bool]:
    """The mended source, and whether it took the unsafe repairs: they are tried where no safe one applies."""
    original = case.before.read_bytes()
    mended = codemods.mend(original, str(case.before))
    if mended.source != original:
        return mended.source, False
    return codemods.mend(original, str(case.before), unsafe=True).source, True


@_cases("fix")
def test_case_shows_its_mistake(case: Case) -> None:
    before, expected = runtime.run(case.before), runtime.run(case.expected)
    assert expected.error is None
    assert case.error in (before.error or "")
    behaves_alike = (
        before.error is None and before.graph == expected.graph and runtime.same(before.values, expected.values)
    )
    assert not behaves_alike


@_cases("clean")
def test_clean_case_runs(case: Case) -> None:
    assert runtime.run(case.before).error is None


@_cases("fix")
def test_repair_behaves_as_the_right_one(case: Case) -> None:
    mended, _ = _mend(case)
    assert mended != case.before.read_bytes(), "nothing was mended"
    ast.parse(mended)
    got, want = runtime.run_source(mended), runtime.run(case.expected)
    assert got.error == want.error
    assert runtime.same(got.values, want.values), f"{got.values}\nis not\n{want.values}"
    assert got.graph <= want.graph


@_cases("fix")
def test_mending_twice_is_mending_once(case: Case) -> None:
    mended, unsafe = _mend(case)
    assert mended != case.before.read_bytes(), "nothing was mended"
    again = codemods.mend(mended, str(case.before), unsafe=unsafe)
    assert again.applied == ()
    assert again.source == mended


@_cases("clean")
def test_clean_case_is_left_alone(case: Case) -> None:
    original = case.before.read_bytes()
    mended = codemods.mend(original, str(case.before))
    assert mended.source == original
    assert mended.applied == ()


@_cases("report")
def test_case_with_two_meanings_is_only_reported(case: Case) -> None:
    original = case.before.read_bytes()
    assert codemods.scan(original, str(case.before))
    assert codemods.mend(original, str(case.before)).source == original
