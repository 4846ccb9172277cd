"""The door: a job file's bytes become a durable job, or a refusal that says why; nothing in between.

The same file of the same owner is the job that exists; anything else under its id is a conflict. Which job a
file already is, `known` says.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from anyio import to_thread
from attrs import frozen

from resumed.schemas import codec, jobfilereader, release
from resumed.schemas.askviews import ToolRow
from resumed.schemas.errors import AuthorError, CommitError, FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.job import CodeVersion, Job, Person, Reader
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import STATE_SCHEMA, Admission, Line
from resumed.schemas.workflow import Contract
from resumed.store import admission, durable

from . import refusals, toolrows
from .entry import JobEntry, Stage
from .known import Known
from .machine.admission import first_line
from .machine.terms import Terms
from .machine.terms import terms as terms_of
from .submission import Admitted, Submission
from .supervisor import Supervisor


@frozen
class _Prepared:
    """What a new job is made of beside its file: its inputs with defaults, when, and under which terms."""

    inputs: str
    now: Instant
    terms: Terms


OffLoop = Callable[..., Awaitable[Any]]
"""Runs a call beside the loop and returns what it returned."""


class Workflows(Protocol):
    """Which workflows there are, and what inputs they take; `accept` is called from any thread."""

    def contracts(self) -> list[Contract]:
        """The newest ones in force; a Python workflow's is not whole yet."""
        ...

    def pick(self, name: str, version: int | None) -> Contract | Refusal:
        """The workflow of that name and version (None: the newest in force)."""
        ...

    def is_quick(self, contract: Contract) -> bool:
        """Whether `accept` needs no more than a moment: no pattern to match, no path to look at."""
        ...

    def accept(self, contract: Contract, job: JobFile, what: str, reader: Reader | None = None) -> str:
        """The job's inputs with defaults, as JSON text, where the reader may have what they name.

        FaultyInputError (begun by `what`) otherwise.
        """
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
        self._known = Known(supervisor)
        supervisor.heard = self._known.heard
        self._workflows = workflows
        self._whole = whole
        """Completes the contract of a Python workflow; AuthorError when it cannot be run."""
        self._off_loop = off_loop
        """Where inputs are judged: patterns and links may take long, and must not hold up the loop."""

    async def admit(self, offered: Submission) -> Admitted | Refusal:
        """The job that a submission is, admitted now or before. FaultyInputError for a bad file.

        CommitError when the disk refused: asking again tells whether the job exists.
        """
        file = jobfilereader.read(offered.raw, offered.name)
        if not offered.may(file.workflow):
            return refusals.not_submitter(offered.name, file.workflow, offered.requester)
        if offered.again and (file.id or file.key):
            return refusals.named(offered.name, f"the id {file.id}" if file.id else f"the key {file.key}")
        job = file.id or derived_id(file, offered.requester)
        if not (offered.request or file.key or offered.again):
            return await self._admit(offered, file, job)
        async with self._known.alone(offered, file, job):
            found = await self._known.find(offered, file, job)
            return found or await self._admit(offered, file, job)

    async def tools(self) -> tuple[tuple[ToolRow, ...], tuple[str, ...]]:
        """What the workflows in force may write to other systems; why that cannot be told of others."""
        in_force = self._supervisor.witness.in_force
        found: list[ToolRow] = []
        problems: list[str] = []
        for contract in self._workflows.contracts():
            try:
                found += toolrows.rows(await self._whole(contract), in_force(contract.workflow))
            except (AuthorError, OSError) as error:
                problems.append(f"{contract.workflow}: {error}")
        return tuple(found), tuple(problems)

    async def rehearse(self, offered: Submission) -> Line | Admitted | Refusal:
        """Line 1 of the job that a submission would be, written nowhere; or the job that it is already.

        FaultyInputError for a bad file.
        """
        file = jobfilereader.read(offered.raw, offered.name)
        if not offered.may(file.workflow):
            return refusals.not_submitter(offered.name, file.workflow, offered.requester)
        job = file.id or derived_id(file, offered.requester)
        if found := await self._known.find(offered, file, job):
            return found
        prepared = await self._prepare(offered, file)
        if isinstance(prepared, Refusal):
            return prepared
        return _drawn_up(offered, file, job, prepared)[1]

    async def _admit(self, offered: Submission, file: JobFile, job: str) -> Admitted | Refusal:
        """Admit what is most likely a new job; whether it is one shows when it is made, its folder last.

        What it is comes before what it needs: a job that is there is found whatever became of its workflow.
        """
        prepared: _Prepared | Refusal | FaultyInputError
        try:
            prepared = await self._prepare(offered, file)
        except FaultyInputError as error:
            prepared = error
        if not isinstance(prepared, _Prepared):
            if found := await self._known.find(offered, file, job):
                return found
            if isinstance(prepared, Refusal):
                return prepared
            raise prepared
        if offered.again:
            job = await self._known.free(job)
        record, line = _drawn_up(offered, file, job, prepared)
        # A crash between these two leaves names without a job, which are nobody's.
        await self._known.take(self._known.of_new(offered, file, job))
        try:
            await self._make(record, line)
        except FileExistsError:
            if found := await self._known.find(offered, file, job):
                return found
            raise CommitError(f"cannot admit {job}: its id was taken meanwhile; ask again") from None
        return Admitted(job=job)

    async def _prepare(self, offered: Submission, file: JobFile) -> _Prepared | Refusal:
        """What a new job is made of; why there cannot be one."""
        if offered.hindered:
            return refusals.disk(offered.name, offered.hindered)
        contract = self._workflows.pick(file.workflow, file.version)
        if isinstance(contract, Refusal):
            return contract
        what, reader = f"cannot admit {offered.name}", reader_of(offered.requester)
        if self._workflows.is_quick(contract):
            inputs = self._workflows.accept(contract, file, what, reader)
        else:
            inputs = await self._off_loop(self._workflows.accept, contract, file, what, reader)
        now = self._supervisor.clock.now()
        terms = terms_of(file, contract, now, what)
        try:
            whole = await self._whole(contract)
        except AuthorError as error:
            return Refusal(code="workflow", reason=f"{what}: {error}")
        if whole is not contract:
            now = self._supervisor.clock.now()
            terms = terms_of(file, whole, now, what)
        return _Prepared(inputs, now, terms)

    async def _make(self, record: Admission, line: Line) -> None:
        """Make the job durable and take it in; FileExistsError when its id is taken."""
        supervisor, job = self._supervisor, record.id
        if job in supervisor.entries:
            raise FileExistsError(f"cannot admit {job}: the id is taken")
        entry = JobEntry(id=job, layout=supervisor.layout, stage=Stage.ADMITTING)
        entry.uid = record.uid
        entry.admitted = anyio.Event()
        supervisor.entries[job] = entry
        try:
            await supervisor.admissions.admit(record, line)
        except BaseException as error:
            supervisor.entries.pop(job, None)
            supervisor.sequels.heard(job)
            if isinstance(error, CommitError):
                await self._in_doubt(job)
            raise
        finally:
            admitted, entry.admitted = entry.admitted, None
            admitted.set()
        entry.named = True
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


def _drawn_up(offered: Submission, file: JobFile, job_id: str, prepared: _Prepared) -> tuple[Admission, Line]:
    """The two things that make a job durable."""
    terms, inputs, now = prepared.terms, prepared.inputs, prepared.now
    contract = terms.contract
    requester = offered.requester
    record = Admission(
        schema=STATE_SCHEMA,
        id=job_id,
        admitted=now,
        requester=requester.name,
        uid=requester.uid,
        via=offered.via,
        name=offered.name,
        sha256=offered.sha256,
        workflow=contract.workflow,
        key=file.key,
        request=offered.request,
        content=offered.content if offered.request else "",
        **_spelled(offered.raw),
    )
    job = Job(
        id=job_id,
        key=file.key,
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
        reader=reader_of(requester),
        labels=file.labels,
        sha256=record.sha256,
        priority=file.priority,
        after=file.after,
        not_before=terms.not_before,
        deadline=terms.deadline,
    )
    code = CodeVersion(
        workflow=contract.workflow,
        version=contract.version,
        contract=codec.digest(codec.encode(contract)),
        release=release.VERSION,
    )
    digest = admission.job_digest(record)
    return record, first_line(job, contract, file.items or (), code, digest, now, terms.budget)


def reader_of(requester: Person) -> Reader:
    """As whom the files that a requester names are read."""
    return Reader(uid=requester.uid, gid=requester.gid, groups=requester.groups)


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
