"""The course of a workflow of programs: which step follows which, for the job and for each item.

`start` comes first and lists the items; then the steps in the order of the file; then `finish`. A step with
`each = false` runs once for the job, at its place: it begins when every item is through the steps before it
(done with them, or left out), and no item begins the steps after it before it has ended well. Steps for the
items that stand together are one fan-out: each item goes through them at its own pace.
"""

from attrs import frozen

from resumed.schemas.decisions import Decided, FanOut, GoTo, NewItem, NextStep, Offer
from resumed.schemas.workflow import Contract, Programs, ProgramStep

START, FINISH = "start", "finish"


@frozen
class Course:
    """The order of one workflow's steps."""

    contract: Contract
    programs: Programs

    @property
    def has_item_steps(self) -> bool:
        """Whether any step runs for the items."""
        return any(step.each for step in self.programs.steps)

    def begin(self, items: tuple[NewItem, ...]) -> Decided:
        """What follows once the items are listed."""
        return self._after(0, None, items)

    def after_job_step(self, place: int, output: Offer) -> Decided:
        """What follows for the job when its own step at `place` has ended well."""
        return self._after(place + 1, output, None)

    def after_item_step(self, place: int, output: Offer, data: str) -> NextStep | None:
        """What follows for an item when its step at `place` has ended well; None when that was its last."""
        steps = self.programs.steps
        for next_place in range(place + 1, len(steps)):
            if steps[next_place].each:
                waits = next_place > place + 1
                return NextStep(step=steps[next_place].name, data=data, waits=waits, output=output)
        return None

    def _after(self, place: int, output: Offer | None, items: tuple[NewItem, ...] | None) -> Decided:
        steps = self.programs.steps
        if place == len(steps) or not steps[place].each:
            name = steps[place].name if place < len(steps) else FINISH
            return GoTo(step=name, items=items, output=output)
        end = next((n for n in range(place, len(steps)) if not steps[n].each), len(steps))
        return FanOut(
            start=steps[place].name,
            then=steps[end].name if end < len(steps) else FINISH,
            items=items,
            parallel=self._parallel(steps[place:end]),
            output=output,
        )

    def _parallel(self, steps: tuple[ProgramStep, ...]) -> int:
        """How many tries at once in a fan-out: the law holds each step to its own number.

        A contract of before the law did so says nothing of it: then no step may have more than its number.
        """
        limits = [step.parallel for step in steps]
        known = all((held := self.contract.step(step.name)) and held.parallel for step in steps)
        return sum(limits) if known else min(limits)
