"""What is installed is what the folders hold."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_folder_with_modules_is_packaged() -> None:
    folders = {path.parent.relative_to(ROOT) for top in ("cli", "codemods") for path in (ROOT / top).rglob("*.py")}
    packages = PROJECT["tool"]["setuptools"]["packages"]
    assert {".".join(("gradmend", *folder.parts)) for folder in folders} == set(packages)


@pytest.mark.parametrize("folder", ["cli", "codemods"])
def test_package_says_that_it_is_typed(folder: str) -> None:
    assert (ROOT / folder / "py.typed").is_file()


@pytest.mark.parametrize("name", PROJECT["tool"]["setuptools"]["packages"])
def test_every_package_is_more_than_a_namespace(name: str) -> None:
    assert (ROOT / Path(*name.split(".")[1:]) / "__init__.py").is_file()
