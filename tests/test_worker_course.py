"""The course of a workflow of programs: where the job's own steps stand, and what follows what."""

from pathlib import Path

import pytest
from worker_kit import contract, desk

from resumed.actors.worker.course import Course
from resumed.schemas import workflowfile
from resumed.schemas.decisions import Accepted, FanOut, Finished, GoTo, HoldBack, NewItem, NextStep, Offer
from resumed.schemas.job import Item

OFFER = Offer(name="x", sha256="0" * 64, size=0, text="")


def course(steps: str, older: bool = False) -> Course:
    """The course of a file whose steps are told by letters: capitals run once for the job, others at 2."""
    parts = [
        f'[[step]]\nname = "{letter.lower()}{place}"\nrun = ["true"]\nrepeatable = true\n'
        + ("each = false\n" if letter.isupper() else "parallel = 2\n")
        for place, letter in enumerate(steps)
    ]
    toml = "version = 1\n" + "".join(parts)
    made = contract(toml)
    if older:
        made = made.__class__(**{**_fields(made), "steps": ()})
    return Course(made, workflowfile.read(toml.encode(), "flow"))


def _fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__class__.__annotations__}


COURSES = {
    "a": ["start: each a0 at 2 then finish", "a0: done"],
    "ab": ["start: each a0 at 4 then finish", "a0: b1", "b1: done"],
    "Ab": ["start: a0", "a0: each b1 at 2 then finish", "b1: done"],
    "aB": ["start: each a0 at 2 then b1", "a0: done", "b1: finish"],
    "aBcD": [
        "start: each a0 at 2 then b1",
        "a0: c2 with all",
        "b1: each c2 at 2 then d3",
        "c2: done",
        "d3: finish",
    ],
    "abCDe": [
        "start: each a0 at 4 then c2",
        "a0: b1",
        "b1: e4 with all",
        "c2: d3",
        "d3: each e4 at 2 then finish",
        "e4: done",
    ],
    "AB": ["start: a0", "a0: b1", "b1: finish"],
}


@pytest.mark.parametrize("steps", COURSES)
def test_steps_follow_each_other_in_the_files_order(steps: str) -> None:
    """Steps for items that stand together are one fan-out; the job's own stand between, before or after."""
    made = course(steps)
    found = [f"start: {_spell(made.begin(()))}"]
    for place, step in enumerate(made.programs.steps):
        after = made.after_item_step(place, OFFER, "{}") if step.each else made.after_job_step(place, OFFER)
        found.append(f"{step.name}: {_spell(after)}")

    assert COURSES[steps] == found


def _spell(decided: object) -> str:
    if decided is None:
        return "done"
    if isinstance(decided, FanOut):
        return f"each {decided.start} at {decided.parallel} then {decided.then}"
    if isinstance(decided, NextStep):
        return decided.step + (" with all" if decided.waits else "")
    assert isinstance(decided, GoTo)
    return decided.step


def test_items_come_in_before_the_jobs_own_first_step() -> None:
    """Whatever runs first, the items are frozen before it."""
    items = (NewItem(id="x"),)

    assert GoTo(step="a0", items=items) == course("Ab").begin(items)
    assert FanOut(start="a0", then="finish", items=items, parallel=2) == course("a").begin(items)


def test_contract_without_numbers_for_its_steps_is_held_to_the_least() -> None:
    """Jobs let in before the law held each step to its number may not run more than any step allows."""
    assert FanOut(start="a0", then="finish", items=(), parallel=2) == course("ab", older=True).begin(())


WHOLE = """
version = 1
[[step]]
name = "first"
repeatable = true
each = false
run = ["printf", "%s", "{job}:{attempt}:{key}"]
[[step]]
name = "second"
repeatable = true
run = ["cat", "{outputs.first}"]
"""


@pytest.mark.anyio
async def test_the_jobs_own_step_runs_once_and_hands_on(tmp_path: Path) -> None:
    """A step with each = false sees no item; what it made is there for every item's steps after it."""
    async with desk(tmp_path, contract(WHOLE)) as made:
        begun = (await made.run("start", "", items=(Item(id="i", ordinal=0),))).answer.decided
        first = (await made.run("first", "", number=2, attempt=3, key="k9")).answer.decided
        offer = first.output
        outputs = (_artifact(offer),)
        second = (await made.run("second", number=3, outputs=outputs)).answer.decided
        finish = (await made.run("finish", "", number=4)).answer.decided
        log = made.log()

    assert GoTo(step="first", items=(NewItem(id="i"),)) == begun
    assert ("second", "finish", "first", "j:3:k9") == (first.start, first.then, offer.name, offer.text)
    assert isinstance(second, Accepted)
    assert second.output is not None
    assert "j:3:k9" == second.output.text
    assert Finished() == finish
    assert b"--- first try 2 " in log


def _artifact(offer: Offer) -> object:
    from resumed.schemas.job import Artifact

    return Artifact(name=offer.name, sha256=offer.sha256, size=offer.size, text=offer.text)


@pytest.mark.anyio
async def test_workflow_without_steps_for_items_takes_none(tmp_path: Path) -> None:
    """A workflow that only runs once for the job needs no items; those given would never be worked on."""
    toml = 'version = 1\n[[step]]\nname = "only"\nrun = ["true"]\nrepeatable = true\neach = false\n'
    async with desk(tmp_path, contract(toml)) as made:
        none = (await made.run("start", "")).answer.decided
        some = (await made.run("start", "", number=2, items=(Item(id="i", ordinal=0),))).answer.decided

    assert GoTo(step="only", items=()) == none
    reason = "1 items were given, and the workflow has no step for items"
    assert HoldBack(code="items", reason=reason) == some
