"""How a job leaves the place it was put: out of the quarantine, or for good; an id stays known for ever.

The order for good: the id durable among the names, the folder renamed to a left-over, then what is in it
unlinked, then the request id it was handed in under forgotten. A crash leaves the job whole where it was, or
a left-over that the next start removes.
"""

from pathlib import Path

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.errors import DamagedError, FaultyInputError, StoreError
from resumed.schemas.instant import Instant

from . import claims, durable, files, names, quarantine, recovery
from .claims import Claim
from .layout import Layout


@frozen(kw_only=True)
class Farewell:
    """What a name keeps of a job that is gone for good. `how` is `discarded` or `pruned`."""

    id: str
    how: str
    by: str
    at: Instant
    reason: str = ""


def restore(layout: Layout, job_id: str, apply: recovery.Apply) -> Path:
    """Move a job back from the quarantine to its place, once it loads; returns its folder.

    StoreError or NewerSchemaError says why not, and nothing was moved.
    """
    source, target = layout.quarantine / job_id, layout.job(job_id)
    recovered = recovery.load(source, apply)
    if recovered.admission.id != job_id:
        raise DamagedError(f"cannot restore {job_id}: it holds the job {recovered.admission.id}")
    with durable.reading(target):
        if durable.exists(target) or durable.exists(layout.archived(job_id)):
            raise StoreError(f"cannot restore {job_id}: there is a job of that id")
    with durable.writing("restore", source):
        durable.ensure_folder(target.parent)
        # A crash after this line leaves the job in the quarantine without a reason, to be restored again; the
        # other way round, a reason that holds no more would stay for the next time.
        _forget_reason(layout, job_id)
        durable.rename_new(source, target)
        durable.sync_folder(target.parent)
        durable.sync_folder(layout.quarantine)
    return target


def discard(layout: Layout, farewell: Farewell) -> None:
    """Give up a job that is set aside: its id stays taken, its folder goes. StoreError when it is not there.

    CommitError when the disk refused; asking again tells whether it is still there.
    """
    source = layout.quarantine / farewell.id
    _leave(layout, source, farewell)
    with durable.writing("discard", source):
        _forget_reason(layout, farewell.id)


def prune(layout: Layout, farewell: Farewell) -> None:
    """Remove a finished job from the archive: its id stays taken. The errors are those of `discard`."""
    _leave(layout, layout.archived(farewell.id), farewell)


def farewell_of(layout: Layout, job_id: str) -> Farewell | None:
    """What is known of a job that is gone for good; None when its id was never given up."""
    raw = names.read(layout.names, "id", 0, job_id)
    return None if raw is None else codec.decode(raw, Farewell, f"cannot read the name of {job_id}")


def _leave(layout: Layout, source: Path, farewell: Farewell) -> None:
    with durable.reading(source):
        if not durable.exists(source):
            raise StoreError(f"cannot remove {farewell.id}: it is not there")
    asked = _request_of(source)
    # The first farewell stays: a crash after this line leaves a job that is there, and is given up again.
    names.keep(layout.names, "id", 0, farewell.id, codec.encode(farewell))
    left = durable.temporary(source)
    with durable.writing("remove", source):
        durable.rename_new(source, left)
        durable.sync_folder(source.parent)
    remove(left)
    if asked is not None:
        _forget_request(layout, asked)


def _request_of(source: Path) -> Claim | None:
    """The request id that a job was handed in under, as far as its files tell."""
    try:
        claimed = claims.of(recovery.peek(source))
    except (StoreError, FaultyInputError):
        return None
    return next((claim for claim in claimed if claim.kind == claims.REQUEST), None)


def _forget_request(layout: Layout, asked: Claim) -> None:
    """A submit is remembered as long as its job; a name that stays is refused as what is gone for good."""
    try:
        held = claims.bearer(layout, asked.kind, asked.uid, asked.value)
        if held is not None and held.job == asked.job:
            claims.drop(layout, held)
    except StoreError:
        pass


def remove(left: Path) -> bool:
    """Remove a left-over with all that is in it; False when some of it stays for the next start."""
    try:
        if not files.is_folder(left):
            durable.unlink(left)
            return True
        for name in durable.names(left):
            remove(left / name)
        durable.remove_folder(left)
    except OSError:
        return False
    return True


def clean(layout: Layout) -> tuple[str, ...]:
    """Remove what a crash left of jobs that are gone for good; returns the paths below the root."""
    with durable.reading(layout.archive):
        shards = [layout.archive / name for name in durable.names(layout.archive)]
        places = [layout.quarantine, *(shard for shard in shards if files.is_folder(shard))]
        found = [place / name for place in places for name in durable.names(place)]
        orphans = [path for path in found if path.parent == layout.quarantine and _is_orphan(layout, path)]
    left = [*(path for path in found if durable.is_temporary(path.name)), *orphans]
    return tuple(str(path.relative_to(layout.root)) for path in left if remove(path))


def _is_orphan(layout: Layout, path: Path) -> bool:
    """Whether a file is the reason of a job that was given up since."""
    job_id = path.name.removesuffix(quarantine.REASON)
    if job_id == path.name or durable.is_temporary(path.name) or durable.exists(layout.quarantine / job_id):
        return False
    return names.known(layout.names, "id", 0, job_id)


def _forget_reason(layout: Layout, job_id: str) -> None:
    path = quarantine.reason_path(layout, job_id)
    if durable.exists(path):
        durable.unlink(path)
        durable.sync_folder(path.parent)
