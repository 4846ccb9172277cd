"""The effect table is a persistent mapping that knows what is open; fingerprints cover all that binds."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from attrs import evolve
from golden import make
from hypothesis import given
from hypothesis import strategies as st

from resumed.schemas import codec, effecttable, keys
from resumed.schemas.approvals import Gate
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.ledger import SETTLED, Effect, EffectState, ToolContract

BASE = make.effect()
WHEN = Instant(wall=5, boot="b", up=5)
TOOL = ToolContract(tool="cms.publish", version=3, target="cms", address="http://a", account="m")


@pytest.mark.parametrize("folded", [0, 2, 64])
@given(puts=st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(EffectState))))
def test_effect_table_agrees_with_a_plain_mapping(folded: int, puts: list[tuple[str, EffectState]]) -> None:
    """Whatever is put in whatever order, rows, order and what is open are those of a plain mapping."""
    table, model = EffectTable(), dict[str, Effect]()
    for name, state in puts:
        before, row = list(table), evolve(BASE, id=name, state=state)
        with mock.patch.object(effecttable, "FOLDED", folded):
            new = table.put((row,))

        assert before == list(table)
        table, model = new, model | {name: row}

    assert list(model.values()) == list(table)
    assert [row for row in model.values() if row.state not in SETTLED] == table.open()
    assert table == EffectTable(model.values())
    assert (len(model), set(model)) == (len(table), {name for name in "abcdef" if name in table})
    assert [model.get(name) for name in "abcdef"] == [table.get(name) for name in "abcdef"]


def test_effect_table_refuses_a_row_twice() -> None:
    """A stored table that names an effect twice does not load."""
    raw = codec.dump_plain([codec.to_plain(BASE), codec.to_plain(BASE)])

    with pytest.raises(FaultyInputError, match="stands twice"):
        codec.decode(raw, EffectTable, "a table")


UNTILS = [None, *(Instant(wall=wall, boot="b", up=wall) for wall in (3, 1, 2, 2, 9))]


@pytest.mark.parametrize("folded", [0, 64])
@given(
    puts=st.lists(
        st.tuples(
            st.lists(
                st.tuples(
                    st.sampled_from("abcd"),
                    st.sampled_from([EffectState.PROPOSED, EffectState.PROPOSED, EffectState.UNKNOWN]),
                    st.sampled_from(UNTILS),
                ),
                max_size=3,
            ),
            st.booleans(),
        )
    )
)
def test_the_first_lapse_is_that_of_all_that_are_asked_about(folded: int, puts: list[Any]) -> None:
    """Rounds that begin, end, and are put off, by one or many at a time, asked for now and then: the earliest
    of those that stand."""
    table, model = EffectTable(), dict[str, Effect]()
    for rows, asks in puts:
        found = [
            evolve(BASE, id=name, state=state, gate=Gate(asked=WHEN, until=until))
            for name, state, until in rows
        ]
        with mock.patch.object(effecttable, "FOLDED", folded):
            table = table.put(found)
        model |= {row.id: row for row in found}
        ends = [row.gate.until for row in model.values() if row.state is EffectState.PROPOSED and row.gate]
        first = min((end.wall for end in ends if end is not None), default=None)
        if asks:
            assert first == (None if (said := table.first_lapse()) is None else said.wall)
    assert table.first_lapse() == EffectTable(model.values()).first_lapse()


def test_what_stands_at_no_gate_never_lapses() -> None:
    """A call that nobody is asked about, and one that is settled."""
    gate = Gate(asked=WHEN, until=WHEN)
    rows = [evolve(BASE, id="a", gate=None, state=EffectState.PROPOSED)]
    rows.append(evolve(BASE, id="b", gate=gate, state=EffectState.CONFIRMED))

    assert EffectTable(rows).first_lapse() is None
    assert WHEN == EffectTable([evolve(BASE, gate=gate, state=EffectState.PROPOSED)]).first_lapse()


CHANGES: dict[str, Callable[[Effect, ToolContract], tuple[Effect, ToolContract]]] = {
    "tool": lambda e, t: (evolve(e, tool="cms.take_down"), t),
    "version": lambda e, t: (evolve(e, version=e.version + 1), t),
    "target": lambda e, t: (e, evolve(t, target="other")),
    "address": lambda e, t: (e, evolve(t, address="http://b")),
    "account": lambda e, t: (e, evolve(t, account="n")),
    "argument": lambda e, t: (evolve(e, arguments='{"page":"2"}'), t),
    "argument type": lambda e, t: (evolve(e, arguments='{"page":1}'), t),
    "one more argument": lambda e, t: (evolve(e, arguments='{"a":null,"page":"1"}'), t),
    "body": lambda e, t: (evolve(e, bodies=(evolve(e.bodies[0], sha256="b" * 64),)), t),
    "observed": lambda e, t: (evolve(e, observed="rev-8"), t),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_fingerprint_covers_each_bound_field(
    change: Callable[[Effect, ToolContract], tuple[Effect, ToolContract]],
) -> None:
    """Another tool, version, target, argument, body or observed version is another fingerprint."""
    assert keys.fingerprint(BASE, TOOL) != keys.fingerprint(*change(BASE, TOOL))


ONE_VALUE = {
    "order of keys": ('{"a":1,"b":2}', '{"b":2,"a":1}'),
    "1 and 1.0": ('{"n":1}', '{"n":1.0}'),
    "1e16 as text": ('{"n":1e16}', '{"n":1e+16}'),
    "1e16 in full": ('{"n":1e16}', '{"n":10000000000000000}'),
    "minus zero": ('{"n":-0.0}', '{"n":0}'),
    "escapes": ('{"n":"caf\\u00e9"}', '{"n":"caf\u00e9"}'),
}
OTHER_VALUE = {
    "1 to 2": ('{"n":1}', '{"n":2}'),
    "true to 1": ('{"n":true}', '{"n":1}'),
    "composed to decomposed": ('{"n":"\u00e9"}', '{"n":"e\u0301"}'),
    "null to absent": ('{"n":null}', "{}"),
    "text to number": ('{"n":"1"}', '{"n":1}'),
}


@pytest.mark.parametrize(("one", "other"), ONE_VALUE.values(), ids=ONE_VALUE)
def test_c07_fingerprint_is_of_values_not_of_spelling(one: str, other: str) -> None:
    """However a writer spells the same value, the approval still matches."""
    ours, theirs = (evolve(BASE, arguments=text) for text in (one, other))

    assert keys.fingerprint(ours, TOOL) == keys.fingerprint(theirs, TOOL)


@pytest.mark.parametrize(("one", "other"), OTHER_VALUE.values(), ids=OTHER_VALUE)
def test_c07_fingerprint_tells_values_apart(one: str, other: str) -> None:
    """Another value is another call, and the approval does not match."""
    ours, theirs = (evolve(BASE, arguments=text) for text in (one, other))

    assert keys.fingerprint(ours, TOOL) != keys.fingerprint(theirs, TOOL)


def test_fingerprint_leaves_out_what_does_not_bind() -> None:
    """Unbound fields, outcomes and counts are no part of what is approved."""
    other = evolve(BASE, unbound="{}", reference="", errands=9, state=EffectState.PROPOSED)

    assert keys.fingerprint(BASE, TOOL) == keys.fingerprint(other, TOOL)


def test_c07_a_number_that_nobody_keeps_exactly_is_no_argument() -> None:
    """Whole numbers that readers take for one another are refused: two calls would have one fingerprint."""
    for digits in ("9007199254740993", "1152921504606846976"):
        with pytest.raises(FaultyInputError, match="the spelling of no double"):
            keys.fingerprint(evolve(BASE, arguments=f'{{"n":{digits}}}'), TOOL)
