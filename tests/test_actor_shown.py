"""What a job step is shown of its items: enough, and never more than a frame holds."""

from attrs import evolve
from machine_kit import Play

from resumed.actors import shown
from resumed.schemas import framelines, frames
from resumed.schemas.job import Artifact, Item, ItemState
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.table import ItemTable

TEXT = "x" * 16_000


def done(count: int, entry: str = "demo:Label") -> Snapshot:
    """A job of so many finished items, each with an output as large as a line carries."""
    output = Artifact(name="output", sha256="0" * 64, size=len(TEXT), text=TEXT)
    items = [Item(id=f"i{n}", ordinal=n, state=ItemState.DONE, output=output) for n in range(count)]
    snapshot = Play.of("a").snapshot
    contract = evolve(snapshot.contract, entry=entry, definition="{}")
    return evolve(snapshot, contract=contract, items=ItemTable(items))


def test_few_outputs_are_shown_whole() -> None:
    """A handler reads small outputs where they are."""
    found = shown.items(done(10))

    assert [TEXT] * 10 == [item.output.text for item in found if item.output is not None]


def test_many_outputs_are_shown_by_reference() -> None:
    """Outputs that together outweigh a frame are known by digest and size, and the frame can be sent."""
    found = shown.items(done(2_000))
    frame = frames.Run(
        job="j", epoch=1, item="", number=1, step="close", occurrence=1, log="/l", scratch="/s", items=found
    )

    assert {(None, len(TEXT))} == {(i.output.text, i.output.size) for i in found if i.output is not None}
    assert len(framelines.write(frame)) < framelines.MAX_FRAME


def test_programs_are_shown_items_where_they_list_them() -> None:
    """The last step of a workflow of programs needs no items, however many there are."""
    snapshot = done(3, entry="")
    later = evolve(snapshot, position=evolve(snapshot.position, at="close"))

    assert (3, 0) == (len(shown.items(snapshot)), len(shown.items(later)))
