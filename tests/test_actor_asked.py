"""What a person is shown before deciding: all that binds, what does not, and what changed meanwhile."""

import effects_kit as kit
from attrs import evolve
from faults import world
from golden import make

from resumed.actors import asked, toolrows
from resumed.actors.machine import asks
from resumed.schemas.askviews import AskKind, ChangedText, NamedText
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.job import Item, ItemState
from resumed.schemas.ledger import EffectState
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.table import ItemTable

m = world.moment
FIRST = evolve(
    make.effect(), state=EffectState.WITHDRAWN, hold=None, arguments='{"page":"1","title":"A barge"}'
)
SECOND = evolve(
    FIRST,
    id="e2",
    state=EffectState.PROPOSED,
    arguments='{"page":"1","title":"A boat"}',
    observed="rev-8",
    again="",
    gate=evolve(make.gate(), met=None),
)


def snapshot() -> Snapshot:
    """A job whose second call waits for a yes after the first was denied."""
    whole = make.snapshot()
    approval = evolve(whole.approvals[0], effect="e1", decision="deny", given=m(9), spent=None, revoked=None)
    table = EffectTable((FIRST, SECOND))
    return evolve(
        whole,
        effects=table,
        approvals=(approval,),
        **dict.fromkeys(("cancel", "expiry", "outcome", "hold", "pause")),
    )


def test_call_is_shown_with_what_changed_since_the_last_decision() -> None:
    """Every argument that is another than in the call decided last, with both values, and no other."""
    job = snapshot()
    row = next(row for row in asks.asks(job, m(10)) if row.kind is AskKind.APPROVE)
    view = asked.view(job, row)

    assert "denied by cy" in view.since
    assert view.changed == (
        ChangedText(name="as seen", before="rev-7", after="rev-8"),
        ChangedText(name="title", before="A barge", after="A boat"),
    )
    assert view.arguments == (NamedText(name="page", value="1"), NamedText(name="title", value="A boat"))
    assert view.unbound == (NamedText(name="sent_at", value="now"),)
    assert view.irreversible
    assert view.key == SECOND.operation_key
    assert [body.text for body in view.bodies] == ["a label"]


def test_first_call_of_its_kind_has_nothing_to_be_held_against() -> None:
    """Where nothing was decided before, nothing is said to have changed, and nothing to be the same."""
    job = evolve(snapshot(), approvals=())

    assert asked.changes(job, SECOND) == ((), "")


def test_draft_is_shown_whole() -> None:
    """A draft that waits is shown with its text, and whether it may be edited."""
    whole = snapshot()
    draft = evolve(make.snapshot().reviews["p-0002"], decision="", editor="", edit=True)
    item = Item(id="p-0002", ordinal=0, state=ItemState.REVIEW, at="draft", occurrence=draft.occurrence)
    job = evolve(whole, effects=EffectTable(), reviews={"p-0002": draft}, items=ItemTable([item]))
    (row,) = [row for row in asks.asks(job, m(10)) if row.kind is AskKind.REVIEW]
    view = asked.view(job, row)

    assert ("a draft", True, "p-0002") == (view.text, view.edit, view.row.subject)
    assert draft.draft.sha256 == view.row.fingerprint


def test_tool_that_only_a_person_can_settle_is_warned_about() -> None:
    """Neither looked up nor deduplicated is legal, and said; one of the two takes the warning away."""
    warned = [
        any(said.startswith("neither look_up nor dedup") for said in row.warnings)
        for row in toolrows.rows(kit.contract(kit.BLIND, kit.DEDUP, kit.TOOL))
    ]

    assert [True, False, False] == warned
