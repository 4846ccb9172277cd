"""Commits on their way to the disk, alone and in the kernel's hands together; nothing here waits for one.

Used by `disk` alone: a commit is handed over once, and ended once, in the loop.
"""

import os
from collections.abc import Callable

from resumed.schemas.errors import CommitError
from resumed.store.grouped import Group, Part
from resumed.store.journal import Journal

Done = Callable[[BaseException | None], None]
"""Hears that a line is durable (None), or why nobody knows: a CommitError."""


class Commit:
    """One line on its way to the disk."""

    __slots__ = ("_digest", "_done", "_journal", "_raw", "error", "part", "plain")

    def __init__(self, part: Part, journal: Journal, raw: bytes, digest: str, done: Done) -> None:
        self.part = part
        self.error: OSError | None = None
        self.plain = False
        """To be done by plain calls: the kernel would not begin it, or took less than all."""
        self._journal, self._raw, self._digest, self._done = journal, raw, digest, done

    def end(self) -> None:
        """In the loop: the journal is told, then whoever waits."""
        try:
            self._journal.end_append(self._raw, self._digest, self.error)
        except CommitError as error:
            self._done(error)
        else:
            self._done(None)


class Flight:
    """Commits that the kernel is at work on, and the means it was given."""

    __slots__ = ("_commits", "group")

    def __init__(self, group: Group, commits: list[Commit]) -> None:
        self.group = group
        self._commits = dict(enumerate(commits))

    def landed(self, *, wait: bool = False) -> list[Commit]:
        """Those whose end is known now; one that is `plain` has to be done again."""
        try:
            over = self.group.collect(wait=wait)
        except OSError as error:
            # Nobody can tell, not even later.
            lost = list(self._commits.values())
            for each in lost:
                each.error = error
            self._commits.clear()
            return lost
        found = []
        for number in over:
            commit, why = self._commits.pop(number), self.group.found[number]
            commit.plain = why == -1
            commit.error = OSError(why, os.strerror(why)) if why is not None and why != -1 else None
            found.append(commit)
        return found

    def is_over(self) -> bool:
        """True when nobody waits for it any more."""
        return not self._commits
