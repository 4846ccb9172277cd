"""The manual says what the parser knows, no more and no less, and reads without a complaint."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from resumed.daemon import config, main
from resumed.schemas import control

PAGE = Path(__file__).resolve().parent.parent / "docs" / "man" / "resumed.8"
HELP = {"--help", "-h", "--version"}


def spelled() -> str:
    """The page with its dashes as people read them, without fonts."""
    return re.sub(
        r"^\.(B|I|BR|BI|RB|IR|RI|SS|SH|TP) ?", "", PAGE.read_text().replace("\\-", "-"), flags=re.MULTILINE
    )


def commands() -> dict[str, click.Command]:
    top: Any = main._commands()
    return dict(top.commands)


def options_of(command: click.Command) -> set[str]:
    return {name for each in command.params for name in each.opts if name.startswith("-")} - HELP


def section(name: str) -> str:
    """What stands under a command's heading."""
    found = re.search(
        rf"^\.SS {re.escape(name)}\n(.*?)(?=^\.S[SH] )", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"no section for {name}"
    return found[1].replace("\\-", "-")


def test_every_command_has_its_section() -> None:
    """A command that the parser knows is in the manual, and the other way round."""
    said = re.findall(r"^\.SS (\S+)$", PAGE.read_text(), re.MULTILINE)

    assert sorted(commands()) == sorted(each.replace("\\-", "-") for each in said)


@pytest.mark.parametrize("name", commands())
def test_every_option_is_said_where_it_belongs(name: str) -> None:
    """A command's own options stand under it; those of places stand once, under `serve`."""
    known = options_of(commands()[name])
    said = set(re.findall(r"(?<![\w-])--[a-z-]+", section(name.replace("-", "\\-"))))
    shared = options_of(commands()["serve"]) - {"--take-over"}
    synopsis = PAGE.read_text().replace("\\-", "-").split(".SH DESCRIPTION")[0]

    assert said <= known
    assert known - said <= (shared if name == "check-config" else set(re.findall(r"--[a-z-]+", synopsis)))


def test_every_key_and_exit_code_is_said() -> None:
    """Each key of the configuration and each exit code the daemon ends with has a line of its own."""
    text = PAGE.read_text()
    keys = {each.name for each in config._File.__attrs_attrs__}  # type: ignore[attr-defined]

    assert set() == {key for key in keys if not re.search(rf"\b{key}\b", text)}
    for code in (control.EXIT_DONE, control.EXIT_TEMPORARY, control.EXIT_DO_NOT_RESTART):
        assert re.search(rf"^\.B {code}$", text, re.MULTILINE)


def test_every_variable_is_said() -> None:
    """What the daemon reads of its environment is in the manual."""
    sources = "".join(
        path.read_text()
        for folder in ("daemon", "actors")
        for path in (PAGE.parents[2] / folder).glob("*.py")
    )
    names = r"STATE_DIRECTORY|CONFIGURATION_DIRECTORY|RUNTIME_DIRECTORY|RESUMED_DELEGATED|RESUMED_SOCKET"
    used = set(re.findall(rf'"({names}|LISTEN_\w+|NOTIFY_\w+|WATCHDOG_\w+)"', sources))

    assert used == {name for name in used if re.search(rf"\b{name}\b", spelled())}
    assert len(used) == 11


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not there (package mandoc)")
def test_page_reads_without_a_complaint() -> None:
    """mandoc finds nothing to warn of."""
    ran = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", str(PAGE)], capture_output=True, text=True, timeout=20
    )
    complaints = [line for line in ran.stdout.splitlines() if "missing date" not in line]

    assert [] == complaints
