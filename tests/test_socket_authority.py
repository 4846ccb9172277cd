"""Who may call what: every method by everybody, as the kernel names them (I5). A method without a row fails.

The socket says who may ask at all; whether an approver may decide about this very call is judged by the law.
"""

from typing import Any

import pytest
from socket_kit import FakeJobs
from test_socket_roles import ANNA, ask

from resumed.actors.placing import OUTSIDE, Placement
from resumed.daemon.grants import Grants, Role, Scope
from resumed.daemon.methods import METHODS
from resumed.schemas import control
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told

pytestmark = pytest.mark.anyio
OWN = 4711
"""The daemon's own user."""

WHO = {
    # who -> (uid, scopes, whose job, where it stands)
    "root": (0, Grants(OWN).permit(0, ()).scopes, 1, OUTSIDE),
    "daemon": (OWN, Grants(OWN).permit(OWN, ()).scopes, 1, OUTSIDE),
    "owner": (ANNA, (Scope(Role.SUBMITTER),), ANNA, OUTSIDE),
    "operator": (ANNA, (Scope(Role.OPERATOR),), 1, OUTSIDE),
    "approver": (ANNA, (Scope(Role.APPROVER),), 1, OUTSIDE),
    "auditor": (ANNA, (Scope(Role.AUDITOR),), 1, OUTSIDE),
    "submitter": (ANNA, (Scope(Role.SUBMITTER),), 1, OUTSIDE),
    "stranger": (ANNA, (), 1, OUTSIDE),
    # Whose job it is, and whose grant was taken back.
    "former": (ANNA, (), ANNA, OUTSIDE),
    # Even as root: a process of the job itself, and one that nobody can place.
    "job": (0, Grants(OWN).permit(0, ()).scopes, 1, Placement(False, frozenset({"attic"}), "its own")),
    "unplaced": (0, Grants(OWN).permit(0, ()).scopes, 1, Placement(False, why="it has ended")),
}

HOUSE = "root daemon owner operator approver auditor submitter job unplaced"
LOOK = "root daemon owner former operator approver auditor job unplaced"
STEER = "root daemon operator"
DECIDE = "root daemon approver"
MAY = {
    "Status": HOUSE,
    "Workflows": HOUSE,
    "Quarantined": HOUSE,
    "List": HOUSE,
    "Inbox": HOUSE,
    "Tools": HOUSE,
    "Show": LOOK,
    "ShowContract": LOOK,
    "Why": LOOK,
    "History": LOOK,
    "Watch": LOOK,
    "Log": LOOK,
    "Output": LOOK,
    "Aside": LOOK,
    "Asked": LOOK,
    "Ended": "root daemon operator approver auditor job unplaced",
    "Submit": "root daemon owner submitter job unplaced",
    "Preview": "root daemon owner submitter job unplaced",
    "Pause": STEER,
    "Resume": STEER,
    "Cancel": STEER,
    "Retry": STEER,
    "Skip": STEER,
    "Extend": STEER,
    "Reopen": STEER,
    "Restore": STEER,
    "Discard": STEER,
    "Prune": STEER,
    "Reload": STEER,
    "Settle": STEER,
    "Approve": DECIDE,
    # A no to what it asked for itself is anybody's.
    "Deny": f"{DECIDE} owner former",
    "SendBack": f"{DECIDE} owner former",
    "Revoke": "root daemon operator approver",
    "Answer": "root daemon owner former operator approver auditor",
}


def test_every_method_has_a_row() -> None:
    """A method that nobody has thought about is not served: the build fails."""
    assert {*METHODS} == {*MAY}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("method", METHODS)
async def test_method_is_served_to_whom_its_row_names(
    method: str, who: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may not call it is told so, and nothing of the call reaches a job; who tried to decide what
    people are asked is written down."""
    uid, scopes, owner, placement = WHO[who]
    answer = await ask(method, *scopes, uid=uid, owner=owner, placement=placement)
    refused = answer.get("error") in (control.ERROR_NOT_PERMITTED, control.ERROR_NO_SUCH)

    assert (who in MAY[method].split()) == (not refused)
    assert not refused or [] == answer["asked"]
    if refused and METHODS[method].people:
        [said] = [record.getMessage() for record in caplog.records]
        assert f"The call org.resumed.Control.{method} about " in said


class Unwilling(FakeJobs):
    """The law says no to whoever may ask."""

    async def tell(self, job: str, request: Any) -> Told | Refusal:
        return Refusal(code="requester", reason=f"cannot approve {request.subject} of {job}: another must")


@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if each.people])
async def test_what_the_law_refuses_is_written_down(method: str, caplog: pytest.LogCaptureFixture) -> None:
    """Who tried to decide what people are asked, about which job, and why that was no decision (C13)."""
    answer = await ask(method, Scope(Role.OPERATOR), Scope(Role.APPROVER), jobs=Unwilling())
    [said] = [record.getMessage() for record in caplog.records]

    assert control.ERROR_REFUSED == answer["error"]
    assert said.startswith(f"The call org.resumed.Control.{method} about attic of uid {ANNA} was refused: ")
    assert said.endswith("of attic: another must.")


async def test_what_steers_a_job_is_not_written_down(caplog: pytest.LogCaptureFixture) -> None:
    """A refused pause decides nothing that people are asked."""
    await ask("Pause", Scope(Role.VIEWER))

    assert [] == caplog.records
