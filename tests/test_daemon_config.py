"""The configuration: flags over file over defaults, and every mistake refused with its path."""

from pathlib import Path

import pytest

from resumed.actors.bounds import Bounds, Only
from resumed.daemon import config, premises
from resumed.daemon.grants import Grant, Role
from resumed.schemas.errors import FaultyInputError, StoreError

HOME = {"HOME": "/home/anna"}


def load(tmp_path: Path, text: str | None = None, uid: int = 1000, **flags: str) -> config.Config:
    file = None
    if text is not None:
        file = tmp_path / "resumed.toml"
        file.write_text(text)
        file.chmod(0o600)
    return config.load(file, flags, {**HOME, "XDG_CONFIG_HOME": str(tmp_path / "none")}, uid)


def test_defaults_of_root_are_the_system_folders(tmp_path: Path) -> None:
    """The system's daemon lies where systemd would put it."""
    found = load(tmp_path, uid=0)

    assert (
        "/var/lib/resumed",
        "/run/resumed/control",
        "/etc/resumed/workflows.d",
        "/var/lib/resumed/incoming",
    ) == tuple(str(each) for each in (found.state, found.socket, found.workflows, found.incoming))
    assert ("asyncio", 20.0) == (found.backend, found.stop_timeout)
    assert found.workers >= 4


def test_defaults_of_a_user_follow_xdg() -> None:
    """A user's own daemon lies in the folders XDG names, or their defaults."""
    named = {"XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r", "XDG_CONFIG_HOME": "/c", **HOME}
    found = [config.load(None, {}, environ, 1000) for environ in (named, HOME)]

    assert [
        ("/s/resumed", "/r/resumed/control", "/c/resumed/workflows.d"),
        (
            "/home/anna/.local/state/resumed",
            "/run/user/1000/resumed/control",
            "/home/anna/.config/resumed/workflows.d",
        ),
    ] == [(str(each.state), str(each.socket), str(each.workflows)) for each in found]


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    """What is said nearer to the start wins."""
    text = 'state = "/from/file"\nbackend = "trio"\nstop_timeout = "1m30s"\nworkers = 2\n'
    found = load(tmp_path, text, backend="asyncio", socket="/from/flag")

    assert ("/from/file", "asyncio", "/from/flag") == (str(found.state), found.backend, str(found.socket))
    assert (90.0, 2, "/from/file/incoming") == (found.stop_timeout, found.workers, str(found.incoming))


def test_relative_paths_in_a_file_lie_beside_it(tmp_path: Path) -> None:
    """A configuration can be moved together with what it names."""
    found = load(tmp_path, 'state = "state"\nworkflows = "../flows"\n')

    assert (tmp_path / "state", tmp_path.parent / "flows") == (found.state, found.workflows)


def test_credentials_are_the_named_folder_or_the_service_managers(tmp_path: Path) -> None:
    """A folder in the file wins over the one that systemd made; without both there is none."""
    made = {**HOME, "CREDENTIALS_DIRECTORY": "/run/credentials/resumed.service"}
    (tmp_path / "resumed.toml").write_text('credentials = "vault"\n')
    found = [
        config.load(file, {}, environ, 1000).credentials
        for file, environ in ((None, HOME), (None, made), (tmp_path / "resumed.toml", made))
    ]

    assert [None, Path("/run/credentials/resumed.service"), tmp_path / "vault"] == found


UNSAFE = {
    "for others": (0o705, "others may get into it (mode 0705): chmod 0700"),
    "others may write": (0o770, "others may write it (mode 0770): chmod go-w"),
    "not there": (None, "No such file or directory"),
    "ours alone": (0o700, ""),
    "as systemd makes it": (0o550, ""),
}


@pytest.mark.parametrize("case", UNSAFE)
def test_credentials_for_others_stop_a_start(case: str, tmp_path: Path) -> None:
    """A folder of credentials that others get into is refused before anything is taken."""
    mode, problem = UNSAFE[case]
    vault = tmp_path / "vault"
    if mode is not None:
        vault.mkdir()
        vault.chmod(mode)
    found = load(tmp_path, f'state = "state"\nsocket = "{tmp_path}/s"\ncredentials = "{vault}"\n')
    if not problem:
        premises.look(found, passed=False)
        return
    with pytest.raises(StoreError) as refused:
        premises.look(found, passed=False)

    assert problem in str(refused.value)
    assert str(vault) in str(refused.value)


FAULTY = {
    "unknown key": ('stat = "/x"', "unknown key 'stat' @ $"),
    "unknown table": ("[socket]\npath = 1", "expected string, got object @ $.socket"),
    "wrong type": ("state = 1", "expected string, got int @ $.state"),
    "workers as text": ('workers = "4"', "expected int, got string @ $.workers"),
    "workers as a yes": ("workers = true", "expected int, got bool @ $.workers"),
    "no workers": ("workers = 0", "expected 1 to 1000, got 0 @ $.workers"),
    "unknown loop": ('backend = "uvloop"', "expected one of asyncio, trio, got 'uvloop' @ $.backend"),
    "no duration": ('stop_timeout = "soon"', "@ $.stop_timeout"),
    "a bare number": ("stop_timeout = 20", "expected string, got int @ $.stop_timeout"),
    "empty path": ('incoming = ""', "expected a path @ $.incoming"),
    "not TOML": ("state = ", "not TOML"),
    "a key twice": ("workers = 4\nworkers = 5", "not TOML"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_mistake_is_refused_with_its_path(case: str, tmp_path: Path) -> None:
    """Each mistake in the file is one sentence that names the file and the key."""
    text, problem = FAULTY[case]
    with pytest.raises(FaultyInputError) as caught:
        load(tmp_path, text)

    assert problem in str(caught.value)
    assert str(tmp_path / "resumed.toml") in str(caught.value)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_file_that_others_may_write_is_refused(mode: int, tmp_path: Path) -> None:
    """Whoever may write the configuration may run commands as the daemon's user, so others must not."""
    file = tmp_path / "resumed.toml"
    file.write_text("workers = 2\n")
    file.chmod(mode)
    with pytest.raises(FaultyInputError, match=rf"others may write it \(mode {mode:04o}\): chmod go-w"):
        config.load(file, {}, HOME, 1000)


def test_named_file_must_be_there(tmp_path: Path) -> None:
    """A file that was named and is missing is a mistake; the default one may be missing."""
    with pytest.raises(FaultyInputError, match="there is no such file"):
        config.load(tmp_path / "absent.toml", {}, HOME, 1000)

    assert config.load(None, {}, HOME, 1000)


GRANT = '[[grant]]\nrole = "operator"\nusers = ["anna"]\n'
GOOD_GRANTS = {
    "one": (GRANT, Grant(role=Role.OPERATOR, users=("anna",))),
    "whole": (
        '[[grant]]\nrole = "viewer"\ngroups = ["wheel", "0"]\nworkflows = ["label", "x-1"]\nown = true\n',
        Grant(role=Role.VIEWER, groups=("wheel", "0"), workflows=("label", "x-1"), own=True),
    ),
}
BAD_GRANTS = {
    "unknown role": (GRANT.replace("operator", "king"), "$.grant[0].role"),
    "no role": ('[[grant]]\nusers = ["anna"]\n', "'role' is missing @ $.grant[0]"),
    "unknown key": (f'{GRANT}mood = "good"\n', "unknown key 'mood' @ $.grant[0]"),
    "nobody": ('[[grant]]\nrole = "viewer"\n', "it names nobody: expected users or groups @ $.grant[0]"),
    "users as text": ('[[grant]]\nrole = "viewer"\nusers = "anna"\n', "$.grant[0].users"),
    "user as a number": ('[[grant]]\nrole = "viewer"\nusers = [0]\n', "$.grant[0].users[0]"),
    "user of no such kind": ('[[grant]]\nrole = "viewer"\nusers = ["user:anna"]\n', "$.grant[0].users[0]"),
    "empty user": ('[[grant]]\nrole = "viewer"\nusers = [""]\n', "$.grant[0].users[0]"),
    "no workflow": (f"{GRANT}workflows = []\n", "$.grant[0].workflows"),
    "workflow of no such name": (f'{GRANT}workflows = ["../x"]\n', "$.grant[0].workflows[0]"),
    "own as text": (f'{GRANT}own = "false"\n', "$.grant[0].own"),
    "the second one": (f"{GRANT}{GRANT.replace('anna', 'a b')}", "$.grant[1].users[0]"),
    "a table": ('[grant]\nrole = "viewer"\n', "$.grant"),
}


@pytest.mark.parametrize("case", GOOD_GRANTS)
def test_grants_are_read(case: str, tmp_path: Path) -> None:
    """A grant says who has which role over what; what it leaves out is all of it."""
    text, grant = GOOD_GRANTS[case]

    assert (grant,) == load(tmp_path, text).grants


@pytest.mark.parametrize("case", BAD_GRANTS)
def test_bad_grant_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    """Nobody gets a role by a slip: each mistake in a grant is named with its path, and nothing starts."""
    text, said = BAD_GRANTS[case]
    with pytest.raises(FaultyInputError) as caught:
        load(tmp_path, text)

    assert any(said in problem for problem in caught.value.problems), caught.value.problems


APPROVALS = """
[approvals]
valid_for = "12h"
decide_within = "3d"
quorum = 2
not_requester = true
same_user = false
[[approvals.only]]
by = ["group:seniors", "user:bo"]
tools = ["cms.publish"]
workflows = ["label"]
[[approvals.only]]
by = ["user:cy"]
"""


def test_bounds_of_approvals_are_read(tmp_path: Path) -> None:
    """What the administrator lets rules say at most."""
    found = load(tmp_path, APPROVALS).approvals

    assert (
        Bounds(
            valid_for=43_200.0,
            decide_within=259_200.0,
            quorum=2,
            not_requester=True,
            same_user=False,
            only=(
                Only(by=("group:seniors", "user:bo"), tools=("cms.publish",), workflows=("label",)),
                Only(by=("user:cy",)),
            ),
        )
        == found
    )


FAULTY_BOUNDS = {
    'valid_for = "soon"': "$.approvals.valid_for",
    'valid_for = "0s"': "$.approvals.valid_for",
    "decide_within = 5": "$.approvals.decide_within",
    "quorum = 0": "$.approvals.quorum",
    "not_requester = false": "$.approvals.not_requester",
    "same_user = true": "$.approvals.same_user",
    "quorums = 1": "quorums",
    "only = [{ by = [] }]": "$.approvals.only[0].by",
    'only = [{ by = ["bo"] }]': "$.approvals.only[0].by[0]",
    'only = [{ by = ["user:"] }]': "$.approvals.only[0].by[0]",
    'only = [{ by = ["user:bo"], tools = [] }]': "$.approvals.only[0].tools",
    'only = [{ by = ["user:bo"], workflows = ["a b"] }]': "$.approvals.only[0].workflows[0]",
}


@pytest.mark.parametrize("text", FAULTY_BOUNDS)
def test_faulty_bounds_are_refused_with_their_path(tmp_path: Path, text: str) -> None:
    """Nothing is guessed, and nothing is made looser than a workflow says."""
    with pytest.raises(FaultyInputError) as caught:
        load(tmp_path, f"[approvals]\n{text}\n")

    assert FAULTY_BOUNDS[text] in str(caught.value)


ALONE = {
    "a user's own": (1000, "", True),
    "a user's own that grants to others": (1000, '[[grant]]\nrole = "viewer"\nusers = ["bo"]\n', False),
    "the system's": (0, "", False),
}


@pytest.mark.parametrize("case", ALONE)
def test_one_person_may_allow_its_own_where_nobody_else_could(tmp_path: Path, case: str) -> None:
    """Only in a user's own daemon that grants nothing; and it is said so."""
    uid, text, alone = ALONE[case]
    found = config.bounds(load(tmp_path, text, uid), HOME, uid)

    assert alone == found.alone
    assert alone == ("the requester may say yes to its own" in str(found))
