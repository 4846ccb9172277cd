"""Who asks, as `resumectl status` says it."""

from typing import Any

import pytest

from resumed.daemon.grants import Role
from resumed.daemon.render_house import ROLES, you_are


def held(role: str, *workflows: str, own: bool = False) -> dict[str, Any]:
    return {"role": role, "workflows": list(workflows), "own": own}


YOU = {
    "anna, every role; same-user: jobs run under this very user": (
        [held(each.value) for each in Role], True,
    ),
    "anna, viewer, operator of label and x265": ([held("viewer"), held("operator", "label", "x265")], False),
    "anna, operator of all workflows (own jobs)": ([held("operator", own=True)], False),
    "anna, submitter of label (own jobs)": ([held("submitter", "label", own=True)], False),
}  # fmt: skip


@pytest.mark.parametrize("said", YOU)
def test_status_says_in_a_line_who_asks(said: str) -> None:
    """The name, each role and how far it reaches, and whether jobs run as the same user."""
    roles, same = YOU[said]

    assert said == you_are({"name": "anna", "uid": 1, "roles": roles, "same_user": same})


def test_every_role_is_all_of_them() -> None:
    """The client's count of roles is the daemon's."""
    assert ROLES == len(Role)
