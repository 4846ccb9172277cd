"""Every file of one job's folder, verified: what recovery needs and what it does not; reads only.

A finding says whose it is and how bad: `fatal` is what sets the job aside, the rest is reported, no more.
"""

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from resumed.schemas import codec, line_io
from resumed.schemas.errors import DamagedError, FaultyInputError, NewerSchemaError, UnreadableError
from resumed.schemas.job import Artifact
from resumed.schemas.snapshot import Snapshot

from . import artifacts, durable, files, identities, journal, log, recovery


@frozen(kw_only=True)
class Finding:
    """One thing that is wrong or odd; `code` is a slug: damaged, newer, unreadable, missing, torn, ..."""

    path: str
    job: str
    code: str
    detail: str
    fatal: bool = False


CODES = {DamagedError: "damaged", NewerSchemaError: "newer", UnreadableError: "unreadable"}


def code_of(error: Exception) -> str:
    """The slug for an error that the store raises about stored bytes."""
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), "damaged")


def job(folder: Path, apply: recovery.Apply, workers: Path | None = None) -> Iterator[Finding]:
    """All findings about one job's folder; `workers` is where the workers of its tries are on record."""
    found: recovery.Recovered | None = None
    try:
        found = recovery.load(folder, apply)
    except (DamagedError, UnreadableError, FaultyInputError) as error:
        yield _finding(folder, folder, code_of(error), str(error), fatal=True)
    try:
        listing = files.listing(folder)
        digest = codec.digest(durable.read_all(folder / files.JOB)) if listing.has_job else ""
    except OSError as error:
        yield _finding(folder, folder, "unreadable", f"cannot be read: {error.strerror}", fatal=True)
        return
    if found is not None:
        yield from _load_findings(folder, listing, found)
        if workers is not None:
            yield from _workers(folder, found.snapshot, workers)
    for name in listing.checkpoints:
        yield from _checkpoint(folder, name, digest)
    yield from _logs(folder, listing, digest)
    yield from _artifacts(folder, found.snapshot if found else None)
    yield from (
        _finding(folder, folder / n, "temporary", "a left-over of a crash") for n in listing.temporary
    )
    yield from (_finding(folder, folder / n, "stray", "no file of ours") for n in listing.stray)


def _finding(folder: Path, path: Path, code: str, detail: str, *, fatal: bool = False) -> Finding:
    return Finding(path=str(path), job=folder.name, code=code, detail=detail, fatal=fatal)


def _load_findings(folder: Path, listing: files.Listing, found: recovery.Recovered) -> Iterator[Finding]:
    if found.admission.id != folder.name:
        yield _finding(folder, folder, "misplaced", f"it holds the job {found.admission.id}", fatal=True)
    for torn in found.torn:
        detail = f"line {torn.sequence} was torn at byte {torn.offset} and is not cleared"
        name = files.parse_log(torn.log)
        kept = files.torn_name(name) if name is not None else torn.log
        yield _finding(folder, folder / (kept if kept in listing.torn else torn.log), "torn", detail)


def _workers(folder: Path, snapshot: Snapshot, workers: Path) -> Iterator[Finding]:
    for name in sorted({row.worker for row in snapshot.tries.values()}):
        path = workers / f"{name}{identities.IDENTITY}"
        try:
            known = any(
                durable.exists(path.with_suffix(one)) for one in (identities.IDENTITY, identities.GONE)
            )
        except OSError as error:
            yield _finding(folder, path, "unreadable", f"cannot be looked at: {error.strerror}")
            continue
        if not known:
            detail = "an open try names this worker, and it is not on record: it was gone, or its record is"
            yield _finding(folder, path, "unfinished", detail)


def _checkpoint(folder: Path, name: files.CheckpointName, job_digest: str) -> Iterator[Finding]:
    path = folder / str(name)
    try:
        if recovery.read_checkpoint(folder, name, job_digest) is None:
            yield _finding(folder, path, "damaged", "its bytes fail the digest in its name")
    except (DamagedError, UnreadableError, FaultyInputError) as error:
        yield _finding(folder, path, code_of(error), str(error))


@frozen
class _End:
    """Where a log stopped: its last line, for the seal of the log after it."""

    sequence: int
    digest: str


def _logs(folder: Path, listing: files.Listing, job_digest: str) -> Iterator[Finding]:
    """All logs, superseded and historic ones too; neighbours must fit where both are there."""
    newest = listing.newest_logs()
    firsts = list(newest)
    digests: dict[int, str] = {0: job_digest}
    for name in listing.logs:
        later = next((newest[first] for first in firsts if first > name.first), None)
        try:
            yield from _log(folder, name, later, digests, name in newest.values())
        except (DamagedError, UnreadableError, FaultyInputError) as error:
            yield _finding(folder, folder / str(name), code_of(error), str(error))


def _log(
    folder: Path, name: files.LogName, later: files.LogName | None, digests: dict[int, str], counted: bool
) -> Iterator[Finding]:
    path, what = folder / str(name), f"{folder.name}: {name}"
    last = None if later is None else later.first - 1
    with durable.reading(path):
        raw = durable.read_all(path)
    seal, end = log.read_seal(raw, what)
    sequence, digest = seal.seal, seal.digest
    if digests.get(sequence, digest) != digest or sequence != name.first - 1 or seal.job != digests[0]:
        yield _finding(folder, path, "damaged", "its seal does not continue the log before it")
    for line in log.lines(raw, end):
        if sequence == last or line_io.is_end(line.payload):
            break
        found = line_io.read_line(line.payload, seal.state_schema, what)
        if found.sequence != sequence + 1 or found.previous != digest:
            yield _finding(
                folder, path, "damaged", f"line {found.sequence} does not continue line {sequence}"
            )
            return
        sequence, digest, end = found.sequence, line.digest, line.end
        if counted:
            digests[sequence] = digest
    if counted and last is not None and sequence != last:
        yield _finding(folder, path, "damaged", f"it breaks off after line {sequence}, expected {last}")
    if log.is_clean(raw, end):
        return
    if later is None:
        yield from _tail(folder, path, raw, end)
    elif raw[end:].rstrip(b"\0") != line_io.spell_end(sequence, digest) and not _failed(folder, later):
        yield _finding(folder, path, "torn", f"the bytes from {end} on are no line; nothing needs them")


def _tail(folder: Path, path: Path, raw: bytes, end: int) -> Iterator[Finding]:
    mark = log.line_at(raw, end)
    if mark is not None and line_io.is_end(mark.payload):
        yield _finding(folder, path, "damaged", "the log that follows it is missing")
    else:
        yield _finding(folder, path, "torn", f"the bytes from {end} on do not verify")


def _failed(folder: Path, later: files.LogName) -> bool:
    """True where a log was begun since the one before could not be synced: that one ends anyhow."""
    path = folder / str(later)
    with durable.reading(path):
        seal, _ = log.read_seal(durable.read_all(path), str(later))
    return seal.why == journal.SYNC_FAILED


def _artifacts(folder: Path, snapshot: Snapshot | None) -> Iterator[Finding]:
    place = folder / files.ARTIFACTS
    try:
        kept = durable.names(place) if durable.exists(place) else []
    except OSError as error:
        yield _finding(folder, place, "unreadable", f"cannot be listed: {error.strerror}")
        return
    for name in kept:
        yield from _artifact(folder, place / name)
    for one in named_artifacts(snapshot) if snapshot else ():
        if one.sha256 not in kept:
            detail = f"artifact {one.name}@{one.revision} is named by the job and not there"
            yield _finding(folder, place / one.sha256, "missing", detail)


def _artifact(folder: Path, path: Path) -> Iterator[Finding]:
    if durable.is_temporary(path.name):
        yield _finding(folder, path, "temporary", "a left-over of a crash")
        return
    try:
        artifacts.read(folder, path.name)
    except ValueError:
        yield _finding(folder, path, "stray", "its name is no digest")
    except (DamagedError, UnreadableError) as error:
        yield _finding(folder, path, code_of(error), str(error))


def named_artifacts(snapshot: Snapshot) -> Iterator[Artifact]:
    """The artifacts of a snapshot whose bytes are files."""
    named = [each for item in (*snapshot.items, snapshot.position) for each in (item.output, *item.outputs)]
    named += [row.output for row in snapshot.publications.values()]
    for found in named:
        if found is not None and found.text is None and found.base64 is None and not found.path:
            yield found
