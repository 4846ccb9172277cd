"""`docs/workflows.md` is true: its example is a file that holds, and its table has every key and no other."""

import re
from pathlib import Path

import pytest
from calls_kit import STEP

from resumed.actors.worker import exchange, programtools
from resumed.actors.worker.runlog import MASK
from resumed.schemas import advice, workflowapprovals, workfloweffects, workflowfile, workflowwords
from resumed.schemas.effecttools import contract_of
from resumed.schemas.errors import FaultyInputError

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "workflows.md").read_text()


def keys_of(heading: str) -> set[str]:
    """The keys in the first column of the first table under a heading."""
    section = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def is_known(table: str, key: str) -> bool:
    """Whether the reader takes a key of a table: what it does not know it calls unknown."""
    text = f"{STEP}[[effect]]\n{key} = 1979-05-27\n" if table == "effect" else f"{key} = 1979-05-27\n{STEP}"
    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(text.encode(), "x")
    return not any(said.startswith(f"unknown key {key!r}") for said in refused.value.problems)


def test_the_example_is_a_file_that_gives_nothing_to_think_about() -> None:
    """What people copy is right, and warned about by nothing."""
    toml = PAGE.partition("```toml\n")[2].partition("```")[0]
    read = workflowfile.read(toml.encode(), "label")
    tools = tuple(contract_of(effect) for effect in read.effects)

    assert [] == [*advice.of_workflow(read, {"step": [{"timeout": "5m"}]}), *advice.of_effects(read, tools)]


def test_every_key_of_an_effect_has_its_line() -> None:
    """The table has each key that the reader takes, and none that it does not."""
    named = keys_of("An effect")
    readers = (workfloweffects, workflowwords, workflowapprovals)
    source = "".join(Path(reader.__file__).read_text() for reader in readers)
    taken = {word for word in re.findall(r'"([a-z_]+)"', source) if is_known("effect", word)}

    assert taken == named
    assert is_known("top", "on_unknown")


def test_every_placeholder_of_an_effect_has_its_line() -> None:
    """What stands in the table is taken in a call, and what is not there is not."""
    named = keys_of("What is sent")
    stands_for = {"inputs.X": "inputs.page", "outputs.STEP": "outputs.draft", "secrets.NAME": "secrets.k"}
    known = [f"{{{stands_for.get(name[1:-1], name[1:-1])}}}" for name in named]
    send = ", ".join(f'"{word}"' for word in ["s", *known])
    toml = f'{STEP}[[effect]]\nname = "p"\ntarget = "t"\napprove = false\nsecrets = ["k"]\nobserve = ["o"]\n'

    assert workflowfile.read(f"{toml}send = [{send}]\n".encode(), "x").effects
    for other in ("output", "kept", "note", "attempt"):
        with pytest.raises(FaultyInputError, match="unknown placeholder"):
            workflowfile.read(f'{toml}send = ["s", "{{{other}}}"]\n'.encode(), "x")


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    """Exit statuses, the bound of an answer, and what stands in place of a credential."""
    row = next(line for line in PAGE.splitlines() if line.startswith("| `send`, a program"))

    assert f"| {programtools.REFUSED} | {programtools.NOT_SENT} |" in row
    assert f"| {programtools.ABSENT} |" in PAGE
    assert f"up to {exchange.MOST // 1024**2} MiB" in PAGE
    assert f"`{MASK.decode()}`" in PAGE
