"""Which job a submission already is: by its request id, by its business key, by its own id, in this order.

The order that must hold for a new job: the names it takes are durable, then its folder is, then it is told.
So a crash leaves a name without a job, which is dropped by whoever asks under it next, and never a job
without its names.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio

from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Admission
from resumed.store import claims, layout, names, quarantine, recovery
from resumed.store.claims import KEY, REQUEST, Claim
from resumed.store.layout import Layout

from . import refusals
from .submission import Admitted, Submission
from .supervisor import Supervisor

logger = logging.getLogger(__name__)

LOOKS = 3
"""At a job that may be on its way to the archive."""
AT_A_TIME = 256
"""Open jobs whose names are looked for in one call of the disk."""


class Known:
    """What one store knows of submissions."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._locks: dict[tuple[str, int, str], tuple[anyio.Lock, int]] = {}
        self._loaded: deque[Admission] = deque()

    # ---- one at a time --------------------------------------------------------------------------------

    @asynccontextmanager
    async def alone(self, offered: Submission, file: JobFile, job: str) -> AsyncIterator[None]:
        """Nobody else comes under any of these names meanwhile: a client that asks again while its first
        question is still being answered gets the same answer, and no second job."""
        uid = offered.requester.uid
        wanted = [(REQUEST, uid, offered.request), (KEY, uid, file.key)]
        if offered.again:
            wanted.append(("again", uid, job))
        async with AsyncExitStack() as held:
            for name in sorted(each for each in wanted if each[2]):
                await held.enter_async_context(self._alone(name))
            yield

    @asynccontextmanager
    async def _alone(self, name: tuple[str, int, str]) -> AsyncIterator[None]:
        lock, count = self._locks.get(name, (anyio.Lock(), 0))
        self._locks[name] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            lock, count = self._locks.pop(name)
            if count > 1:
                self._locks[name] = lock, count - 1

    # ---- looking --------------------------------------------------------------------------------------

    async def find(self, offered: Submission, file: JobFile, job: str) -> Admitted | Refusal | None:
        """The job that this submission is, or why it cannot be one; None for a new one. `alone` is held."""
        found: Admitted | Refusal | None = None
        if offered.request:
            found = await self._by_request(offered)
            if found is not None:
                return found
        if file.key:
            found = await self._by_key(offered, file.key)
        if found is None and not offered.again:
            found = await self._by_id(offered, job, same_bytes=bool(file.id))
        if isinstance(found, Admitted) and offered.request:
            await self.take((self._request(offered, found.job, found=True),))
        return found

    async def _bearer(self, kind: str, offered: Submission, value: str) -> Claim | None:
        """The claim under a name, once its job is somewhere; one whose job never came to be is dropped."""
        supervisor = self._supervisor
        claim = await supervisor.reads.call(
            claims.bearer, supervisor.layout, kind, offered.requester.uid, value
        )
        if claim is None or claim.job in supervisor.entries:
            return claim
        if await supervisor.reads.call(layout.taken, supervisor.layout, claim.job):
            return claim
        await supervisor.disk.call(claims.drop, supervisor.layout, claim)
        return None

    async def _by_request(self, offered: Submission) -> Admitted | Refusal | None:
        claim = await self._bearer(REQUEST, offered, offered.request)
        if claim is None:
            return None
        if claim.content != offered.content:
            return refusals.other_content(offered.name, offered.request, claim.job)
        found = await self._by_id(offered, claim.job)
        if not isinstance(found, Admitted):
            return found
        if offered.again and not claim.found and await self._request_of(claim.job) != offered.request:
            # A crash came between the name and its job, and another submission took the job's id since.
            await self._supervisor.disk.call(claims.drop, self._supervisor.layout, claim)
            return None
        return Admitted(job=claim.job, repeated=claim.found, known=True)

    async def _by_key(self, offered: Submission, key: str) -> Admitted | Refusal | None:
        claim = await self._bearer(KEY, offered, key)
        if claim is None:
            return None
        found = await self._by_id(offered, claim.job)
        return Admitted(job=claim.job, repeated=True, key=key) if isinstance(found, Admitted) else found

    async def _request_of(self, job: str) -> str | None:
        found = (await self._read(job))[1]
        return None if found is None else found.request

    async def _by_id(
        self, offered: Submission, job: str, *, same_bytes: bool = False
    ) -> Admitted | Refusal | None:
        """The job of that id, if there is one."""
        supervisor = self._supervisor
        while (entry := supervisor.entries.get(job)) is not None and entry.admitted is not None:
            await entry.admitted.wait()
        open_before = entry is not None
        if not open_before and not await supervisor.reads.call(layout.taken, supervisor.layout, job):
            return None
        folder, found = await self._read(job)
        if folder is None:
            there = job in supervisor.entries
            return (refusals.id_taken if there else refusals.gone_for_good)(offered.name, job)
        if found is None:
            return await self._unread(offered, job)
        ours = found.uid == offered.requester.uid
        if not ours or (same_bytes and found.sha256 != offered.sha256):
            return refusals.id_taken(offered.name, job)
        if folder == supervisor.layout.quarantine / job:
            return await self._lies_aside(job)
        if folder == supervisor.layout.job(job) and not open_before:
            # One that was open and is not any more has ended while it was looked at.
            supervisor.take_in(job)
        return Admitted(job=job, repeated=True)

    async def _read(self, job: str) -> tuple[Path | None, Admission | None]:
        """Where a job lies and how it came in, as far as either can be told; it may be moved meanwhile."""
        supervisor = self._supervisor
        folder: Path | None = None
        for _ in range(LOOKS):
            folder = await supervisor.reads.call(layout.where, supervisor.layout, job)
            if folder is None:
                continue
            try:
                return folder, await supervisor.reads.call(recovery.peek, folder)
            except (StoreError, FaultyInputError):
                pass
        return folder, None

    async def _unread(self, offered: Submission, job: str) -> Refusal:
        """Whatever is wrong with the job of that id, the id is taken."""
        aside = await self._supervisor.reads.call(quarantine.find, self._supervisor.layout, job)
        return (
            refusals.id_taken(offered.name, job) if aside is None else refusals.set_aside(job, aside.detail)
        )

    async def _lies_aside(self, job: str) -> Refusal:
        try:
            found = await self._supervisor.disk.call(quarantine.find, self._supervisor.layout, job)
        except StoreError as error:
            return refusals.set_aside(job, str(error))
        return refusals.set_aside(job, found.detail if found is not None else "it was moved meanwhile")

    async def free(self, job: str) -> str:
        """An id for the same content as another job: the derived one, or that with the lowest free number."""
        supervisor = self._supervisor
        number, found = 1, job
        while found in supervisor.entries or await supervisor.reads.call(
            layout.taken, supervisor.layout, found
        ):
            number += 1
            found = f"{job}.{number}"
        return found

    # ---- taking ---------------------------------------------------------------------------------------

    def _request(self, offered: Submission, job: str, *, found: bool) -> Claim:
        return Claim(
            kind=REQUEST,
            uid=offered.requester.uid,
            value=offered.request,
            job=job,
            content=offered.content,
            at=self._supervisor.clock.now(),
            found=found,
        )

    def of_new(self, offered: Submission, file: JobFile, job: str) -> tuple[Claim, ...]:
        """The claims that a new job needs before it is admitted."""
        taken = [self._request(offered, job, found=False)] if offered.request else []
        if file.key:
            at = self._supervisor.clock.now()
            uid = offered.requester.uid
            claim = Claim(kind=KEY, uid=uid, value=file.key, job=job, content=offered.sha256, at=at)
            taken.append(claim)
        return tuple(taken)

    async def take(self, wanted: tuple[Claim, ...]) -> None:
        """Make claims durable; StoreError when the disk refuses or a name is another job's all the same."""
        supervisor = self._supervisor
        for claim in wanted:
            held = await supervisor.disk.call(claims.take, supervisor.layout, claim)
            if held.job != claim.job:
                raise StoreError(f"cannot take the {claim.kind} {claim.value}: {held.job} bears it")

    # ---- at start -------------------------------------------------------------------------------------

    def heard(self, admission: Admission) -> None:
        """An open job was read: its names are asserted again soon, should they be missing."""
        if not (admission.key or admission.request):
            return
        self._loaded.append(admission)
        if len(self._loaded) == 1:
            self._supervisor.start_soon(self._assert_again)

    async def _assert_again(self) -> None:
        supervisor = self._supervisor
        while self._loaded:
            some = [self._loaded[place] for place in range(min(AT_A_TIME, len(self._loaded)))]
            try:
                for claim in await supervisor.reads.call(_missing, supervisor.layout, some):
                    await supervisor.disk.call(claims.take, supervisor.layout, claim)
            except StoreError as error:
                # They were durable before their jobs were; the next start looks again.
                logger.error("names of open jobs could not be asserted: %s", error)
            for _ in some:
                self._loaded.popleft()


def _missing(place: Layout, admissions: list[Admission]) -> list[Claim]:
    """The claims of these jobs that are not there."""
    wanted = [claim for each in admissions for claim in claims.of(each)]
    return [claim for claim in wanted if not names.known(place.names, claim.kind, claim.uid, claim.value)]
