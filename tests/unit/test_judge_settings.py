"""Which judge the settings name, who asks it, what is told of it, and what is read of what its model says."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from jobs.operate.doctor import CHECKS
from jobs.operate.doctor.verdict import Status
from models.errors import ConfigurationError, LlmRubbish
from streams.inference.llm_answers import LlmReply
from streams.inference.openai_judge import verdict
from streams.settings import load_settings
from streams.wiring import judge_of, policy_of
from tests.support.data_files import data_file
from tests.support.tiny_classifier import write_classifier

SERVER = {"kind": "openai", "openai": {"base_url": "http://127.0.0.1:1/v1", "model": "guard"}}


MISSING = {"kind": "onnx", "onnx": {"model": "nowhere.onnx"}}


@pytest.mark.parametrize(
    ("judge", "asks"), [({}, False), (SERVER, True), (MISSING, True)], ids=["none by default", "a server", "no weights"]
)
def test_sessions_ask_where_a_judge_is_configured(judge: dict[str, Any], *, asks: bool) -> None:
    """Text goes nowhere unless somebody says so. The sessions role does not load the weights; a role more is run."""
    settings = load_settings(judge=judge)

    assert policy_of(settings).escalation.ask_judge is asks
    assert ("judge" in settings.roles, "sessions" in settings.roles) == (asks, True)


@pytest.mark.parametrize(("judge", "named"), data_file("judge_settings")["missing"])
def test_what_is_missing_is_named(judge: dict[str, Any], named: str) -> None:
    """Before a worker starts."""
    with pytest.raises(ConfigurationError, match=named):
        judge_of(load_settings(judge=judge))


def test_doctor_tries_the_judge(tmp_path: Path) -> None:
    """A classifier by judging, one that is missing by saying so, none by saying that."""
    model = str(write_classifier(tmp_path))
    tried, none = (
        CHECKS["judge"].look(load_settings(judge=judge)) for judge in ({"kind": "onnx", "onnx": {"model": model}}, {})
    )

    assert (tried.status, none.status) == (Status.OK, Status.OK)
    assert "onnx:model@" in tried.detail
    with pytest.raises(ConfigurationError, match="no such file"):
        CHECKS["judge"].look(load_settings(judge={"kind": "onnx", "onnx": {"model": f"{model}.old"}}))


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


@pytest.mark.parametrize(("tokens", "probability"), data_file("judge_settings")["verdicts"], ids=str)
def test_what_it_nearly_said_counts(tokens: dict[str, float], probability: float) -> None:
    """Both words against each other, whatever else it might have begun with; without them the word alone counts."""
    assert verdict(LlmReply("unsafe", first_tokens=tokens), sure=SURE) == pytest.approx(probability)


def test_an_object_s_first_token_says_nothing() -> None:
    """It is a brace."""
    said = LlmReply('{"harmful": true, "probability": 0.6}', first_tokens={"safe": 1.0})

    assert verdict(said, sure=SURE) == 0.6
