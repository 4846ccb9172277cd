"""What is said of a job that cannot be asked or handed in: that there is none, another, or what hinders."""

from resumed.schemas.instant import spell
from resumed.schemas.job import Person
from resumed.schemas.refusal import Refusal
from resumed.store.retire import Farewell

DISK = "disk"
"""The code of a refusal that is over when the disk works again."""


def no_such(name: str) -> Refusal:
    """Nobody knows a job of that name."""
    return Refusal(code="no_such_job", reason=f"there is no job {name!r}", commands=("resumectl list -a",))


def not_submitter(name: str, workflow: str, requester: Person) -> Refusal:
    """Whoever hands the file in may not hand in jobs of its workflow, whether or not there is such a one."""
    return Refusal(
        code="not_permitted",
        reason=f"cannot admit {name}: user {requester.name} (uid {requester.uid}) has not the role submitter "
        f"for workflow {workflow}; the administrator grants it",
    )


def disk(name: str, said: str) -> Refusal:
    """Nothing is taken in while the disk is in trouble."""
    reason = f"cannot take in {name}: {said}; hand it in again once the disk works"
    return Refusal(code=DISK, reason=reason, commands=("resumectl status",))


def ambiguous(name: str, jobs: list[str]) -> Refusal:
    """Several jobs begin so; the first ones are named."""
    some = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
    return Refusal(
        code="ambiguous",
        reason=f"{name!r} begins {len(jobs)} jobs: {some}",
        commands=tuple(f"resumectl show {job}" for job in jobs[:5]),
    )


def given_up(farewell: Farewell) -> Refusal:
    """There was a job of that id, and a person gave it up."""
    said = f"{farewell.how} on {spell(farewell.at.wall)[:10]} by {farewell.by}"
    said += f" ({farewell.reason})" if farewell.reason else ""
    reason = f"there is no job {farewell.id!r} any more: it was {said}"
    return Refusal(code="no_such_job", reason=reason, commands=("resumectl list -a",))


def set_aside(job: str, why: str) -> Refusal:
    """The job is there, and cannot be read as it is."""
    return Refusal(
        code="set_aside",
        reason=f"{job} is set aside: {why}",
        commands=(f"resumectl quarantine show {job}", f"resumectl why {job}"),
    )


def id_taken(name: str, job: str) -> Refusal:
    """The id that a file names, or that is derived for it, is another's."""
    return Refusal(
        code="id_taken",
        reason=f"cannot admit {name}: the id {job} is taken by another job file or another owner",
        commands=(f"resumectl show {job}",),
    )


def gone_for_good(name: str, job: str) -> Refusal:
    """The job was there, and was discarded or pruned; its id stays known."""
    return Refusal(
        code="removed",
        reason=f"cannot admit {name}: it was job {job}, which is gone for good; give it another id or key",
        commands=("resumectl list -a",),
    )


def other_content(name: str, request: str, job: str) -> Refusal:
    """The request id was used before, for another file."""
    return Refusal(
        code="request_conflict",
        reason=f"cannot admit {name}: the request id {request} was given before, with other content, for "
        f"job {job}",
        commands=(f"resumectl show {job}",),
    )


def named(name: str, what: str) -> Refusal:
    """A file that names itself cannot be another job."""
    return Refusal(
        code="named",
        reason=f"cannot admit {name} again: {what} is its own name for one job; change it or leave it out",
    )
