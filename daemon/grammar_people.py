"""The part of the grammar about people's decisions: rows of the table of verbs, and what each verb takes."""

import argparse

from .words import RECORD, count, said


def _ask(made: argparse.ArgumentParser, *, optional: bool = False) -> None:
    made.add_argument(
        "ask",
        metavar="ID|JOB",
        nargs="?" if optional else None,
        help="an id of the inbox; else a job, and (where it asks more) what in it",
    )
    made.add_argument(
        "subject", metavar="SUBJECT", nargs="?", help="an effect, an item, or an id of the inbox"
    )


def _inbox(made: argparse.ArgumentParser) -> None:
    _ask(made, optional=True)
    made.add_argument("--mine", action="store_true", help="only what waits for you")


FINGERPRINT = "what was looked at, as `inbox ID` showed it: nothing else is decided"


def _approve(made: argparse.ArgumentParser) -> None:
    _ask(made, optional=True)
    made.add_argument("--fingerprint", default=None, metavar="SHA256", help=FINGERPRINT)
    made.add_argument("--each", action="store_true", help="show one after the other, and ask about each")
    made.add_argument("--edit", default="", metavar="FILE", help="accept this text in place of the draft")
    said(made)


def _deny(made: argparse.ArgumentParser) -> None:
    _ask(made)
    made.add_argument("--fingerprint", default=None, metavar="SHA256", help=FINGERPRINT)
    said(made)


def _send_back(made: argparse.ArgumentParser) -> None:
    _ask(made)
    made.add_argument("--fingerprint", default=None, metavar="SHA256", help=FINGERPRINT)
    made.add_argument(
        "--note", dest="reason", required=True, metavar="TEXT", help="for whoever makes it anew"
    )
    made.add_argument("--record", type=count, default=0, metavar="N", help=RECORD)


def _revoke(made: argparse.ArgumentParser) -> None:
    _ask(made)
    said(made)


def _answer(made: argparse.ArgumentParser) -> None:
    made.add_argument("ask", metavar="ID", help="the question's id in the inbox, or its job")
    made.add_argument("answer", metavar="TEXT", help="the answer")
    made.set_defaults(subject="")
    said(made)


def _settle(made: argparse.ArgumentParser) -> None:
    _ask(made)
    made.add_argument("--landed", metavar="REF", help="it is there, under this reference of the target's own")
    made.add_argument("--absent", action="store_true", help="it never arrived, and will not")
    said(made)


VERBS = (
    (
        "inbox",
        "people",
        "verbs_people:inbox",
        "who must do what, over all jobs, oldest first; with an ID, all of that one",
        "resumectl inbox b7k2m9",
        _inbox,
    ),
    (
        "approve",
        "people",
        "verbs_people:approve",
        "allow a call, or accept a draft, once it was shown",
        "resumectl approve b7k2m9",
        _approve,
    ),
    (
        "deny",
        "people",
        "verbs_people:refuse",
        "refuse a call or a draft",
        "resumectl deny b7k2m9 --reason 'wrong page'",
        _deny,
    ),
    (
        "send-back",
        "people",
        "verbs_people:refuse",
        "have a call or a draft made anew, with a note",
        "resumectl send-back b7k2m9 --note 'name the painter'",
        _send_back,
    ),
    (
        "revoke",
        "people",
        "verbs_people:revoke",
        "take a yes back before it is spent",
        "resumectl revoke label-7",
        _revoke,
    ),
    (
        "answer",
        "people",
        "verbs_people:answer",
        "answer a question",
        "resumectl answer m4x0qd 'the one in Leeds'",
        _answer,
    ),
    (
        "settle",
        "people",
        "verbs_people:settle",
        "say what became of a call that may have left",
        "resumectl settle pay-nov inv-2231 --landed T-8812 --reason 'in the list of the bank'",
        _settle,
    ),
)
"""As `grammar.Verb` takes them."""
