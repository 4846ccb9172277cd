"""One story through everything the store does, the restart after it, and the laws that hold then.

The story tells (`Disk.tell`) each thing when somebody could have heard of it; what it tries is noted before.
"""

from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from faults import world
from faults.disk import Disk
from resumed.schemas import codec, line_io
from resumed.schemas.errors import CommitError, FaultyInputError
from resumed.schemas.snapshot import Line, Snapshot
from resumed.store import (
    admission,
    archive,
    artifacts,
    durable,
    identities,
    intake,
    journal,
    layout,
    names,
    quarantine,
    recovery,
)

GOOD_FILE = b'{"id":"dropped","workflow":"label"}'
BAD_FILE = b'{"id":"'


@define
class Tried:
    """What the story set out to do: by job and sequence, the digests of the lines it tried to commit."""

    lines: dict[tuple[str, int], set[str]] = field(factory=dict)


@frozen
class Told:
    """One promise: `kind` names the law it falls under."""

    kind: str
    job: str
    sequence: int = 0
    digest: str = ""


class Teller:
    """Runs the story on one disk."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.tried = Tried()
        self.place = layout.Layout(disk.root)

    def admit(self, job_id: str) -> None:
        """Admit a job; its line 1 is told with it."""
        line = world.first_line(job_id)
        digest = line_io.spell_line(line)[1]
        self.tried.lines.setdefault((job_id, 1), set()).add(digest)
        admission.admit(self.place, world.admission_of(job_id), line)
        self.disk.tell(Told("line", job_id, 1, digest))

    def open(self, job_id: str) -> journal.Journal:
        """Load a job and open it."""
        folder = self.place.job(job_id)
        return journal.open_for_writing(folder, recovery.load(folder, world.apply))

    def append(self, log: journal.Journal, count: int = 1, text: str = "") -> None:
        """Commit some lines."""
        for _ in range(count):
            line = world.next_line(log.sequence + 1, log.digest, text)
            raw, digest = line_io.spell_line(line)
            self.tried.lines.setdefault((log.folder.name, line.sequence), set()).add(digest)
            log.append(raw, line.sequence, digest)
            self.disk.tell(Told("line", log.folder.name, line.sequence, digest))

    def checkpoint(self, log: journal.Journal, why: str, fill: bool = True) -> None:
        """Rotate, then write the checkpoint."""
        log.rotate(why, fill=fill)
        found = recovery.load(log.folder, world.apply)
        log.write_checkpoint(
            world.checkpoint_of(found.snapshot, found.digest, found.job, found.torn), found.sequence
        )

    def artifact(self, log: journal.Journal, raw: bytes) -> None:
        """Keep an artifact."""
        self.disk.tell(Told("artifact", log.folder.name, digest=artifacts.put(log.folder, raw)))

    def lose_a_sync(self, log: journal.Journal) -> None:
        """A commit whose sync fails, and the new log that seals it off."""
        self.disk.fail_next("sync_data")
        try:
            self.append(log, text="lost")
        except CommitError:
            log.reopen_after_failure()

    def intake(self) -> None:
        """Two files come in by the folder: one becomes a job, one is refused."""
        self.disk.put(self.place.incoming / "dropped.json", GOOD_FILE)
        self.disk.put(self.place.incoming / "broken.json", BAD_FILE)
        self.disk.tell(Told("file", "dropped.json"))
        self.disk.tell(Told("file", "broken.json"))
        for name in intake.scan(self.place.incoming):
            settle_file(self.place, intake.claim(self.place, name), self.tried)


def run(disk: Disk) -> Tried:
    """The whole story, on an empty folder."""
    teller = Teller(disk)
    tell(teller)
    return teller.tried


def tell(teller: Teller) -> None:
    """Admission, commits, an artifact, checkpoints, a lost sync, parks, intake, archive and quarantine."""
    disk = teller.disk
    place = teller.place = layout.create(disk.root, "store-1", world.moment(0))
    teller.admit("harbour")
    log = teller.open("harbour")
    teller.append(log, 2)
    teller.artifact(log, b"a draft")
    teller.append(log)
    teller.checkpoint(log, "outweighed")
    teller.append(log, text="x" * 9000)
    teller.append(log, text="y" * 20000)
    teller.lose_a_sync(log)
    teller.append(log)
    teller.checkpoint(log, "outweighed")
    teller.append(log)
    log.close()
    log = teller.open("harbour")
    teller.append(log)
    teller.checkpoint(log, "park", fill=False)
    log.close()
    archive.move(place, "harbour")
    disk.tell(Told("archived", "harbour"))
    teller.admit("unfit")
    quarantine.set_aside(place, "unfit", "damaged", "a drill", world.moment(9))
    disk.tell(Told("set aside", "unfit"))
    identities.record(place, "w1", b"{}")
    identities.mark_gone(place, "w1")
    disk.tell(Told("gone", "w1"))
    identities.forget(place, "w1")
    names.keep(place.names, "key", 1000, "invoice-7", b"harbour")
    disk.tell(Told("name", "invoice-7"))
    teller.intake()


def settle_file(place: layout.Layout, file: intake.Claimed, tried: Tried) -> None:
    """Admit a claimed file, or refuse it; asked again after a crash it does not admit twice."""
    try:
        _parse(file.raw)
    except FaultyInputError as error:
        intake.reject(place, file.name, {"code": "unreadable", "reason": str(error)}, world.moment(5))
        return
    job_id = file.name.removesuffix(".json")
    line = world.first_line(job_id)
    tried.lines.setdefault((job_id, 1), set()).add(line_io.spell_line(line)[1])
    try:
        admission.admit(place, world.admission_of(job_id), line)
    except FileExistsError:
        pass
    intake.finish(place, file)


def _parse(raw: bytes) -> None:
    if not raw.endswith(b"}"):
        raise FaultyInputError("cannot admit", ("not JSON",))


def restart(root: Path, tried: Tried) -> None:
    """What a daemon does with the disk when it starts. Raises whatever the store raises."""
    place = layout.create(root, "store-1", world.moment(0))
    admission.clean(place)
    for job_id in archive.folders(place.jobs):
        folder = place.job(job_id)
        journal.open_for_writing(folder, recovery.load(folder, world.apply)).close()
    for name in intake.claimed(place):
        settle_file(place, intake.read(place, name), tried)


def go_on(teller: Teller) -> None:
    """Restart, then work on every job as if nothing had happened; the store's promises are told as before."""
    restart(teller.disk.root, teller.tried)
    for job_id in archive.folders(teller.place.jobs):
        log = teller.open(job_id)
        teller.append(log)
        teller.checkpoint(log, "a test")
        teller.append(log)
        log.close()


def find(place: layout.Layout, job_id: str) -> Path | None:
    """Where a job lies."""
    for folder in (place.job(job_id), place.archived(job_id), place.quarantine / job_id):
        if folder.exists():
            return folder
    return None


def read(folder: Path) -> tuple[recovery.Recovered, dict[int, str]]:
    """A job, and the digests of the lines that were replayed."""
    digests: dict[int, str] = {}

    def apply(snapshot: Snapshot, line: Line) -> Snapshot:
        digests[line.sequence - 1] = line.previous
        return world.apply(snapshot, line)

    found = recovery.load(folder, apply)
    digests[found.sequence] = found.digest
    return found, digests


def broken_laws(root: Path, told: tuple[Any, ...], tried: Tried) -> list[str]:
    """The promises that a restarted store does not keep; empty when all is well."""
    place = layout.Layout(root)
    jobs = {job for job, _ in tried.lines}
    held = {job: read(folder) for job in jobs if (folder := find(place, job)) is not None}
    broken = [f"{job}: {fault}" for job, one in held.items() for fault in _job_faults(job, *one, tried)]
    broken += [f"{one} is not kept" for one in told if not _is_kept(place, one, held)]
    broken += [f"left over: {path}" for path in root.rglob("*") if durable.is_temporary(path.name)]
    return broken


def _job_faults(job: str, found: recovery.Recovered, digests: dict[int, str], tried: Tried) -> list[str]:
    faults = [
        f"line {sequence} is none that was tried"
        for sequence, digest in digests.items()
        if sequence and digest not in tried.lines.get((job, sequence), set())
    ]
    if found.sequence > 1 and found.snapshot.state["last"] != str(found.sequence):
        faults.append(f"the snapshot holds line {found.snapshot.state['last']}, not {found.sequence}")
    return faults


def _is_kept(
    place: layout.Layout, told: Told, held: dict[str, tuple[recovery.Recovered, dict[int, str]]]
) -> bool:
    folder = find(place, told.job)
    if told.kind == "line":
        if told.job not in held:
            return False
        found, digests = held[told.job]
        return found.sequence >= told.sequence and digests.get(told.sequence, told.digest) == told.digest
    if told.kind == "artifact":
        return folder is not None and codec.digest(artifacts.read(folder, told.digest)) == told.digest
    if told.kind == "archived":
        return folder == place.archived(told.job)
    if told.kind == "set aside":
        return [(told.job, "damaged")] == [(one.id, one.reason) for one in quarantine.entries(place)]
    if told.kind == "gone":
        return identities.gone(place, told.job) or told.job not in identities.names(place)
    if told.kind == "name":
        return names.read(place.names, "key", 1000, told.job) == b"harbour"
    return _file_is_kept(place, told.job, held)


def _file_is_kept(place: layout.Layout, name: str, held: dict[str, Any]) -> bool:
    """A file that was dropped is still there, became its job, or was refused with a reason beside it."""
    if (place.incoming / name).exists() or name.removesuffix(".json") in held:
        return True
    refused = place.rejected / name
    return refused.exists() and refused.with_name(f"{name}{intake.REASON}").exists()
