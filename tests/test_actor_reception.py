"""The reception by itself: what it says of jobs that cannot be read, and what a watcher leaves behind."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from resumed.actors import views
from resumed.actors.door import Door
from resumed.actors.entry import JobEntry, Stage
from resumed.actors.finder import Located
from resumed.actors.reception import Reception
from resumed.actors.supervisor import Supervisor
from resumed.schemas.instant import Instant
from resumed.schemas.job import Item, ItemState, Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import JobRow
from resumed.store import layout

NOW = Instant(wall=5, boot="b", up=5)


class InPlace:
    """A disk that answers at once."""

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


class House:
    """A reception over entries that a test sets."""

    def __init__(self, root: Path) -> None:
        self.layout = layout.create(root / "state", "id", NOW)
        self.entries: dict[str, JobEntry] = {}
        supervisor: Any = SimpleNamespace(
            layout=self.layout,
            entries=self.entries,
            clock=SimpleNamespace(now=lambda: NOW),
            row=lambda entry: entry.row,
            reads=InPlace(),
            loading=0,
        )
        self.jobs = Reception(
            cast(Supervisor, supervisor), cast(Door, None), house={}, shelf=lambda: ((), ())
        )

    def put(self, job: str, stage: Stage, *, known: bool = False) -> JobEntry:
        entry = JobEntry(id=job, layout=self.layout, stage=stage)
        entry.trouble, entry.since = "cannot read 1.0.log", NOW
        if known:
            entry.row = JobRow(
                id=job, status=Status.READY, workflow="x", version=1, title="", owner="a", done=3, total=4,
                failed=0, held=0, running=0, since=1, created=0,
            )  # fmt: skip
        self.entries[job] = entry
        return entry


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize("stage", [Stage.UNREADABLE, Stage.ASIDE])
@pytest.mark.parametrize("known", [False, True])
def test_job_that_cannot_be_read_is_listed_as_quarantined(stage: Stage, known: bool, house: House) -> None:
    """A job that lies in its place and cannot be read stays in the list, as quarantined, and says why."""
    house.put("harbour-7", stage, known=known)
    (row,) = house.jobs.rows()

    assert ("harbour-7", Status.QUARANTINED, True) == (row.id, row.status, row.needs_person)
    assert ((3, 4) if known else (0, 0), "cannot be read: cannot read 1.0.log") == (
        (row.done, row.total),
        row.needs,
    )


PLACES: dict[str, tuple[Callable[[House], object], str]] = {
    "in its place": (lambda house: house.put("harbour-7", Stage.UNREADABLE), "cannot read 1.0.log"),
    "moved": (lambda house: (house.layout.quarantine / "harbour-7").mkdir(), "harbour-7.reason.json"),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.parametrize("name", ["harbour-7", "harb"])
@pytest.mark.anyio
async def test_job_set_aside_is_never_said_not_to_be(case: str, name: str, house: House) -> None:
    """Who asks for a job that is set aside is told so, why, and what to type."""
    make, why = PLACES[case]
    make(house)
    said = await house.jobs.locate(name)

    assert isinstance(said, Located)
    assert said.aside is not None
    assert "set_aside" == said.aside.code
    assert ("resumectl quarantine show harbour-7", "resumectl why harbour-7") == said.aside.commands
    assert said.aside.reason.startswith("harbour-7 is set aside: ")
    assert why in said.aside.reason


@pytest.mark.anyio
async def test_quarantine_that_cannot_be_listed_is_a_trouble(house: House) -> None:
    """A quarantine that cannot be listed is no verdict about a job, and stops nothing."""
    house.layout.quarantine.rmdir()
    house.layout.quarantine.write_text("")
    said = await house.jobs.locate("harbour-7")

    assert isinstance(said, Refusal)
    assert ("trouble", []) == (said.code, await house.jobs.quarantined())


@pytest.mark.anyio
async def test_watcher_that_gives_up_is_forgotten(house: House) -> None:
    """A client that goes away leaves nothing behind at the job it watched."""
    entry = house.put("harbour-7", Stage.PARKED, known=True)
    with anyio.move_on_after(0.01):
        await house.jobs.changed("harbour-7", 0)

    assert [] == entry.watchers


@pytest.mark.parametrize("length", [300, 301])
def test_reason_is_shown_up_to_its_bound(length: int) -> None:
    """An item's reason, however long, is shown in a bounded place, and where it was cut it says so."""
    item = Item(id="a", ordinal=0, at="convert", state=ItemState.FAILED, reason="r" * length)
    shown = views.item_row(item).reason

    assert (300, length == 301) == (len(shown), shown.endswith("..."))
