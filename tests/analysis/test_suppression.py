"""Which comments are suppressions, what each covers, and what a scan makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from gradmend import codemods
from gradmend.codemods import Project, scan_file
from gradmend.codemods.analysis.source import Source
from gradmend.codemods.analysis.suppression import Suppression, read

LOOP = """\
import torch

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for x in torch.randn(4, 5, 3):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""
"""A running total that keeps every graph: GM102 at ``total += loss``, and nothing else."""
LEAK = "    total += loss\n"


def only(text: str, filename: str = "a.py") -> Suppression:
    """The one suppression in a text."""
    (found,) = read(Source.from_text(dedent(text), filename))
    return found


def rows(text: str) -> tuple[int, int]:
    return only(text).rows


def with_leak(lines: str) -> str:
    """The loop with other lines in the place of the leaking one."""
    return LOOP.replace(LEAK, lines)


def found(source: str | bytes, filename: str = "a.py") -> tuple[list[str], list[str]]:
    """The codes that are found, and those that are silenced."""
    raw = source.encode() if isinstance(source, str) else source
    report = scan_file(filename, raw, Project(None))
    return [finding.code for finding in report.findings], [finding.code for finding in report.suppressed]


SILENT: tuple[list[str], list[str]] = ([], ["GM102"])


def test_the_loop_has_its_finding() -> None:
    assert found(LOOP) == (["GM102"], [])


@pytest.mark.parametrize(
    "comment",
    [
        "# gradmend: ignore[GM102]",
        "#gradmend:ignore[GM102]",
        "# gradmend: ignore[gm102]",
        "# gradmend: ignore[accumulated-loss]",
        "# gradmend: ignore[GM10]",
        "# gradmend: ignore[ALL]",
        "# gradmend: ignore",
        "# gradmend: ignore see issue #12, GM102 is wrong here",
        "# gradmend: ignore[GM102] two more epochs, then it goes",
        "# gradmend: ignore[ GM102 ]",
        "# gradmend: ignore-file",
        "# gradmend: ignore-file[GM102]",
        "# noqa: E501  # gradmend: ignore[GM102]",
        "# gradmend: ignore[GM102]  # type: ignore[operator]",
    ],
)
def test_spellings_at_the_end_of_the_line_and_above_it(comment: str) -> None:
    assert found(with_leak(f"    total += loss  {comment}\n")) == SILENT
    assert found(with_leak(f"    {comment}\n{LEAK}")) == SILENT


def test_two_rules_and_two_comments() -> None:
    both = only("x = 1  # gradmend: ignore[GM101,carried-hidden-state]\n")
    assert both.names is not None
    assert [name.text for name in both.names] == ["GM101", "carried-hidden-state"]
    first, second = read(Source.from_text("x = 1  # gradmend: ignore[GM101] why  # gradmend: ignore[GM102] too\n"))
    assert (first.span.column, first.span.end_column) == (8, 37)
    assert second.names is not None
    assert second.names[0].text == "GM102"


@pytest.mark.parametrize(
    "line",
    [
        'note = "# gradmend: ignore"; total += loss',
        "total += loss; note = '''\n# gradmend: ignore-file\n'''",
        "total += loss  # see gradmend: ignore[GM102]",
        "total += loss  # gradmend: the graphs are wanted here",
        "total += loss  # gradmend ignore[GM102]",
    ],
)
def test_neither_strings_nor_prose(line: str) -> None:
    assert found(with_leak(f"    {line}\n")) == (["GM102"], [])


def test_clean_text_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenize.generate_tokens", None)
    assert read(Source.from_text(LOOP)) == ()


class TestRows:
    """The rows that a comment covers."""

    def test_end_of_line(self) -> None:
        assert rows("a = 1\nb = 2  # gradmend: ignore\nc = 3\n") == (2, 2)

    @pytest.mark.parametrize("row", [0, 1, 2, 3])
    def test_anywhere_in_a_statement_of_several_lines(self, row: int) -> None:
        lines = ["a = f(", "    1,", "    2,", ")", "b = 3"]
        lines[row] += "  # gradmend: ignore"
        assert rows("\n".join(lines)) == (1, 4)

    def test_alone_inside_a_call(self) -> None:
        assert rows("a = f(\n    # gradmend: ignore\n    1,\n)\n") == (1, 4)

    def test_alone_above(self) -> None:
        assert rows("a = 1\n# gradmend: ignore\nb = f(\n    2,\n)\n") == (3, 5)

    def test_other_comments_and_empty_lines_between(self) -> None:
        assert rows("# gradmend: ignore\n# because\n\nb = 2\n") == (4, 4)

    def test_several_above(self) -> None:
        source = Source.from_text("# gradmend: ignore[GM101]\n# gradmend: ignore[GM102]\nb = 2\n")
        assert [one.rows for one in read(source)] == [(3, 3), (3, 3)]

    def test_backslash(self) -> None:
        assert rows("a = 1 + \\\n    2  # gradmend: ignore\n") == (1, 2)

    def test_multi_line_string(self) -> None:
        assert rows("a = '''\n# gradmend: ignore[GM101]\n'''  # gradmend: ignore\n") == (1, 3)

    def test_semicolons(self) -> None:
        assert rows("a = 1; b = 2; c = (3,\n  4)  # gradmend: ignore\n") == (1, 2)

    def test_header_of_a_compound_statement(self) -> None:
        assert rows("for x in f(\n    y\n):  # gradmend: ignore\n    z(x)\n") == (1, 3)
        assert rows("# gradmend: ignore\nwhile x:\n    z(x)\n    z(x)\n") == (2, 2)

    def test_suite_on_the_same_line(self) -> None:
        assert rows("for x in y: z(x)  # gradmend: ignore\n") == (1, 1)

    def test_else(self) -> None:
        assert rows("if x:\n    a\nelse:  # gradmend: ignore\n    b\n") == (3, 3)

    @pytest.mark.parametrize("row", [0, 2, 3, 4, 5])
    def test_decorators_belong_to_the_header(self, row: int) -> None:
        lines = ["#", "@first(", "    1)", "#", "@second", "def f():", "    pass"]
        lines[row] += "# gradmend: ignore"
        assert rows("\n".join(lines)) == (2, 6)

    def test_deeper_than_what_follows_covers_nothing(self) -> None:
        assert rows("for x in y:\n    z(x)\n    # gradmend: ignore\nw()\n") == (0, 0)

    def test_less_deep_than_what_follows(self) -> None:
        assert rows("for x in y:\n# gradmend: ignore\n\tz(x)\n") == (3, 3)

    def test_end_of_file(self) -> None:
        assert rows("x = 1\n# gradmend: ignore") == (0, 0)

    def test_only_a_comment(self) -> None:
        assert rows("# gradmend: ignore") == (0, 0)

    def test_form_feed(self) -> None:
        assert rows("\f# gradmend: ignore\n\fx = 1\n") == (2, 2)

    def test_characters_outside_ascii(self) -> None:
        assert only("größe = 'ü'  # gradmend: ignore[GM101]\n").span.column == 14


@pytest.mark.parametrize(
    "comment",
    [
        "# gradmend: ignore[GM102",
        "# gradmend: ignore[]",
        "# gradmend: ignore GM102",
        "# gradmend: ignore: GM102",
        "# gradmend: ignore(GM102)",
        "# gradmend: ingore[GM102]",
        "# gradmend: noqa",
        "# gradmend: skip-file",
    ],
)
def test_what_cannot_be_read_silences_nothing(comment: str) -> None:
    assert only(f"x = 1  {comment}\n").fault
    assert found(with_leak(f"    total += loss  {comment}\n")) == (["GM102", "GM001"], [])


@pytest.mark.parametrize(
    "lines",
    [
        "    total += (  # gradmend: ignore[GM102]\n        loss\n    )\n",
        "    total += (\n        loss\n    )  # gradmend: ignore[GM102]\n",
        "    # gradmend: ignore[GM102]\n    total += (\n        loss\n    )\n",
        "    print(); total += loss; print()  # gradmend: ignore[GM102]\n",
        "    if True: total += loss  # gradmend: ignore[GM102]\n",
    ],
)
def test_forms(lines: str) -> None:
    assert found(with_leak(lines)) == SILENT


def test_header_does_not_cover_the_body() -> None:
    source = LOOP.replace("3):\n", "3):  # gradmend: ignore[GM102]\n")
    assert found(source) == (["GM001", "GM102"], [])


def test_another_rule_covers_nothing() -> None:
    assert found(with_leak("    total += loss  # gradmend: ignore[GM101]\n")) == (["GM102", "GM001"], [])


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_and_byte_order_mark(ends: str) -> None:
    for lines in ("    # gradmend: ignore\n    total += loss\n", "    total += loss  # gradmend: ignore\n"):
        text = "\ufeff" + with_leak(lines).replace("\n", ends)
        assert found(text.encode()) == SILENT
        assert codemods.mend(text.encode(), "a.py").source == text.encode()


def notebook(*cells: str) -> bytes:
    made: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell.splitlines(True)}
        for cell in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def test_notebook() -> None:
    head, tail = LOOP.split("total = 0\n")
    cells = (head, "%matplotlib inline\ntotal = 0\n" + tail)
    assert found(notebook(*cells), "a.ipynb") == (["GM102"], [])
    silent = tail.replace(LEAK, "    # gradmend: ignore[GM102]\n    total += loss\n")
    assert found(notebook(head, "%matplotlib inline\ntotal = 0\n" + silent), "a.ipynb") == SILENT
    assert found(notebook("# gradmend: ignore-file", *cells), "a.ipynb") == SILENT


def test_comment_at_the_end_of_a_cell_covers_nothing_in_the_next() -> None:
    source = Source.from_bytes(notebook("x = 1\n# gradmend: ignore", "y = 2"), "a.ipynb")
    assert [one.rows for one in read(source)] == [(0, 0)]


def test_silenced_finding_is_never_mended() -> None:
    source = with_leak("    total += loss  # gradmend: ignore[GM102]\n")
    mended = codemods.mend(source, unsafe=True)
    assert (mended.source, mended.applied, mended.left) == (source, (), ())


def test_repair_for_another_line_keeps_out_of_a_silenced_one() -> None:
    # One list, one finding: its repair would change both lines.
    source = LOOP.replace("total = 0", "total = []").replace(
        LEAK, "    total.append(loss)  # gradmend: ignore[GM102]\n    total.append(loss)\n"
    )
    mended = codemods.mend(source)
    assert mended.source == source
    assert [(finding.code, finding.repair) for finding in mended.left] == [("GM102", None)]


def test_what_a_silenced_mistake_brings_about_is_silent_too() -> None:
    # retain_graph=True is only there for the carried state: without a cut state it is needed.
    source = """\
    import torch

    cell = torch.nn.RNNCell(3, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = torch.zeros(5, 3)
    for x in torch.randn(4, 5, 3):
        state = cell(x, state)
        loss = state.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    (finding,) = codemods.scan(dedent(source))
    lines = dedent(source).splitlines(keepends=True)
    lines[finding.span.row - 1] = lines[finding.span.row - 1].rstrip() + f"  # gradmend: ignore[{finding.code}]\n"
    assert found("".join(lines)) == ([], [finding.code])


def test_finding_in_another_file_is_silenced_there(tmp_path: Path) -> None:
    model = """\
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            y = torch.sigmoid(self.linear(x))
            y += 1{comment}
            return y
    """
    train = tmp_path / "train.py"
    train.write_text(
        "import torch\nfrom model import Net\n\nnet = Net()\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor x in torch.randn(4, 5, 3):\n"
        "    optimizer.zero_grad()\n    net(x).sum().backward()\n    optimizer.step()\n"
    )
    for comment, expected in (("", (["GM401"], [])), ("  # gradmend: ignore[GM401]", ([], ["GM401"]))):
        path = tmp_path / "model.py"
        path.write_text(dedent(model).format(comment=comment))
        report = scan_file(str(train), train.read_bytes(), Project())
        assert ([f.code for f in report.findings], [f.code for f in report.suppressed]) == expected
        # What serves the file that imports it is not called unused in the file itself.
        assert scan_file(str(path), path.read_bytes(), Project()).findings == ()
