"""Errands: what a worker answers that was sent about an effect, to check it, to send it or to look it up.

It is told of the stored call and of nothing else; no step of an author is run. An error of the author's own
is nobody's answer: what was to be sent may have left.
"""

from typing import Protocol

import anyio.to_thread

from resumed.schemas.decisions import Absent, Answer, Checked, Decided, Landed, Seen, Unsure
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import CallGiven, Run
from resumed.schemas.job import Reader
from resumed.schemas.ledger import ErrandKind, ToolContract
from resumed.schemas.workflow import Pinning

from . import faulttext, sources
from .trial import Trial, TryStoppedError

AGAIN = 30.0
"""Seconds after which a check is made again that found nothing out."""


class Tool(Protocol):
    """One effect as its author writes it; each answer is made of the stored call in `run.call`."""

    async def send(self, run: Run, trial: Trial) -> Decided:
        """What the target said; TryStoppedError when it was stopped, any other error for an unknown end."""

    async def look_up(self, run: Run, trial: Trial) -> Landed | Absent | Unsure:
        """Whether the target has it."""

    async def observe(self, run: Run, trial: Trial) -> str:
        """The version of the target's object as it is now; any error when it cannot be told."""


async def answered(contract: ToolContract | None, tool: Tool, run: Run, trial: Trial) -> Answer:
    """The answer of one errand."""
    call = run.call
    assert call is not None
    if contract is None or contract.version != call.version:
        found = f"version {contract.version}" if contract is not None else "none"
        raise AuthorError(f"cannot act for {call.tool} of version {call.version}: the workflow has {found}")
    if call.kind is ErrandKind.SEND:
        return Answer(decided=await tool.send(run, trial))
    if call.kind is ErrandKind.LOOK_UP:
        return Answer(decided=await tool.look_up(run, trial))
    return Answer(decided=await _checked(contract, tool, run, trial))


async def _checked(contract: ToolContract, tool: Tool, run: Run, trial: Trial) -> Checked:
    call = run.call
    assert call is not None
    observed, found = None, None
    try:
        changed = await anyio.to_thread.run_sync(_changed, call, run.reader, abandon_on_cancel=True)
        if contract.look_up and call.first:
            said = await tool.look_up(run, trial)
            if isinstance(said, Unsure):
                return Checked(problem=f"it cannot be looked up: {said.reason}", seconds=AGAIN)
            found = said.reference if isinstance(said, Landed) else None
        if contract.observe:
            observed = await tool.observe(run, trial)
    except TryStoppedError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing was found out, and nothing has left
        return Checked(problem=faulttext.of(error), seconds=AGAIN)
    return Checked(observed=observed, changed=changed, found=found)


def _changed(call: CallGiven, reader: Reader | None) -> tuple[Seen, ...]:
    """The call's sources that are not what they were; OSError when one cannot be read for now."""
    seen = []
    for source in call.sources:
        now = sources.compared_as(reader, source, Pinning.AUTO)
        if now is not None:
            seen.append(Seen(item=source.path, source=now.source, reason=faulttext.clean(now.reason)))
    return tuple(seen)
