"""What the content system keeps: pages, their revisions, the keys it was sent, and every request that came.

It knows no connection. One SQLite file; each write is one transaction, synced before it returns, so what
was accepted is there after a kill or a power cut. Everything late (a revision that is applied or shown
later) is a row with an instant, looked at whenever somebody asks: no timer, and a restart forgets nothing.
"""

import hashlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

NEVER = float("inf")
"""An instant that only `release` brings."""

TABLES = """
CREATE TABLE IF NOT EXISTS revision (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    page TEXT NOT NULL,
    revision INTEGER,               -- NULL until it is applied
    new INTEGER NOT NULL,           -- 1: a page of its own, 0: one more revision of the page
    key TEXT NOT NULL,              -- the Idempotency-Key it came with, kept for ever; '' for none
    body BLOB NOT NULL,
    applied REAL NOT NULL,          -- from when it counts
    shown REAL NOT NULL             -- from when look-ups see it
);
CREATE TABLE IF NOT EXISTS remembered (
    key TEXT PRIMARY KEY,           -- what deduplication knows, for as long as keys live
    asked TEXT NOT NULL,            -- sha256 of the request that brought it
    number INTEGER NOT NULL,
    until REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS request (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,             -- write, look_up or page
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    sha256 TEXT NOT NULL,           -- of the body that was read; '' where none was
    outcome TEXT NOT NULL,          -- accepted, repeated, read, refused, unread
    fault TEXT NOT NULL             -- the switch that hit it; '' for none
);
"""


class Receipt(NamedTuple):
    """What one write became; `revision` is 0 while it is not applied yet."""

    number: int
    page: str
    revision: int
    key: str
    body: bytes
    repeated: bool = False

    @property
    def reference(self) -> str:
        """The content system's own name for it, which stays."""
        return f"{self.page}@{self.revision}" if self.revision else f"queued-{self.number}"

    @property
    def sha256(self) -> str:
        """Digest of the text."""
        return hashlib.sha256(self.body).hexdigest()


class Write(NamedTuple):
    """One request to write: a new page (`new`), or one more revision of a page."""

    method: str
    path: str
    page: str
    new: bool
    key: str
    body: bytes

    @property
    def asked(self) -> str:
        """Digest of everything that makes it this request."""
        head = f"{self.method} {self.path}\n".encode()
        return hashlib.sha256(head + self.body).hexdigest()


class ConflictError(Exception):
    """A key that was used for another request: what came first stands."""


class StaleError(Exception):
    """The page is not at the version that the writer saw."""


class Shelf:
    """The pages, behind one connection and one lock."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self.heard = threading.Condition(self._lock)
        """Told about each request that came."""
        self.deduplicates = True
        self.key_life: float = NEVER
        """Seconds for which deduplication knows a key; 0 forgets it at once."""
        self._base = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.executescript(TABLES)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._base.close()

    # ---- writing --------------------------------------------------------------------------------------

    def write(
        self,
        asked: Write,
        *,
        match: str = "",
        fault: str = "",
        apply_after: float = 0.0,
        show_after: float = 0.0,
    ) -> Receipt:
        """Accepts it, or answers with what its key brought before; ConflictError, StaleError.

        `match` is the version that the writer saw: '"3"', or 'none' for no page at all. The two spans are
        seconds, NEVER for until released.
        """
        with self._transaction() as now:
            known = self._known(asked, now)
            if known is not None:
                self._note("write", asked.method, asked.path, asked.key, asked.body, "repeated", fault)
                return known
            if match and match != (self._version(asked.page) or "none"):
                raise StaleError(asked.page)
            row = self._base.execute(
                "INSERT INTO revision (page, new, key, body, applied, shown) VALUES (?, ?, ?, ?, ?, ?)",
                (asked.page, asked.new, asked.key, asked.body, now + apply_after, now + show_after),
            )
            number = int(row.lastrowid or 0)
            if asked.key and self.key_life > 0:
                self._base.execute(
                    "INSERT OR REPLACE INTO remembered VALUES (?, ?, ?, ?)",
                    (asked.key, asked.asked, number, now + self.key_life),
                )
            self._note("write", asked.method, asked.path, asked.key, asked.body, "accepted", fault)
            self._apply(now)
            return self._receipt("number = ?", number)[0]

    def _known(self, asked: Write, now: float) -> Receipt | None:
        self._base.execute("DELETE FROM remembered WHERE until <= ?", (now,))
        if not asked.key or not self.deduplicates:
            return None
        row = self._base.execute(
            "SELECT asked, number FROM remembered WHERE key = ?", (asked.key,)
        ).fetchone()
        if row is None:
            return None
        if row[0] != asked.asked:
            raise ConflictError(asked.key)
        return self._receipt("number = ?", row[1])[0]._replace(repeated=True)

    def _apply(self, now: float) -> None:
        """Gives page and revision to all whose instant has come, in their order."""
        due = self._base.execute(
            "SELECT number, page, new FROM revision WHERE revision IS NULL AND applied <= ? ORDER BY number",
            (now,),
        ).fetchall()
        for number, page, new in due:
            name = self._free(page) if new else page
            (last,) = self._base.execute(
                "SELECT coalesce(max(revision), 0) FROM revision WHERE page = ?", (name,)
            ).fetchone()
            self._base.execute(
                "UPDATE revision SET page = ?, revision = ? WHERE number = ?", (name, last + 1, number)
            )

    def _free(self, page: str) -> str:
        """The name of a new page: as asked for, or with the next number behind it."""
        taken = {
            name
            for (name,) in self._base.execute(
                "SELECT page FROM revision WHERE revision IS NOT NULL"
            ).fetchall()
        }
        names = (page, *(f"{page}-{number}" for number in range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken)

    # ---- reading --------------------------------------------------------------------------------------

    def by_key(self, key: str) -> list[Receipt]:
        """What was applied and is shown of the writes that came with a key."""
        with self._transaction() as now:
            return self._receipt("key = ? AND revision IS NOT NULL AND shown <= ?", key, now)

    def page(self, page: str) -> Receipt | None:
        """The newest revision of a page that is shown."""
        with self._transaction() as now:
            found = self._receipt("page = ? AND revision IS NOT NULL AND shown <= ?", page, now)
            return found[-1] if found else None

    def _version(self, page: str) -> str:
        found = self._receipt("page = ? AND revision IS NOT NULL", page)
        return f'"{found[-1].revision}"' if found else ""

    def _receipt(self, where: str, *values: object) -> list[Receipt]:
        rows = self._base.execute(
            f"SELECT number, page, coalesce(revision, 0), key, body FROM revision WHERE {where} ORDER BY 1",
            values,
        )
        return [Receipt(*row) for row in rows.fetchall()]

    # ---- its own truth --------------------------------------------------------------------------------

    def note(
        self, kind: str, method: str, path: str, key: str, body: bytes, outcome: str, fault: str
    ) -> None:
        """Records a request that wrote nothing."""
        with self._transaction():
            self._note(kind, method, path, key, body, outcome, fault)

    def _note(
        self, kind: str, method: str, path: str, key: str, body: bytes, outcome: str, fault: str
    ) -> None:
        digest = hashlib.sha256(body).hexdigest() if body else ""
        self._base.execute(
            "INSERT INTO request (kind, method, path, key, sha256, outcome, fault)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (kind, method, path, key, digest, outcome, fault),
        )

    def requests(self) -> list[dict[str, Any]]:
        """Every request that came, in order."""
        names = ("number", "kind", "method", "path", "key", "sha256", "outcome", "fault")
        with self._lock:
            rows = self._base.execute(f"SELECT {', '.join(names)} FROM request ORDER BY number").fetchall()
        return [dict(zip(names, row, strict=True)) for row in rows]

    def counts(self) -> dict[str, int]:
        """What there is. `writes_received` are write requests that were read whole, accepted or not."""
        with self._transaction():
            pages, revisions = self._base.execute(
                "SELECT count(DISTINCT page), count(*) FROM revision WHERE revision IS NOT NULL"
            ).fetchone()
            (queued,) = self._base.execute("SELECT count(*) FROM revision WHERE revision IS NULL").fetchone()
            outcomes = self._base.execute(
                "SELECT kind, outcome, count(*) FROM request GROUP BY 1, 2"
            ).fetchall()
        told = {(kind, outcome): number for kind, outcome, number in outcomes}
        return {
            "pages": pages,
            "revisions": revisions,
            "queued": queued,
            "writes_received": sum(
                number for (kind, outcome), number in told.items() if kind == "write" and outcome != "unread"
            ),
            "writes_accepted": told.get(("write", "accepted"), 0),
            "writes_repeated": told.get(("write", "repeated"), 0),
            "look_ups": sum(number for (kind, _), number in told.items() if kind == "look_up"),
        }

    def pages(self) -> dict[str, int]:
        """How many revisions each page has, whether look-ups see them or not."""
        with self._transaction():
            rows = self._base.execute(
                "SELECT page, count(*) FROM revision WHERE revision IS NOT NULL GROUP BY page ORDER BY page"
            ).fetchall()
        return dict(rows)

    def release(self) -> None:
        """Brings the instant of everything late: it is applied and shown from now on."""
        with self._transaction() as now:
            self._base.execute("UPDATE revision SET applied = min(applied, ?)", (now,))
            self._base.execute("UPDATE revision SET shown = min(shown, ?)", (now,))
            self._apply(now)

    @contextmanager
    def _transaction(self) -> Iterator[float]:
        """One synced transaction, with all that is due applied first; nothing of it stands when it raises."""
        with self._lock:
            now = self._clock()
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self._apply(now)
                yield now
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")
            self.heard.notify_all()
