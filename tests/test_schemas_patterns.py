"""Patterns of inputs: the same answers as Python's own matcher, and never a long wait for one."""

import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from resumed.schemas import patterns

LETTERS = "ab0_ \n-é"
ONES = (
    *("a", "b", "0", "-", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "[ab]", "[^a]", "[a-b0]"),
    *(r"[\d_]", r"[^\w\n]", "^", "$", r"\b", r"\B", r"\A", r"\Z", "", "é", "_", r"\n"),
)
pieces = st.recursive(
    st.sampled_from(ONES),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})*"),
        inner.map(lambda one: f"(?:{one})+?"),
        inner.map(lambda one: f"({one})?"),
        inner.map(lambda one: f"(?:{one}){{1,3}}"),
        inner.map(lambda one: f"(?:{one}){{2,}}"),
    ),
    max_leaves=6,
)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(pieces, st.text(LETTERS, max_size=8))
@example("a$", "a\n")
@example("a$\n", "a\n")
@example(r"(?:a|\b)*", "a")
@example("(?:a*)*", "aaab")
def test_answers_are_those_of_pythons_matcher(pattern: str, text: str) -> None:
    """Whatever both can follow, both say the same of a whole text."""
    assume(text or r"\B" not in pattern)  # before 3.14 Python sees a boundary in the empty text
    assert (re.fullmatch(pattern, text) is not None) == patterns.Pattern(pattern).matches(text)


SLOW = {
    "nested repeats": ("(a+)+", "a" * 256 + "!"),
    "an alternative twice": ("(?:a|a)*", "a" * 256 + "!"),
    "many optional ones": ("a?" * 30 + "a" * 30, "a" * 29),
    "words of words": (r"(\w+\s?)*", "word " * 200 + "!"),
    "a wide count": ("(?:[a-z]{0,30}){0,30}", "a" * 256 + "!"),
}


@pytest.mark.parametrize("case", SLOW)
def test_no_text_takes_long(case: str) -> None:
    """What takes Python's matcher longer than anybody lives is answered in well under a second."""
    pattern, text = SLOW[case]
    begun = time.process_time()

    assert not patterns.Pattern(pattern).matches(text)
    assert time.process_time() - begun < 5.0


REFUSED = {
    "(": "not a pattern: missing ), unterminated subpattern at position 0",
    "x{99999999999}": "not a pattern: the repetition number is too large",
    "x{5000}": "it counts too far: more than 2000 places to stand at",
    "(?:x{100}){100}": "it counts too far: more than 2000 places to stand at",
    r"(a)\1": "a pattern may not refer back to a group",
    "(a)?(?(1)b|c)": "a pattern may not ask for a group",
    "(?=a)a": "a pattern may not look ahead or behind",
    "(?!a)b": "a pattern may not look ahead or behind",
    "(?<=a)b": "a pattern may not look ahead or behind",
    "(?>a)b": "a pattern may not keep what it took (`(?>..)`)",
    "a*+b": "a pattern may not keep what it took (`*+`)",
    "(?i)a": "a pattern may not set flags",
    "(?s:.)": "a pattern may not set flags",
    "a" * 1001: "1001 characters, the most is 1000",
}


@pytest.mark.parametrize("pattern", REFUSED, ids=range(len(REFUSED)))
def test_pattern_that_cannot_be_followed_is_refused(pattern: str) -> None:
    """A pattern is refused with the reason when it is read, not when a text is held against it."""
    with pytest.raises(ValueError, match=re.escape(REFUSED[pattern])):
        patterns.Pattern(pattern)
