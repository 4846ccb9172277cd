"""Characters as a terminal shows them: nothing it would obey, columns counted as it counts them."""

from collections.abc import Iterator

import pytest

from resumed.daemon import letters, render


@pytest.fixture(autouse=True)
def locale(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal that has every letter; a test may take them away."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    letters.only_ascii.cache_clear()
    yield
    monkeypatch.undo()
    letters.only_ascii.cache_clear()


WIDE = {
    "plain": ("attic", 5),
    "umlaut": ("Bär", 3),
    "umlaut of two": ("Ba\u0308r", 3),
    "Chinese": ("日本語", 6),
    "half and full": ("ｱア", 3),
    "Korean": ("한국", 4),
    "Korean of parts": ("\u1112\u1161\u11ab", 2),
    "face": ("😀", 2),
    "marks of Devanagari": ("\u0915\u093c", 1),
    "nothing": ("", 0),
}


SENTENCES = {
    "RuntimeError: 503\n  at /srv/label.py:37 in look_up\n  at /srv/x.py:1 in y": "RuntimeError: 503",
    "two\nlines": "two lines",
    "\x1b[2Jgone": "\\x1b[2Jgone",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_reason_is_one_line(text: str) -> None:
    """Of an author's error only what it says; nothing that a terminal would obey."""
    assert SENTENCES[text] == letters.sentence(text)


@pytest.mark.parametrize("case", WIDE)
def test_columns_are_those_of_a_terminal(case: str) -> None:
    """A wide letter takes two columns and a mark none; a cell is filled up and cut by columns."""
    text, wide = WIDE[case]

    assert wide == letters.columns(text)
    assert 12 == letters.columns(letters.pad(text, 12)) == letters.columns(letters.pad(text, 12, right=True))
    assert all(letters.columns(letters.cut(text * 9, most)) <= most for most in range(12))


CUTS = {
    "fits": ("日本", 4, "日本"),
    "between two": ("日本語", 5, "日本…"),
    "within one": ("日本語", 4, "日…"),
    "marks stay with their letter": ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    "no room for a sign": ("abc", 1, "a"),
    "no room": ("abc", 0, ""),
}


@pytest.mark.parametrize("case", CUTS)
def test_cut_keeps_within_its_columns(case: str) -> None:
    """A text is never cut within a letter, and says that it was cut."""
    text, most, expected = CUTS[case]

    assert expected == letters.cut(text, most)


MARKS = {
    "on nothing": ("\u0301a", "\\u0301a"),
    "a few": ("a\u0301\u0302\u0303", "a\u0301\u0302\u0303"),
    "a pile": ("a" + "\u0301" * 5, "a\u0301\u0301\u0301\\u0301\\u0301"),
    "around": ("a\u20dd", "a\u20dd"),
}


@pytest.mark.parametrize("case", MARKS)
def test_marks_stay_on_their_own_letter(case: str) -> None:
    """A mark without a letter, or a pile of them, is spelled: it would sit on what stands beside it."""
    text, expected = MARKS[case]

    assert expected == letters.clean(text)


LOCALES = {
    "all but UTF-8": ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, True),
    "UTF-8 for letters": ({"LC_ALL": "", "LC_CTYPE": "en_US.utf8", "LANG": "C"}, False),
    "UTF-8 by name": ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "ja_JP.UTF-8"}, False),
    "another set": ({"LC_ALL": "de_DE.ISO-8859-1"}, True),
    "none": ({"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}, True),
}


@pytest.mark.parametrize("case", LOCALES)
def test_locale_without_letters_gets_ascii(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the locale has no such letter it is spelled, and the sign of a cut is three dots."""
    names, ascii_only = LOCALES[case]
    for name, said in names.items():
        monkeypatch.setenv(name, said)
    letters.only_ascii.cache_clear()

    assert ascii_only == letters.only_ascii()
    assert (
        ("\\u65e5", "aa...")
        if ascii_only
        else ("日", "aaaa…")
        == (
            letters.clean("日"),
            letters.clean("a" * 9, 5),
        )
    )
    assert not ascii_only or letters.clean("日\N{GRINNING FACE}é").isascii()


def test_lines_are_broken_between_words() -> None:
    """No line is longer than the terminal, unless it is one word, which stays whole to be copied."""
    lines = letters.wrap("held since /a/very/long/path because nobody knows", 12)

    assert ["held since", "/a/very/long/path", "because", "nobody knows"] == lines


def test_table_lines_up_whatever_is_in_it() -> None:
    """Cells of wide letters and of marks end in the same column as all others."""
    rows = [["日本", "1"], ["Ba\u0308r", "22"], ["plain", "333"]]
    lines = render.table(["NAME", ">N"], rows, [".", ".", "."], 40, False)

    assert {len("  plain  333")} == {letters.columns(line) for line in lines}


SPACE = {
    "all": (60, ["NAME", "SAID", "END"], 31),
    "one gives way": (36, ["NAME", "SAID", "END"], 18),
    "the last goes": (32, ["NAME", "SAID"], 21),
    "no room at all": (9, ["NAME"], 0),
}


@pytest.mark.parametrize("case", SPACE)
def test_soft_column_gives_way_before_one_goes(case: str) -> None:
    """A sentence is cut short to make room, as far as it still says something; then columns go."""
    width, heads, kept = SPACE[case]
    said = "a sentence of thirty-one letter"
    head, line = render.table(["NAME", "~SAID", "END"], [["harbour", said, "12:00"]], ["!"], width, False)

    assert heads == [word for word in head.split() if word != "…"]
    assert letters.columns(head) <= width >= letters.columns(line)
    assert letters.cut(said, kept) in line
