"""Lost replies: whatever is lost between a real daemon and a real content system, and whoever is killed, no
page is there twice, none is called done that is not there, and what nobody can tell is held for somebody.

Each row is one fault of the target under one contract. The rows of one test are jobs of one daemon, which
meet their faults together and then the same kill; between the tests each fault meets each kill. The truth is
the content system's: its pages, and its own record of which fault came to pass.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from target import Target

from resumed.schemas.ledger import EffectState

from .kit import FINAL, Daemon, pass_by, until
from .test_drill_trees import workers

CONTRACTS = {
    "looked-up": "dedup = false\nabsent_is_final = {final}",
    "deduplicated": 'dedup = "1h"',
    "both": 'dedup = "1h"\nabsent_is_final = {final}',
    "neither": "dedup = false",
}
"""What a contract says beside what all say; those without the word `absent` have no look-up."""

LATE = "applied-late"
FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "reply-lost": ("lose_reply", {}),
    "request-lost": ("lose_request", {}),
    "answered-late": ("answer_late", {}),
    LATE: ("apply_late", {}),
    "error-after": ("fail_after", {}),
    "reset": ("reset_answer", {}),
}
SLOW = ("answered-late", LATE)
"""Faults after which the writer waits for its answer: whoever is killed then is killed in the middle."""
ENDED = (*FINAL, "held")
KILLS = ("none", "worker", "daemon", "both")
LENGTH = {"reset_answer": 400, "reset_request": 300}
"""Bytes of an answer and of a request, about; past its end a reset comes when all has been read or said."""
TIMEOUT, PATIENT, IN_FLIGHT = 2.0, 6.0, 1.0
"""Seconds; `PATIENT` is the timeout of those that wait in vain: all others meet their faults meanwhile."""
LONG = 5.0

WORKFLOW = """
version = 1
[[step]]
name = "draft"
run = ["echo", "Label of", "{{item}}"]
repeatable = true

[[effect]]
name = "publish"
after = "draft"
target = "cms"
approve = false
check_first = false
timeout = "{timeout}ms"
in_flight = "{in_flight}ms"
owner = "user:{owner}"
{says}

[effect.send]
method = "POST"
url = "{address}/pages/{{item}}"
body = "{{outputs.draft}}"
key_header = "Idempotency-Key"
statuses = {{ landed = [201], refused = [400, 404, 409, 412, 422] }}
reference = {{ json = "reference" }}
"""
LOOK_UP = """
[effect.look_up]
url = "{address}/keys/{{key}}"
statuses = {{ landed = [200], absent = [404] }}
reference = {{ json = "reference" }}
"""


class Row(NamedTuple):
    """One fault under one contract."""

    fault: str
    contract: str

    @property
    def name(self) -> str:
        """Of its job, its page and its workflow."""
        return f"{self.fault}-{self.contract}"

    @property
    def looks_up(self) -> bool:
        """Whether the target can be asked."""
        return "absent" in CONTRACTS[self.contract]

    @property
    def deduplicates(self) -> bool:
        """Whether the target knows keys."""
        return "1h" in CONTRACTS[self.contract]


def rows_of(kill: str, seed: int, scale: float) -> list[Row]:
    """The rows that meet a kill: a Latin square over faults and contracts, or at full scale all."""
    faults = list(FAULTS)
    random.Random(seed).shuffle(faults)
    return [
        Row(fault, contract)
        for i, fault in enumerate(faults)
        for j, contract in enumerate(CONTRACTS)
        if scale >= 1 or (i + j) % len(KILLS) == KILLS.index(kill)
    ]


class Lab:
    """A daemon between two content systems: one that knows keys, one that does not."""

    def __init__(self, daemon: Daemon, root: Path, seed: int) -> None:
        self.daemon = daemon
        self.random = random.Random(seed)
        self.targets: dict[bool, Target] = {}
        for deduplicates in (True, False):
            folder = root / f"cms-{deduplicates}"
            folder.mkdir()
            target = Target(folder, "--deduplicate", "yes" if deduplicates else "no")
            target.start()
            self.targets[deduplicates] = target

    def close(self) -> None:
        """Ends the content systems."""
        for target in self.targets.values():
            target.kill()

    def begin(self, rows: list[Row]) -> None:
        """All rows at work, each with its fault laid out before."""
        for row in rows:
            self.prepare(row)
        self.daemon.configure(workers=8)
        self.daemon.start()
        for row in rows:
            self.daemon.submit(row.name, row.name, [row.name])

    def prepare(self, row: Row) -> None:
        """A workflow with the row's contract, and the row's fault for the write to its page."""
        target = self.targets[row.deduplicates]
        # A target that outlives its declared time in flight: what it does not show yet proves nothing.
        final = "false" if row.fault == LATE else "true"
        text = WORKFLOW + (LOOK_UP if row.looks_up else "")
        self.daemon.workflow(
            row.name,
            text.format(
                timeout=round((PATIENT if row.fault in SLOW else TIMEOUT) * 1000),
                in_flight=round(IN_FLIGHT * 1000),
                owner=os.environ.get("USER", "root"),
                says=CONTRACTS[row.contract].format(final=final),
                address=target.address,
            ),
        )
        fault, keys = FAULTS[row.fault.partition(".")[0]]
        if row.fault.startswith("reset"):
            fault = self.random.choice(("reset_answer", "reset_request"))
            keys = {"bytes": self.random.randrange(LENGTH[fault])}
        target.switch(fault, page=row.name, **keys)

    def writes(self, row: Row) -> list[dict[str, Any]]:
        """The requests to write the row's page, as the content system has them on record."""
        target = self.targets[row.deduplicates]
        return [each for each in target.requests("write") if each["path"] == f"/pages/{row.name}"]

    def look_ups(self, row: Row) -> int:
        """How often the target was asked by the row's key."""
        keys = {each["key"] for each in self.writes(row)} - {""}
        asked = self.targets[row.deduplicates].requests("look_up")
        return sum(each["key"] in keys for each in asked)

    def has_met_its_fault(self, row: Row) -> bool:
        """Whether the target says so."""
        return any(each["fault"] for each in self.writes(row))

    def pages(self, row: Row) -> int:
        """How many pages there are of the row: a second one would be called NAME-2."""
        names = self.targets[row.deduplicates].pages()
        return sum(name == row.name or name.startswith(f"{row.name}-") for name in names)

    def kill(self, kill: str, rows: list[Row]) -> None:
        """Kills whom the test is about while some writes have no answer yet."""
        pass_by(self.random.uniform(0, 0.3))
        if kill in ("worker", "both"):
            alive = workers(self.daemon)
            assert alive, "a worker waits for the answer"
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
        if kill in ("daemon", "both"):
            self.daemon.kill()
            self.daemon.bury()
            states = {each.state for row in rows for each in self.daemon.recover(row.name).snapshot.effects}
            assert states & {EffectState.DISPATCHING, EffectState.UNKNOWN}, "somebody was in the middle of it"
            self.daemon.start()

    def is_past(self, row: Row) -> bool:
        """Whether its first write was given up, and for a late one its time in flight is over, as what the
        daemon does next shows."""
        if self.daemon.row(row.name)["status"] in ENDED:
            return True
        late = row.fault == LATE
        return self.look_ups(row) >= 1 + late if row.looks_up else len(self.writes(row)) >= 2

    def wait(self, look: Callable[[Row], bool], row: Row, what: str) -> None:
        """Returns once it is true of the row; AssertionError with all that is known of it."""
        try:
            until(partial(look, row), f"{row.name} {what}", within=300, every=0.05)
        except AssertionError as error:
            why = self.daemon.resumectl("why", row.name).stdout.decode()
            raise AssertionError(f"{error}\n{why}\n{self.writes(row)}") from None

    def is_settled(self, row: Row) -> bool:
        """Whether its job has ended, or is held. Where its target would be asked again only much later (it
        said "absent", which proves nothing, or whoever asked was killed), a person looks, and says so."""
        found = self.daemon.row(row.name)
        if found["status"] in ENDED:
            return True
        if found["wakes"] and found["wakes"] / 1e6 - time.time() > LONG:
            there = [name for name in self.targets[row.deduplicates].pages() if name.startswith(row.name)]
            said = f"--landed={there[0]}@1" if there else "--absent"
            effect, record = f"{row.name}/publish/2.0", f"--record={found['sequence']}"
            self.daemon.resumectl("settle", row.name, effect, said, record)
        return False


@pytest.fixture
def lab(daemon: Daemon, cms_folder: Path) -> Iterator[Lab]:
    made = Lab(daemon, cms_folder, seed=20_26)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", KILLS)
def test_lost_replies_are_never_sent_twice_and_never_taken_for_done(
    lab: Lab, kill: str, faults_scale: float
) -> None:
    """One page and a job that is done, or at most one and a job that is held with an owner; never two."""
    rows = rows_of(kill, 20_26, faults_scale)
    lab.begin(rows)
    for row in rows:
        lab.wait(lab.has_met_its_fault, row, "meets its fault")
    lab.kill(kill, rows)
    for row in rows:
        if row.fault in SLOW:
            lab.wait(lab.is_past, row, "is past its time")
        if row.fault == LATE:
            lab.targets[row.deduplicates].release(only="writes")
    for target in lab.targets.values():
        target.release()
    for row in rows:
        lab.wait(lab.is_settled, row, "is settled")

    for row in rows:
        found = lab.daemon.row(row.name)
        assert lab.has_met_its_fault(row), row
        if row.contract == "neither":
            assert "held" == found["status"], (row, found)
            assert found["owner"], (row, found)
            assert lab.pages(row) <= 1, row
        else:
            assert "completed" == found["status"], (row, found)
            assert 1 == lab.pages(row), row
        keys = {each["key"] for each in lab.writes(row)} - {""}
        assert len(keys) <= 1, "every send bears the same key"
        if row.fault == LATE and not row.deduplicates:
            assert 1 == len(lab.writes(row)), "absent now is no proof, so it is not sent again (C03)"


@pytest.mark.timeout(600)
def test_resets_at_any_byte_leave_one_page(lab: Lab, faults_scale: float) -> None:
    """The connection is reset at bytes of chance, of the request and of the answer: one page each time."""
    rows = [
        Row(f"reset.{number}", contract)
        for number in range(max(2, round(20 * faults_scale)))
        for contract in ("looked-up", "deduplicated")
    ]
    lab.begin(rows)
    for row in rows:
        lab.wait(lab.is_settled, row, "is settled")

        assert "completed" == lab.daemon.row(row.name)["status"], row
        assert lab.has_met_its_fault(row), row
        assert 1 == lab.pages(row), row


def test_rows_of_all_kills_are_all_rows() -> None:
    """The sample holds each fault under each contract once, and each fault meets each kill."""
    drawn = [(row, kill) for kill in KILLS for row in rows_of(kill, 20_26, 0.1)]

    assert {Row(fault, contract) for fault in FAULTS for contract in CONTRACTS} == {row for row, _ in drawn}
    assert len(FAULTS) * len(CONTRACTS) == len(drawn)
    assert {(row.fault, kill) for row, kill in drawn} == {(each, kill) for each in FAULTS for kill in KILLS}
