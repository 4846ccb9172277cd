"""A Python effect at work: in words when it is asked for, and made of the stored words when it is sent."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from resumed.schemas import decisions
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import Run
from resumed.schemas.job import Source
from resumed.schemas.ledger import ToolContract

from . import calls, credentials, faulttext, offers, outcomes
from .effects import note_of
from .trial import Trial

AGAIN = 60.0
"""Seconds until a call is tried again that could not even be begun."""


class _UnfitError(AuthorError):
    """Nothing was begun: the stored words make no call, or a credential cannot be had."""


def _masked(text: str, masks: tuple[bytes, ...]) -> str:
    for mask in masks:
        text = text.replace(mask.decode("utf-8", "replace"), "***")
    return text


class PythonTool:
    """One effect at work in a worker (`errands.Tool`)."""

    def __init__(self, kind: type, contract: ToolContract) -> None:
        self._kind = kind
        self._contract = contract

    def _rebuilt(self, run: Run) -> Any:
        assert run.call is not None
        try:
            return calls.rebuild(self._kind, run.call, run.artifacts)
        except AuthorError as error:
            raise _UnfitError(str(error)) from None

    @contextmanager
    def _calling(self, run: Run) -> Iterator[calls.Call]:
        """What an author's method is given; no credential is part of what it raises."""
        note = note_of(self._kind)
        assert note is not None
        try:
            stack = ExitStack()
            handed = stack.enter_context(credentials.handed(run.credentials, note.secrets, run.scratch))
        except credentials.AbsentError as error:
            raise _UnfitError(str(error)) from None
        with stack:
            try:
                yield calls.Call(run, self._contract, handed.values)
            except Exception as error:
                if not handed.values:
                    raise
                raise AuthorError(_masked(faulttext.of(error), handed.masks())) from None

    async def call(self, made: Any, run: Run, sources: tuple[Source, ...]) -> decisions.Call:
        """The words of one effect that a handler asks for; the target is read where its version binds."""
        contract = self._contract
        spelled = calls.spell(made, contract.tool, contract.unbound, run)
        note = note_of(self._kind)
        assert note is not None
        return decisions.Call(
            tool=contract.tool,
            arguments=spelled.arguments,
            unbound=spelled.unbound,
            bodies=spelled.bodies,
            business_object=faulttext.clean(str(getattr(made, note.about))) if note.about else "",
            expected_result=note.expects,
            observed=await self.observed(made, run) if contract.observe else "",
            shown=self._shown(made, run),
            sources=sources,
        )

    def _shown(self, made: Any, run: Run) -> decisions.Offer | None:
        show = getattr(made, "show", None)
        if show is None:
            return None
        text = show()
        if not isinstance(text, str):
            raise AuthorError(f"{self._contract.tool}.show returned {type(text).__name__}, expected text")
        return offers.of_text("shown", text, run.scratch)

    async def send(self, run: Run, trial: Trial) -> decisions.Decided:
        """Do it once, from the stored bytes."""
        del trial
        try:
            made = self._rebuilt(run)
            with self._calling(run) as call:
                said = await made.send(call)
        except _UnfitError as error:
            return decisions.NotSent(reason=str(error), seconds=AGAIN)
        answer: decisions.Decided = self._spelled(said, outcomes.SEND_FORMS, "send", run)
        return answer

    async def look_up(self, run: Run, trial: Trial) -> decisions.Landed | decisions.Absent | decisions.Unsure:
        """Whether the target has it."""
        del trial
        try:
            made = self._rebuilt(run)
            with self._calling(run) as call:
                said = await made.look_up(call)
        except _UnfitError as error:
            return decisions.Unsure(reason=str(error))
        answer: decisions.Landed | decisions.Absent | decisions.Unsure
        answer = self._spelled(said, outcomes.LOOK_UP_FORMS, "look_up", run)
        return answer

    async def observe(self, run: Run, trial: Trial) -> str:
        """The version of the target's object now."""
        del trial
        return await self.observed(self._rebuilt(run), run)

    async def observed(self, made: Any, run: Run) -> str:
        """The same for an effect that is not stored yet."""
        with self._calling(run) as call:
            said = await made.observe(call)
        if not isinstance(said, str):
            raise AuthorError(f"{self._contract.tool}.observe returned {type(said).__name__}, expected text")
        return said

    def _spelled(self, said: Any, forms: tuple[type, ...], name: str, run: Run) -> Any:
        return outcomes.spell(said, forms, f"{self._contract.tool}.{name}", run)
