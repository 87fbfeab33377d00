"""Checks of `turntide doctor` for what judges conversations: the scorer, and the slower judge."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from jobs.verdict import Status, Verdict
from streams.settings import Settings

_NOBODY = "doctor"
_GREETING = "Good morning!"


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
        return Verdict(Status.OK, f"{detail}; the seed's formulas judge sessions")
    if unknown := sorted(model.weights.keys() - set(SIGNAL_NAMES)):
        return Verdict(
            Status.FAIL,
            f"the policy's escalation.model weighs signals that there are not: {', '.join(unknown)}",
            "leave escalation.model out of the policy file: that of the scorer's file is taken",
        )
    if isinstance(scorer, RuleScorer) or model.name != scorer.name:
        return Verdict(
            Status.WARN,
            f"{detail}; the policy's escalation.model is {model.name}, learnt with another scorer",
            "leave escalation.model out of the policy file, or name its scorer in TURNTIDE_SCORER__FILE",
        )
    return Verdict(Status.OK, f"{detail}; trained on {scorer.model.file.card.trained_on}, judges sessions")


def check_judge(settings: Settings) -> Verdict:
    """Has it judge a greeting: whether it answers at all, in a form that is read, and how fast."""
    from models.events import JudgedTurn, Role
    from streams.judges.configured import configured_judge

    judge = configured_judge(settings.judge)
    if judge is None:
        return Verdict(Status.OK, "none configured, the built-in judgement stands alone")

    async def ask() -> float:
        try:
            return await judge.judge([JudgedTurn(0, Role.USER, _GREETING)], within=settings.judge.timeout)
        finally:
            await judge.close()

    began = time.monotonic()
    probability = asyncio.run(ask())
    took_ms = (time.monotonic() - began) * 1000
    return Verdict(Status.OK, f"{judge.name} answers in {took_ms:.0f} ms, a greeting is harmful by {probability:.2f}")
