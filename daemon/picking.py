"""Which row of the inbox the words on a command line mean: an id, a job, or a job and what in it.

It never guesses: what may mean several things is refused with all of them named.
"""

import argparse
from typing import Any

from .client import Client
from .letters import clean
from .screen import UsageError

DECIDED = ("approve", "review")
"""Kinds of rows that are decided with yes or no."""
ANY = (*DECIDED, "answer", "settle")
MOST_NAMED = 12


def whole_inbox(client: Client) -> dict[str, Any]:
    """All rows: they come in pieces."""
    answer = client.call("Inbox")
    after: int = answer["next"]
    while after:
        piece = client.call("Inbox", offset=after)
        answer["asks"] += piece["asks"]
        after = piece["next"]
    return {"asks": answer["asks"], "you": answer["you"]}


def among(
    rows: list[dict[str, Any]], asked: argparse.Namespace, kinds: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The rows of these kinds that the words may mean."""
    rows = [row for row in rows if row["kind"] in kinds]
    name, subject = asked.ask or "", asked.subject or ""
    if not name:
        return rows
    if not subject and (exact := [row for row in rows if row["id"].startswith(name)]):
        return exact
    jobs = {row["job"] for row in rows}
    job = name if name in jobs else _only([one for one in jobs if one.startswith(name)])
    rows = [row for row in rows if row["job"] == job]
    if not subject:
        return rows
    exact = [row for row in rows if subject in (row["id"], row["subject"], row["item"])]
    return exact or [row for row in rows if row["id"].startswith(subject)]


def _only(found: list[str]) -> str:
    return found[0] if len(found) == 1 else ""


def one(
    client: Client, asked: argparse.Namespace, kinds: tuple[str, ...], *, given: bool = False
) -> tuple[str, str]:
    """The job and the subject that the words mean; UsageError where they may mean several things.

    What is not in the inbox (any more) is asked of the job itself, which answers what became of it; with
    `given` it always is.
    """
    rows = [] if given else among(whole_inbox(client)["asks"], asked, kinds)
    if len(rows) == 1:
        return rows[0]["job"], rows[0]["subject"]
    if rows:
        verb, more = asked.verb, len(rows) - MOST_NAMED
        raise UsageError(
            f"cannot {verb} {clean(' '.join(filter(None, (asked.ask, asked.subject))))}: that may mean "
            f"{len(rows)} things: {', '.join(clean(said(row), 80) for row in rows[:MOST_NAMED])}"
            + (f" and {more} more" if more > 0 else ""),
            tuple(f"resumectl {verb} {row['id']}" for row in rows[:MOST_NAMED]),
        )
    return asked.ask, asked.subject or ""


def said(row: dict[str, Any]) -> str:
    """A row in a few words."""
    return f"{row['id']} ({row['job']}{' ' + row['item'] if row['item'] else ''}: {row['what']})"
