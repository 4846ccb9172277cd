"""The verbs that change a job: pause, resume, cancel, retry, skip, reopen, extend."""

import argparse
from typing import Any

from resumed.schemas import control

from . import render
from .client import Client
from .letters import clean
from .screen import Screen


def steer(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Pause, resume, cancel, retry, skip, reopen, extend."""
    parameters: dict[str, Any] = {"job": asked.job, "reason": asked.reason, "record": asked.record}
    if asked.verb in ("retry", "skip", "reopen"):
        parameters["items"] = asked.items
    if asked.verb == "extend":
        limits = ("usd", "tokens", "turns", "active_time", "deadline")
        parameters |= {name: value for name in limits if (value := getattr(asked, name)) is not None}
    if asked.verb == "pause":
        parameters["now"] = asked.now
    answer = client.call(asked.verb.capitalize(), **parameters)
    show_told(screen, answer)
    return control.EXIT_DONE


def show_told(screen: Screen, answer: dict[str, Any]) -> None:
    """What a request did."""
    told = answer["told"]
    glyph = render.glyph_of(told["row"])
    screen.show(answer, [render.paint(f"{glyph} {clean(told['said'], 500)}", glyph, screen.colour)])
