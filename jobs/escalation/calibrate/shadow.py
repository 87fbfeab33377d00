"""Shadow mode: traffic judged by a policy that pages nobody."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.figures import span_of
from jobs.escalation.backtest.judging import JudgedSession, judge, selected
from jobs.escalation.backtest.traffic import Opening
from jobs.replay.command import folding
from models.policy import Policy
from streams.ports import Embedder, TurnScorer


class ShadowSessions(Struct, frozen=True):
    """Sessions as a policy sees them.

    Attributes:
        traffic: What was judged.
        span: Event time over which it goes; None: times are made up.
        learnt_from: Sources of it that the scorer was trained on.
    """

    traffic: str
    sessions: list[JudgedSession]
    span: timedelta | None
    learnt_from: list[str] = []


class Shadow(Struct, frozen=True):
    """The same traffic, for one policy after another.

    Attributes:
        opening: Gives it.
        embedder: The one that folds sessions.
        scorer: Of turns.
        since: Only sessions that began then or later.
        until: Only sessions that began before.
        watched_for: How long live traffic was read; None: it is not live. Then only sessions count that were seen from
            their first turn (0 or 1): of one that was under way already the score is not known.
    """

    opening: Opening
    embedder: Embedder
    scorer: TurnScorer
    since: datetime | None = None
    until: datetime | None = None
    watched_for: timedelta | None = None

    def judged(self, policy: Policy) -> ShadowSessions:
        """Fold all of it, with a progress bar."""
        contender = Contender(policy, self.scorer)
        with self.opening() as traffic, folding(traffic.count) as progress:
            (judging,) = judge(traffic, [contender], self.embedder, progress)
        found = selected(judging.judged(), since=self.since, until=self.until)
        if self.watched_for is not None:
            return ShadowSessions(traffic.name, [each for each in found if each.first_turn <= 1], self.watched_for)
        if traffic.timed:
            return ShadowSessions(traffic.name, found, span_of(found))
        return ShadowSessions(traffic.name, found, None, contender.learnt_from([each.app_id for each in found]))
