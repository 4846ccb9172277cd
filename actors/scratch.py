"""Scratch folders: where a try works, made before it runs, removed after its end is adopted.

They stand in one folder a worker. What a crash leaves is removed at the next start, but for the folders of
workers that are not proven gone: something may still work in those. Credentials that a try was handed lie in
memory under the same names, and go with them.
"""

import os
import shutil
from pathlib import Path

from resumed.schemas.errors import CommitError

from .worker import credentials


def make(folder: Path) -> None:
    """Make a try's folder, readable by its owner only; CommitError when the disk refuses."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot make the folder {folder}: {error.strerror}"
        raise CommitError(why, path=str(folder), errno=error.errno or 0) from error


def remove(*folders: str | Path) -> None:
    """Remove folders and all in them, where they are; what cannot be removed is left to the next start."""
    # Most tries of a Python worker never had one: not even the folder that they would stand in is there then.
    there: dict[str, bool] = {}
    for folder in folders:
        above = os.path.dirname(folder)
        if above not in there:
            there[above] = os.path.lexists(above)
        if there[above]:
            shutil.rmtree(folder, ignore_errors=True)


def remove_worker(root: str | Path, worker: str) -> None:
    """Remove all folders of one worker, and the credentials that its tries were handed."""
    remove(Path(root, worker))
    credentials.forget_worker(root, worker)


def empty(root: Path, unproven: frozenset[str] = frozenset()) -> None:
    """Remove what an earlier daemon left, except the folders of the workers in `unproven`."""
    if root.is_dir():
        for left in root.iterdir():
            if left.name not in unproven:
                remove(left)
    credentials.forget(root, unproven)
