"""Targets: never more calls at once than a contract allows, over all jobs, and nobody waits for ever."""

from collections.abc import Callable

import pytest

from resumed.actors.pools import Key
from resumed.actors.targets import PATIENCE, Target, Targets, Wish

BANK, CMS = (Target(name, f"https://{name}.example", "house") for name in ("bank", "cms"))


class Hall:
    """Targets, whom they called, and what they want done later."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.targets = Targets(self.called.append, lambda seconds, do: self.later.append((seconds, do)))

    def call(self, job: str, target: Target = BANK, number: int = 1) -> Key:
        """The job's errand takes a place."""
        key = (job, "\x1finv", number)
        self.targets.take(key, target)
        return key


def test_a_target_takes_no_more_than_its_contract_allows() -> None:
    """With two calls under way a third waits, of whatever job; another account has places of its own."""
    hall = Hall()
    hall.call("one")
    hall.call("two")
    other = Target(BANK.name, BANK.address, "another account")

    assert not hall.targets.has_place("three", Wish(BANK, 2))
    assert hall.targets.has_place("three", Wish(BANK, 3))
    assert hall.targets.has_place("three", Wish(CMS, 1))
    assert hall.targets.has_place("three", Wish(other, 1))


def test_who_waits_is_called_in_turn() -> None:
    """A place that is free is the one's who waited longest, and nobody else's meanwhile."""
    hall = Hall()
    key = hall.call("one")
    for job in ("two", "three"):
        assert not hall.targets.wait(job, [Wish(BANK, 1)])
    hall.targets.release(key)

    assert ["two"] == hall.called
    assert not hall.targets.has_place("four", Wish(BANK, 1))
    assert hall.targets.wait("two", [Wish(BANK, 1)])
    hall.targets.release(hall.call("two"))
    assert ["two", "three"] == hall.called


def test_who_does_not_come_holds_nobody_up() -> None:
    """A job that was called and has no worker in time loses its place to the next, and may come later."""
    hall = Hall()
    key = hall.call("one")
    hall.targets.wait("two", [Wish(BANK, 1)])
    hall.targets.wait("three", [Wish(BANK, 1)])
    hall.targets.release(key)
    ((seconds, lapse),) = hall.later
    lapse()

    assert PATIENCE == seconds
    assert ["two", "three"] == hall.called
    assert not hall.targets.has_place("two", Wish(BANK, 1))
    hall.targets.release(hall.call("three"))
    lapse()  # of a call that is over: it changes nothing
    assert hall.targets.has_place("two", Wish(BANK, 1))


def test_a_call_of_its_own_that_is_over_leaves_its_place_to_who_waits() -> None:
    """A job goes on to its next call in one commit only while nobody waits for the target."""
    hall = Hall()
    key = hall.call("one")
    assert hall.targets.has_place("one", Wish(BANK, 1), key)
    assert not hall.targets.has_place("one", Wish(BANK, 1))
    hall.targets.wait("two", [Wish(BANK, 1)])

    assert not hall.targets.has_place("one", Wish(BANK, 1), key)


@pytest.mark.parametrize("gone", ["withdrawn", "set aside"])
def test_who_wants_no_longer_waits_no_longer(gone: str) -> None:
    """A job whose calls are settled otherwise, or that is set aside, keeps no place from the next."""
    hall = Hall()
    key = hall.call("one")
    hall.targets.wait("two", [Wish(BANK, 1)])
    hall.targets.wait("three", [Wish(BANK, 1)])
    hall.targets.release(key)
    assert "two" in hall.targets
    if gone == "withdrawn":
        hall.targets.wait("two", [])
    else:
        hall.targets.forget("two")

    assert ["two", "three"] == hall.called
    assert "two" not in hall.targets


def test_what_is_over_leaves_nothing_behind() -> None:
    """Targets nobody calls are forgotten, and a place given back twice is one place."""
    hall = Hall()
    key = hall.call("one")
    hall.targets.release(key)
    hall.targets.release(key)
    hall.targets.forget("one")

    assert [] == hall.targets.kept("one")
    assert "one" not in hall.targets
    assert {} == hall.targets._lines
