"""The verbs of people's decisions: inbox, approve, deny, send-back, revoke, answer, settle; and tools.

Nothing is decided that was not shown: what is sent names the fingerprint of what was on the screen, or the
one that was given on the command line.
"""

import argparse
import sys
from typing import Any

from resumed.schemas import control

from . import editing, picking, render_asks
from .client import CallError, Client
from .letters import clean
from .screen import Screen, UsageError, complain
from .verbs_steer import show_told


def inbox(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Who must do what, over all jobs, oldest first; or all of one thing that is asked."""
    answer = picking.whole_inbox(client)
    if asked.ask:
        several = picking.among(answer["asks"], asked, picking.ANY)
        if len(several) < 2:
            return _whole(screen, client, asked)
        answer["asks"] = several
    if asked.mine:
        answer["asks"] = [row for row in answer["asks"] if row["yours"]]
    screen.show(answer, render_asks.inbox(answer, screen.now, screen.width, screen.colour))
    return control.EXIT_DONE


def _whole(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    job, subject = picking.one(client, asked, picking.ANY)
    found = client.call("Asked", job=job, subject=subject)
    screen.show(found, render_asks.ask(found["ask"], screen.now, screen.width, screen.colour))
    return control.EXIT_DONE


def tools(screen: Screen, client: Client, _asked: argparse.Namespace) -> int:
    """What workflows may write to other systems."""
    answer = client.call("Tools")
    screen.show(answer, render_asks.tools(answer, screen.width))
    return control.EXIT_DONE


def approve(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Allow a call, or accept a draft, once it was shown."""
    if asked.each:
        return _each(screen, client, asked)
    job, subject = picking.one(client, asked, picking.DECIDED)
    parameters: dict[str, Any] = {"job": job, "subject": subject, **_kept(asked)}
    if asked.edit:
        parameters |= {"edit": True, "text": editing.read(asked.edit)}
    if asked.fingerprint is None:
        ask = client.call("Asked", job=job, subject=subject)["ask"]
        if not _agreed(screen, ask, parameters.get("text")):
            complain("nothing was decided", commands=_others(ask))
            return control.EXIT_REFUSED
        parameters |= {"fingerprint": ask["row"]["fingerprint"], "shown": ask["digest"]}
    else:
        parameters["fingerprint"] = asked.fingerprint
    show_told(screen, client.call("Approve", **parameters))
    return control.EXIT_DONE


def refuse(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Deny a call or a draft, or have it made anew: both need what it was that was looked at."""
    job, subject = picking.one(client, asked, picking.DECIDED)
    fingerprint = asked.fingerprint
    if fingerprint is None:
        fingerprint = client.call("Asked", job=job, subject=subject)["ask"]["row"]["fingerprint"]
    method = "Deny" if asked.verb == "deny" else "SendBack"
    answer = client.call(method, job=job, subject=subject, fingerprint=fingerprint, **_kept(asked))
    show_told(screen, answer)
    return control.EXIT_DONE


def revoke(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Take a yes back before it is spent."""
    job, subject = picking.one(client, asked, (), given=True)
    show_told(screen, client.call("Revoke", job=job, subject=subject, **_kept(asked)))
    return control.EXIT_DONE


def answer(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Answer a question."""
    job, subject = picking.one(client, asked, ("answer",))
    told = client.call("Answer", job=job, subject=subject, answer=asked.answer, **_kept(asked))
    show_told(screen, told)
    return control.EXIT_DONE


def settle(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Say what became of a call that may have left."""
    if (asked.landed is None) == (not asked.absent):
        raise UsageError(
            "expected --landed REF or --absent", ("resumectl settle JOB EFFECT --landed REF --reason TEXT",)
        )
    job, subject = picking.one(client, asked, ("settle",))
    parameters = {"job": job, "subject": subject, **_kept(asked)}
    if not asked.record:
        parameters["record"] = client.call("Show", job=job)["job"]["row"]["sequence"]
    told = client.call("Settle", reference=asked.landed or "", absent=asked.absent, **parameters)
    show_told(screen, told)
    return control.EXIT_DONE


def _kept(asked: argparse.Namespace) -> dict[str, Any]:
    return {"reason": asked.reason, "record": asked.record}


def _others(ask: dict[str, Any]) -> list[str]:
    name = ask["row"]["id"]
    return [f"resumectl deny {name}", f"resumectl send-back {name} --note TEXT", "resumectl inbox"]


def _agreed(screen: Screen, ask: dict[str, Any], text: str | None) -> bool:
    """Shows it whole, and `text` that shall stand in a draft's place, and asks; UsageError where nobody can
    answer."""
    if screen.as_json or not (sys.stdin.isatty() and screen.terminal):
        name, kind = ask["row"]["id"], ask["row"]["kind"]
        verb = "accept" if kind == "review" else "approve"
        raise UsageError(
            f"cannot {verb} {name} unseen: this is no terminal; name the fingerprint of what was looked at",
            (f"resumectl inbox {name}", f"resumectl approve {name} --fingerprint SHA256"),
        )
    print("\n".join(render_asks.ask(ask, screen.now, screen.width, screen.colour)))
    to = "accept this draft" if ask["row"]["kind"] == "review" else "approve"
    if text is not None:
        print("\n".join(render_asks.text("your text, in its place", text, screen.width)))
        to = "accept your text"
    return _typed(f"{to}? [y/N] ").lower() in ("y", "yes")


def _typed(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return ""


CHOICES = "y {yes}, n {no}, b send back, s later, q stop"


def _each(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Pages through all that one may decide: one decision, one record each."""
    if (
        asked.fingerprint is not None
        or asked.edit
        or screen.as_json
        or not (sys.stdin.isatty() and screen.terminal)
    ):
        raise UsageError("--each shows one after the other and asks: it needs a terminal")
    rows = picking.among(picking.whole_inbox(client)["asks"], asked, picking.DECIDED)
    mine = [row for row in rows if row["yours"]]
    if not mine:
        print("nothing waits for your decision")
        return control.EXIT_DONE
    decided = 0
    for place, row in enumerate(mine, start=1):
        print(f"{'' if place == 1 else chr(10)}{place} of {len(mine)}")
        word = _decide_one(screen, client, row)
        if word == "q":
            break
        decided += word in ("y", "n", "b")
    print(f"{decided} of {len(mine)} decided")
    return control.EXIT_DONE


def _decide_one(screen: Screen, client: Client, row: dict[str, Any]) -> str:
    """Shows one, asks, and sends what was said; what meanwhile moved on is told and left."""
    where = {"job": row["job"], "subject": row["subject"]}
    try:
        ask = client.call("Asked", **where)["ask"]
        print("\n".join(render_asks.ask(ask, screen.now, screen.width, screen.colour)))
        is_draft = ask["row"]["kind"] == "review"
        choices = (
            CHOICES.format(yes="accept", no="refuse")
            if is_draft
            else CHOICES.format(yes="approve", no="deny")
        )
        word = ""
        while word not in ("y", "n", "b", "s", "q"):
            word = _typed(f"{choices}: ").lower()[:1] or "s"
        named = {**where, "fingerprint": ask["row"]["fingerprint"]}
        if word == "y":
            show_told(screen, client.call("Approve", shown=ask["digest"], **named))
        elif word == "n":
            show_told(screen, client.call("Deny", reason=_typed("why: "), **named))
        elif word == "b":
            show_told(screen, client.call("SendBack", reason=_typed("note: "), **named))
    except CallError as error:
        print(f"! {clean(error, 500)}")
        return "s"
    return word
