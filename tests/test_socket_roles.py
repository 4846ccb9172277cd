"""Authority at the socket: who may call what about which job, as the kernel names them (I5)."""

import json
import os
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from other_user import CLUB, FRIEND, STRANGER, as_user
from socket_kit import FakeJobs, FakeShelf, house

from resumed.actors.placing import OUTSIDE, Placement
from resumed.daemon.answers import Answers
from resumed.daemon.client import CallError, Client
from resumed.daemon.connections import PLACES, Kind
from resumed.daemon.desk import Desk
from resumed.daemon.grants import Grant, Grants, Permit, Role, Scope
from resumed.daemon.methods import METHODS, Over
from resumed.daemon.peers import Peer
from resumed.daemon.varlink import Call
from resumed.schemas import control

pytestmark = pytest.mark.anyio
ANNA = 1001
X, Y = frozenset({"x"}), frozenset({"y"})


GIVEN: dict[str, Any] = {
    "job": "attic",
    "file": "{}",
    "item": "a",
    "fingerprint": "f",
    "answer": "yes",
    "absent": True,
    "record": 1,
    "items": ["a"],
    "reason": "so",
}
"""A value for each parameter that some method needs."""


async def ask(
    method: str,
    *scopes: Scope,
    uid: int = ANNA,
    owner: int = 1,
    placement: Placement = OUTSIDE,
    jobs: FakeJobs | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    """The first answer to a call of a peer with these scopes, about the one job of workflow x."""
    jobs = FakeJobs() if jobs is None else jobs
    jobs.uid, jobs.placement = owner, placement
    answers = Answers(Desk(jobs=jobs, shelf=FakeShelf()), "1")
    peer = Peer(pid=1, uid=uid, gid=uid, groups=(), name="anna", permit=Permit(uid, scopes))
    takes = {each.name: each.default for each in METHODS[method].takes.__attrs_attrs__}
    given = {name: value for name, value in GIVEN.items() if name in takes}
    call = Call(
        method=f"{control.INTERFACE}.{method}",
        parameters=given | parameters,
        more=METHODS[method].stream is not None,
    )
    stream = answers.to(call, peer)
    first: dict[str, Any] = json.loads((await anext(stream))[:-1])
    await stream.aclose()
    return {**first, "asked": jobs.asked}


LOOKERS = {Role.VIEWER, Role.OPERATOR, Role.APPROVER, Role.AUDITOR}
WHO = {
    # method -> the roles, each alone and over everything, with which it is served about a job of another
    "Status": set(Role),
    "Workflows": set(Role),
    "Quarantined": set(Role),
    "List": set(Role),
    "Show": LOOKERS,
    "ShowContract": LOOKERS,
    "Why": LOOKERS,
    "History": LOOKERS,
    "Watch": LOOKERS,
    "Log": LOOKERS,
    "Output": LOOKERS,
    "Aside": LOOKERS,
    "Restore": {Role.OPERATOR},
    "Discard": {Role.OPERATOR},
    "Ended": LOOKERS,
    "Prune": {Role.OPERATOR},
    "Reload": {Role.OPERATOR},
    "Submit": {Role.SUBMITTER},
    "Preview": {Role.SUBMITTER},
    "Pause": {Role.OPERATOR},
    "Resume": {Role.OPERATOR},
    "Cancel": {Role.OPERATOR},
    "Retry": {Role.OPERATOR},
    "Skip": {Role.OPERATOR},
    "Reopen": {Role.OPERATOR},
    "Extend": {Role.OPERATOR},
    "Inbox": set(Role),
    "Asked": LOOKERS,
    "Tools": set(Role),
    "Approve": {Role.APPROVER},
    "Deny": {Role.APPROVER},
    "SendBack": {Role.APPROVER},
    "Revoke": {Role.APPROVER, Role.OPERATOR},
    "Answer": LOOKERS,
    "Settle": {Role.OPERATOR},
}


@pytest.mark.parametrize("method", METHODS)
async def test_method_is_served_to_its_roles(method: str) -> None:
    """Each method is served to the roles that its row means, and to no other; strangers get nothing."""
    served = set()
    for role in Role:
        answer = await ask(method, Scope(role))
        if answer.get("error") not in (control.ERROR_NOT_PERMITTED, control.ERROR_NO_SUCH):
            served.add(role)
        else:
            assert [] == answer["asked"]
    stranger = await ask(method)

    assert WHO[method] == served
    assert (control.ERROR_NOT_PERMITTED, []) == (stranger["error"], stranger["asked"])
    assert "the administrator grants it" in stranger["parameters"]["reason"]


SCOPED = {
    # who, scopes, whose job -> the answers to Show and to Pause
    "operator of x": ((Scope(Role.OPERATOR, X),), 1, "shown", "told"),
    "operator of y": ((Scope(Role.OPERATOR, Y),), 1, "none", "none"),
    "viewer of x": ((Scope(Role.VIEWER, X),), 1, "shown", "not permitted"),
    "viewer of x, operator of y": (
        (Scope(Role.VIEWER, X), Scope(Role.OPERATOR, Y)), 1, "shown", "not permitted",
    ),
    "submitter, another's job": ((Scope(Role.SUBMITTER),), 1, "none", "not permitted"),
    "submitter, own job": ((Scope(Role.SUBMITTER),), ANNA, "shown", "not permitted"),
    "operator of own, another's job": ((Scope(Role.OPERATOR, None, own=True),), 1, "none", "none"),
    "operator of own, own job": ((Scope(Role.OPERATOR, None, own=True),), ANNA, "shown", "told"),
    "no role, own job": ((), ANNA, "shown", "not permitted"),
    "no role, another's job": ((), 1, "not permitted", "not permitted"),
}  # fmt: skip
SAID = {None: "", control.ERROR_NO_SUCH: "none", control.ERROR_NOT_PERMITTED: "not permitted"}


@pytest.mark.parametrize("case", SCOPED)
async def test_scope_is_asked_of_the_job(case: str) -> None:
    """A job out of sight is not there; one in sight that is not one's to steer says so; nothing is told."""
    scopes, owner, show, pause = SCOPED[case]
    shown = await ask("Show", *scopes, owner=owner)
    told = await ask("Pause", *scopes, owner=owner)

    assert show == (SAID[shown.get("error")] or "shown")
    assert pause == (SAID[told.get("error")] or "told")
    assert bool(told["asked"]) == (pause == "told")


async def test_why_says_whether_its_commands_are_ones_own() -> None:
    """Who may only look is told that the commands need a role, and which; who may steer, that it has it."""
    answers = [
        (await ask("Why", *scopes, owner=owner))["parameters"]
        for scopes, owner in (
            ((Scope(Role.VIEWER),), 1),
            ((Scope(Role.OPERATOR),), 1),
            ((Scope(Role.VIEWER), Scope(Role.OPERATOR, X)), 1),
            ((Scope(Role.VIEWER), Scope(Role.OPERATOR, Y)), 1),
            ((), ANNA),
        )
    ]

    assert {"operator"} == {each["role"] for each in answers}
    assert [False, True, True, False, False] == [each["yours"] for each in answers]


async def test_job_out_of_sight_is_answered_like_one_that_is_not_there() -> None:
    """Nothing in the answer tells a job that may not be seen from a name nobody bears."""
    scope = Scope(Role.OPERATOR, Y)
    for method in ("Show", "Watch", "Log", "Output", "Cancel"):
        hidden = await ask(method, scope, job="attic")
        absent = await ask(method, scope, job="cellar")

        assert json.dumps(hidden).replace("attic", "cellar") == json.dumps(absent)


async def test_lists_hold_what_is_in_sight() -> None:
    """Jobs out of sight are not listed."""
    lists = [await ask("List", *scopes, owner=owner) for scopes, owner in (
        ((Scope(Role.VIEWER, X),), 1), ((Scope(Role.VIEWER, Y),), 1), ((Scope(Role.SUBMITTER),), ANNA),
    )]  # fmt: skip

    assert [1, 0, 1] == [len(each["parameters"]["jobs"]) for each in lists]


async def test_submitter_of_one_workflow_hands_in_no_other() -> None:
    """The workflow that the file names is asked for at the door."""
    own, other = [await ask("Submit", Scope(Role.SUBMITTER, each)) for each in (X, Y)]

    assert (control.ERROR_FAULTY, control.ERROR_NOT_PERMITTED) == (own["error"], other["error"])


INSIDE = {
    "its own job's": (Placement(False, frozenset({"attic"}), "it is of attic"), False),
    "one of several jobs'": (Placement(False, frozenset({"attic", "b"}), "it is of both"), False),
    "another job's": (Placement(False, frozenset({"b"}), "it is of b"), True),
    "nobody knows whose": (Placement(False, frozenset(), "it has ended"), False),
}


@pytest.mark.parametrize("case", INSIDE)
async def test_job_decides_nothing_about_itself(case: str) -> None:
    """A call from within a job's attempt steers no job that it may be part of, root's included, and decides
    nothing that people are asked about any job (I5)."""
    placement = INSIDE[case][0]
    scopes = tuple(Scope(role) for role in Role)
    for name, method in METHODS.items():
        if method.people or method.role in (Role.OPERATOR, Role.APPROVER):
            told = await ask(name, *scopes, uid=0, placement=placement)
            allowed = INSIDE[case][1] and method.over is Over.JOB and not method.people

            assert allowed == (told.get("error") != control.ERROR_NOT_PERMITTED)
            assert allowed or placement.why in told["parameters"]["reason"]
            assert allowed or [] == told["asked"]
        else:
            looked = await ask(name, *scopes, uid=0, placement=placement)

            assert control.ERROR_NOT_PERMITTED != looked.get("error")


async def test_status_says_who_asks() -> None:
    """Whoever asks is told its name, its roles, and whether jobs run as its very user."""
    you = (await ask("Status", Scope(Role.VIEWER, X), Scope(Role.OPERATOR, None, own=True)))["parameters"][
        "you"
    ]
    same = (await ask("Status", Scope(Role.VIEWER), uid=os.geteuid()))["parameters"]["you"]["same_user"]

    assert ("anna", ANNA, False, True) == (you["name"], you["uid"], you["same_user"], same)
    assert [("viewer", ["x"], False), ("operator", [], True)] == [
        (each["role"], each["workflows"], each["own"]) for each in you["roles"]
    ]


GRANTS = (
    Grant(role=Role.OPERATOR, users=(str(FRIEND),), workflows=("x",)),
    Grant(role=Role.VIEWER, groups=(str(CLUB),)),
)
NOTHING = {"Status": "not permitted", "Show": "not permitted", "Pause": "not permitted"}
LOOKS = {"Status": "", "Show": "", "Pause": "not permitted"}
CALLERS = {
    "a stranger": (STRANGER, (), NOTHING),
    "a friend": (FRIEND, (), {"Status": "", "Show": "", "Pause": ""}),
    "by a group at its side": (STRANGER, (STRANGER, CLUB), LOOKS),
    "by its first group": (STRANGER, (CLUB,), LOOKS),
}


@pytest.mark.root
@pytest.mark.parametrize("case", CALLERS)
async def test_second_user_has_what_was_granted(case: str, open_folder: Path) -> None:
    """Another user, a process of its own, gets from the real socket what its uid and groups were granted."""
    uid, groups, expected = CALLERS[case]

    def call() -> dict[str, str]:
        said = {}
        with Client(str(open_folder / "control")) as client:
            for method in expected:
                try:
                    client.call(method, **({} if method == "Status" else {"job": "attic"}))
                    said[method] = ""
                except CallError as error:
                    said[method] = SAID[error.name]
        return said

    async with house(open_folder, GRANTS, mode=0o666) as there:
        said = await to_thread.run_sync(as_user, uid, groups, call)
        by = [each.by for each in there.jobs.asked]

    assert expected == said
    assert [uid] * (expected["Pause"] == "") == [each.uid for each in by]


@pytest.mark.root
async def test_socket_without_grants_is_closed_to_others(open_folder: Path) -> None:
    """Without grants nobody else can even connect."""

    def connect() -> str:
        try:
            Client(str(open_folder / "control")).close()
        except OSError as error:
            return repr(error)
        except Exception as error:  # noqa: BLE001 - its text is the answer
            return str(error)
        return "connected"

    async with house(open_folder):
        said = await to_thread.run_sync(as_user, STRANGER, (), connect)

    assert "Permission denied" in said


@pytest.mark.root
async def test_places_of_strangers_are_their_own(open_folder: Path) -> None:
    """Strangers who hold every place that they can take none from those who steer, or look."""

    ours, theirs = socket.socketpair()

    def flood() -> int:
        held = []
        for _ in range(10):
            made = socket.socket(socket.AF_UNIX)
            made.connect(str(open_folder / "control"))
            held.append(made)
        # Who connected stays the kernel's word; the connections outlive the process in our hands.
        socket.send_fds(theirs, [b"x"], [each.fileno() for each in held])
        return len(held)

    def look() -> str:
        with Client(str(open_folder / "control")) as client:
            return str(client.call("Status")["you"]["uid"])

    held: list[int] = []
    async with house(open_folder, GRANTS, mode=0o666) as there:
        for uid in range(STRANGER + 1000, STRANGER + 1006):
            await to_thread.run_sync(as_user, uid, (), flood)
            held += socket.recv_fds(ours, 1, 10)[1]
        with anyio.fail_after(10):
            looked = await to_thread.run_sync(as_user, FRIEND, (), look)
        strangers = Counter(each.peer.uid for each in there.doorman._held if each.kind is Kind.STRANGERS)
        for each in [*held, ours.detach(), theirs.detach()]:
            os.close(each)

    assert (60, str(FRIEND)) == (len(held), looked)
    assert PLACES[Kind.STRANGERS].together == strangers.total()
    assert max(strangers.values()) <= PLACES[Kind.STRANGERS].each


async def test_own_user_needs_no_grant(tmp_path: Path) -> None:
    """The daemon's own user and root have every role everywhere."""
    found = Grants(1000).permit(os.geteuid() and 1000, ())

    assert set(Role) == {each.role for each in found.scopes}
    assert all(found.everywhere(role) for role in Role)


@pytest.mark.root
async def test_grant_that_is_taken_back_holds_no_longer(open_folder: Path) -> None:
    """With changed grants the next call of a connection that stands is judged by the new ones."""
    ours, theirs = socket.socketpair()

    def connect() -> None:
        made = socket.socket(socket.AF_UNIX)
        made.connect(str(open_folder / "control"))
        socket.send_fds(theirs, [b"x"], [made.fileno()])

    def ask(peer: socket.socket) -> str | None:
        peer.sendall(json.dumps({"method": f"{control.INTERFACE}.Status"}).encode() + b"\0")
        said: str | None = json.loads(peer.recv(65536)[:-1]).get("error")
        return said

    async with house(open_folder, GRANTS, mode=0o666) as there:
        await to_thread.run_sync(as_user, FRIEND, (), connect)
        with socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0]) as peer:
            before = await to_thread.run_sync(ask, peer)
            there.doorman._grants.replace(())
            after = await to_thread.run_sync(ask, peer)
    ours.close()
    theirs.close()

    assert (None, control.ERROR_NOT_PERMITTED) == (before, after)
