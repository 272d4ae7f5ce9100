"""GM001: comments that silence nothing, and their removal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradmend import codemods
from gradmend.cli.app import app
from gradmend.codemods import Finding, Project, Safety, mend_file, scan_file
from tests.analysis.test_suppression import LEAK, LOOP, notebook, with_leak

GM001 = frozenset({"GM001"})


def messages(source: str, select: frozenset[str] | None = None) -> list[str]:
    return [finding.message for finding in codemods.scan(source, select=select) if finding.code == "GM001"]


def mended(source: str, *, unsafe: bool = False) -> str:
    once = codemods.mend(source, unsafe=unsafe)
    assert isinstance(once.source, str)
    assert codemods.mend(once.source, unsafe=unsafe).source == once.source
    assert codemods.scan(once.source) == list(once.left)
    return once.source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # gradmend: ignore[GM101] why\n", "x = 1\n"),
        ("x = 1  # gradmend: ignore\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1\n# gradmend: ignore[GM101]\ny = 2\n", "x = 1\ny = 2\n"),
        ("if x:\n    # gradmend: ignore[GM101]\n    y = 2\n", "if x:\n    y = 2\n"),
        ("x = 1\n# gradmend: ignore[GM101]\n", "x = 1\n"),
        ("x = 1\n# gradmend: ignore[GM101]", "x = 1\n"),
        ("x = 1  # gradmend: ignore[GM101]", "x = 1"),
        ("# gradmend: ignore-file\nx = 1\n", "x = 1\n"),
        ("# gradmend: ignore-file[GM304] old\nx = 1\n", "x = 1\n"),
        ("x = f(  # gradmend: ignore[GM101]\n    1,\n)\n", "x = f(\n    1,\n)\n"),
        ("x = f(\n    # gradmend: ignore[GM101]\n    1,\n)\n", "x = f(\n    1,\n)\n"),
        ("# gradmend: ignore[GM101]\n@f\ndef g():\n    pass\n", "@f\ndef g():\n    pass\n"),
        ("x = 1  # noqa: E501  # gradmend: ignore[GM101]\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # gradmend: ignore[GM101] why  # type: ignore[x]\n", "x = 1  # type: ignore[x]\n"),
        ("# gradmend: ignore[GM101]  # fmt: skip\nx = 1\n", "# fmt: skip\nx = 1\n"),
        ("x = 1; y = 2  # gradmend: ignore\n", "x = 1; y = 2\n"),
        ("x = 1\n\n\n# gradmend: ignore\n\ny = 2\n", "x = 1\n\n\n\ny = 2\n"),
        ("x = 1  # gradmend: ignore[GM101]\ny = 2  # gradmend: ignore[GM102]\n", "x = 1\ny = 2\n"),
        ("größe = 'ü'  # gradmend: ignore[GM101]\n", "größe = 'ü'\n"),
        ("x = 1\t# gradmend: ignore[GM101]  \n", "x = 1\n"),
    ],
)
def test_whole_comment_goes(before: str, after: str) -> None:
    assert mended(before) == after
    assert mended(before.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ignore[GM101, GM102] why", "ignore[GM102] why"),
        ("ignore[GM102, GM101]", "ignore[GM102]"),
        ("ignore[GM101,GM102,GM304]", "ignore[GM102]"),
        ("ignore[carried-hidden-state, accumulated-loss]", "ignore[accumulated-loss]"),
        ("ignore[GM1]", "ignore[GM1]"),
        ("ignore-file[GM102, GM2]", "ignore-file[GM102]"),
    ],
)
def test_only_the_dead_names_of_a_list_go(before: str, after: str) -> None:
    assert mended(with_leak(f"    total += loss  # gradmend: {before}\n")) == with_leak(
        f"    total += loss  # gradmend: {after}\n"
    )


def test_messages() -> None:
    assert messages("x = 1  # gradmend: ignore[GM101]\n") == ["there is no `GM101` on this statement to silence"]
    assert messages("x = 1  # gradmend: ignore[GM101, GM2]\n") == [
        "there is no `GM101` or `GM2` on this statement to silence"
    ]
    assert messages("x = 1  # gradmend: ignore\n") == ["there is nothing on this statement to silence"]
    assert messages("# gradmend: ignore-file\n") == ["there is nothing in this file to silence"]
    assert messages("x = 1\n# gradmend: ignore\n") == ["there is nothing below this comment to silence"]


class TestUnknownRule:
    """A name that no rule has: said, with the nearest, and never removed as safe."""

    SOURCE = "x = 1  # gradmend: ignore[GM1O1]\n"

    def finding(self, source: str) -> Finding:
        (finding,) = codemods.scan(source)
        return finding

    def test_suggestion(self) -> None:
        finding = self.finding(self.SOURCE)
        assert finding.message == "no rule is called `GM1O1`; did you mean `GM101`?"
        assert finding.repair is not None
        assert [repair.message for repair in (finding.repair, *finding.alternatives)] == [
            "Write `GM101`",
            "Remove `GM1O1`",
        ]
        assert finding.repair.safety is Safety.UNSAFE

    def test_misspelled_name(self) -> None:
        assert (
            "did you mean `accumulated-loss`?" in self.finding("x = 1  # gradmend: ignore[acumulated-loss]\n").message
        )

    def test_nothing_near(self) -> None:
        finding = self.finding("x = 1  # gradmend: ignore[no-longer]\n")
        assert finding.message == "no rule is called `no-longer`"
        assert finding.alternatives == ()

    def test_safe_repairs_leave_it(self) -> None:
        # A newer gradmend may know the rule.
        assert mended(self.SOURCE) == self.SOURCE
        assert mended("x = 1  # gradmend: ignore[GM101, GM1O1]\n") == self.SOURCE

    def test_unsafe_repairs_do_not(self) -> None:
        assert mended(self.SOURCE, unsafe=True) == "x = 1\n"
        assert mended("x = 1  # gradmend: ignore[no-longer]\n", unsafe=True) == "x = 1\n"


class TestOnlyWhatWasLookedFor:
    """A rule that did not run cannot have shown anything."""

    def test_rule_that_is_not_selected(self) -> None:
        source = "x = 1  # gradmend: ignore[GM304]\n"
        assert messages(source, frozenset({"GM001", "GM101"})) == []
        assert messages(source, frozenset({"GM001", "GM304"})) != []
        assert messages(source, frozenset({"GM304"})) == []

    def test_prefix_of_which_some_ran(self) -> None:
        assert messages("x = 1  # gradmend: ignore[GM1]\n", frozenset({"GM001", "GM101"})) == []

    def test_all_rules_and_some_ran(self) -> None:
        assert messages("x = 1  # gradmend: ignore\n", frozenset({"GM001", "GM101"})) == []

    def test_alone_it_is_about_all(self) -> None:
        assert messages("x = 1  # gradmend: ignore[GM304]\n", GM001) != []
        assert messages(with_leak("    total += loss  # gradmend: ignore[GM102]\n"), GM001) == []

    def test_served_for_a_rule_that_is_not_selected_now(self) -> None:
        source = with_leak("    total += loss  # gradmend: ignore\n")
        assert messages(source, frozenset({"GM001", "GM101"})) == []

    def test_cells_that_do_not_parse(self) -> None:
        raw = notebook("x = 1  # gradmend: ignore[GM101]", "for x in\n")
        assert scan_file("a.ipynb", raw, Project(None)).findings == ()

    def test_imports_that_were_not_followed(self) -> None:
        assert messages("import helper\nx = 1  # gradmend: ignore[GM101]\n") == []
        assert messages("import torch\nx = 1  # gradmend: ignore[GM101]\n") != []


class TestSilenced:
    """GM001 itself is silenced by its own name, or with the whole file."""

    @pytest.mark.parametrize(
        "source",
        [
            "x = 1  # gradmend: ignore[GM304, GM001]\n",
            "# gradmend: ignore[GM001]\nx = 1  # gradmend: ignore[GM304]\n",
            "# gradmend: ignore-file[unused-suppression]\nx = 1  # gradmend: ignore[GM304]\n",
            "x = 1  # gradmend: ignore[GM1O1, GM001]\n",
        ],
    )
    def test_by_name(self, source: str) -> None:
        assert codemods.scan(source) == []
        assert mended(source) == source

    def test_not_by_its_own_uselessness(self) -> None:
        assert mended("x = 1  # gradmend: ignore[GM001]\n") == "x = 1\n"
        assert mended("x = 1  # gradmend: ignore\n") == "x = 1\n"
        assert mended("x = 1  # gradmend: ignore[ALL]\n") == "x = 1\n"

    def test_in_a_file_that_is_silent_for_a_reason(self) -> None:
        source = "# gradmend: ignore-file\n" + LOOP + "x = 1  # gradmend: ignore[GM304]\n"
        assert codemods.scan(source) == []
        assert messages("# gradmend: ignore-file\nx = 1  # gradmend: ignore[GM304]\n") != []


def test_suppression_goes_with_the_mistake_that_is_mended() -> None:
    # Another line holds the mistake now; the comment was left behind.
    source = LOOP.replace("total = 0\n", "total = 0  # gradmend: ignore[GM102]\n")
    result = codemods.mend(source)
    assert [finding.code for finding in result.applied] == ["GM102", "GM001"]
    assert result.source == LOOP.replace(LEAK, "    total += loss.item()\n")


def test_comment_that_cannot_be_read_has_no_repair() -> None:
    (finding,) = codemods.scan("x = 1  # gradmend: ingore[GM101]\n")
    assert (finding.code, finding.repair) == ("GM001", None)
    assert finding.message == "`ingore` silences nothing; did you mean `# gradmend: ignore`?"


def test_notebook_keeps_every_other_byte() -> None:
    raw = notebook(
        "# gradmend: ignore[GM101]\nx = 1", "y = 2\n# gradmend: ignore", "%time z = 3\nw = 4  # gradmend: ignore"
    )
    report = scan_file("a.ipynb", raw, Project(None))
    assert [(finding.cell, finding.span.row) for finding in report.findings] == [(1, 1), (2, 2), (3, 2)]
    new = mend_file("a.ipynb", raw, Project(None)).source
    assert isinstance(new, bytes)
    assert [cell["source"] for cell in json.loads(new)["cells"]] == [["x = 1"], ["y = 2\n"], ["%time z = 3\n", "w = 4"]]


def test_file_that_others_import(tmp_path: Path) -> None:
    """What lies in a function may be needed for what another file does with it."""
    helper = tmp_path / "helper.py"
    helper.write_text("def f(x):\n    return x  # gradmend: ignore[GM101]\n\nf(1)  # gradmend: ignore[GM101]\n")
    (tmp_path / ".git").mkdir()

    def found() -> list[int]:
        return [finding.span.row for finding in scan_file(str(helper), helper.read_bytes(), Project()).findings]

    assert found() == [2, 4]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "main.py").write_text("from helper import (\n    f,\n)\n")
    assert found() == [4]
    (tmp_path / "tools" / "main.py").write_text("helper = 1\n")
    assert found() == [2, 4]
    (tmp_path / "look.ipynb").write_bytes(notebook("import helper\n", "helper.f(1)"))
    assert found() == [4]


def test_removal_of_a_cell_s_last_line_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook("y = 2\n# gradmend: ignore"))
    result = CliRunner().invoke(app, ["check", "--isolated", "--output-format", "full", str(path)])
    assert result.exit_code == 1
    assert "  - # gradmend: ignore\n" in result.stdout
