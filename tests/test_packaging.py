"""The folders of the checkout become one package, whole, and nothing else becomes importable."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parent.parent
TOPS = ("front", "schemas", "store", "actors", "daemon")


def test_packages_are_every_folder_that_holds_modules() -> None:
    """A folder that is missing from pyproject.toml would be missing from the wheel, silently."""
    settings = tomllib.loads((HOUSE / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {str(p.parent.relative_to(HOUSE)) for top in TOPS for p in (HOUSE / top).rglob("*.py")}
    named = {f: "resumed" if f == "front" else f"resumed.{f.replace('/', '.')}" for f in folders}

    assert {package: folder for folder, package in named.items()} == settings["package-dir"]
    assert sorted(named.values()) == sorted(settings["packages"])


@pytest.mark.parametrize("folder", TOPS)
def test_folder_is_not_importable_by_its_bare_name(folder: str, tmp_path: Path) -> None:
    """`import store` works nowhere outside the checkout, so nobody comes to rely on it."""
    run = [sys.executable, "-I", "-c", f"import {folder}"]
    tried = subprocess.run(run, cwd=tmp_path, capture_output=True)

    assert 1 == tried.returncode
    assert f"No module named '{folder}'".encode() in tried.stderr


@pytest.mark.parametrize("package", ["resumed", "resumed.schemas", "resumed.store", "resumed.actors"])
def test_package_is_importable_from_elsewhere(package: str, tmp_path: Path) -> None:
    """The installed package does not need the checkout as its working folder."""
    run = [sys.executable, "-I", "-c", f"import {package}"]
    tried = subprocess.run(run, cwd=tmp_path, capture_output=True)

    assert (0, b"") == (tried.returncode, tried.stderr)
