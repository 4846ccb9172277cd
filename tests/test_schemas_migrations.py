"""The registry of migrations: one pure step between neighbours, never a guess, never a rewrite."""

import re
from typing import Any

import pytest

from resumed.schemas import migrations
from resumed.schemas.errors import DamagedError, NewerSchemaError
from resumed.schemas.migrations import level_of, migrate


def _rename(value: Any) -> Any:
    return {"label" if key == "name" else key: one for key, one in value.items()}


def _count(value: Any) -> Any:
    return {**value, "labels": 1}


STEPS = {("snapshot", 1): _rename, ("snapshot", 2): _count, ("line", 2): _count}


def test_steps_run_in_order_from_where_the_value_stands() -> None:
    """A value of level 1 goes through both steps, one of level 2 through the last, one of 3 through none."""
    levels = {
        1: {"label": "x", "labels": 1},
        2: {"name": "x", "labels": 1},
        3: {"name": "x"},
    }
    for level, expected in levels.items():
        assert expected == migrate("snapshot", {"name": "x"}, level, "it", steps=STEPS, known=3)


def test_a_step_leaves_what_it_was_given() -> None:
    """Migrations are pure: the stored value is never touched."""
    stored = {"name": "x"}
    migrate("snapshot", stored, 1, "it", steps=STEPS, known=3)

    assert {"name": "x"} == stored


def test_a_missing_step_is_damage_and_named() -> None:
    """Without a step nothing is guessed, and the levels between which it is missing are said."""
    with pytest.raises(DamagedError, match="harbour-7: no migration of line from schema 1 to 2"):
        migrate("line", {}, 1, "harbour-7", steps=STEPS, known=3)


def test_a_newer_level_is_refused_by_its_number() -> None:
    """What a later release wrote is listed with both levels, and no step is tried on it."""
    said = re.escape("harbour-7: written by schema 4, this daemon reads up to 3")
    with pytest.raises(NewerSchemaError, match=said) as refused:
        migrate("snapshot", {"name": "x"}, 4, "harbour-7", steps=STEPS, known=3)

    assert (4, 3) == (refused.value.level, refused.value.known)


@pytest.mark.parametrize(
    "value", [{}, {"level": "1"}, {"level": 1.0}, {"level": True}, {"level": 0}, {"level": -1}, None, [], "1"]
)
def test_a_level_is_a_whole_number_from_one(value: Any) -> None:
    """A record that names no level is damaged: its level is never assumed."""
    with pytest.raises(DamagedError, match="expected a schema level under 'level'"):
        level_of(value, "level", "harbour-7")


def test_the_registry_reaches_the_present_level() -> None:
    """Every record that has a step at one level has one at each level up to the present."""
    for record, level in migrations.STEPS:
        for between in range(level, migrations.STATE_SCHEMA):
            assert (record, between) in migrations.STEPS
