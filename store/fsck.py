"""The whole store, verified: what is wrong, and whose it is; it changes nothing and needs no lock.

Beside a running daemon a finding can be a file on its way; what counts is what stays.
"""

import re
from collections.abc import Callable, Iterator
from errno import ENOENT
from pathlib import Path

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.errors import FaultyInputError, StoreError, UnreadableError

from . import (
    claims,
    durable,
    examine,
    files,
    identities,
    intake,
    layout,
    names,
    quarantine,
    recovery,
    reserve,
)
from .examine import Finding
from .recovery import Apply

NOTES = frozenset({"temporary", "stray", "unfinished", "torn"})
"""What a crash or a person leaves, and recovery lives with: reported, and the store is clean."""
_NAME = re.compile(r"[0-9a-f]{64}\Z")
_KNOWN = frozenset({"lock", "store.json", "lost", reserve.NAME, *layout.FOLDERS})


@frozen(kw_only=True)
class Report:
    """What was looked at and what was found: of the house, then of the jobs."""

    root: str
    jobs: int
    archived: int
    set_aside: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """True when nothing was found."""
        return not self.findings


def check(root: Path, apply: Apply) -> Report:
    """Verify every stored file of a store; `apply` is the law's, as for recovery."""
    place = layout.Layout(root)
    counts = {"jobs": 0, "archive": 0}
    aside, findings = house(place)
    for name in counts:
        for folder in _folders(root / name, findings):
            counts[name] += 1
            findings += _placed(folder)
            findings += examine.job(folder, apply, place.workers)
            findings += _names_of(place, folder)
    return Report(
        root=str(root),
        jobs=counts["jobs"],
        archived=counts["archive"],
        set_aside=aside,
        findings=tuple(findings),
    )


def house(place: layout.Layout) -> tuple[int, list[Finding]]:
    """What is outside the folders of open and ended jobs, verified; and how many jobs are set aside."""
    aside, found = _quarantine(place)
    rest = [*_claimed(place), *_rejected(place), *_names(place), *_workers(place)]
    return aside, [*_root(place), *found, *rest]


def _names_of(place: layout.Layout, folder: Path) -> Iterator[Finding]:
    """The names that a job took: without one of them its key, or its request, could be taken anew."""
    try:
        wanted = claims.of(recovery.peek(folder))
        missing = [one for one in wanted if not names.known(place.names, one.kind, one.uid, one.value)]
    except UnreadableError as error:
        if error.errno != ENOENT:
            yield _of_store(folder / files.JOB, "unreadable", str(error))
        return
    except (StoreError, FaultyInputError):
        return  # it was said of the job
    for one in missing:
        path = place.names / names.spell(one.kind, one.uid, one.value)
        yield _of_store(path, "missing", f"the {one.kind} {one.value} of {one.job} is not known any more")


def _of_store(path: Path, code: str, detail: str, *, fatal: bool = False) -> Finding:
    return Finding(path=str(path), job="", code=code, detail=detail, fatal=fatal)


def _list(path: Path, findings: list[Finding]) -> list[str]:
    try:
        return durable.names(path)
    except OSError as error:
        findings.append(_of_store(path, "unreadable", f"cannot be listed: {error.strerror}"))
        return []


def _root(place: layout.Layout) -> Iterator[Finding]:
    try:
        if layout.read(place) is None:
            yield _of_store(place.store_file, "missing", "there is no store.json", fatal=True)
    except (StoreError, FaultyInputError) as error:
        yield _of_store(place.store_file, examine.code_of(error), str(error), fatal=True)
    found: list[Finding] = []
    for name in _list(place.root, found):
        if durable.is_temporary(name):
            yield _of_store(place.root / name, "temporary", "a left-over of a crash")
        elif name not in _KNOWN:
            yield _of_store(place.root / name, "stray", "no file of ours")
    yield from found


def _folders(parent: Path, findings: list[Finding]) -> Iterator[Path]:
    for shard in _list(parent, findings):
        if not _is_folder(parent / shard, findings):
            continue
        for name in _list(parent / shard, findings):
            path = parent / shard / name
            if durable.is_temporary(name):
                findings.append(_of_store(path, "temporary", "an admission that a crash cut short"))
            elif _is_folder(path, findings):
                yield path


def _is_folder(path: Path, findings: list[Finding]) -> bool:
    try:
        if files.is_folder(path):
            return True
        findings.append(_of_store(path, "stray", "no folder of ours"))
    except OSError as error:
        findings.append(_of_store(path, "unreadable", f"cannot be looked at: {error.strerror}"))
    return False


def _placed(folder: Path) -> Iterator[Finding]:
    expected = codec.shard(folder.name)
    if folder.parent.name != expected:
        yield Finding(
            path=str(folder),
            job=folder.name,
            code="misplaced",
            detail=f"it lies in {folder.parent.name}, expected {expected}",
            fatal=True,
        )


def _quarantine(place: layout.Layout) -> tuple[int, list[Finding]]:
    findings: list[Finding] = []
    listed = _list(place.quarantine, findings)
    others: list[Finding] = []
    left = {name for name in listed if durable.is_temporary(name)}
    folders = {name for name in listed if name not in left and _is_folder(place.quarantine / name, others)}
    findings += [one for one in others if one.code == "unreadable"]
    for name in sorted(folders):
        path = quarantine.reason_path(place, name)
        try:
            quarantine.read_reason(path)
        except (StoreError, FaultyInputError) as error:
            code = examine.code_of(error) if path.name in listed else "missing"
            findings.append(Finding(path=str(path), job=name, code=code, detail=str(error)))
    findings += _beside(place.quarantine, [n for n in listed if n not in folders], folders)
    return len(folders), findings


def _beside(folder: Path, listed: list[str], owners: set[str]) -> Iterator[Finding]:
    """Files that must belong to something beside them: reasons, and left-overs that belong to nothing."""
    for name in listed:
        owner = name.removesuffix(quarantine.REASON)
        if durable.is_temporary(name):
            yield _of_store(folder / name, "temporary", "a left-over of a crash")
        elif owner == name:
            yield _of_store(folder / name, "stray", "no file of ours")
        elif owner not in owners:
            yield _of_store(folder / name, "unfinished", f"a reason for {owner}, which is not here")


def _claimed(place: layout.Layout) -> Iterator[Finding]:
    found: list[Finding] = []
    for name in _list(place.claimed, found):
        yield _of_store(place.claimed / name, "unfinished", "claimed, and neither admitted nor rejected yet")
    yield from found


def _rejected(place: layout.Layout) -> Iterator[Finding]:
    found: list[Finding] = []
    listed = _list(place.rejected, found)
    reasons = [name for name in listed if name.endswith(intake.REASON)]
    refused = {name for name in listed if name not in reasons and not durable.is_temporary(name)}
    for name in sorted(refused):
        if f"{name}{intake.REASON}" in reasons:
            yield from _refused(place.rejected / name)
        else:
            yield _of_store(
                place.rejected / name, "missing", "it was refused, and no reason stands beside it"
            )
    temporary = [name for name in listed if durable.is_temporary(name)]
    yield from _beside(place.rejected, [*reasons, *temporary], refused)
    yield from found


def _refused(path: Path) -> Iterator[Finding]:
    reason = path.with_name(f"{path.name}{intake.REASON}")
    try:
        found = intake.read_rejection(reason)
    except (StoreError, FaultyInputError) as error:
        yield _of_store(reason, examine.code_of(error), str(error))
        return
    try:
        marks = intake.marks_of(path)
    except OSError as error:
        yield _of_store(path, "unreadable", f"cannot be read: {error.strerror}")
        return
    # An inode is another one wherever the store was copied to: only bytes are held against the reason.
    if marks.sha256 != found.file.sha256:
        yield _of_store(path, "damaged", "its bytes are not those that were refused")


def _names(place: layout.Layout) -> Iterator[Finding]:
    found: list[Finding] = []
    for name in _list(place.names, found):
        if durable.is_temporary(name):
            yield _of_store(place.names / name, "temporary", "a left-over of a crash")
        elif not _NAME.match(name):
            yield _of_store(place.names / name, "stray", "no name of ours")
        else:
            yield from _checked(place.names / name, names.read_file)
    yield from found


def _workers(place: layout.Layout) -> Iterator[Finding]:
    found: list[Finding] = []
    for name in _list(place.workers, found):
        known = name.endswith((identities.IDENTITY, identities.GONE, identities.STDERR))
        if durable.is_temporary(name):
            yield _of_store(place.workers / name, "temporary", "a left-over of a crash")
        elif not known:
            yield _of_store(place.workers / name, "stray", "no file of ours")
        elif name.endswith(identities.IDENTITY):
            yield from _checked(place.workers / name, identities.verify)
    yield from found


def _checked(path: Path, read: Callable[[Path], object]) -> Iterator[Finding]:
    try:
        read(path)
    except (StoreError, FaultyInputError) as error:
        yield _of_store(path, examine.code_of(error), str(error))
