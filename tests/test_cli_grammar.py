"""The grammar of `resumectl`: every verb is whole, and what it shows as an example is what it takes."""

import importlib
import shlex

import pytest

from resumed.daemon import cli, grammar, parsing
from resumed.daemon.screen import UsageError
from resumed.schemas.release import VERSION


@pytest.mark.parametrize("verb", grammar.VERBS, ids=lambda verb: verb.name)
def test_verb_is_whole(verb: grammar.Verb) -> None:
    """A row names a function that is there, and an example that its own parser takes."""
    module, _, function = verb.serve.partition(":")
    served = getattr(importlib.import_module(f"resumed.daemon.{module}"), function)
    example = shlex.split(verb.example.partition(" > ")[0])
    asked = parsing.parser(example[1:]).parse_args(example[1:])

    assert callable(served)
    assert (["resumectl", verb.name], verb.name, verb.serve) == (example[:2], asked.verb, asked.serve)


def test_whole_grammar_is_built_when_no_verb_is_named() -> None:
    """Without words every verb is there, for whoever wants to read the whole grammar."""
    assert f"{{{','.join(grammar.NAMES)}}}" not in parsing.parser([]).format_usage()
    assert all(
        parsing.parser().parse_args(shlex.split(v.example.partition(" > ")[0])[1:]) for v in grammar.VERBS
    )


WRONG = {
    "no verb": ([], "no verb was given", ["resumectl list", "resumectl --help"]),
    "a slip": (["lst"], "there is no verb 'lst': did you mean list?", ["resumectl list -a"]),
    "two near": (["--socket", "show", "resme"], "did you mean resume?", ["resumectl resume attic"]),
    "nothing near": (["frobnicate"], "there is no verb 'frobnicate'", ["resumectl --help"]),
    "a word too few": (["show"], "required: JOB", ["resumectl show attic", "resumectl show --help"]),
    "an unknown option": (["list", "--frob"], "unrecognized arguments: --frob", ["resumectl --help"]),
    "an option cut short": (["list", "--al"], "unrecognized arguments: --al", ["resumectl --help"]),
    "no path": (["list", "--socket"], "expected one argument", ["resumectl list --help"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_words_are_answered_with_what_may_be_typed(case: str) -> None:
    """A command line that cannot be read says why, and ends with commands that can."""
    words, said, commands = WRONG[case]
    with pytest.raises(UsageError) as caught:
        parsing.read(words)

    assert said in str(caught.value)
    assert set(commands) <= set(caught.value.commands)
    for command in caught.value.commands:
        parsing.read(shlex.split(command)[1:])


def test_help_has_an_example_of_every_verb() -> None:
    """`VERB --help`, `help VERB` and `-h` say the same, and end with an example."""
    for verb in grammar.VERBS:
        said = parsing.read([verb.name, "--help"])

        assert isinstance(said, str)
        assert f"example: {verb.example}" in " ".join(said.split())
        assert said == parsing.read(["help", verb.name]) == parsing.read([verb.name, "-h"])


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_overview_names_every_verb_by_what_it_is_for(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first help shows all verbs in their groups, within the terminal."""
    monkeypatch.setenv("COLUMNS", "60")
    said = parsing.read(words)

    assert isinstance(said, str)
    assert [] == [verb.name for verb in grammar.VERBS if (f"\n  {verb.name} " in said) != bool(verb.group)]
    assert [] == [group for group in grammar.GROUPS if f"\n{group}: " not in said]
    assert {verb.group for verb in grammar.VERBS} - {""} == set(grammar.GROUPS)
    assert all(len(line) < 60 for line in said.splitlines())


def test_version_is_the_release() -> None:
    """`--version` names the release."""
    assert f"resumectl {VERSION}\n" == parsing.read(["--version"])


INTERRUPTED = {
    "a command": (
        ["cancel", "attic"],
        "nobody can tell whether the command took effect",
        "resumectl why attic",
    ),
    "a command without a job": (["prune", "--yes"], "nobody can tell", "resumectl list -a"),
    "a look": (["list"], "", ""),
    "no verb yet": (["--help"], "", ""),
}


@pytest.mark.parametrize("case", INTERRUPTED)
def test_interruption_says_what_may_be_in_force(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Who only looked goes in silence; after a command it is said that it may have taken effect."""
    words, said, command = INTERRUPTED[case]
    code = cli._interrupted(parsing.read(words))
    told = capsys.readouterr().err

    assert 130 == code
    assert (said in told, command in told) == (True, True)
    assert bool(said) == bool(told)
