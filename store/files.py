"""The names of the files in a job's folder: spelled, parsed and listed; opens none of them."""

import re
import stat
from pathlib import Path

from attrs import frozen

from . import durable

JOB = "job.json"
ARTIFACTS = "artifacts"
LOGS = "logs"
"""What a job's programs printed: written by workers, read by people, vouched for by nobody."""
KEPT = "kept"
"""Folders of a job's units, for its programs' own use: theirs to fill, and vouched for by nobody."""
_FOLDERS = frozenset({ARTIFACTS, LOGS, KEPT})
_LOG = re.compile(r"([1-9][0-9]{0,15})\.(0|[1-9][0-9]{0,15})\.log\Z")
_TORN = re.compile(r"[1-9][0-9]{0,15}\.(0|[1-9][0-9]{0,15})\.torn\Z")
_CHECKPOINT = re.compile(r"([1-9][0-9]{0,15})-([0-9a-f]{64})\.checkpoint\.json\Z")


@frozen(order=True)
class LogName:
    """`<first>.<k>.log`: lines from `first` on; of equal firsts the highest `k` counts."""

    first: int
    k: int

    def __str__(self) -> str:
        return f"{self.first}.{self.k}.log"


@frozen(order=True)
class CheckpointName:
    """`<sequence>-<sha256>.checkpoint.json`: the digest is that of the file's bytes."""

    sequence: int
    digest: str

    def __str__(self) -> str:
        return f"{self.sequence}-{self.digest}.checkpoint.json"


@frozen(kw_only=True)
class Listing:
    """What lies in one job's folder, each kind in ascending order."""

    logs: tuple[LogName, ...]
    checkpoints: tuple[CheckpointName, ...]
    torn: tuple[str, ...]
    temporary: tuple[str, ...]
    stray: tuple[str, ...]
    has_job: bool

    def newest_logs(self) -> dict[int, LogName]:
        """By first sequence, ascending: the log that counts."""
        return {log.first: log for log in self.logs}

    def vouched(self) -> int:
        """The highest sequence that some file's name says was durable."""
        named = [log.first - 1 for log in self.logs] + [one.sequence for one in self.checkpoints]
        return max(named, default=0)

    def next_k(self, first: int) -> int:
        """The lowest `k` above all those that `first` has."""
        return max((log.k for log in self.logs if log.first == first), default=-1) + 1


def torn_name(log: LogName) -> str:
    """The name under which a log with a torn tail is kept once its good lines stand in another file."""
    return f"{log.first}.{log.k}.torn"


def parse_log(name: str) -> LogName | None:
    """The log a name stands for, None for any other file."""
    found = _LOG.match(name) if name.endswith(".log") else None
    return LogName(int(found[1]), int(found[2])) if found else None


def parse_checkpoint(name: str) -> CheckpointName | None:
    """The checkpoint a name stands for, None for any other file."""
    found = _CHECKPOINT.match(name) if name.endswith(".json") else None
    return CheckpointName(int(found[1]), found[2]) if found else None


def listing(folder: Path) -> Listing:
    """The files of a job's folder; OSError when it cannot be listed."""
    logs: list[LogName] = []
    checkpoints: list[CheckpointName] = []
    torn: list[str] = []
    temporary: list[str] = []
    stray: list[str] = []
    has_job = False
    for name in durable.names(folder):
        if log := parse_log(name):
            logs.append(log)
        elif checkpoint := parse_checkpoint(name):
            checkpoints.append(checkpoint)
        elif name == JOB:
            has_job = True
        elif name in _FOLDERS:
            pass
        elif _TORN.match(name):
            torn.append(name)
        elif durable.is_temporary(name):
            temporary.append(name)
        else:
            stray.append(name)
    return Listing(
        logs=tuple(sorted(logs)),
        checkpoints=tuple(sorted(checkpoints)),
        torn=tuple(torn),
        temporary=tuple(temporary),
        stray=tuple(stray),
        has_job=has_job,
    )


def is_folder(path: Path) -> bool:
    """True for a folder itself, not for a link to one."""
    return stat.S_ISDIR(durable.status(path).st_mode)
