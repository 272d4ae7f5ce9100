"""Programs of several files: what an import names is run where it is, and a script gives a function its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from gradmend.codemods import Finding, api
from gradmend.codemods.analysis.callers import scripts_importing
from gradmend.codemods.analysis.project import Project

ATTACHED = """
    def advance(cell, x, h):
        return cell(x, h)
"""
DETACHED = """
    def advance(cell, x, h):
        return cell(x, h.detach())
"""
LOOP = """
    cell = torch.nn.GRUCell(3, 4)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    h = torch.zeros(2, 4)
    for x in torch.randn(5, 2, 3):
        h = {advance}(cell, x, h)
        optimizer.zero_grad()
        h.pow(2).mean().backward()
        optimizer.step()
"""

LAYOUTS: Mapping[str, tuple[str, str, str, dict[str, str]]] = {
    # What it is: the helper's file, the import, what the helper is then called, and further files.
    "a sibling": ("helper.py", "from helper import advance", "advance", {}),
    "a sibling as a module": ("helper.py", "import helper", "helper.advance", {}),
    "another name": ("helper.py", "from helper import advance as go", "go", {}),
    "a module by another name": ("helper.py", "import helper as h_", "h_.advance", {}),
    "everything": ("helper.py", "from helper import *", "advance", {}),
    "a package": ("tools/helper.py", "from tools.helper import advance", "advance", {"tools/__init__.py": ""}),
    "a module of a package": (
        "tools/helper.py",
        "from tools import helper",
        "helper.advance",
        {"tools/__init__.py": ""},
    ),
    "a dotted module": ("tools/helper.py", "import tools.helper", "tools.helper.advance", {"tools/__init__.py": ""}),
    "a dotted module by another name": (
        "tools/helper.py",
        "import tools.helper as h_",
        "h_.advance",
        {"tools/__init__.py": ""},
    ),
    "a folder without __init__": ("tools/helper.py", "from tools.helper import advance", "advance", {}),
    "a module of a folder without __init__": ("tools/helper.py", "from tools import helper", "helper.advance", {}),
    "a dotted module of a folder without __init__": (
        "tools/helper.py",
        "import tools.helper",
        "tools.helper.advance",
        {},
    ),
    "handed on by __init__": (
        "tools/helper.py",
        "from tools import advance",
        "advance",
        {"tools/__init__.py": "from .helper import advance\n"},
    ),
    "everything handed on by __init__": (
        "tools/helper.py",
        "import tools",
        "tools.advance",
        {"tools/__init__.py": "from .helper import *\n"},
    ),
    "handed on twice": (
        "tools/parts/helper.py",
        "from tools import step",
        "step",
        {
            "tools/__init__.py": "from .parts import advance as step\n",
            "tools/parts/__init__.py": "from tools.parts.helper import advance\n",
        },
    ),
    "a src folder": (
        "src/tools/helper.py",
        "from tools.helper import advance",
        "advance",
        {"src/tools/__init__.py": ""},
    ),
    "one of two": (
        "helper.py",
        "try:\n    from faster_helper import advance\nexcept ImportError:\n    from helper import advance",
        "advance",
        {},
    ),
    "the first of two": (
        "helper.py",
        "try:\n    from helper import advance\nexcept ImportError:\n    advance = None",
        "advance",
        {},
    ),
    "in a function that makes it": (
        "helper.py",
        "def maker():\n    from helper import advance\n    return advance\n",
        "maker()",
        {},
    ),
    "a circle": ("helper.py", "from helper import advance", "advance", {"other.py": "from helper import advance\n"}),
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    (folder / "pyproject.toml").touch()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def check(path: Path, project: Project | None = None) -> list[Finding]:
    return list(api.scan_file(str(path), path.read_bytes(), project or Project()).findings)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_helpers_are_run_where_they_are(layout: str, tmp_path: Path) -> None:
    helper, statement, advance, others = LAYOUTS[layout]
    script = "import torch\n" + statement + "\n" + dedent(LOOP.format(advance=advance))
    circle = "import other\n" if layout == "a circle" else ""
    write(tmp_path, {"train.py": script, helper: circle + dedent(ATTACHED), **others})
    assert [f.code for f in check(tmp_path / "train.py")] == ["GM101"]
    write(tmp_path, {helper: circle + dedent(DETACHED)})
    assert check(tmp_path / "train.py") == []


@pytest.mark.parametrize(
    ("place", "statement"),
    [
        ("tools/train.py", "from .helper import advance"),
        ("tools/train.py", "from . import helper\nadvance = helper.advance"),
        ("tools/deep/train.py", "from ..helper import advance"),
        ("tools/deep/train.py", "from .. import helper\nadvance = helper.advance"),
        ("tools/deep/train.py", "from tools.helper import advance"),
        ("scripts/train.py", "from tools.helper import advance"),
        ("scripts/train.py", "import sys\nsys.path.append('..')\nfrom tools.helper import advance"),
    ],
)
@pytest.mark.parametrize("packages", [True, False])
def test_from_within_folders(place: str, statement: str, packages: bool, tmp_path: Path) -> None:
    inits = {"tools/__init__.py": "", "tools/deep/__init__.py": ""} if packages else {}
    script = "import torch\n" + statement + "\n" + dedent(LOOP.format(advance="advance"))
    write(tmp_path, {place: script, "tools/helper.py": ATTACHED, **inits})
    assert [f.code for f in check(tmp_path / place)] == ["GM101"]
    write(tmp_path, {"tools/helper.py": DETACHED})
    assert check(tmp_path / place) == []


def test_relative_paths_are_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import torch\nfrom helper import advance\n" + dedent(LOOP.format(advance="advance"))
    write(tmp_path, {"work/train.py": script, "work/helper.py": ATTACHED})
    for folder, name in [("work", "train.py"), (".", "work/train.py"), ("work", "./train.py")]:
        monkeypatch.chdir(tmp_path / folder)
        assert [f.code for f in check(Path(name))] == ["GM101"]


def test_files_are_parsed_once(tmp_path: Path) -> None:
    script = "import torch\nfrom helper import advance\n" + dedent(LOOP.format(advance="advance"))
    write(tmp_path, {"one.py": script, "two.py": script, "helper.py": ATTACHED})
    project = Project()
    check(tmp_path / "one.py", project)
    source = project.sources[str(tmp_path / "helper.py")]
    check(tmp_path / "two.py", project)
    assert project.sources[str(tmp_path / "helper.py")] is source is not None


def test_without_a_reader_no_other_file_is_read(tmp_path: Path) -> None:
    script = "import torch\nfrom helper import advance\n" + dedent(LOOP.format(advance="advance"))
    write(tmp_path, {"train.py": script, "helper.py": ATTACHED})
    assert check(tmp_path / "train.py", Project(None)) == []


# -- who calls what a file defines ---------------------------------------------------------------------------------

NETS = """
    import torch
    from torch import nn

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.G = nn.Linear(3, 4)
            self.D = nn.Linear(4, 1)

        def d_loss(self, x, z):
            return self.D({fake}).mean() - self.D(x).mean()

        def g_loss(self, z):
            return -self.D(self.G(z)).mean()
"""
TRAIN = """
    import torch

    def train(pair, batches):
        g = torch.optim.Adam(pair.G.parameters())
        d = torch.optim.Adam(pair.D.parameters())
        for x in batches:
            d.zero_grad()
            pair.d_loss(x, torch.randn(2, 3)).backward()
            d.step()
            g.zero_grad()
            pair.g_loss(torch.randn(2, 3)).backward()
            g.step()
"""
MAIN = """
    import torch
    from nets import Pair
    {statement}

    if __name__ == "__main__":
        {train}(Pair(), torch.randn(5, 2, 4))
"""


@pytest.mark.parametrize(
    ("train", "main", "statement", "called", "others"),
    [
        ("train.py", "main.py", "from train import train", "train", {}),
        ("train.py", "main.py", "import train as t", "t.train", {}),
        ("work/train.py", "main.py", "from work.train import train", "train", {}),
        (
            "work/train.py",
            "main.py",
            "from work import train",
            "train",
            {"work/__init__.py": "from .train import train\n"},
        ),
        ("a/b/train.py", "main.py", "from a.b.train import train", "train", {}),
        ("train.py", "go.py", "from middle import start", "start", {"middle.py": "from train import train as start\n"}),
    ],
)
def test_a_script_gives_a_function_its_arguments(
    train: str, main: str, statement: str, called: str, others: dict[str, str], tmp_path: Path
) -> None:
    script = MAIN.format(statement=statement, train=called)
    write(tmp_path, {train: TRAIN, main: script, "nets.py": NETS.format(fake="self.G(z)"), **others})
    (finding,) = check(tmp_path / train)
    assert (finding.code, Path(finding.filename).name) == ("GM201", "nets.py")
    assert finding.repair is not None
    assert [edit.content for edit in finding.repair.edits] == [".detach()"]
    write(tmp_path, {"nets.py": NETS.format(fake="self.G(z).detach()")})
    assert check(tmp_path / train) == []


def test_a_main_function_is_run(tmp_path: Path) -> None:
    script = """
        import torch
        from nets import Pair
        from train import train

        def main():
            train(Pair(), torch.randn(5, 2, 4))
    """
    write(tmp_path, {"train.py": TRAIN, "cli.py": script, "nets.py": NETS.format(fake="self.G(z)")})
    assert [f.code for f in check(tmp_path / "train.py")] == ["GM201"]


def test_a_finding_in_the_script(tmp_path: Path) -> None:
    step = """
        def step(model, optimizer, x):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss{item}
    """
    script = """
        import torch
        from steps import step

        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0.0
        for x in torch.randn(5, 2, 3):
            total += step(model, optimizer, x)
        print(total)
    """
    write(tmp_path, {"steps.py": step.format(item=""), "main.py": script})
    (finding,) = check(tmp_path / "steps.py")
    assert (finding.code, Path(finding.filename).name, finding.span.row) == ("GM102", "main.py", 9)
    assert finding.repair is not None
    write(tmp_path, {"steps.py": step.format(item=".item()")})
    assert check(tmp_path / "steps.py") == []


def test_scripts_that_import_something_else_are_not_run(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "train.py": TRAIN,
            "other.py": "from train_tools import train\ntrain()\n",
            "definitions.py": "from train import train\n\ndef again():\n    train(None, [])\n",
            "script.py": "import train\ntrain.train(None, [])\n",
            "a/train.py": "",
        },
    )
    assert scripts_importing(Project(), str(tmp_path / "train.py")) == (str(tmp_path / "script.py"),)
    assert scripts_importing(Project(None), str(tmp_path / "train.py")) == ()


def test_folders_outside_of_a_project_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {"inner/train.py": TRAIN, "main.py": "from inner.train import train\ntrain(None, [])\n"})
    assert scripts_importing(Project(), str(tmp_path / "inner" / "train.py")) == (str(tmp_path / "main.py"),)
    (tmp_path / "pyproject.toml").unlink()
    assert scripts_importing(Project(), str(tmp_path / "inner" / "train.py")) == ()


def test_a_file_of_a_package_does_not_hide_a_library(tmp_path: Path) -> None:
    helpers = {
        "tools/__init__.py": "from tools.torch import *\nfrom tools.math import *\n",
        "tools/torch.py": "import torch\n\nzeros = torch.zeros\n",
        "tools/math.py": "import math\nimport torch\n",
    }
    for name, text in helpers.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    main = tmp_path / "main.py"
    main.write_text(
        dedent(
            """
            from tools import *
            from torch import nn

            value, policy = nn.Linear(3, 1), nn.Linear(3, 1)
            optimizer = torch.optim.SGD([*value.parameters(), *policy.parameters()], lr=0.1)
            x = torch.randn(5, 3)
            with torch.no_grad():
                returns = value(x)
            for _ in range(4):
                loss = (policy(x) - returns * returns).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """
        )
    )
    project = Project(lambda path: Path(path).read_bytes())
    assert api.scan_file(str(main), main.read_bytes(), project).findings == ()


def test_options_of_the_command_line_carry_no_graph() -> None:
    source = """
        import argparse
        import torch

        parser = argparse.ArgumentParser()
        args = parser.parse_args()
        cell = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(cell.parameters(), lr=args.lr)
        weight = 1.0
        for x in torch.randn(5, 2, 3):
            weight = torch.tanh(torch.tensor(2.0) * weight * args.decay)
            optimizer.zero_grad()
            (cell(x) * weight).mean().backward()
            optimizer.step()
    """
    assert [finding.code for finding in api.scan(dedent(source))] == []


def test_a_file_that_imports_from_itself_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(
        dedent(
            """
            from torch import nn

            class Cell(nn.GRUCell):
                pass

            if __name__ == "__main__":
                from cells import Cell
                from layers import Layer
            """
        )
    )
    (tmp_path / "layers.py").write_text("from again import Layer\n")
    (tmp_path / "again.py").write_text("from layers import Layer\n")
    main = tmp_path / "main.py"
    main.write_text(
        dedent("import torch\nfrom cells import Cell\nfrom layers import Layer\n")
        + dedent(LOOP).format(advance="(lambda cell, x, h: cell(x, h))").replace("torch.nn.GRUCell", "Cell")
    )
    report = api.scan_file(str(main), main.read_bytes(), Project(lambda path: Path(path).read_bytes()))
    assert [finding.code for finding in report.findings] == ["GM101"]
    assert not report.cut


def test_a_variable_that_one_branch_does_not_bind() -> None:
    source = """
        import torch
        from somewhere import config

        critic, generator = torch.nn.Linear(3, 1), torch.nn.Linear(2, 3)
        optimizer = torch.optim.Adam(critic.parameters())
        optimizer_g = torch.optim.Adam(generator.parameters())
        for real in torch.randn(5, 4, 3):
            fake = generator(torch.randn(4, 2))
            if config.loss == "wgan":
                real_loss = -critic(real).mean()
            elif config.loss == "hinge":
                real_loss = torch.relu(1 - critic(real)).mean()
            loss = critic(fake).mean()
            optimizer.zero_grad()
            real_loss.backward()
            loss.backward()
            optimizer.step()
            print(real_loss.data, loss.item())
            optimizer_g.zero_grad()
            (-critic(generator(torch.randn(4, 2))).mean()).backward()
            optimizer_g.step()
    """
    text = dedent(source)
    report = api.scan_file("main.py", text.encode(), None)
    assert [finding.code for finding in report.findings] == ["GM201"]
    assert not report.cut
