"""The socket's method that shows the workflow a job was admitted with, as it is pinned in the job."""

import json
from typing import Any

from attrs import evolve, frozen

from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import Contract

from .api_jobs import JobAsked
from .desk import Desk
from .peers import Peer

HIDDEN = "(not shown)"
"""What stands for a value that may be a secret of whoever wrote the workflow."""


@frozen(kw_only=True)
class ContractAnswer:
    """The workflow of a job. `sha256` is the contract digest; `definition` of a contract is JSON text."""

    job: str
    sha256: str
    contract: Contract


async def contract(desk: Desk, _peer: Peer, asked: JobAsked) -> ContractAnswer | Refusal:
    """The workflow that a job was admitted with, whatever became of its file since."""
    found = await desk.jobs.contract(asked.job)
    if isinstance(found, Refusal):
        return found
    pinned, sha256 = found
    shown = evolve(pinned, definition=_without_values(pinned.definition))
    return ContractAnswer(job=asked.job, sha256=sha256, contract=shown)


def _without_values(definition: str) -> str:
    """The definition without the values of environment variables and the defaults of private inputs."""
    if not definition:
        return ""
    whole: dict[str, Any] = json.loads(definition)
    for step in whole.get("steps", ()):
        if "env_set" in step:
            step["env_set"] = dict.fromkeys(step["env_set"], HIDDEN)
    for each in whole.get("inputs", ()):
        if each.get("private") and "default" in each:
            each["default"] = json.dumps(HIDDEN)
    return json.dumps(whole, ensure_ascii=False)
