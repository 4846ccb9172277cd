"""A workflow whose one step says that it goes on in 55 seconds: near enough for its job to keep its actor."""

from attrs import frozen

from resumed import Done, Job, RetryAfter, step, workflow


@frozen
class State:
    """About 1 KiB."""

    text: str = "x" * 1000


@workflow("waiting", version=1, state=State)
class Waiting:
    """Jobs that are idle, and not parked."""

    @step(start=True)
    async def wait(self, job: Job, state: State) -> RetryAfter | Done:
        """Not now."""
        return RetryAfter("55s", "as it is measured")
