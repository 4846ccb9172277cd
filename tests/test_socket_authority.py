"""Who may call what: every method by everybody, as the kernel names them (I5). A method without a row fails.

The socket says who may ask at all; whether an approver may decide about this very call is judged by the law.
"""

import pytest
from test_socket_roles import ANNA, ask

from resumed.actors.placing import OUTSIDE, Placement
from resumed.daemon.grants import Grants, Role, Scope
from resumed.daemon.methods import METHODS
from resumed.schemas import control

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
async def test_method_is_served_to_whom_its_row_names(method: str, who: str) -> None:
    """Whoever may not call it is told so, and nothing of the call reaches a job."""
    uid, scopes, owner, placement = WHO[who]
    answer = await ask(method, *scopes, uid=uid, owner=owner, placement=placement)
    refused = answer.get("error") in (control.ERROR_NOT_PERMITTED, control.ERROR_NO_SUCH)

    assert (who in MAY[method].split()) == (not refused)
    assert not refused or [] == answer["asked"]
