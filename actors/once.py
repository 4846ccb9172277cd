"""Commands about the house, each under its request id once: a job that comes back or leaves, a reload.

There may be no job to keep the answer in, so it is kept among the names of the store. The order that must
hold: the receipt durable, the deed, the answer. Asked again under the id, what was begun is looked at: what
has happened is answered, what has not is done now. A refusal is not remembered.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.instant import later, reached
from resumed.schemas.receipt import KEPT_SECONDS
from resumed.schemas.refusal import Refusal
from resumed.store import receipts
from resumed.store.receipts import HouseReceipt

from .supervisor import Supervisor

T = TypeVar("T")


@frozen(kw_only=True)
class Ask:
    """Who asks what under which request id ("" for none); `content` is all that was asked, as JSON text."""

    uid: int
    request: str
    method: str
    content: str

    @property
    def digest(self) -> str:
        """The sha256 of what is asked."""
        return codec.digest(f"{self.method} {self.content}".encode())


class Once:
    """What one store remembers of such commands."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._one = anyio.Lock()
        """They are rare: one after the other, so that an id asked twice at once takes effect once."""

    async def known(self, ask: Ask) -> HouseReceipt | Refusal | None:
        """What the id stands for, the conflict where it was given to another command, None for a new one."""
        if not ask.request:
            return None
        supervisor = self._supervisor
        found = await supervisor.reads.call(receipts.find, supervisor.layout, ask.uid, ask.request)
        if found is None:
            return None
        if reached(later(found.at, KEPT_SECONDS), supervisor.clock.now()):
            await supervisor.disk.call(receipts.drop, supervisor.layout, found)
            return None
        if found.content == ask.digest:
            return found
        return Refusal(
            code="request_conflict",
            reason=f"cannot do this: request id {ask.request} was given before, to another command "
            f"({found.method}{' ' if found.job else ''}{found.job})",
            commands=("resumectl quarantine list", "resumectl list -a"),
        )

    async def change(
        self,
        ask: Ask | None,
        job: str,
        since: int,
        over: Callable[[HouseReceipt], Awaitable[T | None]],
        act: Callable[[], Awaitable[T | Refusal]],
    ) -> T | Refusal:
        """What `act` does to the job, once; `over` gives the first answer where it has happened already."""
        if ask is None or not ask.request:
            return await act()
        async with self._one:
            found = await self.known(ask)
            if isinstance(found, Refusal):
                return found
            if found is not None and (first := await over(found)) is not None:
                return first
            receipt = found or self._receipt(ask, job=job, since=since)
            if found is None:
                # A crash after this line leaves a receipt of what was not done, and is done when asked again.
                await self._keep(receipt)
            answer = await act()
            if isinstance(answer, Refusal):
                await self._supervisor.disk.call(receipts.drop, self._supervisor.layout, receipt)
            return answer

    async def tell(
        self, ask: Ask, act: Callable[[], Awaitable[tuple[tuple[str, ...], tuple[str, ...]]]]
    ) -> tuple[tuple[str, ...], tuple[str, ...], bool] | Refusal:
        """What `act` says and its problems, and whether that is an earlier answer. It may be done again where
        its answer was not kept: a reload reads what is there, however often."""
        async with self._one:
            found = await self.known(ask)
            if isinstance(found, Refusal):
                return found
            if found is not None:
                return found.said, found.problems, True
            said, problems = await act()
            if ask.request:
                await self._keep(self._receipt(ask, said=said, problems=problems))
            return said, problems, False

    def _receipt(
        self,
        ask: Ask,
        *,
        job: str = "",
        since: int = 0,
        said: tuple[str, ...] = (),
        problems: tuple[str, ...] = (),
    ) -> HouseReceipt:
        return HouseReceipt(
            uid=ask.uid,
            value=ask.request,
            method=ask.method,
            content=ask.digest,
            at=self._supervisor.clock.now(),
            job=job,
            since=since,
            said=said,
            problems=problems,
        )

    async def _keep(self, receipt: HouseReceipt) -> None:
        await self._supervisor.disk.call(receipts.keep, self._supervisor.layout, receipt)
