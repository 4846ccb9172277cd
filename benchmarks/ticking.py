"""The workflow that is measured: one job step that does nothing but go to itself, with 1 KiB of state."""

from attrs import frozen

from resumed import Done, Goto, Job, step, workflow

FILLING = "x" * 1000


@frozen
class State:
    """About 1 KiB, a little of it new at each step."""

    count: int = 0
    text: str = ""


@workflow("ticking", version=1, state=State)
class Ticking:
    """Steps that do nothing: what is left is the daemon's own work."""

    @step(start=True)
    async def tick(self, job: Job, state: State) -> Goto | Done:
        """Count one up, until the job's `steps` are done."""
        following = State(count=state.count + 1, text=f"{state.count:024d}{FILLING}")
        if following.count >= job.inputs["steps"]:
            return Done(following)
        return Goto("tick", following)
