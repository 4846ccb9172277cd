"""How a job's folder comes into being: whole or not at all; it knows nothing of what the job is.

The order: shard folder durable; temp folder with synced `job.json` and `1.0.log`; temp folder synced; rename
without replacing; shard folder synced. Until the rename nothing but a left-over exists.
"""

from pathlib import Path

from resumed.schemas import codec, line_io
from resumed.schemas.snapshot import STATE_SCHEMA, Admission, Line, Seal

from . import durable, files, retire
from . import layout as layouts
from .layout import Layout, taken

FIRST_LOG = files.LogName(1, 0)


def job_digest(admission: Admission) -> str:
    """The sha256 of the `job.json` that `admit` will write: line 1's `previous`, and `job` in every seal."""
    return codec.digest(line_io.spell_admission(admission))


def admit(layout: Layout, admission: Admission, first: Line) -> None:
    """Make a job's folder durable with its first line.

    FileExistsError when the id is taken. CommitError when the disk refused: the folder is then wholly there
    or wholly absent, and asking again tells which.
    """
    job = line_io.spell_admission(admission)
    log = first_log(codec.digest(job), first)
    if taken(layout, admission.id):
        raise FileExistsError(f"cannot admit {admission.id}: the id is taken")
    folder = layout.job(admission.id)
    with durable.writing("admit", folder):
        durable.ensure_folder(folder.parent)
        temp = durable.temporary(folder)
        try:
            _fill(temp, job, log)
            # A crash before this line leaves a temp folder, which `clean` removes.
            durable.rename_new(temp, folder)
        except OSError:
            remove_half_made(temp)
            raise
        # A crash before this line may still lose the folder; nobody was told that it exists, and whoever
        # opens it first syncs the shard.
        durable.sync_folder(folder.parent)


def clean(layout: Layout) -> tuple[str, ...]:
    """Remove what a crash left half made outside the jobs' own folders; returns the paths below the root.

    Left-overs inside a job's folder go when the job is opened for writing.
    """
    removed = [*layouts.clean(layout), *retire.clean(layout)]
    with durable.reading(layout.jobs):
        shards = [layout.jobs / name for name in durable.names(layout.jobs)]
        found = [
            shard / name
            for shard in shards
            if files.is_folder(shard)
            for name in durable.names(shard)
            if durable.is_temporary(name)
        ]
    for temp in found:
        remove_half_made(temp)
        removed.append(str(temp.relative_to(layout.root)))
    return tuple(removed)


def first_log(job: str, first: Line) -> bytes:
    """The bytes of a job's first log; `job` is the sha256 of its `job.json`. ValueError for no line 1."""
    if first.sequence != 1 or first.previous != job or first.opening is None:
        raise ValueError("line 1 needs sequence 1, job.json's digest as previous, and the opening snapshot")
    seal = Seal(seal=0, digest=job, why="admission", job=job, state_schema=STATE_SCHEMA, through=1)
    return line_io.spell_seal(seal) + line_io.spell_line(first)[0]


def _fill(temp: Path, job: bytes, log: bytes) -> None:
    durable.make_folder(temp)
    durable.new_file(temp / files.JOB, job)
    # No free space behind line 1: whoever opens the job writes in a log of its own.
    durable.new_file(temp / str(FIRST_LOG), log)
    durable.sync_folder(temp)


def remove_half_made(temp: Path) -> None:
    """Remove a temp folder, or what lies in its place, as far as that is possible."""
    try:
        if not files.is_folder(temp):
            durable.unlink(temp)
            return
        for name in durable.names(temp):
            durable.unlink(temp / name)
        durable.remove_folder(temp)
    except OSError:
        # A left-over that cannot be removed disturbs nobody; the next start tries again.
        pass
