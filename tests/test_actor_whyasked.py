"""Why a job stands as it does, as far as effects and people's decisions are behind it."""

import effects_kit
import pytest
from attrs import evolve
from golden import make
from test_actor_asked import SECOND, snapshot

from resumed.actors import possible, views, whyasked
from resumed.actors.machine import errands, standing
from resumed.schemas import decisions
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.job import Hold, Mark, Status
from resumed.schemas.ledger import Effect, EffectState
from resumed.schemas.snapshot import Snapshot

LATER = make.m(60)


def with_effects(*effects: Effect) -> Snapshot:
    """The job with these effects, and nothing else that people are asked."""
    whole = evolve(snapshot(), effects=EffectTable(effects), approvals=())
    return evolve(whole, reviews={}, questions=(), errands={})


UNKNOWN = evolve(SECOND, state=EffectState.UNKNOWN, not_before=LATER, gate=None, reason="503")
CLEAR = Hold(code="unclear", reason="503, 503, 503", owner="user:bo", since=make.m(9))


def test_call_that_waits_for_a_yes_names_the_command() -> None:
    """Whoever reads why is told what waits, whose word is missing, and what to type."""
    job = with_effects(SECOND)
    (command,) = whyasked.commands(job)

    assert command.command.startswith("resumectl approve ")
    assert [("approval", "1 asked", True)] == [(c.name, c.said, c.good) for c in whyasked.checks(job)]
    assert "send anything that nobody has allowed" == whyasked.not_done(job)
    assert [wake.said for wake in whyasked.wakes(job)] == [
        f"group:curators or user:cy, deciding {command.command[-6:]}"
    ]


def test_unknown_call_is_a_check_that_is_not_good() -> None:
    """How many calls nobody can tell of stands among the checks, and is loud."""
    job = with_effects(UNKNOWN)

    assert [("unknown", "1", False)] == [(c.name, c.said, c.good) for c in whyasked.checks(job)]


def test_what_settles_a_call_is_bound_to_the_record_that_was_read() -> None:
    """Both ways to settle it are named with the record, and with what they mean."""
    job = with_effects(evolve(UNKNOWN, hold=CLEAR))
    held = evolve(job, hold=Hold(code="effect_unknown", reason="unclear", owner="bo", since=make.m(9)))
    status = standing.status(held, make.m(10))
    told = [each for each in possible.possible(held, status) if "settle" in each.command]

    assert 2 == len(told)
    assert all(each.command.endswith(f" --record {held.sequence}") for each in told)
    ended = evolve(held, cancel=Mark(by="bo", at=make.m(9)))
    assert possible.NEVER == possible.possible(ended, standing.status(ended, make.m(10)))[1].means
    gated = held.effects[UNKNOWN.id].gate is not None
    assert [each.means for each in told] == [possible.LANDED, possible.ABSENT[gated]]


def test_list_says_who_is_asked_again_and_when() -> None:
    """What may have left stands in the list with its target, and the moment at which that is asked."""
    play = effects_kit.asked()
    play.sends()
    play.lost()
    play.looks_up(decisions.Absent())
    row = views.row(play.snapshot, play.now)
    again = errands.next_moment(play.snapshot, play.now)
    assert again is not None

    assert (Status.RECONCILING, "asks cms again", again.wall) == (row.status, row.needs, row.wakes)


def test_what_could_not_be_looked_at_first_is_tried_again() -> None:
    """A check that failed keeps a call from leaving: why and the list say so, and when it is made again."""
    play = effects_kit.asked(tools=(evolve(effects_kit.TOOL, check_first=True),))
    play.grant()
    play.says(effects_kit.CALL, decisions.Checked(problem="503"))
    row = views.row(play.snapshot, play.now)

    assert (Status.WAITING, "tries again", True) == (row.status, row.needs, row.wakes > play.now.wall)
    assert "send what it could not look at first" == whyasked.not_done(play.snapshot)


AWKWARD = {
    "a b's/cms.publish/1.0": "'a b'\"'\"'s/cms.publish/1.0'",
    "x --absent/cms.publish/1.0": "'x --absent/cms.publish/1.0'",
}


@pytest.mark.parametrize("name", AWKWARD)
def test_what_settles_a_call_can_be_pasted(name: str) -> None:
    """Whatever its item is called: a shell takes it as one word, and it is not taken for an option."""
    job = with_effects(evolve(UNKNOWN, id=name, hold=CLEAR, gate=SECOND.gate))
    told = [each for each in possible.possible(job, standing.status(job, LATER)) if "settle" in each.command]
    before = f"resumectl settle {job.job.id} {AWKWARD[name]}"

    assert [
        (f"{before} --landed REF --reason .. --record {job.sequence}", possible.LANDED),
        (f"{before} --absent --reason .. --record {job.sequence}", possible.ABSENT[True]),
    ] == [(each.command, each.means) for each in told]


def test_what_would_pass_for_an_option_goes_by_its_id() -> None:
    """A name that begins with a dash is no word for a command line; its id in the inbox is."""
    job = with_effects(evolve(UNKNOWN, id="-x/cms.publish/1.0", hold=CLEAR))
    (row,) = whyasked.open_asks(job)
    told = [each for each in possible.possible(job, standing.status(job, LATER)) if "settle" in each.command]

    assert 2 == len(told)
    assert all(each.command.startswith(f"resumectl settle {job.job.id} {row.id} --") for each in told)


MANY = [evolve(SECOND, id=f"p-000{n}/cms.publish/1.0", gate=SECOND.gate) for n in range(1, 6)]


@pytest.mark.parametrize(("count", "named"), [(0, 0), (1, 1), (3, 3), (5, 4)])
def test_many_questions_are_named_a_few_at_a_time(count: int, named: int) -> None:
    """The first are named one by one; for the rest there is the inbox."""
    found = whyasked.commands(with_effects(*MANY[:count]))

    assert named == len(found)
    assert (count > 3) == (bool(found) and found[-1].command == "resumectl inbox")
