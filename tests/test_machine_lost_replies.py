"""The lost-reply matrix: whatever is lost, late or cut, and whoever dies where, a page is there once.

The target's own count is one, or the job is held with an owner, who then says the truth: never two, and never
done with none.
"""

import random
from pathlib import Path

import pytest
from attrs import evolve
from effects_kit import CALL
from lost_replies import FAULTS, TOOLS, Fault, Kill, World, boundaries, lived, wire

from resumed.schemas.ledger import ToolContract

WHO = ("daemon", "worker", "both")
SEED = 4


def offsets() -> list[int]:
    """Every field boundary of the exchange, and 16 seeded offsets."""
    chance = random.Random(SEED)
    return sorted({*boundaries(), *chance.sample(range(len(wire())), 16)})


RESETS = {f"reset at byte {at}": Fault(cut=at) for at in offsets()}


def fitting(tool: ToolContract, fault: Fault) -> ToolContract:
    """A target that outlives its declared time in flight must not call its absence final."""
    return evolve(tool, absent_is_final=False) if fault.takes > 30.0 else tool


def played(tool: str, fault: Fault) -> list[World]:
    """The scene without a kill, then with each kill at each boundary."""
    contract = fitting(TOOLS[tool], fault)
    first = lived(contract, fault)
    found = [first]
    cells = [Kill(who=who, at=at) for who in WHO for at in range(len(first.crossed))]
    found += [lived(contract, fault, kill, patient=bool(kill.at % 2)) for kill in cells]
    return found


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_reply_never_makes_two_pages(fault: str, tool: str) -> None:
    """Every kill at every durable boundary, and between them."""
    worlds = played(tool, FAULTS[fault])
    killed = [world for world in worlds if world.killed]

    assert len(killed) > len(worlds) / 2
    assert {world.kill.who for world in killed if world.kill is not None} == set(WHO)
    assert all(world.hit for world in worlds if world.kill is None or world.killed)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("reset", RESETS)
def test_a_connection_reset_anywhere_never_makes_two_pages(reset: str, tool: str) -> None:
    """At every boundary of a field and at seeded offsets, of the request and of the answer, with every kill
    at every durable boundary."""
    worlds = played(tool, RESETS[reset])
    killed = [world for world in worlds if world.killed]

    assert len(killed) > len(worlds) / 2
    assert {world.kill.who for world in killed if world.kill is not None} == set(WHO)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_reset_is_one_before_or_after_the_call_has_arrived(tool: str) -> None:
    """Once where the answer came, was looked up or was settled; again where nothing had arrived."""
    contract = TOOLS[tool]

    assert len(RESETS) > 16
    assert {1, 2} <= {len(lived(fitting(contract, fault), fault).heard) for fault in RESETS.values()}


def test_what_has_neither_is_always_for_a_person_and_the_others_never_are() -> None:
    """Without a kill: a target that can be asked, or knows keys, needs nobody."""
    for name, tool in TOOLS.items():
        for fault in FAULTS.values():
            world = lived(fitting(tool, fault), fault)
            assert (name == "neither") is bool(world.held), (name, fault)
            assert set(world.held) <= {"anna"}


@pytest.mark.parametrize("killed_at", [None, 0.5, 1.5, 2.5])
@pytest.mark.parametrize("final", [True, False], ids=["absent is final", "absent is not final"])
def test_c03_timed_out_looked_up_not_there_and_not_sent_again(final: bool, killed_at: float | None) -> None:
    """C03: the target answers after three times the timeout, and shows the page only then.

    The first look-up says absent, and that alone sends nothing: one write, one page, one key.
    """
    tool = evolve(TOOLS["look-up"], timeout=1.0, in_flight=5.0, absent_is_final=final)
    world = lived(tool, Fault(takes=3.0), killed_at=killed_at)
    said = [entry.decision.choice for line in world.play.lines for entry in line.entries]

    assert (1, 1, []) == (world.target.received, len(world.heard), world.held)
    assert "absent" in said
    assert "sent again" not in said
    assert world.killed is (killed_at is not None)
    assert world.heard[0].key == world.play.snapshot.effects[CALL].operation_key


def test_boundaries_are_what_they_say() -> None:
    """A scene crosses each kind of point, so that each kind of kill has come about."""
    names = {name for fault in FAULTS.values() for name in lived(TOOLS["look-up"], fault).crossed}

    assert {
        "before effect sent is durable",
        "after effect sent",
        "before an errand begins",
        "before its bytes leave",
        "when it is accepted",
        "when its answer is there",
        "after effect confirmed",
        "after effect unknown",
        "after effect look_up",
    } <= names


@pytest.mark.parametrize("tool", TOOLS)
def test_the_real_store_tells_the_same(tool: str, tmp_path: Path) -> None:
    """A seeded sample over the product's own journal and recovery: the same lines, the same end."""
    chance = random.Random(f"{SEED} {tool}")
    for number in range(12):
        fault = chance.choice([*FAULTS.values(), *RESETS.values()])
        contract = fitting(TOOLS[tool], fault)
        plain = lived(contract, fault)
        kill = Kill(who=chance.choice(WHO), at=chance.randrange(len(plain.crossed)))
        one = lived(contract, fault, kill)
        root = tmp_path / str(number)
        other = lived(contract, fault, kill, root=root)

        assert one.crossed == other.crossed
        assert one.play.snapshot == other.play.snapshot
