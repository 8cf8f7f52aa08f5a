"""What was measured about the embedded model, and that it holds on a few questions asked anew."""

from __future__ import annotations

import pytest

from agent.models.calibration import UNFITTED, fit_of, levels_of, trust, wilson
from agent.models.embedded import embedded_model_path
from agent.models.llamacpp import LlamaCpp
from agent.models.protocol import Match
from bench.choose import prompt_of, words
from bench.choose_set import TARGETS, load_questions

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf 27ccf7db5767"
MATCH = Match(new_field="city")


def test_only_what_was_measured_is_trusted_and_more_only_where_it_is_surer() -> None:
    assert trust("qwen3-8b.gguf 0123", MATCH, 0.999) == 0.0
    assert trust(NAME, None, 0.999) == 0.0
    assert fit_of("qwen3-8b.gguf 0123", MATCH) == UNFITTED
    assert trust(NAME, MATCH, 0.3) == 0.0
    steps = [trust(NAME, MATCH, sure) for sure in (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)]
    assert steps == sorted(steps)
    assert 0.9 < steps[-1] < 0.98  # nobody asked enough questions to say more
    assert trust(NAME, Match(old_column="plz"), 1.0) < steps[-1]
    for level in (*levels_of(NAME, MATCH), *levels_of(NAME, Match(old_column="plz"))):
        assert level.right <= level.answers
        assert level.at_least < level.share


def test_wilson() -> None:
    assert wilson(35, 35) == pytest.approx(0.928, abs=0.001)
    assert wilson(149, 149) > 0.98
    assert wilson(0, 10) == pytest.approx(0, abs=1e-9)


def test_the_questions_are_sound() -> None:
    for to_field in (True, False):
        questions = load_questions(to_field)
        assert questions == load_questions(to_field)
        assert len(questions) >= 150
        assert len({q.family for q in questions}) == 8
        for question in questions:
            assert len(set(question.candidates)) == len(question.candidates) >= 3
            assert question.right <= len(question.candidates)
            if to_field:
                assert set(question.candidates) <= set(TARGETS[question.target])
    assert words("CreatedDate") == "created date"
    assert words("billing_city") == "billing city"


def test_a_sample_of_held_out_questions_is_answered_as_often_as_measured() -> None:
    """About a dozen questions: at least seven right (80 % of the answerable ones were)."""
    held = [question for question in load_questions(False) if question.held_out and question.answerable][::11]
    model = LlamaCpp(embedded_model_path(), context=1024)
    choices = [model.choose(prompt_of(question, parts=True), question.options) for question in held]
    model.close()
    right = [choice.index == question.right for choice, question in zip(choices, held, strict=True)]
    assert sum(right) >= 7, f"{sum(right)} of {len(right)}"
    sure = [ok for choice, ok in zip(choices, right, strict=True) if max(choice.probabilities) >= 0.95]
    assert all(sure)
