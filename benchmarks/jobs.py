"""The jobs that are measured: their contract, and their admission as the door makes it."""

import json
from pathlib import Path

from publishing import Publishing
from ticking import Ticking

from resumed.actors.clock import SystemClock
from resumed.actors.machine.admission import first_line
from resumed.actors.worker import authors
from resumed.schemas import codec, release
from resumed.schemas.job import CodeVersion, Job
from resumed.schemas.snapshot import STATE_SCHEMA, Admission, Line
from resumed.schemas.workflow import Contract, Programs, PythonEntry
from resumed.store import admission

WORKFLOWS = {"ticking": Ticking, "publishing": Publishing}


def contract(slots: int, workflow: str = "ticking") -> Contract:
    """What one of them declares, with `slots` tries at once in one worker."""
    declared = WORKFLOWS[workflow]
    entry = f"{workflow}:{declared.__name__}"
    python = PythonEntry(entry=entry, slots=slots, folder=str(Path(__file__).parent))
    file = Programs(name=workflow, version=1, steps=(), python=python)
    asked = Contract(
        workflow=workflow,
        version=1,
        start="",
        steps=(),
        entry=entry,
        definition=codec.encode(file).decode(),
    )
    return authors.contract_of(declared, asked)


def admitted(name: str, pinned: Contract, steps: int) -> tuple[Admission, Line]:
    """The admission record and line 1 of a job of `steps` steps."""
    now = SystemClock().now()
    raw = json.dumps({"workflow": pinned.workflow, "id": name, "inputs": {"steps": steps}}).encode()
    record = Admission(
        schema=STATE_SCHEMA,
        id=name,
        admitted=now,
        requester="bench",
        uid=0,
        via="bench",
        name=f"{name}.json",
        sha256=codec.digest(raw),
        text=raw.decode(),
    )
    job = Job(
        id=name,
        tenant="bench",
        requester="bench",
        owner="bench",
        created=now,
        workflow=pinned.workflow,
        version=pinned.version,
        inputs=codec.dump_plain({"steps": steps}).decode(),
    )
    code = CodeVersion(
        workflow=pinned.workflow,
        version=pinned.version,
        contract=codec.digest(codec.encode(pinned)),
        release=release.VERSION,
    )
    return record, first_line(job, pinned, (), code, admission.job_digest(record), now)
