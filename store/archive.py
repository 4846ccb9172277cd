"""Finished jobs, moved whole out of the way of the start scan; the move is one rename and is never undone."""

from pathlib import Path

from resumed.schemas.errors import StoreError

from . import durable, files, journal
from .layout import Layout


def move(layout: Layout, job_id: str) -> Path:
    """Move a finished job's folder to the archive; again after a crash, it makes the same move durable.

    StoreError when neither place has it or both do: then nothing was moved.
    """
    source, target = layout.job(job_id), layout.archived(job_id)
    with durable.reading(source):
        here, there = durable.exists(source), durable.exists(target)
    if here and there:
        raise StoreError(f"cannot archive {job_id}: the archive already holds a job of that id")
    if not here and not there:
        raise StoreError(f"cannot archive {job_id}: there is no such job")
    with durable.writing("archive", source):
        durable.ensure_folder(target.parent)
        if here:
            # Nobody opens it again: what a refusing disk made us leave goes now or never.
            journal.sweep(source)
            durable.rename_new(source, target)
        # A crash before these two leaves the job in one of both places, whole; the move is then made again.
        durable.sync_folder(target.parent)
        durable.sync_folder(source.parent)
    return target


def ids(layout: Layout) -> tuple[str, ...]:
    """The ids of all archived jobs."""
    return folders(layout.archive)


def folders(parent: Path) -> tuple[str, ...]:
    """The ids below a folder of shards (`jobs` or `archive`), temp names left out; UnreadableError on EIO."""
    return tuple(sorted(name for shard in shards(parent) for name in names(parent / shard)))


def shards(parent: Path) -> tuple[str, ...]:
    """The shard folders in `jobs` or `archive`; UnreadableError when they cannot be listed."""
    with durable.reading(parent):
        return tuple(name for name in durable.names(parent) if files.is_folder(parent / name))


def ends(shard: Path, since: int) -> tuple[int, ...]:
    """When the jobs in one shard of the archive ended, as wall microseconds, those before `since` left out.

    An archived folder is not written any more. UnreadableError when the shard cannot be listed.
    """
    with durable.reading(shard):
        found = [durable.status(shard / name).st_mtime_ns // 1000 for name in names(shard)]
    return tuple(at for at in found if at >= since)


def names(shard: Path) -> tuple[str, ...]:
    """The ids in one shard, temp names left out; UnreadableError when it cannot be listed."""
    with durable.reading(shard):
        return tuple(sorted(name for name in durable.names(shard) if not name.startswith(".")))
