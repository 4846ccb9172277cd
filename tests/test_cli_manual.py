"""The manual page of `resumectl` says what the grammar says, and its shapes are what `--json` prints.

`RESUMED_WRITE_DOCS=1 pytest tests/test_cli_manual.py` writes the page after the grammar has changed.
"""

import os
import shutil
import subprocess
from pathlib import Path

import manual
import pytest

from resumed.daemon import cli, grammar, render, render_asks
from resumed.schemas import control

PAGE = Path(__file__).resolve().parent.parent / "docs" / "man" / "resumectl.1"


def test_page_is_drawn_from_the_grammar() -> None:
    """Every verb, option and example stands there as the parser takes it."""
    drawn = manual.page()
    if os.environ.get("RESUMED_WRITE_DOCS") == "1":
        PAGE.write_text(drawn, encoding="utf-8")

    assert drawn == PAGE.read_text(encoding="utf-8")


def test_every_exit_code_is_told() -> None:
    """No code of ours is missing from the page, and none is told that is not there."""
    codes = {value for name, value in vars(control).items() if name.startswith("EXIT_")}

    assert codes - {control.EXIT_TEMPORARY, control.EXIT_DO_NOT_RESTART} == set(manual.EXITS)
    assert set(cli.EXITS.values()) <= set(manual.EXITS)


def test_every_sign_is_told() -> None:
    """The signs of the screens are those that the page explains."""
    assert set(manual.SIGNS) == {
        *(*render.GLYPHS.values(), *render.ITEM_GLYPHS.values(), *render_asks.GLYPHS.values())
    }


def test_every_verb_has_its_shape() -> None:
    """What `--json` prints is told of every verb that prints any."""
    silent = {"completion", "complete"}

    assert {verb.name for verb in grammar.VERBS} - silent == {name.split()[0] for name in manual.SHAPES}


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed: the page was not linted")
def test_page_is_sound() -> None:
    """The formatter finds nothing to complain about, and shows every verb."""
    linted = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "error", str(PAGE)], capture_output=True, text=True
    )
    shown = subprocess.run(["mandoc", "-T", "ascii", str(PAGE)], capture_output=True, text=True).stdout

    assert "" == linted.stdout
    assert [] == [verb.name for verb in grammar.VERBS if verb.group and verb.name not in shown]
