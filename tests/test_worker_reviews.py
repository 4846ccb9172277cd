"""Where effects and reviews stand in the course of a workflow, and what their steps answer."""

import json
from pathlib import Path

import pytest
from attrs import evolve
from calls_kit import argv, draft
from worker_kit import contract, desk

from resumed.actors.worker.course import Course
from resumed.schemas import workflowfile
from resumed.schemas.decisions import (
    Accepted,
    FanOut,
    Finished,
    GoTo,
    NextStep,
    Performing,
    Reviewing,
    TryAgain,
)
from resumed.schemas.frames import Given
from resumed.schemas.job import Item
from resumed.schemas.workflow import StepKind


@pytest.fixture
def anyio_backend() -> str:
    """A worker has one loop, whatever its daemon runs on."""
    return "asyncio"


def file_of(words: str) -> str:
    """A file told by words: `a` a step, `a?` a reviewed one, `a!` its effect; capitals run once."""
    steps, effects = [], []
    for word in words.split():
        letter = word.rstrip("?!").lower()
        once = "each = false\n" * word[0].isupper()
        if word.endswith("!"):
            effects.append(
                f'[[effect]]\nname = "{letter}x"\nafter = "{letter}"\ntarget = "t"\napprove = false\n'
                f'send = ["true"]\n{once}'
            )
            continue
        review = "review = {}\n" * word.endswith("?")
        steps.append(f'[[step]]\nname = "{letter}"\nrun = ["true"]\nrepeatable = true\n{once}{review}')
    return "version = 1\n" + "".join((*steps, *effects))


COURSES = {
    # the file -> its steps as the law knows them, and where each effect or review leads
    "a a!": ("start a ax finish", {"ax": ""}),
    "a a! b": ("start a ax b finish", {"ax": "b"}),
    "a? b": ("start a b finish", {"a": "b"}),
    "a?": ("start a finish", {"a": ""}),
    "a? a! b": ("start a ax b finish", {"a": "ax", "ax": "b"}),
    "A A!": ("start a ax finish", {"ax": "finish"}),
    "A A! b": ("start a ax ax.next b finish", {"ax": "ax.next"}),
    "A A! B": ("start a ax b finish", {"ax": "b"}),
    "a A!": ("start a ax finish", {"ax": "finish"}),
    "a a! B c": ("start a ax ax.next b c finish", {"ax": "ax.next"}),
    "a? B c": ("start a a.next b c finish", {"a": "a.next"}),
    "a a! B": ("start a ax b finish", {"ax": ""}),
    "A a!": ("start a ax finish", {"ax": ""}),
}


@pytest.mark.parametrize("words", COURSES)
def test_effects_and_reviews_lead_on_in_the_files_order(words: str) -> None:
    """Each stands behind its step; where a name is not enough to lead on, a step of no program does it."""
    toml = file_of(words)
    made = contract(toml)
    course = Course(made, workflowfile.read(toml.encode(), "flow"))
    leads = {place.name: course.then(number) for number, place in enumerate(course.places) if place.waits}
    backs = {name: course.back(course.at[name]) for name in leads}

    assert COURSES[words] == (" ".join(step.name for step in made.steps), leads)
    kinds = {step.name: step.kind for step in made.steps}
    for name, step in [*leads.items(), *backs.items()]:
        assert not step or kinds[step] is kinds[name]


def test_effects_of_one_step_follow_each_other() -> None:
    """Two effects of one step are asked for one after the other, as they stand in the file."""
    toml = file_of("a a!")
    effect = toml[toml.index("[[effect]]") :]
    toml = toml.replace('"ax"', '"ay"') + effect
    made = contract(toml)

    assert ["start", "a", "ay", "ax", "finish"] == [step.name for step in made.steps]
    assert ["ay", "ax"] == [tool.tool for tool in made.effects]


@pytest.mark.anyio
async def test_steps_behind_lead_on(tmp_path: Path) -> None:
    """What others decided has come true: the job begins its fan-out, the item waits for the next one."""
    async with desk(tmp_path, contract(file_of("A A! b b! C d"))) as made:
        begun = (await made.run("start", "", items=(Item(id="i", ordinal=0),))).answer.decided
        first = (await made.run("a", "", number=2)).answer.decided
        asked = (await made.run("ax", "", number=3)).answer.decided
        led = (await made.run("ax.next", "", number=4)).answer.decided
        item = (await made.run("b", number=5)).answer.decided
        asked_of_item = (await made.run("bx", number=6)).answer.decided
        waits = (await made.run("bx.next", number=7)).answer.decided
        last = (await made.run("d", number=8)).answer.decided
        over = (await made.run("finish", "", number=9)).answer.decided

    assert ("a", "ax") == (begun.step, first.step)
    assert ("ax.next", "a") == (asked.then, asked.back)
    assert FanOut(start="b", then="c", parallel=2) == led
    assert "bx" == item.step
    assert ("bx.next", "b") == (asked_of_item.then, asked_of_item.back)
    assert NextStep(step="d", waits=True) == waits
    assert (Accepted, Finished) == (type(last), type(over))
    assert {Performing} == {type(asked), type(asked_of_item)}
    assert GoTo is type(begun)


REVIEWED = f"""
version = 1
[[step]]
name = "draft"
run = {argv("sh", "-c", 'echo "Pier, 1907: $1"', "sh", "{note}")}
review.show = {argv("wc", "-c", "{output}")}
review.by = "group:curators"
review.edit = false
review.decide_within = "2d"
repeatable = true
[[step]]
name = "use"
run = ["cat", "{{outputs.draft}}"]
repeatable = true
"""


@pytest.mark.anyio
async def test_a_reviewed_step_asks_with_its_output_as_the_draft(tmp_path: Path) -> None:
    """Rule, note and what is shown come with it; the next step finds the accepted text in its place."""
    async with desk(tmp_path, contract(REVIEWED)) as made:
        asked = (await made.run("draft", row=Item(id="i", ordinal=0, note="shorter"))).answer.decided
        row = Item(id="i", ordinal=0, outputs=(draft("what the program made"),))
        given = Given(text=evolve(draft("what was accepted"), revision=2), editor="lee", by="lee")
        used = (await made.run("use", number=2, row=row, given=given)).answer.decided

    assert isinstance(asked, Reviewing)
    assert ("draft", "Pier, 1907: shorter\n", "use", False) == (
        asked.draft.name,
        asked.draft.text,
        asked.then,
        asked.edit,
    )
    assert (("group:curators",), 2 * 86_400.0) == (asked.rule.by, asked.rule.decide_within)
    assert asked.shown is not None
    assert asked.shown.text is not None
    assert asked.shown.text.startswith(f"{len(asked.draft.text or '')} ")
    assert "what was accepted" == used.output.text


@pytest.mark.anyio
async def test_what_cannot_be_shown_is_not_asked(tmp_path: Path) -> None:
    """A reviewer never decides on a draft whose own check has failed: the try failed."""
    toml = REVIEWED.replace('"wc"', '"false"')
    async with desk(tmp_path, contract(toml)) as made:
        decided = (await made.run("draft")).answer.decided

    assert isinstance(decided, TryAgain)
    assert "show: exit 1" == decided.reason


@pytest.mark.anyio
async def test_a_published_output_comes_before_its_effect(tmp_path: Path) -> None:
    """Publish and effect in one item compose: the output is staged with the way to the effect's step."""
    toml = f"""
version = 1
[[step]]
name = "draft"
run = ["echo", "label"]
output.publish = "{tmp_path}/labels/{{item}}.txt"
repeatable = true
[[effect]]
name = "announce"
target = "list"
approve = false
send = ["true", "{{outputs.draft}}"]
"""
    (tmp_path / "labels").mkdir()
    async with desk(tmp_path, contract(toml)) as made:
        made_it = (await made.run("draft")).answer.decided
        row = Item(id="i", ordinal=0, outputs=(draft("label\n"),))
        asked = (await made.run("announce", number=2, row=row)).answer.decided

    assert isinstance(made_it, NextStep)
    assert ("announce", f"{tmp_path}/labels/i.txt") == (made_it.step, made_it.output.publish.destination)
    assert json.loads(asked.calls[0].arguments)["outputs"] == {"draft": draft("label\n").sha256}


def test_effects_and_what_stands_behind_are_steps_of_their_unit() -> None:
    """An effect is a step of the item or of the job, one at a time, and so is what leads on from it."""
    made = contract(file_of("A A! b b! C d"))
    kinds = {step.name: (step.kind, step.parallel) for step in made.steps}

    assert (StepKind.JOB, None) == kinds["ax"] == kinds["ax.next"]
    assert (StepKind.ITEM, 1) == kinds["bx"]
    assert StepKind.ITEM is kinds["bx.next"][0]
