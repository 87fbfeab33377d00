"""What a judge's model may say, and what is read of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from models.errors import LlmRubbish
from streams.inference.llm_answers import LlmReply
from streams.inference.openai_judge import verdict

SURE = 0.9
SAID: dict[str, Any] = tomllib.loads((Path(__file__).parent / "data" / "judge_answers.toml").read_text())


@pytest.mark.parametrize(("said", "probability"), SAID["read"])
def test_both_forms_are_read(said: str, probability: float) -> None:
    """A stated probability as it is; a bare verdict as sure as the settings have it."""
    assert verdict(LlmReply(said), sure=SURE) == pytest.approx(probability)


@pytest.mark.parametrize("said", SAID["no_answer"])
def test_anything_else_is_no_answer(said: str) -> None:
    """Neither is a verdict against its own probability: which of both is meant, nobody knows."""
    with pytest.raises(LlmRubbish):
        verdict(LlmReply(said), sure=SURE)


@pytest.mark.parametrize(
    ("tokens", "probability"),
    [
        ({"unsafe": 0.3, "safe": 0.1}, 0.75),
        ({"un": 0.2, " safe": 0.2, "S": 0.1, "Unsafe": 0.5}, 0.7),
        ({"unsafe": 0.0, "safe": 1.0, "sorry": 0.5}, 0.0),
        ({"sorry": 0.5, " ": 0.5}, 0.9),
        ({"unsafe": 0.0, "safe": 0.0}, 0.9),
        ({}, 0.9),
    ],
    ids=str,
)
def test_what_it_nearly_said_counts(tokens: dict[str, float], probability: float) -> None:
    """Both words against each other, whatever else it might have begun with; without them the word alone counts."""
    assert verdict(LlmReply("unsafe", first_tokens=tokens), sure=SURE) == pytest.approx(probability)


def test_an_object_s_first_token_says_nothing() -> None:
    """It is a brace."""
    said = LlmReply('{"harmful": true, "probability": 0.6}', first_tokens={"safe": 1.0})

    assert verdict(said, sure=SURE) == 0.6
