"""Which judge the settings name, who asks it, and what is told of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jobs.operate import worker as working
from jobs.operate.doctor import CHECKS
from jobs.operate.doctor.verdict import Status
from jobs.operate.worker import WorkerRole
from models.errors import ConfigurationError
from streams.settings import load_settings
from streams.wiring import judge_of, policy_of
from tests.support.tiny_classifier import write_classifier

SERVER = {"kind": "openai", "openai": {"base_url": "http://127.0.0.1:1/v1", "model": "guard"}}


def test_none_by_default() -> None:
    """Text goes nowhere unless somebody says so."""
    assert judge_of(load_settings()) is None
    assert not policy_of(load_settings()).escalation.ask_judge


def test_sessions_ask_where_one_is_configured() -> None:
    """Without its weights: the sessions role does not load them."""
    missing = {"kind": "onnx", "onnx": {"model": "nowhere.onnx"}}

    assert [policy_of(load_settings(judge=each)).escalation.ask_judge for each in (SERVER, missing)] == [True, True]


@pytest.mark.parametrize(
    ("judge", "named"),
    [
        ({"kind": "openai"}, r"judge\.openai\.base_url and …model"),
        ({"kind": "openai", "openai": {"base_url": "http://127.0.0.1:1/v1"}}, r"judge\.openai\.base_url and …model"),
        ({"kind": "onnx"}, r"judge\.onnx\.model"),
        ({"kind": "onnx", "onnx": {"model": "nowhere.onnx"}}, "there is no such file"),
    ],
)
def test_what_is_missing_is_named(judge: dict[str, Any], named: str) -> None:
    """Before a worker starts."""
    with pytest.raises(ConfigurationError, match=named):
        judge_of(load_settings(judge=judge))


@pytest.mark.parametrize(("judge", "runs"), [({}, False), (SERVER, True)])
async def test_all_roles_have_a_judge_where_one_is_configured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], judge: dict[str, Any], *, runs: bool
) -> None:
    """Beside those that always run; and where the page is, is told."""
    started: list[WorkerRole] = []

    async def note(role: WorkerRole, _environment: object, _stop: object) -> None:
        started.append(role)

    monkeypatch.setattr(working, "_keep_running", note)
    await working._supervise(load_settings(judge=judge), asyncio.Event())

    assert (WorkerRole.JUDGE in started, WorkerRole.SESSIONS in started) == (runs, True)
    assert capsys.readouterr().err.endswith(" http://127.0.0.1:8702/live/\n")


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
