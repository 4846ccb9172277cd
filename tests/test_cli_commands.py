"""Every command that the product prints can be typed as it stands: the real parser takes it."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_points import POINTS

from resumed.actors import possible
from resumed.actors.machine import standing
from resumed.daemon import parsing

HOUSE = Path(__file__).resolve().parent.parent
DRAWN = "x"
"""What stands for a name that is known only when the command is printed."""


def printed() -> Iterator[tuple[str, str]]:
    """Every text in the product that is a command of ours, and where it stands."""
    for path in sorted(HOUSE.glob("*/**/*.py")):
        place = path.relative_to(HOUSE)
        if place.parts[0] not in ("actors", "daemon", "schemas", "store"):
            continue
        tree = ast.parse(path.read_text())
        whole = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            text = _text(node) if id(node) not in whole else ""
            if text.startswith("resumectl ") and text[10:11] not in ("", " "):
                yield text, f"{place}:{getattr(node, 'lineno', 0)}"


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        drawn = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        if any(isinstance(one, ast.Call) and ast.unparse(one.func) != "shlex.quote" for one in drawn):
            return ""  # it draws more than one word
        return "".join(_text(part) or DRAWN for part in node.values)
    return ""


def is_command(text: str) -> bool:
    """A verb of ours, not a sentence about `resumectl`, and not a verb that is drawn too."""
    return bool(re.match(r"resumectl [a-z-]{2,} ?|resumectl --", text)) and "\n" not in text


COMMANDS = {text: place for text, place in printed() if is_command(text)}


def test_there_are_commands_to_look_at() -> None:
    """The scan finds what the refusals print."""
    assert len(COMMANDS) > 25
    assert any(place.startswith("actors/machine/requests.py") for place in COMMANDS.values())
    assert any(place.startswith("daemon/cli.py") for place in COMMANDS.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_printed_command_can_be_typed(command: str) -> None:
    """A verb that there is, with the words that it takes."""
    words = shlex.split(command.partition(" > ")[0])[1:]

    assert parsing.read(words), COMMANDS[command]


@pytest.mark.parametrize("point", POINTS)
def test_command_of_a_standing_can_be_typed(point: str) -> None:
    """Wherever a job stands, what may be done about it is offered complete."""
    play = POINTS[point][1]()
    status = standing.status(play.snapshot, play.now)
    commands = [each.command for each in possible.possible(play.snapshot, status)]

    assert commands
    for command in commands:
        assert not isinstance(parsing.read(shlex.split(command)[1:]), str)


def test_commands_about_a_job_set_aside_can_be_typed() -> None:
    """The same for one that cannot be read."""
    for moved in (True, False):
        for each in possible.aside("harbour-7", moved=moved):
            assert not isinstance(parsing.read(shlex.split(each.command)[1:]), str)


def test_commands_of_the_readme_can_be_typed() -> None:
    """What the first page shows is what there is."""
    text = (HOUSE / "README.md").read_text()
    shown = re.findall(r"(?:^\$ |`)(?:\.venv/bin/)?resumectl ([^`|#\n]+)", text, flags=re.MULTILINE)

    assert len(shown) >= 4
    for words in shown:
        assert parsing.read(shlex.split(words))
