"""The strict door: what means yes, a number or a list is only what is written as one."""

import json
import math
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_kit import RECORDS, field_types, optional, sample, wrong_values

from resumed.schemas import codec, strict
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Item
from resumed.schemas.workflow import Contract, StepContract

quick = settings(max_examples=400, derandomize=True, deadline=None, database=None)

# ---- records --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDS)
def test_record_reads_back_as_it_was_written(name: str) -> None:
    """Every record goes through the door and comes back the same, compact or for people."""
    kind = RECORDS[name]
    record = sample(kind)

    assert record == codec.decode(codec.encode(record), kind, "cannot read")
    assert record == codec.decode_own(codec.encode(record), kind, "cannot read")
    assert record == codec.decode(codec.encode_pretty(record), kind, "cannot read")


@pytest.mark.parametrize("name", RECORDS)
def test_c27_no_field_takes_a_value_of_another_type(name: str) -> None:
    """`"false"` is not false and `1.0` is not one: each field refuses what coercion would let in, by name."""
    kind = RECORDS[name]
    plain = json.loads(codec.encode(sample(kind)))
    tried = 0
    for field, of in field_types(kind).items():
        for wrong in wrong_values(of):
            raw = json.dumps({**plain, field: wrong}).encode()
            for read in (codec.decode, codec.decode_own):
                with pytest.raises(FaultyInputError) as refused:
                    read(raw, kind, "cannot read")
                assert any(f"$.{field}" in problem for problem in refused.value.problems), (field, wrong)
            tried += 1

    assert tried >= 5 * len(field_types(kind))


@pytest.mark.parametrize("name", RECORDS)
def test_record_refuses_unknown_and_missing_keys(name: str) -> None:
    """A key that is not known is refused by name, and so is a record without a field it needs."""
    kind = RECORDS[name]
    plain = json.loads(codec.encode(sample(kind)))
    with pytest.raises(FaultyInputError, match="efects"):
        codec.from_plain({**plain, "efects": 1}, kind, "cannot read")
    needed = [field.name for field in attrs.fields(kind) if field.default is attrs.NOTHING]
    for field in needed:
        with pytest.raises(FaultyInputError, match=f"'{field}' is missing"):
            codec.from_plain({key: one for key, one in plain.items() if key != field}, kind, "cannot read")


@pytest.mark.parametrize("wrong", [None, "x", 3, [], True, [{}]])
def test_record_is_an_object(wrong: Any) -> None:
    """Nothing but an object is read as a record."""
    with pytest.raises(FaultyInputError):
        codec.from_plain(wrong, StepContract, "cannot read")


def test_defaults_are_not_written_and_never_missed() -> None:
    """A field at its default costs no byte, and its absence means the default."""
    item = Item(id="a", ordinal=0)

    assert b'{"id":"a","ordinal":0}' == codec.encode(item)
    assert item == codec.decode(b'{"ordinal":0,"id":"a"}', Item, "cannot read")


def test_optional_is_not_a_way_around_the_type() -> None:
    """`X | None` takes null and X, and nothing else that X would not take."""
    fields = [
        (kind, field)
        for kind in RECORDS.values()
        for field, of in field_types(kind).items()
        if optional(of) is not None
    ]

    assert len(fields) > 20
    for kind, field in fields:
        plain = json.loads(codec.encode(sample(kind)))
        record = codec.from_plain({**plain, field: None}, kind, "cannot read")
        assert None is getattr(record, field)


# ---- JSON -----------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[bytes, str]] = {
    "a key twice": (b'{"a":1,"a":2}', "key 'a' is written twice @ $"),
    "a key twice, below": (b'{"x":[{"a":1,"a":1}]}', "key 'a' is written twice @ $.x[0]"),
    "a key twice, once escaped": (b'{"a":1,"\\u0061":2}', "key 'a' is written twice @ $"),
    "NaN": (b'{"a":NaN}', "NaN is not a JSON number"),
    "Infinity": (b"[Infinity]", "Infinity is not a JSON number"),
    "minus Infinity": (b"[-Infinity]", "-Infinity is not a JSON number"),
    "a number beyond floats": (b'{"a":1e999}', "@ $.a"),
    "an integer beyond 2**53 - 1": (b'{"a":9007199254740992}', "integer beyond +-(2**53 - 1) @ $.a"),
    "one beyond the other way": (b'{"a":-9007199254740992}', "integer beyond +-(2**53 - 1) @ $.a"),
    "an integer beyond 64 bits": (b"[18446744073709551617]", "integer beyond +-(2**53 - 1) @ $[0]"),
    "an integer of 5,000 digits": (b"[" + b"9" * 5000 + b"]", "not JSON"),
    "a lone surrogate": (b'{"a":"\\ud800"}', "a lone surrogate is not allowed @ $.a"),
    "a lone surrogate in a key": (b'{"\\udc00":1}', "a lone surrogate is not allowed in a key @ $"),
    "NUL": (b'{"a":["x\\u0000"]}', "a NUL character is not allowed @ $.a[0]"),
    "NUL in a key": (b'{"\\u0000":1}', "a NUL character is not allowed in a key @ $"),
    "65 levels": (b"[" * 66 + b"]" * 66, "nested deeper than 64 levels"),
    "100,000 levels": (b"[" * 100_000, "nested deeper than 64 levels @ $"),
    "100,000 objects": (b'{"a":' * 100_000, "nested deeper than 64 levels @ $"),
    "not UTF-8": (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
    "a surrogate as bytes": (b'"\xed\xa0\x80"', "not UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "not JSON"),
    "nothing": (b"", "not JSON"),
    "two values": (b"{} {}", "not JSON"),
    "a comma too many": (b"[1,]", "not JSON"),
    "single quotes": (b"{'a':1}", "not JSON"),
    "a comment": (b"{} // yes", "not JSON"),
    "a raw newline in a text": (b'"a\nb"', "not JSON"),
    "a leading zero": (b"[01]", "not JSON"),
}
OWN_LIMITS = {"an integer beyond 2**53 - 1", "one beyond the other way", "65 levels"}
"""What the fast door leaves to the records, which hold every integer and have no such depth."""


@pytest.mark.parametrize("case", REFUSED)
def test_door_refuses(case: str) -> None:
    """Each way in which two readers could disagree about bytes is refused, naming the place."""
    raw, said = REFUSED[case]
    with pytest.raises(FaultyInputError) as refused:
        strict.parse(raw, "cannot read harbour.json")

    assert said in str(refused.value)
    assert str(refused.value).startswith("cannot read harbour.json: ")


@pytest.mark.parametrize("case", sorted(set(REFUSED) - OWN_LIMITS))
def test_fast_door_refuses(case: str) -> None:
    """The door for our own bytes is as strict about bytes that we cannot have written."""
    with pytest.raises(FaultyInputError):
        strict.parse_own(REFUSED[case][0], "cannot read")


@pytest.mark.parametrize(
    "raw",
    [b"9007199254740991", b"-9007199254740991", b"1e15", b"-0.0", b'"\\ud83d\\ude00"', b"[" * 64 + b"]" * 64],
)
def test_door_lets_in_up_to_the_edge(raw: bytes) -> None:
    """The largest exact integer, a whole surrogate pair and 64 levels are good."""
    assert json.loads(raw) == strict.parse(raw, "cannot read") == strict.parse_own(raw, "cannot read")


def test_door_names_every_problem_up_to_twenty() -> None:
    """A person mends a file once: all places are named, within reason."""
    with pytest.raises(FaultyInputError) as refused:
        strict.parse(json.dumps([2**60] * 50).encode(), "cannot read")

    assert 20 == len(refused.value.problems)
    assert refused.value.problems[3].endswith("@ $[3]")


def test_odd_keys_are_quoted_in_paths() -> None:
    """A path can be read back: a key that is no plain word stands in quotes."""
    with pytest.raises(FaultyInputError, match=r'@ \$\.a\["b c"\]'):
        strict.parse(b'{"a":{"b c":9007199254740993}}', "cannot read")


# ---- the two doors against each other -------------------------------------------------------------------

texts = st.text(st.characters(codec=None, categories=None), max_size=8) | st.sampled_from(
    ["", "\x00", "\ud800", "a", "\\u0000", "ü", "\U0001f600", "\x7f", "\u2028"]
)
numbers = (
    st.integers(-(2**70), 2**70)
    | st.integers(-10, 10)
    | st.sampled_from([2**53 - 1, 2**53, 2**63, 2**64, -(2**63) - 1])
    | st.floats(allow_nan=True, allow_infinity=True)
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def _spellings(value: Any) -> list[bytes]:
    """The value as several writers would spell it."""
    made = [
        json.dumps(value).encode(),
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"),
    ]
    try:
        made += [orjson.dumps(value, option=strict.PRETTY), orjson.dumps(value)]
    except TypeError:
        pass
    return made


def _read(read: Any, raw: bytes) -> Any:
    try:
        return read(raw, "cannot read")
    except FaultyInputError as error:
        return error


def _only_own_limits(error: FaultyInputError) -> bool:
    return all(one.startswith(("integer beyond", "nested deeper")) for one in error.problems)


def _agree(raw: bytes) -> bool:
    slow, fast = _read(strict.parse, raw), _read(strict.parse_own, raw)
    if isinstance(slow, FaultyInputError):
        return isinstance(fast, FaultyInputError) or _only_own_limits(slow)
    return repr(slow) == repr(fast)


@quick
@given(values)
def test_both_doors_agree_on_every_spelling(value: Any) -> None:
    """The fast door refuses what the strict one does, but for sizes that records hold."""
    assert all(_agree(raw) for raw in _spellings(value))


@quick
@given(values, st.integers(0, 400), st.binary(min_size=1, max_size=2))
def test_both_doors_agree_on_damaged_bytes(value: Any, place: int, put: bytes) -> None:
    """The same of bytes that nobody wrote."""
    for raw in _spellings(value)[-2:]:
        at = place % (len(raw) + 1)

        assert _agree(raw[:at] + put + raw[at:])
        assert _agree(raw[:at] + put + raw[at + 1 :])


@quick
@given(st.binary(max_size=12))
def test_both_doors_agree_on_noise(raw: bytes) -> None:
    """The same of any bytes at all."""
    assert _agree(raw)


@quick
@given(st.dictionaries(st.sampled_from(["id", "ordinal", "tries", "state", "data", "x"]), values))
def test_both_doors_give_the_same_records(plain: dict[str, Any]) -> None:
    """Behind the records there is no difference left: both doors accept and refuse the same bytes."""
    for raw in _spellings({"id": "a", "ordinal": 0, **plain}):
        slow = _read(lambda raw, what: codec.decode(raw, Item, what), raw)
        fast = _read(lambda raw, what: codec.decode_own(raw, Item, what), raw)
        if isinstance(slow, FaultyInputError):
            assert isinstance(fast, FaultyInputError)
        else:
            assert slow == fast


@quick
@given(st.dictionaries(st.sampled_from(["id", "ordinal", "tries", "state", "data", "started", "x"]), values))
def test_quick_reader_takes_what_the_naming_one_takes(plain: dict[str, Any]) -> None:
    """Records are read without paths at first: what is refused, and what is made, is the same with them."""
    wanted = {"id": "a", "ordinal": 0, **plain}

    def take(converter: Any) -> Any:
        try:
            return converter.structure(wanted, Item)
        except Exception as error:  # noqa: BLE001 - both refuse, each in its own way
            del error
            return None

    assert take(codec._naming()) == take(codec._CONVERTER)


def test_what_jobs_have_in_common_is_one_object() -> None:
    """Two jobs of one workflow hold one contract; another contract is another object."""
    steps = [{"name": "draft", "kind": "job"}]
    plain = {"workflow": "label", "version": 2, "start": "draft", "steps": steps}
    one, two = (codec.from_plain(json.loads(json.dumps(plain)), Contract, "") for _ in range(2))
    other = codec.from_plain({**plain, "version": 3}, Contract, "")

    assert one is two
    assert (2, 3) == (one.version, other.version)


@pytest.mark.parametrize("wrong", [True, 2.0, "2", None], ids=repr)
def test_what_is_shared_is_checked_for_its_types(wrong: object) -> None:
    """A value that only looks like one that was read before is refused all the same."""
    plain = {"workflow": "label", "version": 2, "start": "draft", "steps": []}
    codec.from_plain(plain, Contract, "")
    with pytest.raises(FaultyInputError, match=r"version"):
        codec.from_plain({**plain, "version": wrong}, Contract, "cannot read")


@quick
@given(values)
def test_what_the_door_lets_in_can_be_written_and_read_again(value: Any) -> None:
    """Nothing passes that our own encoder would change: what is read once reads the same for ever."""
    read = _read(strict.parse, _spellings(value)[0])
    if not isinstance(read, FaultyInputError):
        again = strict.parse_own(codec.dump_plain(read), "cannot read")

        assert repr(read) == repr(again)


# ---- texts ----------------------------------------------------------------------------------------------


@quick
@given(texts)
def test_plain_text_always_passes_the_door(text: str) -> None:
    """Words of programs lose only what could not be stored, and keep their length."""
    plain = strict.plain(text)

    assert plain == strict.parse(codec.dump_plain(plain), "cannot read")
    assert len(text) == len(plain)
    assert text == plain or "\ufffd" in plain


@pytest.mark.parametrize("text", ["{", '{"a":1,"a":2}', "NaN", '"\\ud800"', "", "\ud800"])
def test_json_text_is_checked_and_never_changed(text: str) -> None:
    """Carried JSON text is refused whole or kept letter by letter."""
    with pytest.raises(FaultyInputError):
        strict.check_json_text(text, "cannot keep the data")

    assert '{ "a" : 1 }' == strict.check_json_text('{ "a" : 1 }', "cannot keep the data")


def test_values_of_other_parsers_pass_the_same_door() -> None:
    """TOML has words for infinity and no limit to integers: the door holds for what it gives as well."""
    for value in (math.inf, -math.inf, math.nan, 2**53):
        with pytest.raises(FaultyInputError):
            strict.check({"a": [value]}, "cannot read x.toml")
