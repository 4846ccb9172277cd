"""The records of choices and the changelog fragments keep their form, so that both can be read in a row."""

from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parent.parent
RECORDS = sorted((HOUSE / "docs" / "adr").glob("*.md"))
KINDS = {"added", "changed", "fixed", "removed", "security"}


def test_a_record_has_a_number_of_its_own() -> None:
    """A number is given once and none is left out, so a reference to a record stays true."""
    numbers = [record.name.split("-")[0] for record in RECORDS]

    assert [f"{number:04d}" for number in range(1, len(RECORDS) + 1)] == numbers


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_record_is_short_and_whole(record: Path) -> None:
    """A record has context, decision and consequences, under its own number, in at most 60 lines."""
    lines = record.read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]

    assert f"# {int(record.name.split('-')[0])}. " == lines[0][: lines[0].index(" ", 2) + 1]
    assert ["## Context", "## Decision", "## Consequences"] == headings
    assert len(lines) <= 60


def test_fragments_name_their_kind() -> None:
    """A fragment is `<topic>.<kind>.md`, so a release can gather it."""
    fragments = [path for path in (HOUSE / "changelog.d").iterdir() if path.name != "README.md"]

    assert set() == {
        path.name for path in fragments if path.name.split(".")[1:] not in [[k, "md"] for k in KINDS]
    }
