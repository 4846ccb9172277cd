"""What a job was admitted with, compared with what lies on the shelf now; pure, asked when somebody looks.

A job goes on with what is pinned in it, whatever is found here: these are words for people, no law.
"""

from attrs import evolve

from resumed.schemas import codec
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.limits import Limits, OnFailed
from resumed.schemas.views import WhyCheck
from resumed.schemas.workflow import Contract, Programs

ORDER = ("integrity", "code", "sources", "policy", "processes", "deadline")
"""How checks stand beside each other."""


def checks(pinned: Contract, installed: Programs | None, may: bool | None) -> tuple[WhyCheck, ...]:
    """What can be said of code and policy. `installed` is the workflow's file as it is in force, if any;
    `may`, whether the requester may hand in its jobs today, None where nobody has looked."""
    then = _declared(pinned)
    code = _code(pinned, then, installed)
    policy = _policy(then, installed, may) if may is not None else None
    return (code,) if policy is None else (code, policy)


def in_order(found: tuple[WhyCheck, ...]) -> tuple[WhyCheck, ...]:
    """The checks in the order that they are shown in; those it does not name come last."""
    return tuple(sorted(found, key=lambda each: ORDER.index(each.name) if each.name in ORDER else len(ORDER)))


def _declared(pinned: Contract) -> Programs | None:
    """The file that the contract was made of; None where this release cannot read it."""
    try:
        return codec.decode_own(pinned.definition.encode(), Programs, "") if pinned.definition else None
    except FaultyInputError:
        return None


def _code(pinned: Contract, then: Programs | None, installed: Programs | None) -> WhyCheck:
    """The same version must say the same; of a Python class the file alone is compared, not its module."""
    version = f"v{pinned.version}"
    if installed is None:
        return WhyCheck(name="code", said=f"{version}, as pinned: no file of it is in force")
    if installed.version != pinned.version:
        return WhyCheck(name="code", said=f"{version}, as pinned: v{installed.version} is in force")
    if then is None:
        return WhyCheck(name="code", said=f"{version}, as pinned: its text cannot be compared")
    if _what_runs(then) != _what_runs(installed):
        return WhyCheck(name="code", said=f"{version}, as pinned: its file has changed since", good=False)
    return WhyCheck(name="code", said=f"{version} ok" + (" (its file)" if pinned.entry else ""))


def _what_runs(programs: Programs) -> str:
    """The digest of what a file says beside whose it is, and how far its jobs may go."""
    # Where a module lies is filled in when the contract is made.
    python = evolve(programs.python, folder="") if programs.python is not None else None
    bare = evolve(
        programs,
        python=python,
        description="",
        owner="",
        enabled=True,
        limits=Limits(),
        on_failed=OnFailed.HOLD,
    )
    return codec.digest(codec.encode(bare))


def _policy(then: Programs | None, installed: Programs | None, may: bool) -> WhyCheck | None:
    """Whether it would be admitted today, and under the same rules; None where that cannot be told."""
    if not may:
        said = "its requester may not hand in its like today"
    elif installed is None or not installed.enabled:
        said = "no job of its workflow is admitted today"
    elif then is None:
        return None
    elif (then.limits, then.on_failed) != (installed.limits, installed.on_failed):
        said = "the workflow's limits have changed since"
    else:
        return WhyCheck(name="policy", said="ok")
    return WhyCheck(name="policy", said=said, good=False)
