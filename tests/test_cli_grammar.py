"""The grammar of `resumectl`: every verb is whole, and what it shows as an example is what it takes."""

import importlib
import shlex

import pytest

from resumed.daemon import grammar


@pytest.mark.parametrize("verb", grammar.VERBS, ids=lambda verb: verb.name)
def test_verb_is_whole(verb: grammar.Verb) -> None:
    """A row names a function that is there, and an example that its own parser takes."""
    module, _, function = verb.serve.partition(":")
    served = getattr(importlib.import_module(f"resumed.daemon.{module}"), function)
    example = shlex.split(verb.example.partition(" > ")[0])
    asked = grammar.parser(example[1:]).parse_args(example[1:])

    assert callable(served)
    assert (["resumectl", verb.name], verb.name, verb.serve) == (example[:2], asked.verb, asked.serve)


def test_whole_grammar_is_built_when_no_verb_is_named() -> None:
    """`--help` names every verb."""
    said = grammar.parser(["--help"]).format_help()

    assert [] == [name for name in grammar.NAMES if f"\n    {name} " not in said]
