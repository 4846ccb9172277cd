"""The course of a workflow of programs: which step follows which, for the job and for each item.

`start` comes first and lists the items; then the steps in the order of the file, each with its effects
behind it; then `finish`. What has `each = false` runs once for the job, at its place: it begins when every
item is through all that stands before it (done with it, or left out), and no item begins what stands after
it before it has ended well. Item steps that stand together are one fan-out: each item goes through them at
its own pace.

An effect, or a review, is followed by the name of a step alone. Where more is to be said (a fan-out begins,
or the item waits for one), a step of no program stands between: its name ends in `.next`.
"""

from collections.abc import Iterator

from attrs import frozen

from resumed.schemas.decisions import Decided, FanOut, GoTo, NewItem, NextStep, Offer
from resumed.schemas.programeffects import ProgramEffect
from resumed.schemas.workflow import Contract, Programs, ProgramStep, StepContract, StepKind
from resumed.schemas.workfloweffects import BEHIND

START, FINISH = "start", "finish"


@frozen
class Place:
    """One place of the course: a step, or an effect."""

    name: str
    each: bool
    step: ProgramStep | None = None
    effect: ProgramEffect | None = None

    @property
    def waits(self) -> bool:
        """Whether it ends with something that people or targets decide."""
        return self.effect is not None or (self.step is not None and self.step.review is not None)


def places_of(programs: Programs) -> Iterator[Place]:
    """The places of a workflow, in order."""
    for step in programs.steps:
        yield Place(step.name, step.each, step=step)
        for effect in programs.effects:
            if effect.after == step.name:
                yield Place(effect.name, effect.each, effect=effect)


class Course:
    """The order of one workflow's steps and effects."""

    def __init__(self, contract: Contract, programs: Programs) -> None:
        self.contract = contract
        self.programs = programs
        self.places = tuple(places_of(programs))
        self.at = {place.name: number for number, place in enumerate(self.places)}
        self.behind = {
            f"{place.name}{BEHIND}": n for n, place in enumerate(self.places) if self.needs_more(n)
        }
        """The steps of no program, by name, with the place that each leads on from."""

    @property
    def has_item_steps(self) -> bool:
        """Whether anything runs for the items."""
        return any(place.each for place in self.places)

    def begin(self, items: tuple[NewItem, ...]) -> Decided:
        """What follows once the items are listed."""
        return self._after(0, None, items)

    def after_job_step(self, number: int, output: Offer | None) -> Decided:
        """What follows for the job when what it has at that place has ended well."""
        return self._after(number + 1, output, None)

    def after_item_step(self, number: int, output: Offer | None, data: str) -> NextStep | None:
        """What follows for an item when what it has at that place has ended well; None after its last."""
        following = self._next_of_item(number)
        if following is None:
            return None
        waits = following > number + 1
        return NextStep(step=self.places[following].name, data=data, waits=waits, output=output)

    def then(self, number: int) -> str:
        """The step that a unit enters when what was asked for at that place has come true; empty: none."""
        place = self.places[number]
        if self.needs_more(number):
            return f"{place.name}{BEHIND}"
        if not place.each:
            return self.places[number + 1].name if number + 1 < len(self.places) else FINISH
        following = self._next_of_item(number)
        return "" if following is None else self.places[following].name

    def back(self, number: int) -> str:
        """The step that a reviewer sends an effect back to: the one it stands behind, where it is the same
        unit's; else the effect is asked for again."""
        effect = self.places[number].effect
        if effect is None or self.places[self.at[effect.after]].each != effect.each:
            return ""
        return effect.after

    def needs_more(self, number: int) -> bool:
        """Whether the name of a step is not enough to lead on from a place where others decide."""
        place = self.places[number]
        if not place.waits:
            return False
        if not place.each:
            return number + 1 < len(self.places) and self.places[number + 1].each
        following = self._next_of_item(number)
        return following is not None and following > number + 1

    def _next_of_item(self, number: int) -> int | None:
        for following in range(number + 1, len(self.places)):
            if self.places[following].each:
                return following
        return None

    def _after(self, number: int, output: Offer | None, items: tuple[NewItem, ...] | None) -> Decided:
        places = self.places
        if number == len(places) or not places[number].each:
            name = places[number].name if number < len(places) else FINISH
            return GoTo(step=name, items=items, output=output)
        end = next((n for n in range(number, len(places)) if not places[n].each), len(places))
        return FanOut(
            start=places[number].name,
            then=places[end].name if end < len(places) else FINISH,
            items=items,
            parallel=self._parallel(places[number:end]),
            output=output,
        )

    def _parallel(self, places: tuple[Place, ...]) -> int:
        """How many tries at once in a fan-out: the law holds each step to its own number.

        A contract of before the law did so says nothing of it: then no step may have more than its number.
        """
        limits = [place.step.parallel if place.step is not None else 1 for place in places]
        known = all((held := self.contract.step(place.name)) and held.parallel for place in places)
        return sum(limits) if known else min(limits)


def contracts_of(programs: Programs, steps: dict[str, StepContract]) -> Iterator[StepContract]:
    """The step contracts of a course, in order; `steps` holds those of the file's own steps."""
    yield StepContract(name=START, kind=StepKind.JOB)
    course = Course(Contract(workflow="", version=1, start=START, steps=()), programs)
    for number, place in enumerate(course.places):
        kind = StepKind.ITEM if place.each else StepKind.JOB
        if place.effect is None:
            yield steps[place.name]
        else:
            yield StepContract(name=place.name, kind=kind, parallel=1 if place.each else None)
        if course.needs_more(number):
            yield StepContract(name=f"{place.name}{BEHIND}", kind=kind)
    yield StepContract(name=FINISH, kind=StepKind.JOB)
