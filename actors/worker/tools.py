"""A Python effect at work: in words when it is asked for, and made of the stored words when it is sent."""

from typing import Any

from resumed.schemas import decisions
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import Run
from resumed.schemas.job import Source
from resumed.schemas.ledger import ToolContract

from . import calls, faulttext, offers, outcomes
from .effects import note_of
from .trial import Trial


class PythonTool:
    """One effect at work in a worker (`errands.Tool`)."""

    def __init__(self, kind: type, contract: ToolContract) -> None:
        self._kind = kind
        self._contract = contract

    def _rebuilt(self, run: Run) -> Any:
        assert run.call is not None
        return calls.rebuild(self._kind, run.call, run.artifacts)

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
        except AuthorError as error:
            return decisions.NotSent(reason=str(error), seconds=60.0)
        said = await made.send(calls.Call(run, self._contract))
        answer: decisions.Decided = self._spelled(said, outcomes.SEND_FORMS, "send", run)
        return answer

    async def look_up(self, run: Run, trial: Trial) -> decisions.Landed | decisions.Absent | decisions.Unsure:
        """Whether the target has it."""
        del trial
        said = await self._rebuilt(run).look_up(calls.Call(run, self._contract))
        answer: decisions.Landed | decisions.Absent | decisions.Unsure
        answer = self._spelled(said, outcomes.LOOK_UP_FORMS, "look_up", run)
        return answer

    async def observe(self, run: Run, trial: Trial) -> str:
        """The version of the target's object now."""
        del trial
        return await self.observed(self._rebuilt(run), run)

    async def observed(self, made: Any, run: Run) -> str:
        """The same for an effect that is not stored yet."""
        said = await made.observe(calls.Call(run, self._contract))
        if not isinstance(said, str):
            raise AuthorError(f"{self._contract.tool}.observe returned {type(said).__name__}, expected text")
        return said

    def _spelled(self, said: Any, forms: tuple[type, ...], name: str, run: Run) -> Any:
        return outcomes.spell(said, forms, f"{self._contract.tool}.{name}", run)
