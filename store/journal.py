"""One job's open log: the place where commits become durable; it decides nothing about the job.

A journal is used by one thread at a time. It writes only through the descriptor that created the log, and
names no log above a line that it has not synced itself: after a kill a tail can read well from the page
cache and be gone from the disk.
"""

import errno
from pathlib import Path

from attrs import frozen

from resumed.schemas import codec, line_io
from resumed.schemas.errors import CommitError
from resumed.schemas.snapshot import STATE_SCHEMA, Seal, Torn

from . import durable, files
from .grouped import Part
from .recovery import Recovered

FILL = 16 * 1024
"""Bytes of a new log, zeros included: appends inside written blocks sync without a change of metadata."""
MOST_FILL = 1024 * 1024
"""The most that free space grows by at once."""
SYNC_FAILED = "sync failed"
"""Why a log was begun whose forerunner may end in anything."""
CHECKPOINT_AT = 256 * 1024
"""Fewer bytes of lines never call for a checkpoint."""

_NONE_PINNED: frozenset[int] = frozenset()


@frozen
class _Open:
    """The log being written: its descriptor and how much of it is allocated."""

    name: files.LogName
    fd: int
    allocated: int


def open_for_writing(
    folder: Path, recovered: Recovered, *, named: bool = False, later: bool = False
) -> "Journal":
    """Publish the verified lines of the newest log under the next `k`, and go on in that file.

    `named` says that this process knows the names of the folder and its shard to be durable; `later`, that
    the caller sees to `drop_superseded` when nobody waits. Lines are copied at their own schema level; below
    the present one no commit is possible before `migrate`.
    CommitError when the disk refused; nothing was acknowledged, and the job can be loaded again.
    """
    journal = Journal(folder, recovered)
    name = files.LogName(recovered.first, recovered.k + 1)
    before = (recovered.first - 1, recovered.before)
    with durable.writing("open", folder):
        try:
            level = recovered.log_level if recovered.lines else STATE_SCHEMA
            journal.begin(name, recovered.lines, before, "opened", fill=True, level=level)
        except FileExistsError as error:
            raise CommitError(f"cannot open {folder}: {name} is there", path=str(folder)) from error
        try:
            # The process that admitted the job may have died before these names were durable.
            if not named:
                durable.sync_folder(folder.parent)
                durable.sync_folder(folder.parent.parent)
        except OSError:
            journal.close()
            raise
    journal.superseded = files.LogName(recovered.first, recovered.k)
    if recovered.torn_now or not later:
        journal.drop_superseded(torn=recovered.torn_now)
    sweep(folder)
    return journal


class Journal:
    """Appends, rotates and checkpoints; `sequence` and `digest` are those of the last synced line."""

    __slots__ = (
        "_begun", "_behind", "_checkpoints", "_end", "_floor", "_log", "_rejected", "_written",
        "digest", "failed", "folder", "job", "pinned", "sequence", "superseded", "torn",
    )  # fmt: skip

    def __init__(self, folder: Path, recovered: Recovered) -> None:
        self.folder = folder
        self.job = recovered.job
        self.sequence = recovered.sequence
        self.digest = recovered.digest
        self.torn: tuple[Torn, ...] = recovered.torn
        """Repeated in every seal; the owner empties it once a committed look-up cleared the suspicion."""
        self.failed = False
        """True after a failed write or sync: only `reopen_after_failure` and `close` are possible."""
        self.pinned = recovered.pinned or _NONE_PINNED
        """Sequences of older checkpoints that are never pruned here; repeated in every checkpoint."""
        self.superseded: files.LogName | None = None
        """The newest log that the copy stands for, until it and those before it are gone."""
        self._behind = recovered.level != STATE_SCHEMA
        self._log: _Open | None = None
        self._end = 0
        self._checkpoints = [recovered.checkpoint] if recovered.checkpoint else []
        self._rejected = recovered.rejected
        self._written = recovered.size
        self._floor = 0
        self._begun: dict[int, int] = {}

    # ---- commits --------------------------------------------------------------------------------------

    def append(self, raw: bytes, sequence: int, digest: str) -> None:
        """Make exactly one line durable; CommitError when its outcome is unknown, and then no further one."""
        part = self.begin_append(raw, sequence)
        try:
            durable.write_at(part[0], part[1], part[2])
            durable.sync_data(part[0])
        except OSError as error:
            self.end_append(raw, digest, error)
        else:
            self.end_append(raw, digest, None)

    def migrate(self, raw: bytes, sequence: int, digest: str, *, pinned: int) -> None:
        """Append the line that opens anew at the present level, in a log that holds no line yet.

        `pinned` is the checkpoint before it, 0 for none.
        """
        if self._usable().name.first != sequence:
            raise ValueError(f"cannot migrate in {self.folder}: line {sequence} begins no log")
        self._behind = False
        try:
            self.append(raw, sequence, digest)
        except CommitError:
            self._behind = True
            raise
        self.pinned |= {pinned} - {0}

    def begin_append(self, raw: bytes, sequence: int) -> Part:
        """What must be written, where, and then synced, so that the line is durable; `end_append` follows.

        CommitError when this journal takes no line.
        """
        if self._behind:
            raise ValueError(f"cannot commit in {self.folder}: its snapshot is of an earlier schema level")
        log = self._usable()
        if sequence != self.sequence + 1:
            raise ValueError(f"cannot append line {sequence} after line {self.sequence}")
        end = self._end + len(raw)
        if end <= log.allocated:
            return log.fd, raw, self._end
        # One write and one sync for the line and the free space behind it: whatever a crash leaves of
        # them is a whole line, a torn one, or none, followed by zeros.
        allocated = _allocate(log.allocated, end)
        self._log = _Open(log.name, log.fd, allocated)
        return log.fd, raw + bytes(allocated - end), self._end

    def end_append(self, raw: bytes, digest: str, error: OSError | None) -> None:
        """The line is durable, or nobody knows: CommitError then, and no further one is taken."""
        if error is not None:
            # Never tried again on this file: the kernel may have dropped the pages and would say OK.
            self.failed = True
            raise self._refused("commit", error) from error
        self._end += len(raw)
        self.sequence, self.digest = self.sequence + 1, digest
        self._written += len(raw)

    def reopen_after_failure(self) -> None:
        """Begin a new log that seals the old one at its last synced line; CommitError when that fails too.

        What the failed append left in the old log lies past the seal and does not exist any more.
        """
        old = self._log
        try:
            first = self.sequence + 1
            name = files.LogName(first, files.listing(self.folder).next_k(first))
            self.begin(name, b"", (self.sequence, self.digest), SYNC_FAILED, fill=True)
        except OSError as error:
            raise self._refused("reopen", error) from error
        self.failed = False
        if old is not None:
            durable.close(old.fd)

    # ---- rotation and checkpoints ---------------------------------------------------------------------

    def wants_checkpoint(self, checkpoint_size: int) -> bool:
        """True when the lines since the last checkpoint outweigh one of `checkpoint_size` bytes."""
        return self.size_since_checkpoint >= max(checkpoint_size, CHECKPOINT_AT)

    def rotate(self, why: str, *, fill: bool = True) -> None:
        """Begin the log of the next line; nothing happens while the present log holds no line.

        CommitError leaves the journal usable when the new log got no name, else `failed`.
        """
        old = self._usable()
        if old.name.first == self.sequence + 1:
            return
        name = files.LogName(self.sequence + 1, 0)
        end = self._end
        try:
            self.begin(name, b"", (self.sequence, self.digest), why, fill=fill)
        except OSError as error:
            raise self._refused("rotate", error) from error
        # Only now: a log that says it was ended means that the one after it was durable.
        _cut(old, end, line_io.spell_end(self.sequence, self.digest))

    def write_checkpoint(
        self,
        raw: bytes,
        sequence: int,
        *,
        prune_history: bool = False,
        pinned: frozenset[int] = frozenset(),
    ) -> str:
        """Publish the checkpoint of line `sequence`, where a rotation took place; returns its file name.

        CommitError leaves the journal as it is: a checkpoint is no commit. `pinned` are sequences of older
        checkpoints to keep beside `self.pinned`; logs from before the older of the two newest stay unless
        `prune_history`.
        """
        with durable.reading(self.folder):
            found = files.listing(self.folder)
        if sequence + 1 not in found.newest_logs() or sequence > self.sequence:
            raise ValueError(f"cannot write checkpoint {sequence}: no log begins at line {sequence + 1}")
        name = files.CheckpointName(sequence, codec.digest(raw))
        with durable.writing("write a checkpoint in", self.folder):
            self._publish_checkpoint(self.folder / str(name), raw)
        self._checkpoints = sorted({*self._checkpoints, sequence})
        self._floor = max(self._floor, self._begun.get(sequence + 1, 0))
        self._prune(prune_history, pinned | self.pinned)
        return str(name)

    @property
    def size_since_checkpoint(self) -> int:
        """Bytes of the lines that a recovery would replay now."""
        return self._written - self._floor

    def close(self) -> None:
        """Cut the free space off and close the descriptor; a second call does nothing."""
        self.drop_superseded()
        log, self._log = self._log, None
        if log is None:
            return
        if self.failed:
            # What a failed write left is evidence, and this file is not written again.
            durable.close(log.fd)
        else:
            _cut(log, self._end, b"")

    def drop_superseded(self, *, torn: bool = False) -> None:
        """Take away the logs that the copy stands for: were it lost, a shorter one must not be taken for it.

        A torn one is kept under a name that no recovery reads. A crash in between leaves more than needed.
        """
        last, self.superseded = self.superseded, None
        if last is None:
            return
        try:
            for log in files.listing(self.folder).logs:
                if log == last and torn:
                    durable.rename_new(self.folder / str(log), self.folder / files.torn_name(log))
                elif log.first == last.first and log.k <= last.k:
                    durable.discard(self.folder / str(log))
        except OSError:
            pass  # the next checkpoint, or the next opening, tries again

    # ---- inside ---------------------------------------------------------------------------------------

    def begin(
        self,
        name: files.LogName,
        lines: bytes,
        before: tuple[int, str],
        why: str,
        fill: bool,
        level: int = STATE_SCHEMA,
    ) -> None:
        """Publish a log with its seal and `lines` (of schema `level`), and write in it from now on."""
        seal = Seal(
            seal=before[0],
            digest=before[1],
            why=why,
            job=self.job,
            state_schema=level,
            through=self.sequence if lines else 0,
            torn=self.torn,
        )
        raw = line_io.spell_seal(seal) + lines
        allocated = _allocate(FILL, len(raw)) if fill else len(raw)
        fd = self._publish_log(self.folder / str(name), raw + bytes(allocated - len(raw)))
        self._log, self._end = _Open(name, fd, allocated), len(raw)
        self._begun[name.first] = self._written - len(lines)

    def _publish_log(self, target: Path, raw: bytes) -> int:
        temp = durable.temporary(target)
        fd = durable.create(temp)
        try:
            try:
                durable.write_at(fd, raw, 0)
                durable.sync_file(fd)
            except OSError:
                # A crash up to here leaves a temp file, which is never loaded.
                durable.discard(temp)
                raise
            try:
                durable.rename_new(temp, target)
                # A crash before the next line may lose the name; nothing was committed in the log yet.
                durable.sync_folder(self.folder)
            except OSError:
                self.failed = True
                # Still there when the rename did not happen; a finished job is never swept again.
                durable.discard(temp)
                raise
        except OSError:
            durable.close(fd)
            raise
        return fd

    def _publish_checkpoint(self, target: Path, raw: bytes) -> None:
        try:
            durable.write_new(target, raw)
        except FileExistsError:
            # The same bytes, published by a process that may have died before it synced the folder.
            if durable.read_all(target) != raw:
                raise OSError(errno.EEXIST, "its name holds other bytes") from None
            durable.sync_folder(self.folder)

    def _prune(self, history: bool, pinned: frozenset[int]) -> None:
        """Unlink what the two newest checkpoints do not need. A crash in between leaves more than needed."""
        try:
            found = files.listing(self.folder)
        except OSError:
            return  # the next checkpoint tries again
        self.superseded = None  # gone with the others
        counted = set(found.newest_logs().values())
        for log in found.logs:
            if log not in counted:
                durable.discard(self.folder / str(log))
        for name in found.torn if not self.torn else ():
            durable.discard(self.folder / name)
        if len(self._checkpoints) < 2:
            return
        older = self._checkpoints[-2]
        for one in found.checkpoints:
            kept = one.sequence >= older or one.sequence in pinned or str(one) in self._rejected
            if not kept:
                durable.discard(self.folder / str(one))
        needed = min((older, *pinned))
        for log in found.logs if history else ():
            if log in counted and log.first <= needed:
                durable.discard(self.folder / str(log))

    def _usable(self) -> _Open:
        if self.failed or self._log is None:
            why = "an earlier write or sync failed" if self.failed else "it is closed"
            raise CommitError(f"cannot commit in {self.folder}: {why}", path=str(self.folder))
        return self._log

    def _refused(self, what: str, error: OSError) -> CommitError:
        return CommitError(
            f"cannot {what} {self.folder}: {error.strerror}", path=str(self.folder), errno=error.errno or 0
        )


def _allocate(allocated: int, needed: int) -> int:
    """The file size that holds `needed` bytes: doubled, but grown by no more than MOST_FILL beyond them."""
    while allocated < needed:
        allocated += min(max(allocated, FILL), MOST_FILL)
    return allocated


def sweep(folder: Path) -> None:
    """Remove what was left half made. Safe while the one owner of the folder writes nothing in it."""
    for place in (folder, folder / files.ARTIFACTS):
        try:
            for name in durable.names(place):
                if durable.is_temporary(name):
                    durable.discard(place / name)
        except OSError:
            pass  # no artifacts yet, or it cannot be listed: left-overs disturb nobody


def _cut(log: _Open, end: int, mark: bytes) -> None:
    """Put `mark` in the place of the zeros behind a log that gets no further line, and close it."""
    try:
        # Not synced: the mark tells of a log that is missing later, and what a crash leaves of it lies past
        # that log's seal.
        if mark:
            durable.write_at(log.fd, mark, end)
        durable.truncate(log.fd, end + len(mark))
    except OSError:
        pass
    durable.close(log.fd)
