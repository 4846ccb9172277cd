"""A Python workflow for tests: it counts in its state, hands data on, and fails in many ways."""

import asyncio
import os
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from resumed import (
    Accept,
    Done,
    Each,
    Goto,
    Hold,
    Item,
    ItemDecision,
    Job,
    JobDecision,
    Next,
    RetryAfter,
    step,
    workflow,
)


@frozen
class Count:
    """How often the job came by, and what it saw."""

    rounds: int = 0
    seen: tuple[str, ...] = ()
    note: str | None = None


class UnprintableError(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def dive(depth: int) -> int:
    """Deeper than any interpreter goes."""
    return dive(depth + 1) + 1


def fail(kind: str) -> Any:
    """End in the way named."""
    if kind == "ValueError":
        raise ValueError("bad thing")
    if kind == "exception group":
        raise BaseExceptionGroup("two", [ValueError("one"), KeyError("two")])
    if kind == "RecursionError":
        dive(0)
    if kind == "MemoryError":
        raise MemoryError
    if kind == "SystemExit":
        raise SystemExit(0)
    if kind == "KeyboardInterrupt":
        raise KeyboardInterrupt
    if kind == "unprintable":
        raise UnprintableError
    if kind == "lone surrogate":
        raise ValueError("\ud83d and \x00")
    if kind == "huge text":
        raise ValueError("x" * 50_000_000)
    if kind == "cancelled from within":
        raise asyncio.CancelledError
    if kind == "a wrong type":
        return Goto("again")
    if kind == "a step that is none":
        return Next("nowhere")
    if kind == "data that JSON has no word for":
        return Next("one", {"when": float("nan")})
    return None


@workflow("author", version=3, state=Count, slots=16)
class Flow:
    """Rounds of a job, and items that behave."""

    @step(start=True)
    async def begin(self, job: Job, state: Count) -> JobDecision:
        """Commit a changed field and go on."""
        return Goto("again", state=evolve(state, rounds=state.rounds + 1))

    @step
    async def again(self, job: Job, state: Count) -> JobDecision:
        """Fan out over the items there are."""
        return Each(job.items, start="one", then="close", parallel=4)

    @step(repeatable=False, timeout="90s", tries=5, backoff=("1s", 60))
    async def close(self, job: Job, state: Count) -> JobDecision:
        """End, with what was accepted."""
        texts = tuple(item.output.text or "" for item in job.items if item.output)
        return Done(evolve(state, seen=texts))

    @step(item=True)
    async def one(self, job: Job, item: Item) -> ItemDecision:
        """Behave as the item's name says."""
        kind = item.id.partition(":")[2]
        if item.id.startswith("fail:"):
            result: ItemDecision = fail(kind)
            return result
        if item.id == "wait":
            await asyncio.Event().wait()
        if item.id == "later":
            return RetryAfter("90s", "busy")
        if item.id == "unclear":
            return Hold("two answers")
        if item.id.startswith("next"):
            return Next("two", {"from": item.id, "year": item.inputs["year"]})
        return Accept(f"{job.objective} {item.id}")

    @step(item=True)
    async def two(self, job: Job, item: Item) -> ItemDecision:
        """Accept what was handed on, as a file."""
        path = Path(job.scratch, "two")
        path.write_bytes(repr(dict(item.data)).encode() * 3000)
        return Accept(path)


@workflow("alone", version=1)
class Alone:
    """One try at a time: handlers may start programs."""

    @step(start=True)
    async def begin(self, job: Job, state: None) -> JobDecision:
        """Leave a process behind."""
        left = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
        return Hold(str(left.pid), code=str(os.getpid()))


@workflow("relying", version=1)
class Relying:
    """Its items are those of the job file, with their sources."""

    @step(start=True)
    async def begin(self, job: Job, state: None) -> JobDecision:
        """Fan out over all of them."""
        return Each(job.items, start="use", then="end")

    @step(item=True)
    async def use(self, job: Job, item: Item) -> ItemDecision:
        """Read the source."""
        assert item.source is not None
        return Accept(Path(item.source.path).read_text())

    @step
    async def end(self, job: Job, state: None) -> JobDecision:
        """Nothing is left."""
        return Done()
