"""The verbs by which jobs leave: quarantine list, show, restore and discard; prune."""

import argparse
import shlex

from resumed.schemas import control

from . import render_retire
from .client import CallError, Client
from .screen import Screen, UsageError, complain
from .verbs_steer import show_told


def quarantine(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """The jobs that were set aside."""
    if asked.what == "list":
        return _list(screen, client)
    if not asked.job:
        raise UsageError(f"quarantine {asked.what} needs a JOB", ("resumectl quarantine list",))
    if asked.what == "show":
        answer = client.call("Aside", job=asked.job)
        screen.show(
            answer, render_retire.aside_view(answer["aside"], screen.now, screen.width, screen.colour)
        )
        return control.EXIT_DONE
    name = shlex.quote(asked.job)
    if asked.what == "discard" and not asked.yes:
        raise UsageError(
            f"discarding {asked.job} removes its folder and cannot be taken back",
            (f"resumectl quarantine discard {name} --yes", f"resumectl quarantine show {name}"),
        )
    show_told(screen, client.call(asked.what.capitalize(), job=asked.job, reason=asked.reason))
    return control.EXIT_DONE


def _list(screen: Screen, client: Client) -> int:
    answer = client.call("Quarantined")
    screen.show(
        answer, render_retire.quarantine_list(answer["jobs"], screen.now, screen.width, screen.colour)
    )
    return control.EXIT_DONE


def prune(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Removes ended jobs, or says which could be."""
    if asked.jobs and asked.older_than:
        raise UsageError("prune takes either JOBs or --older-than", ("resumectl prune --dry-run",))
    if asked.yes and not (asked.jobs or asked.older_than):
        raise UsageError(
            "prune --yes needs JOBs or --older-than: all ended jobs are never meant by nothing",
            ("resumectl prune --older-than 90d --dry-run", "resumectl list -a"),
        )
    answer = client.call("Ended", older_than=asked.older_than, jobs=asked.jobs)
    rows, count = answer["jobs"], answer["count"]
    if not asked.yes or asked.dry_run:
        may = shlex.join(
            ["resumectl", "prune", *(asked.jobs or ["--older-than", asked.older_than or "90d"]), "--yes"]
        )
        screen.show(answer, render_retire.prunable(rows, count, may, screen.now, screen.width, screen.colour))
        return control.EXIT_DONE
    return _remove(screen, client, asked.jobs or [row["id"] for row in rows], asked)


def _remove(screen: Screen, client: Client, jobs: list[str], asked: argparse.Namespace) -> int:
    """One job after the other, each wholly or not at all; what is refused is said, and stops no other."""
    gone: list[str] = []
    refused: CallError | None = None
    while jobs:
        for job in jobs:
            try:
                gone.append(client.call("Prune", job=job, reason=asked.reason)["job"])
            except CallError as error:
                refused = error
                complain(error, commands=error.parameters.get("commands", ()))
        # An answer holds no more than so many; what was refused is not asked for again.
        more = [] if asked.jobs or refused else client.call("Ended", older_than=asked.older_than)["jobs"]
        jobs = [row["id"] for row in more]
    said = f"{len(gone)} job{'' if len(gone) == 1 else 's'} removed; ids stay known"
    screen.show({"removed": gone}, [said])
    return control.EXIT_REFUSED if refused else control.EXIT_DONE
