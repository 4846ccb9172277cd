"""Scratch folders: where a try works, made before it runs, removed after its end is adopted.

What a crash leaves here is removed at the next start, once every worker of before is known gone.
"""

import shutil
from pathlib import Path


def make(folder: Path) -> None:
    """Make a try's folder, readable by its owner only; OSError when the disk refuses."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def remove(*folders: Path) -> None:
    """Remove folders and all in them, where they are; what cannot be removed is left to the next start."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def empty(root: Path) -> None:
    """Remove everything that an earlier daemon left."""
    if root.is_dir():
        for left in root.iterdir():
            remove(left)
