"""The door: a job file's bytes become a durable job, or a refusal that says why; nothing in between.

The same file of the same owner is the job that exists; anything else under its id is a conflict.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from anyio import to_thread

from resumed.schemas import codec, jobfilereader, release
from resumed.schemas.errors import AuthorError, CommitError, StoreError
from resumed.schemas.job import CodeVersion, Job, Person
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import STATE_SCHEMA, Admission
from resumed.schemas.workflow import Contract
from resumed.store import admission, durable, layout, quarantine, recovery

from . import refusals
from .entry import JobEntry, Stage
from .machine import schedule
from .machine.admission import first_line
from .supervisor import Supervisor

OffLoop = Callable[..., Awaitable[Any]]
"""Runs a call beside the loop and returns what it returned."""


class Workflows(Protocol):
    """Which workflows there are, and what inputs they take; `accept` is called from any thread."""

    def pick(self, name: str, version: int | None) -> Contract | Refusal:
        """The workflow of that name and version (None: the newest in force)."""
        ...

    def is_quick(self, contract: Contract) -> bool:
        """Whether `accept` needs no more than a moment: no pattern to match, no path to look at."""
        ...

    def accept(self, contract: Contract, job: JobFile, what: str) -> str:
        """The job's inputs with defaults, as JSON text; FaultyInputError (begun by `what`) otherwise."""
        ...


class Door:
    """Admission into one supervisor's store."""

    def __init__(
        self,
        supervisor: Supervisor,
        workflows: Workflows,
        whole: Callable[[Contract], Awaitable[Contract]],
        off_loop: OffLoop = to_thread.run_sync,
    ) -> None:
        self._supervisor = supervisor
        self._workflows = workflows
        self._whole = whole
        """Completes the contract of a Python workflow; AuthorError when it cannot be run."""
        self._off_loop = off_loop
        """Where inputs are judged: patterns and links may take long, and must not hold up the loop."""

    async def admit(
        self,
        raw: bytes,
        *,
        name: str,
        requester: Person,
        via: str,
        may: Callable[[str], bool] = lambda _: True,
    ) -> tuple[str, bool] | Refusal:
        """The job's id, and whether it was there before. FaultyInputError for a bad file.

        `may` says whether the requester may hand in jobs of a workflow. CommitError when the disk refused:
        asking again tells whether the job exists.
        """
        file = jobfilereader.read(raw, name)
        if not may(file.workflow):
            return refusals.not_submitter(name, file.workflow, requester)
        contract = self._workflows.pick(file.workflow, file.version)
        if isinstance(contract, Refusal):
            return contract
        what = f"cannot admit {name}"
        if self._workflows.is_quick(contract):
            inputs = self._workflows.accept(contract, file, what)
        else:
            inputs = await self._off_loop(self._workflows.accept, contract, file, what)
        try:
            contract = await self._whole(contract)
        except AuthorError as error:
            return Refusal(code="workflow", reason=f"cannot admit {name}: {error}")
        job_id = file.id or derived_id(file, requester)
        sha256 = codec.digest(raw)
        while (entry := self._supervisor.entries.get(job_id)) is not None and entry.admitted is not None:
            await entry.admitted.wait()
        if entry is None:
            try:
                await self._make(job_id, file, contract, inputs, raw, name, requester, via)
                return job_id, False
            except FileExistsError:
                pass  # its folder is made last: that it may be made was the look for one that is there
        if known := await self._known(job_id, None if not file.id else sha256, requester):
            return known
        raise CommitError(f"cannot admit {job_id}: its id was taken meanwhile; ask again")

    async def _known(
        self, job_id: str, sha256: str | None, requester: Person
    ) -> tuple[str, bool] | Refusal | None:
        """The job of that id, if there is one; without `sha256` the id itself covers what the file says."""
        supervisor = self._supervisor
        if job_id not in supervisor.entries and not await supervisor.reads.call(
            layout.taken, supervisor.layout, job_id
        ):
            return None
        aside = supervisor.layout.quarantine / job_id
        for folder in (supervisor.layout.job(job_id), supervisor.layout.archived(job_id), aside):
            try:
                found = await supervisor.reads.call(recovery.peek, folder)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the id is taken
                del error
                continue
            if sha256 in (None, found.sha256) and found.uid == requester.uid:
                if folder == aside:
                    return await self._lies_aside(job_id)
                if folder == supervisor.layout.job(job_id):
                    supervisor.take_in(job_id)
                return job_id, True
        return Refusal(
            code="id_taken",
            reason=f"cannot admit {job_id}: the id is taken by another job file or another owner",
            commands=(f"resumectl show {job_id}",),
        )

    async def _lies_aside(self, job_id: str) -> Refusal:
        try:
            found = await self._supervisor.disk.call(quarantine.find, self._supervisor.layout, job_id)
        except StoreError as error:
            return refusals.set_aside(job_id, str(error))
        return refusals.set_aside(job_id, found.detail if found is not None else "it was moved meanwhile")

    async def _make(
        self,
        job_id: str,
        file: JobFile,
        contract: Contract,
        inputs: str,
        raw: bytes,
        name: str,
        requester: Person,
        via: str,
    ) -> None:
        supervisor = self._supervisor
        now = supervisor.clock.now()
        not_before, deadline = schedule.instants(file, now, f"cannot admit {name}")
        record = Admission(
            schema=STATE_SCHEMA,
            id=job_id,
            admitted=now,
            requester=requester.name,
            uid=requester.uid,
            via=via,
            name=name,
            sha256=codec.digest(raw),
            workflow=contract.workflow,
            **_spelled(raw),
        )
        job = Job(
            id=job_id,
            tenant=file.tenant or requester.name,
            requester=requester.name,
            owner=file.owner or requester.name,
            created=now,
            workflow=contract.workflow,
            version=contract.version,
            title=file.title,
            objective=file.objective or contract.description,
            inputs=inputs,
            items_glob=file.items_glob,
            items_from=_form(file),
            items_file=file.items_lines or file.items_jsonl,
            labels=file.labels,
            sha256=record.sha256,
            priority=file.priority,
            after=file.after,
            not_before=not_before,
            deadline=deadline,
        )
        code = CodeVersion(
            workflow=contract.workflow,
            version=contract.version,
            contract=codec.digest(codec.encode(contract)),
            release=release.VERSION,
        )
        line = first_line(job, contract, file.items or (), code, admission.job_digest(record), now)
        entry = JobEntry(id=job_id, folder=supervisor.layout.job(job_id), stage=Stage.ADMITTING)
        entry.uid = requester.uid
        entry.admitted = anyio.Event()
        supervisor.entries[job_id] = entry
        try:
            await supervisor.admissions.admit(record, line)
        except BaseException as error:
            supervisor.entries.pop(job_id, None)
            supervisor.sequels.heard(job_id)
            if isinstance(error, CommitError):
                await self._in_doubt(job_id)
            raise
        finally:
            admitted, entry.admitted = entry.admitted, None
            admitted.set()
        supervisor.admitted(entry, line)

    async def _in_doubt(self, job_id: str) -> None:
        """A failed admission may have left the folder in its place: then the job exists, and lives."""
        supervisor = self._supervisor
        try:
            there = await supervisor.disk.call(durable.exists, supervisor.layout.job(job_id))
        except OSError:
            return  # whoever asks again finds it, or the next start
        if there:
            supervisor.take_in(job_id)


def _form(file: JobFile) -> str:
    if file.items is not None:
        return "job"
    return "lines" if file.items_lines else "jsonl" if file.items_jsonl else ""


def _spelled(raw: bytes) -> dict[str, str]:
    try:
        return {"text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode("ascii")}


def derived_id(file: JobFile, requester: Person) -> str:
    """The id of a job file that names none: of what it says and whose it is, not of how it is spelled."""
    said = codec.encode(file) + b"\n" + str(requester.uid).encode()
    name = "".join(c if c.isascii() and (c.islower() or c.isdigit()) else "-" for c in file.workflow.lower())
    return f"{name.strip('-')[:48] or 'job'}-{codec.digest(said)[:10]}"
