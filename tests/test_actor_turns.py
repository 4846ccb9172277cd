"""Turns: higher priorities first, requesters and jobs in turn, and nobody is passed over without end."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumed.actors.turns import MOST_PASSED, Rank, Turns

quick = settings(max_examples=150, derandomize=True, deadline=None, database=None)


def queue(*jobs: tuple[str, int, str]) -> Turns:
    """These jobs (name, priority, requester), in this order."""
    turns = Turns()
    for name, priority, requester in jobs:
        turns.add(name, Rank(priority, requester))
    return turns


def test_a_higher_priority_goes_first_then_requesters_and_jobs_take_turns() -> None:
    """Of one priority each requester gets a turn before any gets two, however many jobs it has."""
    turns = queue(
        ("a1", 0, "anna"),
        ("a2", 0, "anna"),
        ("a3", 0, "anna"),
        ("b1", 0, "bo"),
        ("low", -5, "cy"),
        ("c1", 0, "cy"),
        ("high", 3, "bo"),
    )
    order = [turns.take() for _ in range(7)]

    assert ["high", "a1", "b1", "c1", "a2", "a3", "low"] == [job for job, _ in order]
    assert [3, 0, 0, 0, 0, 0, -5] == [priority for _, priority in order]
    assert (0, None) == (len(turns), turns.top())


def test_a_place_in_the_queue_is_kept_and_given_up() -> None:
    """Asking again changes nothing; leaving the queue leaves nothing behind."""
    turns = queue(("a", 0, "anna"), ("b", 0, "anna"), ("a", 9, "anna"))
    turns.remove("a")
    turns.remove("nobody")

    assert (["b"], 0, "a" in turns) == (list(turns), turns.top(), False)
    assert ["b"] == turns.clear()
    assert not turns
    with pytest.raises(LookupError):
        turns.take()


def test_a_lower_priority_gets_a_turn_after_so_many_higher_ones() -> None:
    """While higher ones come without end, a lower one waits for exactly so many turns."""
    turns = queue(("low", -10, "anna"), ("high", 10, "bo"))
    passed = 0
    while (job := turns.take()[0]) != "low":
        turns.add(job, Rank(10, "bo"))
        passed += 1

    assert MOST_PASSED == passed


jobs = st.lists(
    st.tuples(st.integers(-3, 3), st.sampled_from(["anna", "bo", "cy", "di"])), min_size=2, max_size=25
)


@quick
@given(jobs, st.lists(st.integers(0, 24), max_size=10))
def test_nobody_starves(ranks: list[tuple[int, str]], leaving: list[int]) -> None:
    """Everyone who asks again at once: each job's wait is bounded by those beside it and a fixed share of
    those above (property)."""
    turns = Turns()
    known = {f"job-{number}": Rank(*rank) for number, rank in enumerate(ranks)}
    for job, rank in known.items():
        turns.add(job, rank)
    for number in leaving:
        turns.remove(f"job-{number}")
        known.pop(f"job-{number}", None)
    if not known:
        return
    levels = {rank.priority for rank in known.values()}

    def bound(rank: Rank) -> int:
        beside = [one for one in known.values() if one.priority == rank.priority]
        own = sum(one == rank for one in beside)
        return own * len({one.requester for one in beside}) * (MOST_PASSED + len(levels))

    waits = Counter(dict.fromkeys(known, 0))
    for _ in range(max(bound(rank) for rank in known.values()) + 1):
        taken, priority = turns.take()
        assert known[taken].priority == priority
        turns.add(taken, known[taken])
        waits.update({job: 1 for job in known if job != taken})
        waits[taken] = 0
        for job, passed in waits.items():
            assert passed <= bound(known[job]), (job, known[job])


@quick
@given(jobs)
def test_requesters_of_one_priority_get_the_same_share(ranks: list[tuple[int, str]]) -> None:
    """However many jobs each brings, over a round of turns no requester is ahead of another by more than
    one (property)."""
    turns = Turns()
    known = {f"job-{number}": Rank(0, requester) for number, (_, requester) in enumerate(ranks)}
    for job, rank in known.items():
        turns.add(job, rank)
    share = Counter({rank.requester: 0 for rank in known.values()})
    for _ in range(60):
        job, _ = turns.take()
        turns.add(job, known[job])
        share[known[job].requester] += 1
        assert max(share.values()) - min(share.values()) <= 1
