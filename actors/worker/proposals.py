"""The try of an effect's step: it finds out what exactly is asked for, and lets nothing leave.

The order that must hold: sources pinned, then bytes copied, then the target observed, then what the reviewer
is shown; so that nothing is shown that is older than what it is compared with before the call is sent.
"""

import contextlib
import os
import shutil
from collections.abc import Mapping

import anyio.to_thread
from attrs import evolve

from resumed.schemas import templates, workfloweffects
from resumed.schemas.decisions import Call, Decided, HoldBack, Offer, Performing, TryAgain
from resumed.schemas.frames import CallGiven, Run
from resumed.schemas.job import Artifact, Source
from resumed.schemas.ledger import ErrandKind
from resumed.schemas.programeffects import ProgramEffect
from resumed.schemas.workflow import OnChange, Pinning, Programs
from resumed.schemas.workflowsteps import MAX_OUTPUT

from . import credentials, exchange, faulttext, offers, onetry, programcalls, programtools, reach, sources
from .trial import Trial


class _EndedError(Exception):
    """There is nothing to ask for as it stands; `decided` says what that means for the try."""

    def __init__(self, decided: Decided) -> None:
        super().__init__(decided)
        self.decided = decided


async def proposed(
    programs: Programs,
    effect: ProgramEffect,
    run: Run,
    given: Mapping[str, str],
    leads: tuple[str, str],
    trial: Trial,
) -> Decided:
    """What an effect's step decides: to ask for its call, or why it cannot; TryStoppedError when stopped.

    `given` are the values of the try, files of earlier outputs among them; `leads` the steps that follow
    when it has landed, and when a reviewer sends it back.
    """
    try:
        call = await _Proposal(programs, effect, run, given, trial).call()
    except _EndedError as ended:
        return ended.decided
    return Performing(calls=(call,), then=leads[0], back=leads[1])


class _Proposal:
    def __init__(
        self, programs: Programs, effect: ProgramEffect, run: Run, given: Mapping[str, str], trial: Trial
    ) -> None:
        self._programs = programs
        self._effect = effect
        self._run = run
        self._given = given
        self._trial = trial

    async def call(self) -> Call:
        effect, run = self._effect, self._run
        if effect.speaks_http and not exchange.is_there():
            reason = "it is an HTTP request, and httpx is not installed: pip install 'resumed[http]'"
            raise _EndedError(HoldBack(code="http", reason=reason))
        self._check_credentials()
        pinned = await anyio.to_thread.run_sync(self._sources, abandon_on_cancel=True)
        bytes_ = await anyio.to_thread.run_sync(self._bytes, abandon_on_cancel=True)
        early = {name: self._given[name] for name in workfloweffects.values_of(effect)}
        observed = await self._observed(early)
        arguments, unbound = self._stored(early, bytes_, observed)
        return Call(
            tool=effect.name,
            arguments=arguments,
            unbound=unbound,
            bodies=tuple(bytes_.values()),
            business_object=run.item,
            observed=observed,
            shown=await self._shown(early, bytes_, observed),
            sources=pinned,
        )

    def _check_credentials(self) -> None:
        try:
            credentials.check(self._run.credentials, self._effect.secrets)
        except credentials.AbsentError as error:
            raise _EndedError(HoldBack(code="secrets", reason=faulttext.clean(str(error)))) from None

    def _sources(self) -> tuple[Source, ...]:
        """What the call relies on, as it is now: the item's own source, and those that the effect names."""
        own = self._run.row.source if self._run.row is not None else None
        found = {}
        if (
            own is not None
            and sources.is_pinned(own)
            and self._programs.items_on_change is not OnChange.IGNORE
        ):
            found[own.path] = own
        for text in self._effect.sources:
            path = templates.fill(text, self._given)
            if path in found:
                continue
            asked = any(name.startswith("inputs.") for name in templates.names(text))
            of_item = "source" in templates.names(text) and own is not None and own.requested
            try:
                found[path] = _pinned(path, asked or of_item, self._run)
            except OSError as error:
                reason = f"cannot read {path}, which the call relies on: {error.strerror or error}"
                raise _EndedError(TryAgain(code="source", reason=faulttext.clean(reason))) from None
        return tuple(found.values())

    def _bytes(self) -> dict[str, Offer]:
        """What the placeholders stand for that are bytes: copies, which nobody else writes to."""
        found = {}
        for number, name in enumerate(workfloweffects.bytes_of(self._effect)):
            path = self._given[name]
            step = name.removeprefix("outputs.")
            called = os.path.basename(path) if name == "source" else step
            copy = os.path.join(self._run.scratch, "call", str(number), called or "bytes")
            try:
                os.makedirs(os.path.dirname(copy), 0o700, exist_ok=True)
                self._copy(name, path, copy)
                found[name] = offers.of_file(called, copy)
            except OSError as error:
                reason = f"cannot keep {{{name}}} with the call: {error.strerror or error}"
                raise _EndedError(TryAgain(code="no-input", reason=faulttext.clean(reason))) from None
        own = self._run.row.source if self._run.row is not None else None
        if "source" in found and own is not None and own.sha256 and own.sha256 != found["source"].sha256:
            raise _EndedError(TryAgain(code="source", reason="its source changed while it was copied"))
        return found

    def _copy(self, name: str, path: str, copy: str) -> None:
        own = self._run.row.source if self._run.row is not None else None
        as_whom = self._run.reader if name == "source" and own is not None and own.requested else None
        with reach.run_as(as_whom, offers.open_regular, path) as reading, open(copy, "wb") as writing:
            if os.fstat(reading.fileno()).st_size > MAX_OUTPUT:
                reason = f"{{{name}}} has more than {MAX_OUTPUT} bytes, the most that is kept with a call"
                raise _EndedError(HoldBack(code="call", reason=reason))
            shutil.copyfileobj(reading, writing)

    def _stored(self, early: Mapping[str, str], bytes_: dict[str, Offer], observed: str) -> tuple[str, str]:
        """The texts that are stored; held where no call can be made of them."""
        digests = {name: offer.sha256 for name, offer in bytes_.items()}
        try:
            arguments, unbound = programcalls.stored(self._effect, early, digests)
            given = CallGiven(
                effect="",
                kind=ErrandKind.CHECK,
                tool=self._effect.name,
                version=self._effect.version,
                operation_key="",
                fingerprint="",
                arguments=arguments,
                unbound=unbound,
                bodies=tuple(_artifact(offer) for offer in bytes_.values()),
                observed=observed,
            )
            programcalls.tried(self._effect, given, self._run.scratch)
        except (programcalls.UnfitError, OSError) as error:
            reason = f"no call can be made of it: {error}"
            raise _EndedError(HoldBack(code="call", reason=faulttext.clean(reason))) from None
        return arguments, unbound

    async def _observed(self, early: Mapping[str, str]) -> str:
        if not self._effect.observes:
            return ""
        seconds = programtools.within(self._effect.timeout)
        with contextlib.ExitStack() as stack:
            try:
                made = programtools.Making(self._effect, self._run, stack)
                made.values = early
                return await programtools.observed(made, self._trial, seconds)
            except (programtools.UnobservedError, credentials.AbsentError) as error:
                reason = faulttext.clean(str(error))
                raise _EndedError(TryAgain(code="observe", reason=reason)) from None

    async def _shown(self, early: Mapping[str, str], bytes_: dict[str, Offer], observed: str) -> Offer | None:
        if not self._effect.show:
            return None
        paths = {name: offer.path or "" for name, offer in self._as_files(bytes_).items()}
        found = {**early, **paths, "observed": observed}
        argv = programcalls.words(self._effect.show, found)
        seconds = programtools.within(self._effect.timeout)
        with contextlib.ExitStack() as stack:
            # What it prints is for everybody who may decide: it is handed no credentials.
            made = programtools.Making(self._effect, self._run, stack, secrets=())
            made.values = found
            try:
                ended = await programtools.shown(made, argv, self._trial, seconds)
            except programtools.NoProgramError as error:
                raise _EndedError(HoldBack(code="cannot_start", reason=faulttext.clean(str(error)))) from None
        if ended is None or ended.status:
            how = (
                f"did not end within {seconds:g} s" if ended is None else programtools.words(ended, made.log)
            )
            reason = faulttext.clean(f"what is to be shown for it cannot be made: show {how}")
            raise _EndedError(TryAgain(code="show", reason=reason))
        return offers.of_bytes("shown", ended.stdout[: onetry.SHOWN_MOST], self._run.scratch)

    def _as_files(self, bytes_: dict[str, Offer]) -> dict[str, Offer]:
        """The offers, each with the file that its bytes were copied to."""
        folder = os.path.join(self._run.scratch, "call")
        return {
            name: evolve(offer, path=os.path.join(folder, str(number), offer.name))
            for number, (name, offer) in enumerate(bytes_.items())
        }


def _pinned(path: str, requested: bool, run: Run) -> Source:
    as_whom = run.reader if requested else None
    source = Source(path=path, requested=requested)
    return reach.run_as(as_whom, sources.pinned, source, Pinning.AUTO, as_whom)


def _artifact(offer: Offer) -> Artifact:
    return Artifact(
        name=offer.name,
        sha256=offer.sha256,
        size=offer.size,
        text=offer.text,
        base64=offer.base64,
        path=offer.path or "",
    )


def placeholders(effect: ProgramEffect) -> list[str]:
    """The placeholders that must stand for something before it can be asked for."""
    named = [name for text in effect.sources for name in templates.names(text)]
    return sorted({*workfloweffects.values_of(effect), *workfloweffects.bytes_of(effect), *named})


def absent(effect: ProgramEffect, given: Mapping[str, str]) -> list[str]:
    """Those of them that stand for nothing."""
    return [name for name in placeholders(effect) if name not in given]
