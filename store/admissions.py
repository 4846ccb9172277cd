"""Many admissions at once: to each job what `admission.admit` does, in that order, its syncs side by side.

A thread that admits one job after the other waits for five syncs of each, and takes the interpreter lock back
after every call; here all jobs wait for the same four. One that fails costs no other.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, field

from resumed.schemas import codec, line_io
from resumed.schemas.errors import CommitError
from resumed.schemas.snapshot import Admission, Line

from . import admission, durable, files
from .layout import Layout, taken

MOST = 32
"""Jobs at once: two files of each are one group of the kernel's."""


@define(eq=False)
class _Making:
    """One job on its way: its bytes, its places, and why it failed if it did."""

    id: str
    raws: tuple[bytes, bytes]
    """`job.json` and the first log."""
    folder: Path
    temp: Path
    fds: list[int] = field(factory=list)
    error: Exception | None = None


def admit_each(
    layout: Layout, jobs: Sequence[tuple[Admission, Line]], shards: set[Path]
) -> list[Exception | None]:
    """Make each job durable with its first line; what `admission.admit` would have raised, or None.

    `shards` are the folders whose own names this process has made durable; those of these jobs are added.
    """
    makings = [_making(layout, record, line) for record, line in jobs]
    _each(makings, lambda one: _begin(layout, one))
    _make_shards(layout, makings, shards)
    _each(makings, _create)
    _write(makings)
    _sync(makings, lambda one: one.temp)
    # A crash before this line leaves temp folders, which `clean` removes.
    _each(makings, lambda one: durable.rename_new(one.temp, one.folder))
    for one in makings:
        if one.error is not None:
            admission.remove_half_made(one.temp)
    # A crash before this line may still lose the folders; nobody was told that they exist.
    _sync(makings, lambda one: one.folder.parent)
    return [one.error for one in makings]


def _making(layout: Layout, record: Admission, line: Line) -> _Making:
    job = line_io.spell_admission(record)
    folder = layout.job(record.id)
    log = admission.first_log(codec.digest(job), line)
    return _Making(record.id, (job, log), folder, durable.temporary(folder))


def _each(makings: list[_Making], step: Callable[[_Making], None]) -> None:
    """One step of each job that has not failed."""
    for one in makings:
        if one.error is None:
            try:
                step(one)
            except OSError as error:
                _fail(one, error)
            except Exception as error:  # noqa: BLE001 - whatever it is: one that fails costs no other
                one.error = error


def _fail(one: _Making, error: OSError) -> None:
    try:
        with durable.writing("admit", one.folder):
            raise error
    except (CommitError, FileExistsError) as known:
        one.error = known


def _begin(layout: Layout, one: _Making) -> None:
    if taken(layout, one.id):
        raise FileExistsError(f"cannot admit {one.id}: the id is taken")


def _make_shards(layout: Layout, makings: list[_Making], shards: set[Path]) -> None:
    """The shard folders are there, and their names durable; most are so from earlier admissions."""
    new = {
        one.folder.parent: None for one in makings if one.error is None and one.folder.parent not in shards
    }
    try:
        for shard in new:
            try:
                durable.make_folder(shard)
            except FileExistsError:
                # It may have been made by a process that died before it synced the parent.
                pass
        if new:
            durable.sync_folder(layout.jobs)
    except OSError as error:
        for one in makings:
            if one.folder.parent in new:
                _fail(one, error)
    else:
        shards.update(new)


def _create(one: _Making) -> None:
    durable.make_folder(one.temp)
    for name in (files.JOB, str(admission.FIRST_LOG)):
        one.fds.append(durable.create(one.temp / name))


def _write(makings: list[_Making]) -> None:
    alive = [one for one in makings if one.error is None]
    try:
        parts = [(fd, raw, 0) for one in alive for fd, raw in zip(one.fds, one.raws, strict=True)]
        found = durable.write_and_sync_each(parts)
    finally:
        for one in makings:
            for fd in one.fds:
                durable.close(fd)
    for number, error in enumerate(found):
        if error is not None:
            _fail(alive[number // 2], error)


def _sync(makings: list[_Making], place: Callable[[_Making], Path]) -> None:
    """Sync a folder of each job that has not failed, once where several have the same."""
    alive = [one for one in makings if one.error is None]
    places = list({place(one): None for one in alive})
    found = dict(zip(places, durable.sync_folders(places), strict=True))
    for one in alive:
        if (error := found[place(one)]) is not None:
            _fail(one, error)
