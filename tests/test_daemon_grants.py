"""Grants: who has which role over what, from the numbers that the kernel gives, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from resumed.actors.sight import Whose
from resumed.daemon.grants import INCLUDES, Grant, Grants, Permit, Role, Scope

ANNA, BO = 1001, 1002
ANNAS = Whose("label", ANNA)
BOS = Whose("label", BO)
OTHER = Whose("x265", BO)
UNREAD = Whose("", -1)


def permit(*scopes: Scope) -> Permit:
    return Permit(ANNA, scopes)


OVER = {
    # scopes of anna -> the jobs that she looks at, and those that she steers, of: her own, bo's, bo's other
    "nothing": ((), "own", ""),
    "viewer": ((Scope(Role.VIEWER),), "own bo other", ""),
    "viewer of label": ((Scope(Role.VIEWER, frozenset({"label"})),), "own bo", ""),
    "viewer of x265": ((Scope(Role.VIEWER, frozenset({"x265"})),), "own other", ""),
    "submitter": ((Scope(Role.SUBMITTER),), "own", ""),
    "operator": ((Scope(Role.OPERATOR),), "own bo other", "own bo other"),
    "operator of label": ((Scope(Role.OPERATOR, frozenset({"label"})),), "own bo", "own bo"),
    "operator of her own": ((Scope(Role.OPERATOR, None, own=True),), "own", "own"),
    "operator of her own x265": ((Scope(Role.OPERATOR, frozenset({"x265"}), own=True),), "own", ""),
    "approver": ((Scope(Role.APPROVER),), "own bo other", ""),
    "auditor": ((Scope(Role.AUDITOR),), "own bo other", ""),
    "viewer, operator of label": (
        (Scope(Role.VIEWER), Scope(Role.OPERATOR, frozenset({"label"}))), "own bo other", "own bo",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OVER)
def test_permit_holds_where_its_scopes_say(case: str) -> None:
    """A role reaches over the jobs of its workflows, or one's own of them; one's own job one may see."""
    scopes, looks, steers = OVER[case]
    jobs = {"own": ANNAS, "bo": BOS, "other": OTHER}
    found = permit(*scopes)

    assert looks == " ".join(name for name, whose in jobs.items() if found.sees(whose))
    assert steers == " ".join(name for name, whose in jobs.items() if found.over(Role.OPERATOR, whose))
    assert found.everything == any(each.workflows is None and not each.own for each in scopes[:1]) or (
        case == "submitter"
    )


@pytest.mark.parametrize("role", Role)
def test_every_role_says_what_it_includes(role: Role) -> None:
    """Each role has its row, itself in it; none but the seer's own comes along with another."""
    assert role in INCLUDES[role]
    assert INCLUDES[role] <= {role, Role.VIEWER}
    assert permit(Scope(role)).anywhere(role)
    assert permit(Scope(role)).anywhere(Role.VIEWER)
    assert {role} | INCLUDES[role] >= {each for each in Role if permit(Scope(role)).everywhere(each)}


def test_job_that_cannot_be_read_is_seen_by_who_sees_all() -> None:
    """A job of which nothing is known is nobody's own and in no workflow."""
    assert permit(Scope(Role.VIEWER)).sees(UNREAD)
    assert not permit(Scope(Role.VIEWER, frozenset({"label"}))).sees(UNREAD)
    assert not permit(Scope(Role.OPERATOR, None, own=True)).sees(UNREAD)


PEERS = {
    "root": (0, (), {"viewer", "submitter", "operator", "approver", "auditor"}),
    "the daemon's own user": (1000, (), {"viewer", "submitter", "operator", "approver", "auditor"}),
    "by number": (ANNA, (), {"operator"}),
    "by group": (BO, (4, 2000), {"viewer"}),
    "by both": (ANNA, (2000,), {"operator", "viewer"}),
    "by another group": (BO, (2001, 0), set()),
    "nobody": (65534, (), set()),
    "an unmapped user": (2**32 - 1, (2**32 - 1,), set()),
    "a number like the group's": (2000, (), set()),
    "a group like the user's": (5, (ANNA,), set()),
}  # fmt: skip
GIVEN = (
    Grant(role=Role.OPERATOR, users=("1001", "no-such-user-here"), groups=("no-such-group-here",)),
    Grant(role=Role.VIEWER, groups=("2000",)),
)


@pytest.mark.parametrize("case", PEERS)
def test_grants_name_users_and_groups(case: str) -> None:
    """A permit is that of the numbers named; names unknown to the host give nothing, and are told."""
    uid, groups, roles = PEERS[case]
    grants = Grants(1000, GIVEN)
    before = grants.permit(uid, groups)
    grants.look_up()

    assert roles == {each.role.value for each in grants.permit(uid, groups).scopes}
    assert before.scopes == (grants.permit(uid, groups).scopes if uid in (0, 1000) else ())
    assert ("the user no-such-user-here", "the group no-such-group-here") == grants.unknown


def test_names_of_the_host_are_found() -> None:
    """Users and groups are named as the host names them."""
    grants = Grants(1000, (Grant(role=Role.OPERATOR, users=("root",), groups=("root",)),))
    grants.look_up()

    assert () == grants.unknown
    assert {Role.OPERATOR} == {each.role for each in grants.permit(5, (0,)).scopes}


def test_owner_of_a_file_has_its_groups() -> None:
    """The permit of a file's owner goes by the groups the host knows it in; nobody known has none."""
    grants = Grants(1000, (Grant(role=Role.SUBMITTER, users=("77777",)),))

    assert grants.permit_of_owner(77777).anywhere(Role.SUBMITTER)
    assert not grants.permit_of_owner(77778).scopes
    assert grants.permit_of_owner(0).everything


def test_unknown_names_are_told_by_check_config_and_refuse_nothing(tmp_path: Path) -> None:
    """`resumed check-config` names who is granted something and not known; no start is refused for it."""
    file = tmp_path / "resumed.toml"
    file.write_text('[[grant]]\nrole = "viewer"\nusers = ["no-such-user-here", "root"]\n')
    file.chmod(0o600)
    (tmp_path / "workflows.d").mkdir(mode=0o755)
    places = [f"--{name}={tmp_path / name}" for name in ("state", "socket", "workflows.d")]
    flags = [each.replace("--workflows.d=", "--workflows=") for each in places]
    command = [sys.executable, "-m", "resumed.daemon.main", "check-config", f"--config={file}", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert 0 == ran.returncode, ran
    assert "! the user no-such-user-here of a grant is not known to this host" in ran.stdout
    assert "root" not in ran.stdout.splitlines()[0]


def test_bounds_of_approvals_are_told_by_check_config(tmp_path: Path) -> None:
    """It says which bounds hold, and who in them the host does not know."""
    file = tmp_path / "resumed.toml"
    only = '[[approvals.only]]\nby = ["group:no-such-group-here", "user:root"]\n'
    file.write_text(f'[approvals]\nvalid_for = "12h"\nnot_requester = true\n{only}')
    file.chmod(0o600)
    (tmp_path / "workflows.d").mkdir(mode=0o755)
    flags = [f"--{name}={tmp_path / place}" for name, place in PLACES.items()]
    command = [sys.executable, "-m", "resumed.daemon.main", "check-config", f"--config={file}", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert 0 == ran.returncode, ran
    assert "! group:no-such-group-here of approvals is not known to this host" in ran.stdout
    assert "approvals: a yes is good for 12h00m at most, never the requester" in ran.stdout


PLACES = {"state": "state", "socket": "socket", "workflows": "workflows.d"}
