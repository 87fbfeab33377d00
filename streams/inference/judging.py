"""One judgement: what a judge is given to read, and what goes back to the session that asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import structlog

from models.errors import JudgeFailed
from models.events import JudgementRequested, TurnsJudged
from models.events.base import NAME_CHARS
from streams.observe.telemetry import metrics
from streams.ports import Judge

log = structlog.get_logger(__name__)


async def answer(
    judge: Judge,
    request: JudgementRequested,
    *,
    within: timedelta,
    clock: Callable[[], float] = time.monotonic,
) -> TurnsJudged:
    """Have the turns of an alert judged. Always an answer; where the judge has none, why.

    The same request answered again has the same place in event time, so a repeat puts nothing off.

    Args:
        judge: Who judges.
        request: The alert, and its last turns.
        within: How long it may take.
        clock: Seconds that only grow.
    """
    probability, failure, began_s = None, "", clock()
    try:
        probability = await judge.judge(request.turns, within=within)
    except JudgeFailed as error:
        failure = error.reason
        log.warning("turns_not_judged", reason=failure, judge=judge.name, turns=len(request.turns))
    elapsed_s = clock() - began_s
    metrics.counter("judgements_total", result=failure or "answered").inc()
    metrics.histogram("judgement_seconds").observe(elapsed_s)
    return TurnsJudged(
        session_id=request.session_id,
        timestamp=request.timestamp,
        alert_id=request.alert_id,
        judge=judge.name[:NAME_CHARS],
        probability=probability,
        failure=failure,
        elapsed_ms=round(elapsed_s * 1000),
    )
