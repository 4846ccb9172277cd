"""The verbs that look at jobs: list, show, logs, output."""

import argparse
import time

from resumed.schemas import control

from . import render_jobs
from .client import Client, whole_job, whole_list
from .screen import Screen


def list_jobs(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """The open jobs."""
    answer = whole_list(client, all=asked.all, since=midnight(screen.now))
    screen.show(answer, render_jobs.job_list(answer, screen.now, screen.width, screen.colour, asked.all))
    return control.EXIT_DONE


def midnight(now: float) -> int:
    """When the present day began here, in wall microseconds."""
    year, month, day = time.localtime(now)[:3]
    return round(time.mktime((year, month, day, 0, 0, 0, 0, 0, -1)) * 1_000_000)


def show(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """One job, whole."""
    if asked.contract:
        return _contract(screen, client, asked.job)
    answer = whole_job(client, asked.job)
    screen.show(
        answer, render_jobs.job_view(answer["job"], screen.now, screen.width, screen.colour, asked.all)
    )
    return control.EXIT_DONE


def _contract(screen: Screen, client: Client, job: str) -> int:
    from . import render_contract

    answer = client.call("ShowContract", job=job)
    screen.show(answer, render_contract.contract_view(answer, screen.width))
    return control.EXIT_DONE


def logs(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """What the programs of a job said."""
    from . import pieces

    if asked.follow:
        return pieces.follow_logs(screen, client, asked.job, asked.item)
    return pieces.print_logs(screen, client, asked.job, asked.item, asked.lines)


def output(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """An item's accepted output, byte for byte."""
    from .pieces import print_output

    return print_output(screen, client, asked.job, asked.item, asked.to)
