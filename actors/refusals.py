"""What is said of a job that cannot be asked: that there is none, or that it is set aside, and why."""

from resumed.schemas.job import Person
from resumed.schemas.refusal import Refusal

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


def set_aside(job: str, why: str) -> Refusal:
    """The job is there, and cannot be read as it is."""
    return Refusal(
        code="set_aside", reason=f"{job} is set aside: {why}", commands=("resumectl quarantine list",)
    )
