"""`--help`: each verb shows examples, and each example is one that the command takes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from cli.examples import EXAMPLES
from cli.verbs import tree
from tests.cli_runner import migrate_here

ROOT = tree()


def verbs(command: Any = ROOT, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every verb by its words."""
    for name, child in command.commands.items():
        if getattr(child, "commands", None):
            yield from verbs(child, (*words, name))
        else:
            yield " ".join((*words, name)), child


VERBS = dict(verbs())


def test_each_verb_has_examples() -> None:
    assert [verb for verb in VERBS if verb not in EXAMPLES] == []


@pytest.mark.parametrize("verb", VERBS)
def test_each_example_is_taken(verb: str) -> None:
    for example in EXAMPLES[verb]:
        first, *arguments = shlex.split(example)
        words = verb.split()
        assert first == "migrate", example
        assert arguments[: len(words)] == words, example
        # values are read and checked as the command would; nothing is called
        VERBS[verb].make_context(verb, arguments[len(words) :])


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_them_line_by_line(verb: str) -> None:
    said = migrate_here(*verb.split(), "--help").out
    lines = [line.strip() for line in said.splitlines()]
    assert "Examples:" in lines
    for example in EXAMPLES[verb]:
        assert example in lines, said


def test_an_example_that_is_wrong_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        VERBS["status"].make_context("status", ["--nope"])
    with pytest.raises(Exception, match="less than or equal"):
        VERBS["run"].make_context("run", ["a", "b", "--autonomy", "2"])
