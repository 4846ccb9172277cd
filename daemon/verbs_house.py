"""The verbs about the daemon itself: status, workflows."""

import argparse

from resumed.schemas import control

from . import render_house
from .client import Client
from .screen import Screen


def status(screen: Screen, client: Client, _asked: argparse.Namespace) -> int:
    """How the daemon is."""
    answer = client.call("Status")
    screen.show(answer, render_house.house_view(answer["house"], answer["you"], client.path, screen.width))
    return control.EXIT_DONE


def workflows(screen: Screen, client: Client, _asked: argparse.Namespace) -> int:
    """Which workflows a job file may name."""
    answer = client.call("Workflows")
    screen.show(answer, render_house.workflow_list(answer, screen.width, screen.colour))
    return control.EXIT_DONE
