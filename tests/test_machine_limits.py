"""Limits: what is spent adds up and is never lost; at the cap the job asks before it uses more."""

from machine_kit import Play, folded

from resumed.actors.machine import limits
from resumed.actors.machine.draft import Draft
from resumed.schemas.job import Budget
from resumed.schemas.snapshot import Decision, Entry


def test_what_is_spent_adds_up_and_is_exact() -> None:
    """Money is decimal text and adds up to the millionth; what is not reported stays as it was."""
    play = Play.of("a")
    for _ in range(3):
        draft = Draft(play.snapshot, play.now)
        limits.spend(draft, Budget(usd="0.1", tokens=7))
        entry = Entry(
            transition="spend", decision=Decision(by="m", rule="r", choice="c"), changes=draft.changes()
        )
        play.commit(entry)

    assert Budget(usd="0.3", tokens=21) == play.snapshot.used
    assert play.snapshot == folded(play.lines)


def test_what_is_spent_never_falls() -> None:
    """A report of a negative amount gives nothing back."""
    draft = Draft(Play.of("a").snapshot, Play.of("a").now)
    limits.spend(draft, Budget(usd="2.50", tokens=5, turns=1, active_seconds=1.5))
    limits.spend(draft, Budget(usd="-1", tokens=-5, turns=-1, active_seconds=-1.0))

    assert Budget(usd="2.5", tokens=5, turns=1, active_seconds=1.5) == draft.used
