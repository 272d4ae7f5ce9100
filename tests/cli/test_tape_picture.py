from __future__ import annotations

from gradmend.cli.report.texts import Texts
from gradmend.cli.tape_picture import in_words, picture
from gradmend.cli.terminal import Paint
from gradmend.codemods.finding import Finding, Place, Role, Severity, Span

SOURCE = b"for x in y:\n    out, h = model(x, h)\n    loss = f(out)\n    loss.backward()\n    total += loss\n"


def finding(code: str, *places: tuple[Role, int]) -> Finding:
    made = tuple(Place(role, "a.py", Span(row, 5, row, 8), "label") for role, row in places)
    return Finding(code, "name", "message", "a.py", Severity.ERROR, Span(4, 5, 4, 20), None, made)


def draw(found: Finding, width: int = 80, drawn: bool = True) -> str:
    texts = Texts()
    texts.add("a.py", SOURCE)
    return "".join(picture(found, texts, Paint(False), width, drawn))


CARRIED = finding("GM101", (Role.RECORDED, 2), (Role.FREED, 4), (Role.REACHED, 4))


def test_two_iterations() -> None:
    assert draw(CARRIED) == (
        "iteration 1  line 2  records  ●──┐  out, h = model(x, h)\n"
        "             line 4  frees    ○  │  loss.backward()\n"
        "iteration 2  line 4  reaches  ✗──┘  loss.backward()\n"
    )


def test_kept_graphs_add_up() -> None:
    assert draw(finding("GM102", (Role.REACHED, 5), (Role.RECORDED, 3)), drawn=False) == (
        "iteration 1  line 3  records  o--.  loss = f(out)\n"
        "             line 5  keeps    o  |  total += loss\n"
        "iteration 2  line 3  records  o--|  loss = f(out)\n"
        "             line 5  keeps    o--'  total += loss\n"
    )


def test_no_loop_no_iterations() -> None:
    assert draw(finding("GM302", (Role.RECORDED, 2), (Role.REACHED, 4))).splitlines()[1].startswith("then   line 4")


def test_before_the_loop() -> None:
    drawn = draw(finding("GM103", (Role.RECORDED, 1), (Role.FREED, 4), (Role.REACHED, 4)))
    assert [line[:11].rstrip() for line in drawn.splitlines()] == ["before", "iteration 1", "iteration 2"]


def test_one_place_makes_no_picture() -> None:
    assert draw(finding("GM304", (Role.REACHED, 4))) == ""


def test_narrow_terminal_loses_the_source_not_the_picture() -> None:
    assert all(len(line) <= 48 for line in draw(CARRIED, 48).splitlines())
    assert draw(CARRIED, 30).splitlines()[0] == "iteration 1  line 2  records  ●──┐"


def test_in_words() -> None:
    assert list(in_words(CARRIED)) == [
        "Iteration 1: line 2 records: label.\n",
        "Iteration 1: line 4 frees: label.\n",
        "Iteration 2: line 4 reaches: label.\n",
    ]
