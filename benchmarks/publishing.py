"""The workflow that effects are measured with: one call after the other, to a target that does nothing."""

from attrs import frozen

from resumed import Absent, Call, Done, Job, Landed, Perform, effect, step, workflow


@frozen
class State:
    """How many calls have landed."""

    count: int = 0


@effect("nowhere.put", version=1, target="nowhere", approve=False, check_first=False)
class Put:
    """One call: a number, and as much text as a small form has."""

    number: int
    text: str

    async def send(self, call: Call) -> Landed:
        """It lands at once."""
        return Landed(str(self.number))

    async def look_up(self, call: Call) -> Absent:
        """Nobody knows of it."""
        return Absent()


@workflow("publishing", version=1, state=State)
class Publishing:
    """Steps that each ask for one call: what is left is the daemon's own work."""

    @step(start=True)
    async def put(self, job: Job, state: State) -> Perform | Done:
        """Ask for the next call, until the job's `steps` are done."""
        if state.count >= job.inputs["steps"]:
            return Done()
        call = Put(number=state.count, text="a label of some forty characters, as it is")
        return Perform(call, then="put", state=State(count=state.count + 1))
