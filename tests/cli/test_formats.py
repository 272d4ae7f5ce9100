from __future__ import annotations

import json
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Run

ALL = "leak(x)\nmaybe(x)\nhopeless(x)\n"
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
         "source": ["%time x\n", "z = 1\n", "leak(x)\n"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "maybe(y)"},
    ],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip


@pytest.fixture
def output(folder: Path, gradmend: Run) -> Any:
    def run(name: str, *arguments: str) -> str:
        return gradmend("check", "--output-format", name, *arguments).stdout

    return run


def sarif(text: str) -> Any:
    log = json.loads(text)
    schema = json.loads(Path(__file__).with_name("data").joinpath("sarif-schema-2.1.0.json").read_text())
    jsonschema.Draft4Validator(schema).validate(log)
    return log["runs"][0]


def test_json_lines_are_the_objects_of_json(folder: Path, output: Any) -> None:
    (folder / "a.py").write_text(ALL)
    assert [json.loads(line) for line in output("json-lines").splitlines()] == json.loads(output("json"))


class TestSarif:
    def test_nothing_found(self, folder: Path, output: Any) -> None:
        (folder / "a.py").write_text("x = 1\n")
        run = sarif(output("sarif"))
        assert run["results"] == []
        assert run["invocations"][0]["executionSuccessful"]
        assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["GM101", "GM102", "GM501"]

    def test_results_with_places_fixes_and_levels(self, folder: Path, output: Any) -> None:
        (folder / "a b.py").write_text(ALL)
        results = sarif(output("sarif"))["results"]
        assert [(result["ruleId"], result["level"]) for result in results] == [
            ("GM102", "warning"),
            ("GM101", "error"),
            ("GM501", "note"),
        ]
        first = results[0]
        place = first["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"}
        assert place["region"] == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 8}
        assert [place["message"]["text"] for place in first["relatedLocations"]] == [
            "recorded: recorded here",
            "freed: freed here",
        ]
        [change] = first["fixes"][0]["artifactChanges"]
        assert change["replacements"][0]["insertedContent"]["text"] == ".item()"
        assert "fixes" not in results[2]

    def test_suppressed_and_known_findings_are_marked_not_dropped(
        self, folder: Path, output: Any, gradmend: Run
    ) -> None:
        (folder / "a.py").write_text("leak(x)  # gradmend: ignore[GM102]\nmaybe(x)\n")
        gradmend("check", "--write-baseline", "known.json")
        (folder / "a.py").write_text("leak(x)  # gradmend: ignore[GM102]\nmaybe(x)\nhopeless(x)\n")
        results = sarif(output("sarif", "--baseline", "known.json"))["results"]
        kinds = {result["ruleId"]: [mark["kind"] for mark in result.get("suppressions", [])] for result in results}
        assert kinds == {"GM501": [], "GM102": ["inSource"], "GM101": ["external"]}

    def test_file_that_could_not_be_analysed(self, folder: Path, output: Any) -> None:
        (folder / "bad.py").write_text("leak(\n")
        invocation = sarif(output("sarif"))["invocations"][0]
        assert not invocation["executionSuccessful"]
        assert "does not parse" in invocation["toolExecutionNotifications"][0]["message"]["text"]

    def test_notebook(self, folder: Path, output: Any) -> None:
        (folder / "a.ipynb").write_text(json.dumps(NOTEBOOK))
        result = sarif(output("sarif"))["results"][0]
        [location] = result["locations"]
        assert location["logicalLocations"][0]["name"] == "cell 2, line 3, column 1"
        assert "region" not in location["physicalLocation"]
        assert "fixes" not in result

    def test_identity_outlives_lines_above(self, folder: Path, output: Any) -> None:
        def identities() -> list[str]:
            results = sarif(output("sarif"))["results"]
            return [result["partialFingerprints"]["gradmendLine/v1"] for result in results]

        (folder / "a.py").write_text("leak(x)\nleak(x)\n")
        before = identities()
        (folder / "a.py").write_text("import x\n\nleak(x)\nleak(x)\n")
        assert identities() == before
        assert len(set(before)) == 2


def test_github(folder: Path, output: Any) -> None:
    (folder / "a,b:c%.py").write_text("maybe(x)\n")
    assert output("github") == (
        "::error title=gradmend (GM101),file=a%2Cb%3Ac%25.py,line=1,endLine=1,col=1,endColumn=9"
        "::a,b:c%25.py:1:1: GM101 `x` leaks%0A  help: item `x`\n"
    )


def test_github_has_no_rows_for_a_notebook(folder: Path, output: Any) -> None:
    (folder / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    assert output("github").splitlines()[0] == (
        "::warning title=gradmend (GM102),file=a.ipynb::a.ipynb:cell 2:3:1: GM102 `x` leaks%0A  help: item `x`"
    )


def test_gitlab(folder: Path, output: Any) -> None:
    (folder / "a.py").write_text("leak(x)\nleak(x)\n")
    first, second = json.loads(output("gitlab", str(folder / "a.py")))
    assert first["location"] == {"path": "a.py", "lines": {"begin": 1, "end": 1}}
    assert (first["check_name"], first["severity"]) == ("GM102", "major")
    assert first["fingerprint"] != second["fingerprint"]


def test_junit(folder: Path, output: Any) -> None:
    (folder / "a.py").write_text("leak(x)\nhopeless('\x01')\nhopeless(y)\n")
    (folder / "bad.py").write_text("leak(\n")
    root = xml.etree.ElementTree.fromstring(output("junit"))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "2", "1")
    assert [suite.get("name") for suite in root] == ["a.py", "bad.py"]
    (folder / "a.py").write_text("")
    (folder / "bad.py").write_text("")
    root = xml.etree.ElementTree.fromstring(output("junit"))
    assert (root.get("tests"), root.get("failures")) == ("1", "0")


def test_notebook_names_cell_and_line(folder: Path, output: Any) -> None:
    (folder / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    assert output("concise") == ("a.ipynb:cell 2:3:1: GM102 [*] `x` leaks\na.ipynb:cell 3:1:1: GM101 [*] `y` leaks\n")
    shown = output("full")
    assert " --> a.ipynb:cell 2:3:1\n" in shown
    assert "2 | z = 1\n  | - freed here\n3 | leak(x)\n  | ^^^^^^^ recorded here\n" in shown
    assert "  - leak(x)\n3 + leak(x.item())\n" in shown
    assert [entry["cell"] for entry in json.loads(output("json"))] == [2, 3]


def test_notebook_is_mended_and_the_rest_of_it_stays(folder: Path, gradmend: Run) -> None:
    text = json.dumps(NOTEBOOK, indent=1)
    (folder / "a.ipynb").write_text(text)
    assert "a.ipynb:cell 2" in gradmend("diff", "--color", "always").stdout
    assert gradmend("fix", "--yes", "--unsafe").exit_code == 0
    expected = text.replace("leak(x)", "leak(x.item())").replace("maybe(y)", "maybe(y.item())")
    assert (folder / "a.ipynb").read_text() == expected
