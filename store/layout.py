"""Where things lie in a store, and the file that says which format it has; decides nothing about jobs.

The order of creation: all folders, then `store.json`. A store without it is new or was never finished.
"""

from pathlib import Path

from attrs import frozen

from resumed.schemas import checked, codec, migrations, strict
from resumed.schemas.errors import DamagedError, FaultyInputError, NewerSchemaError
from resumed.schemas.instant import Instant

from . import durable, files, names

FORMAT = 2
"""The level of the folder layout that this release writes; a store of level 1 stays one.

From 2 on, `store.json`, reasons, names and worker identities carry their own digest.
"""
FOLDERS = (
    "jobs",
    "archive",
    "quarantine",
    "incoming",
    "claimed",
    "rejected",
    "names",
    "workers",
    "scratch",
)
FLAT = ("quarantine", "rejected", "names", "workers")
"""The folders, beside the root, in which files of ours are published."""


@frozen(kw_only=True)
class StoreRecord:
    """`store.json`: the format of the folders, the store's own id, and when it was made."""

    format: int
    id: str
    created: Instant


@frozen
class Layout:
    """The paths of one store."""

    root: Path

    @property
    def jobs(self) -> Path:
        """Jobs that are not archived, in `<shard>/<id>`."""
        return self.root / "jobs"

    @property
    def archive(self) -> Path:
        """Finished jobs, in `<shard>/<id>`."""
        return self.root / "archive"

    @property
    def quarantine(self) -> Path:
        """Jobs set aside, in `<id>`, with `<id>.reason.json` beside each."""
        return self.root / "quarantine"

    @property
    def incoming(self) -> Path:
        """The watched folder."""
        return self.root / "incoming"

    @property
    def claimed(self) -> Path:
        """Files being admitted."""
        return self.root / "claimed"

    @property
    def rejected(self) -> Path:
        """Refused files, with `NAME.reason.json` beside each."""
        return self.root / "rejected"

    @property
    def names(self) -> Path:
        """What must stay known."""
        return self.root / "names"

    @property
    def workers(self) -> Path:
        """Identities of worker processes."""
        return self.root / "workers"

    @property
    def scratch(self) -> Path:
        """Working folders of programs; nothing in it is state."""
        return self.root / "scratch"

    @property
    def lost(self) -> Path:
        """What a repair moved out of the way, each file under the path it had; made when it is needed."""
        return self.root / "lost"

    @property
    def lock_file(self) -> Path:
        """Held by the one daemon."""
        return self.root / "lock"

    @property
    def store_file(self) -> Path:
        """Format and id of the store."""
        return self.root / "store.json"

    def job(self, job_id: str) -> Path:
        """The folder of a job that is not archived."""
        return self.root.joinpath("jobs", codec.shard(job_id), _name(job_id))

    def archived(self, job_id: str) -> Path:
        """The folder of a finished job once it is moved."""
        return self.root.joinpath("archive", codec.shard(job_id), _name(job_id))


def _name(job_id: str) -> str:
    """The id itself; ValueError for one that is no single name, whoever let it through."""
    if job_id in ("", ".", "..") or "/" in job_id or "\0" in job_id:
        raise ValueError(f"not a job id: {job_id!r}")
    return job_id


def create(root: Path, store_id: str, now: Instant) -> Layout:
    """Make a store, or open the one that is there (its id stays its own).

    NewerSchemaError and DamagedError come before anything is written.
    """
    layout = Layout(root)
    check(layout)
    make(layout, store_id, now)
    return layout


def make(layout: Layout, store_id: str, now: Instant) -> None:
    """Make what is missing of a store's folders, then its `store.json`; jobs may be there already."""
    with durable.writing("make the store", layout.root):
        _make_folders(layout.root)
        if not durable.exists(layout.store_file):
            record = StoreRecord(format=FORMAT, id=store_id, created=now)
            # A crash before this line leaves empty folders only; the next start goes on from them.
            durable.write_new(layout.store_file, checked.spell(record))


def check(layout: Layout) -> StoreRecord | None:
    """The record of a store that may be opened, None where one may be made; writes nothing."""
    found = read(layout)
    if found is None:
        _refuse_orphans(layout)
    return found


def clean(layout: Layout) -> tuple[str, ...]:
    """Remove the temp files that a crash left in the flat folders; returns their paths below the root.

    Folders of such names are `retire`'s.
    """
    removed: list[str] = []
    for folder in (layout.root, *(layout.root / name for name in FLAT)):
        with durable.reading(folder):
            found = [
                name
                for name in durable.names(folder)
                if durable.is_temporary(name) and not files.is_folder(folder / name)
            ]
        for name in found:
            durable.discard(folder / name)
            removed.append(str((folder / name).relative_to(layout.root)))
    return tuple(removed)


def read(layout: Layout) -> StoreRecord | None:
    """The store's record, None when there is no store yet; NewerSchemaError for a later format."""
    what = f"cannot open the store {layout.root}: {layout.store_file.name}"
    with durable.reading(layout.store_file):
        if not durable.exists(layout.store_file):
            return None
        raw = durable.read_all(layout.store_file)
    try:
        # The level first: what a later format looks like, its own release knows.
        level = migrations.level_of(strict.parse(raw, what), "format", what)
        if level > FORMAT:
            raise NewerSchemaError(what, level, FORMAT)
        return checked.read(raw, StoreRecord, what)
    except NewerSchemaError:
        raise
    except FaultyInputError as error:
        raise DamagedError(str(error), path=str(layout.store_file)) from None


def where(layout: Layout, job_id: str) -> Path | None:
    """The folder in which a job lies, be it open, archived or set aside; UnreadableError on EIO."""
    places = (layout.job(job_id), layout.archived(job_id), layout.quarantine / _name(job_id))
    with durable.reading(layout.root):
        return next((place for place in places if durable.exists(place)), None)


def taken(layout: Layout, job_id: str) -> bool:
    """True while jobs, archive, quarantine or names bears the id."""
    places = (layout.job(job_id), layout.archived(job_id), layout.quarantine / _name(job_id))
    with durable.reading(layout.root):
        return any(durable.exists(place) for place in places) or names.known(layout.names, "id", 0, job_id)


def _refuse_orphans(layout: Layout) -> None:
    with durable.reading(layout.jobs):
        orphans = durable.names(layout.jobs) if durable.exists(layout.jobs) else []
    if orphans:
        raise DamagedError(
            f"cannot open the store {layout.root}: it holds jobs, but store.json is missing",
            path=str(layout.store_file),
        )


def _make_folders(root: Path) -> None:
    missing: list[Path] = []
    while not durable.exists(root if not missing else missing[-1].parent):
        missing.append(root if not missing else missing[-1].parent)
    for folder in reversed(missing):
        durable.ensure_folder(folder)
    # Also in a store that is there: a folder that somebody removed by hand must not stop the daemon.
    for name in FOLDERS:
        if not durable.exists(root / name):
            durable.make_folder(root / name)
    durable.sync_folder(root)
