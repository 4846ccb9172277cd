"""RFC 8785 texts: the one spelling of a value, and the value of it again, whatever else stands beside it."""

import json
from math import isfinite
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from resumed.schemas import jcs, keys, strict
from resumed.schemas.errors import FaultyInputError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_canonical_text_is_that_of_rfc_8785(value: object) -> None:
    """Whichever encoder spells it, the text is the same to the byte, and what has none is refused."""
    try:
        wanted = rfc8785.dumps(value).decode()  # type: ignore[arg-type]  # it may be none that can be spelled
    except rfc8785.CanonicalizationError as error:
        with pytest.raises(type(error)):
            keys.canonical(value)
        return

    assert wanted == keys.canonical(value)


@pytest.mark.parametrize("text", ["".join(map(chr, range(32))), '"\\/', "\x7f\x80\u2028", "\U0001f600\uffff"])
def test_canonical_text_escapes_as_rfc_8785_does(text: str) -> None:
    """Control characters, quotes and characters beyond the plane are spelled as the standard says."""
    value = {"a": text, "b": [text, 2**53 - 1, -0]}

    assert rfc8785.dumps(value).decode() == keys.canonical(value)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-strict.MAX_INT, strict.MAX_INT)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
SPELLED = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(SPELLED)
def test_what_is_spelled_is_read_as_the_same_value(value: object) -> None:
    """Any number, alone or beside others: what is read is spelled so again, and equals what was there."""
    text = keys.canonical(value)
    found = jcs.read(text, "it")

    assert (value, text) == (found, keys.canonical(found))


@given(
    st.floats(1e15, 1e21) | st.floats(-1e21, -1e15) | st.just(1e16), st.sampled_from(["{}", "1e+21", "1e21"])
)
def test_a_large_number_is_read_whatever_stands_beside_it(number: float, beside: str) -> None:
    """C07: spelled like a whole number beyond those that all readers keep, it is the double that it was; also
    where the encoder of another release spells its neighbour otherwise than ours."""
    text = f"[{keys.canonical(number)},{beside}]"

    assert [number, json.loads(beside)] == jcs.read(text, "it")


REFUSED = {
    "no double is spelled so": "9007199254740993",
    "nor so": "-9007199254740992001",
    "one that is spelled shorter": "1152921504606846976",
    "with an exponent in its spelling": "1000000000000000000000",
    "too large for any": "1" * 400,
    "more digits than are read": "1" * 5000,
    "no JSON": "01",
    "twice": '{"a":1,"a":1}',
    "no number": "NaN",
    "a NUL": '"\\u0000"',
    "half a character": '"\\ud800"',
    "too deep": "[" * 80 + "]" * 80,
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("within", ["{}", "[{}]", '{{"n":{},"m":1e2}}'])
def test_what_is_no_such_text_is_refused(case: str, within: str) -> None:
    """Two whole numbers that a reader of doubles takes for one never pass: they would be one call."""
    with pytest.raises(FaultyInputError, match="cannot read it"):
        jcs.read(within.format(REFUSED[case]), "cannot read it")


def test_a_lone_surrogate_is_refused_before_it_is_bytes() -> None:
    """A text that came otherwise than through the door is none either."""
    with pytest.raises(FaultyInputError, match="not UTF-8"):
        jcs.read('"\ud800"', "it")


LARGE: list[Any] = [9007199254740991, 9007199254740992.0, 1e16, 123456789012345680000.0, 1e20]


@pytest.mark.parametrize("number", LARGE)
def test_large_numbers_keep_their_kind(number: float) -> None:
    """Up to 2**53 - 1 a whole number is one; beyond it is a double."""
    found = jcs.read(keys.canonical(number), "it")

    assert isfinite(found)
    assert (type(number), number) == (type(found), found)
