"""Who may read what: asked of the kernel as that user, and worked out by the kernel's own rules otherwise.

Both are tried as root on the same files, so that the rules are held to what the kernel says.
"""

import os
import threading
from pathlib import Path

import pytest

from resumed.actors.worker import listing, lists, reach, sources
from resumed.schemas import frames, workflowfile
from resumed.schemas.job import PinKind, Reader, Source
from resumed.schemas.workflow import Input, InputType, Pinning

OWNER, MEMBER, STRANGER = 41_001, 41_002, 41_003
GROUP, OTHERS = 42_001, 42_002
READERS = {
    "the owner": Reader(uid=OWNER, gid=OTHERS),
    "one of the group": Reader(uid=MEMBER, gid=OTHERS, groups=(OTHERS, GROUP)),
    "one whose own group it is": Reader(uid=MEMBER, gid=GROUP),
    "a stranger": Reader(uid=STRANGER, gid=OTHERS, groups=(OTHERS,)),
}


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access list as the kernel keeps it: (tag, rights, id)."""
    packed = (2).to_bytes(4, "little")
    for tag, perm, who in entries:
        packed += (
            tag.to_bytes(2, "little") + perm.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        )
    return packed


def base(owner: int, group: int, mask: int, other: int) -> tuple[tuple[int, int, int], ...]:
    return ((1, owner, -1), (4, group, -1), (16, mask, -1), (32, other, -1))


MODES = (0o600, 0o640, 0o644, 0o604, 0o040, 0o440, 0o004, 0o000)
LISTS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "a named user": ((1, 6, -1), (2, 4, STRANGER), (4, 0, -1), (16, 7, -1), (32, 0, -1)),
    "a named user behind the mask": ((1, 6, -1), (2, 4, STRANGER), (4, 4, -1), (16, 0, -1), (32, 4, -1)),
    "a named user who may not": ((1, 6, -1), (2, 0, STRANGER), (4, 4, -1), (16, 7, -1), (32, 4, -1)),
    "a named group": ((1, 6, -1), (4, 0, -1), (8, 4, OTHERS), (16, 7, -1), (32, 0, -1)),
    "a named group that may not": ((1, 6, -1), (4, 0, -1), (8, 0, OTHERS), (16, 7, -1), (32, 4, -1)),
    "an owner who may not": ((1, 0, -1), (2, 4, STRANGER), (4, 4, -1), (16, 7, -1), (32, 4, -1)),
}


def by_kernel(path: Path, reader: Reader) -> bool:
    try:
        reach.run_as(reader, reach._read, str(path))
    except PermissionError:
        return False
    return True


@pytest.mark.root
@pytest.mark.parametrize("who", READERS)
def test_rules_say_what_the_kernel_says(who: str, open_folder: Path) -> None:
    """For every mode and access list, of a file and of the folder above it, the two ways agree."""
    reader = READERS[who]
    folder, file = open_folder / "d", open_folder / "d" / "f"
    folder.mkdir()
    file.write_text("x")
    os.chown(folder, OWNER, GROUP)
    os.chown(file, OWNER, GROUP)
    found: dict[str, tuple[bool, bool]] = {}

    def note(case: str) -> None:
        found[case] = (by_kernel(file, reader), reach._may_read(str(file), reader))

    for mode in MODES:
        folder.chmod(0o755)
        file.chmod(mode)
        note(f"a file of mode {mode:o}")
        file.chmod(0o644)
        folder.chmod(mode | mode >> 2)
        note(f"a folder of mode {mode:o}")
    folder.chmod(0o755)
    try:
        os.setxattr(file, "system.posix_acl_access", acl(*base(6, 4, 7, 0)))
    except OSError:
        pytest.fail("the file system of the temporary folder takes no access lists")
    for name, entries in LISTS.items():
        os.setxattr(file, "system.posix_acl_access", acl(*entries))
        note(name)

    assert [] == [case for case, (kernel, rules) in found.items() if kernel != rules]
    assert {True, False} == {kernel for kernel, _ in found.values()}


@pytest.mark.root
def test_reading_as_another_ends_with_its_thread(open_folder: Path) -> None:
    """The thread that reads is the reader whole, and no other thread notices, also when it fails."""
    secret = open_folder / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    reader = READERS["a stranger"]

    def look() -> tuple[str, list[str]]:
        status = Path("/proc/thread-self/status").read_text()
        return threading.current_thread().name, [
            line for line in status.splitlines() if line.startswith(("Uid", "Gid", "Groups", "CapEff"))
        ]

    mine = look()[1]
    name, theirs = reach.run_as(reader, look)
    with pytest.raises(PermissionError):
        reach.run_as(reader, secret.read_text)

    fields = {line.split(":")[0]: line.split()[1:] for line in theirs}
    assert ("reader", str(STRANGER), str(OTHERS)) == (name, fields["Uid"][3], fields["Gid"][3])
    assert [str(OTHERS)] == fields["Groups"]
    assert int(fields["CapEff"][0], 16) & 0b1111 == 0  # CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
    assert (mine, "x") == (look()[1], secret.read_text())


def declared(open_folder: Path, *, private: bool = False) -> tuple[Input, ...]:
    return (Input(name="at", type=InputType.PATH, roots=(str(open_folder),), private=private),)


@pytest.mark.root
def test_path_input_is_for_whom_may_read_it(open_folder: Path) -> None:
    """What the requester may not read is refused, whoever the daemon is; and nothing is waited for."""
    for name, mode in (("open", 0o644), ("shut", 0o600)):
        (open_folder / name).write_text("x")
        (open_folder / name).chmod(mode)
        (open_folder / f"{name}.d").mkdir()
        (open_folder / f"{name}.d").chmod(mode | 0o111 & mode << 2 if name == "shut" else 0o755)
        (open_folder / f"{name}.d" / "in").write_text("x")
    os.mkfifo(open_folder / "pipe")
    (open_folder / "pipe").chmod(0o600)
    (open_folder / "out").symlink_to("/etc/hostname")
    reader = READERS["a stranger"]

    def said(name: str, who: Reader | None) -> str:
        found = dict(reach.problems(declared(open_folder), {"at": str(open_folder / name)}, who))
        return found.get("at", "")

    denied = f"uid {STRANGER} cannot read it: Permission denied"
    expected = {
        "open": "", "open.d": "", "none": "", "shut": denied, "shut.d": denied, "shut.d/in": denied,
        "pipe": denied, "out": f"it leads to /etc/hostname, outside of {os.path.realpath(open_folder)}",
    }  # fmt: skip
    assert expected == {name: said(name, reader) for name in expected}
    assert {"out"} == {name for name in expected if said(name, None)}
    assert {"out"} == {name for name in expected if said(name, Reader(uid=0, gid=0))}
    private = dict(
        reach.problems(declared(open_folder, private=True), {"at": str(open_folder / "out")}, None)
    )
    assert f"it leads, outside of {os.path.realpath(open_folder)}" == private["at"]


def flow(items: str) -> workflowfile.Programs:
    step = "[[step]]\nname = 'only'\nrepeatable = true\nrun = ['true']\n"
    more = 'inputs.at = { type = "path", roots = ["/"] }\n'
    return workflowfile.read(f"version = 1\n{more}items = {items}\n{step}".encode(), "flow")


def listed(made: workflowfile.Programs, open_folder: Path, **more: object) -> listing.Found:
    run = frames.Run(
        job="j", epoch=1, item="", number=1, step="start", occurrence=1, log="", scratch="",
        inputs=f'{{"at":"{open_folder}"}}', reader=READERS["a stranger"], **more,
    )  # fmt: skip
    return listing.items_of(made, listing.origin_of(made, run, {"inputs.at": str(open_folder)}), run)


@pytest.mark.root
def test_what_a_requester_names_is_read_as_the_requester(open_folder: Path) -> None:
    """Files behind a pattern, a list and in a list are the requester's to read; not so the author's own."""
    for name, mode in (("a.txt", 0o644), ("b.txt", 0o600)):
        (open_folder / name).write_text("x")
        (open_folder / name).chmod(mode)
    (open_folder / "list").write_text(f"{open_folder}/b.txt\n")
    (open_folder / "list").chmod(0o600)
    denied = "b.txt: cannot read its source: Permission denied"
    refused = {
        '{ glob = "{inputs.at}/*.txt" }': denied,
        '{ from = "lines", file = "{inputs.at}/list" }': "cannot read the list",
    }
    for items, expected in refused.items():
        with pytest.raises(lists.UnfitItemsError, match=expected):
            listed(flow(items), open_folder)
    with pytest.raises(lists.UnfitItemsError, match=denied):
        listed(flow('{ glob = "/etc/*" }'), open_folder, items_glob=f"{open_folder}/*.txt")
    by_author = listed(flow(f'{{ glob = "{open_folder}/*.txt" }}'), open_folder)
    (open_folder / "b.txt").chmod(0o644)
    by_requester = listed(flow('{ glob = "{inputs.at}/*.txt" }'), open_folder)

    assert [False, False, True, True] == [
        item.source.requested for item in (*by_author.items, *by_requester.items) if item.source is not None
    ]


@pytest.mark.root
def test_requested_source_is_compared_as_the_requester(open_folder: Path) -> None:
    """A source that became a link to what its requester may not read is never pinned anew."""
    for name, mode in (("mine", 0o644), ("secret", 0o600)):
        (open_folder / name).write_text(name)
        (open_folder / name).chmod(mode)
    pin = sources.pinned(Source(path=str(open_folder / "mine"), requested=True), Pinning.AUTO, None)
    (open_folder / "mine").unlink()
    (open_folder / "mine").symlink_to("secret")
    reader = READERS["a stranger"]

    assert (PinKind.SHA256, True) == (pin.pin, pin.requested)
    with pytest.raises(PermissionError):
        sources.compared_as(reader, pin, Pinning.AUTO)
    now = sources.compared_as(None, pin, Pinning.AUTO)
    assert now is not None
    assert now.source is not None
    assert now.source.requested
