"""Role judge: has the last turns of alerts read by a slower model, and sends its answers back to their sessions.

It reads what the sessions role asks on `judgement-requests.v1`: the built-in alert has gone out by then, and a judge
that is slow or away delays none. An answer goes to `turns.v1`, where the fold weighs the alert anew; one that comes
again sets the same signal once more. A request that nobody waits for any more is passed over: where there are several
of a session the last has the newest turns, and one that is older than `judge.max_age` comes too late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import timedelta

import structlog

from models.errors import JudgeFailed
from models.events import JudgementRequested, SessionName, TurnsJudged
from models.events.base import NAME_CHARS
from models.events.topics import JUDGEMENTS
from streams.observe.telemetry import metrics
from streams.ports import Judge
from streams.roles.answering import AnsweringRole, ReceivedRequest
from streams.settings import Settings

log = structlog.get_logger(__name__)


class JudgeRole(AnsweringRole[JudgementRequested, TurnsJudged]):
    """Has alerts judged; `now` gives seconds since the epoch, as the clocks of brokers and producers do."""

    name = "judge"
    sources = (JUDGEMENTS,)
    requests = (JudgementRequested,)

    def __init__(self, settings: Settings, judge: Judge, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(settings, http_port=settings.http.judge_port, at_once=settings.judge.at_once)
        self._judge = judge
        self._now = now

    def wanted(
        self, asked: Iterable[ReceivedRequest[JudgementRequested]]
    ) -> Iterable[ReceivedRequest[JudgementRequested]]:
        """The last request of each session."""
        latest: dict[SessionName, ReceivedRequest[JudgementRequested]] = {}
        for each in asked:
            session = SessionName(each.request.app_id, each.request.session_id)
            if session in latest:
                metrics.counter("judgements_total", result="superseded").inc()
            latest[session] = each
        return latest.values()

    async def answer(self, asked: ReceivedRequest[JudgementRequested]) -> TurnsJudged | None:
        """By the judge, if it is not too late."""
        settings = self.settings.judge
        if self._now() - asked.record.timestamp / 1000 > settings.max_age.total_seconds():
            metrics.counter("judgements_total", result="expired").inc()
            return None
        return await judged(self._judge, asked.request, within=settings.timeout)


async def judged(
    judge: Judge,
    request: JudgementRequested,
    *,
    within: timedelta,
) -> TurnsJudged:
    """Have the turns of an alert judged. Always an answer; where the judge has none, why.

    The same request answered again has the same place in event time, so a repeat puts nothing off.
    """
    probability, failure, began_s = None, "", time.monotonic()
    try:
        probability = await judge.judge(request.turns, within=within)
    except JudgeFailed as error:
        failure = error.reason
        log.warning("turns_not_judged", reason=failure, judge=judge.name, turns=len(request.turns))
    elapsed_s = time.monotonic() - began_s
    metrics.counter("judgements_total", result=failure or "answered").inc()
    metrics.histogram("judgement_seconds").observe(elapsed_s)
    return TurnsJudged(
        session_id=request.session_id,
        app_id=request.app_id,
        timestamp=request.timestamp,
        alert_id=request.alert_id,
        judge=judge.name[:NAME_CHARS],
        probability=probability,
        failure=failure,
        elapsed_ms=round(elapsed_s * 1000),
    )
