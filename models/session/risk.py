"""Risk step of one input to an open session: profile, judgement, mode and alert."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from msgspec import Struct

from models.events import AlertAcknowledged, AlertTriaged, Mode, Role, Turn, TurnsJudged
from models.events.ids import named_id
from models.policy import Policy
from models.risk.alerts import (
    Cause,
    OpenAlert,
    Situation,
    acknowledge,
    after_turn,
    end_snooze,
    judged,
    next_mode,
    resolve,
    triage,
)
from models.risk.escalation import Escalating
from models.risk.harm import gathered
from models.risk.sequence import Observation
from models.session.profile import RiskMeasures, TurnFindings, insert_risk, measure, observe_behaviour
from models.session.state import Open, SessionState
from models.state.vectors import TurnMark, quantise
from models.text.features import is_refusal
from models.text.summary import distinct_topics
from models.wire.arrival import SessionInput

_UPSTREAM = "upstream"
_RULES = "rules"


class Effects(Struct, frozen=True, gc=False):
    """Effects of an input on risk, besides the counts in the session's head; emitted with the session's state then.

    Attributes:
        risk: Counted risk of the turn.
        mode_changed: Whether the mode of the session changed.
        alert: The changed alert, and the cause.
        asks_judge: Whether a slower judge must read the recent turns.
    """

    risk: float | None = None
    mode_changed: bool = False
    alert: tuple[OpenAlert, Cause] | None = None
    asks_judge: bool = False


class RiskStep:
    """Application of one input to the risk of a session."""

    def __init__(
        self, state: SessionState, head: Open, item: SessionInput, timestamp: datetime, policy: Policy
    ) -> None:
        self.state = state
        self.head = head
        self.item = item
        self.timestamp = timestamp
        self.policy = policy

    @cached_property
    def measured(self) -> RiskMeasures:
        """The source's signals, computed once for each input, after everything that changes them was counted."""
        return measure(self.head, self.policy)

    @property
    def judged(self) -> Escalating | None:
        """The calibrated judgement; None if the source formulas decide."""
        return self.state.judged(self.policy)

    @property
    def score(self) -> float:
        """Score for the mode, 0-1: the calibrated probability, or the source formulas' score if no model judges."""
        judged = self.judged
        return self.measured.combination.score if judged is None else judged.probability

    def turn(self, turn: Turn) -> Effects:
        """Count a turn's risk and behaviour, then update mode and alert."""
        risk, mode_changed = self._count(turn)
        alert = self._move_alert(turn, risk)
        worse = alert is not None and alert[1] in ("raised", "worsened")
        asks_judge = worse and self.policy.escalation.ask_judge and self.judged is not None
        return Effects(risk, mode_changed, alert, asks_judge)

    def attend(self, event: AlertAcknowledged | AlertTriaged) -> Effects:
        """Apply an acknowledgement or triage of the alert."""
        if isinstance(event, AlertTriaged):
            alert, cause = triage(self.head.alert, event, self._now, self.score)
        else:
            alert, cause = acknowledge(self.head.alert, event.alert_id, self.score)
        self.head.alert = alert
        return Effects() if alert is None or cause is None else Effects(alert=(alert, cause))

    def judge(self, event: TurnsJudged) -> Effects:
        """Apply a slower judge's answer to the current alert. No effect: no answer, an equal one, another alert."""
        head, judgement = self.head, self.judged
        if head.alert is None or head.alert.alert_id != event.alert_id:
            return Effects()
        if event.probability is None or judgement is None or not judgement.hear(event.probability):
            return Effects()
        mode_changed = self._move_mode(judgement.probability)
        head.alert, cause = judged(head.alert, head.mode, head.latest_at, judgement.probability)
        return Effects(mode_changed=mode_changed, alert=(head.alert, cause))

    def end_snooze(self, deadline: datetime) -> Effects:
        """End the snooze of the current alert, after the watermark passed it; no effect for another snooze."""
        alert = self.head.alert
        if alert is None or alert.snoozed_until != deadline:
            return Effects()
        self.head.alert, cause = end_snooze(alert, self._now, self.score)
        return Effects(alert=(self.head.alert, cause))

    @property
    def _now(self) -> datetime:
        return max(self.timestamp, self.item.watermark)

    def close(self) -> Effects:
        """Resolve the alert of the ended session."""
        alert = self.head.alert
        return Effects() if alert is None else Effects(alert=(resolve(alert), "resolved"))

    def _count(self, turn: Turn) -> tuple[float | None, bool]:
        """Count a turn; returns its counted risk, and whether the mode changed."""
        head, policy = self.head, self.policy
        behaves = turn.role in policy.risk.scored_roles
        reads = not behaves or self._reads()
        own = self.item.risk if behaves and reads and policy.risk.source == "scorer" else None
        risk = _bounded(own if turn.risk is None else turn.risk)
        if reads and self.item.harms:
            head.harms = gathered(head.harms, self.item.harms, _bounded(self.item.risk) or 0.0)
        if risk is not None:
            insert_risk(head, turn.turn, risk, policy.risk.trajectory_window)
        asked = head.last_user_turn  # Before the turn itself is one, where the assistant's are scored too.
        if head.alert is None and (behaves or risk is not None) and self._escalating is not None:
            self._escalating.hear(None)  # Said of an alert that is resolved, it says nothing of what comes now.
        if behaves:
            vector = None if self.item.vector is None else quantise(self.item.vector)
            seen = observe_behaviour(self.state, head, turn, vector, risk=risk or 0.0, policy=policy)
            self._observe(turn, seen, reads=reads)
        if turn.role is Role.ASSISTANT and turn.turn > asked >= 0 and is_refusal(turn.content):
            self._note_refusal(asked)
        # A turn that is neither scored nor behaviour moves no signal but by the count it is divided by.
        if not behaves and risk is None:
            return None, False
        self._weigh(turn)
        score = self.score
        mode_changed = self._move_mode(score)
        if risk is not None:
            source = _RULES if turn.risk is None else _UPSTREAM
            head.risk_points.append((turn.turn, self.timestamp, risk, score, head.mode, source))
        return risk, mode_changed

    def _move_alert(self, turn: Turn, risk: float | None) -> tuple[OpenAlert, Cause] | None:
        head, at, session_id = self.head, self.item.position, self.item.event.session_id
        # Measuring is dear: not for a turn without a risk where no alert is, nor can be.
        idle = risk is None and head.alert is None and head.mode in (Mode.CALM, Mode.WATCH)
        enough, score = self._enough_evidence(), 0.0 if idle else self.score
        # Where a model judges, the scorer's risk of one turn is one ground among others, no alert by itself.
        alarming = risk if risk is None or turn.risk is not None or self.judged is None else None
        alert, cause = after_turn(
            head.alert,
            Situation(head.latest_at, head.mode, head.scored_turns, alarming, enough, score, head.peak_risk),
            self.policy.alerts,
            lambda: named_id("alert", session_id, at.topic, str(at.partition), str(at.offset)),
        )
        if cause == "raised" and self._app_is_allowed():
            return None
        head.alert = None if cause == "resolved" else alert
        head.alerts_raised += cause == "raised"
        return None if alert is None or cause is None else (alert, cause)

    def _reads(self) -> bool:
        """Whether the scorer reads the turn's language; a turn too short for detection has the last turn's language.

        A short, risky turn always counts, so that a greeting in another language cannot hide a request.
        """
        head, item, policy = self.head, self.item, self.policy.risk
        head.language = item.language or head.language
        stands_out = not item.language and (_bounded(item.risk) or 0.0) >= policy.risky_turn
        head.supported = policy.reads(head.language) or stands_out
        if not head.supported:
            head.unsupported = {**head.unsupported, head.language: head.unsupported.get(head.language, 0) + 1}
        return head.supported

    def _observe(self, turn: Turn, seen: TurnFindings, *, reads: bool) -> None:
        """Observe a user's turn with the sequence signals, if a model judges."""
        escalating, risk = self._escalating, _bounded(self.item.risk)
        if escalating is None or risk is None or turn.role is not Role.USER:
            return
        if not reads or self._topic_is_allowed(turn.app_id, seen):
            escalating.pass_over()
            return
        refused, reading = escalating.kept.refused, self.item.reading
        observation = Observation(turn.turn, risk, seen.features, seen.marks, seen.nearness, refused, reading)
        risky = max(risk, _bounded(turn.risk) or 0.0) >= self.policy.risk.risky_turn
        escalating.observe(observation, self.timestamp, self.head.turn_count, risky=risky)

    def _note_refusal(self, asked: int) -> None:
        self.state.vectors(self.policy.memory.recent_vectors).mark(asked, TurnMark.REFUSED)
        if self._escalating is not None:
            self._escalating.refuse()

    def _weigh(self, turn: Turn) -> None:
        escalating = self._escalating
        if escalating is None:
            return
        sent_along = turn.risk is not None or escalating.kept.upstream is not None
        escalating.weigh(turn.turn, self.measured.combination.score if sent_along else None)

    def _move_mode(self, score: float) -> bool:
        """Update the mode by the score; returns whether it changed."""
        head = self.head
        mode = next_mode(head.mode, score, head.turns_in_mode, self.policy.modes, head.app_id)
        if mode is head.mode:
            return False
        head.mode, head.turns_in_mode = mode, 0
        head.mode_transitions.append((head.last_turn, mode))
        del head.mode_transitions[: -self.policy.profile.mode_transitions]
        return True

    @property
    def _escalating(self) -> Escalating | None:
        return self.state.escalating(self.policy)

    def _enough_evidence(self) -> bool | None:
        """Whether enough turns are evidence, or are scored if only upstream risks demand an alert."""
        if self.head.mode in (Mode.CALM, Mode.WATCH):
            return None  # There is nothing to be raised by the mode.
        judgement, alerts = self.judged, self.policy.alerts
        if judgement is None:
            return None  # The source formulas decide.
        kept = judgement.kept
        if kept.evidence_turns >= alerts.min_evidence_turns:
            return True
        threshold = self.policy.modes.thresholds(self.head.app_id)[1].enter
        demanded = kept.upstream is not None and kept.upstream >= threshold
        return demanded and self.head.scored_turns >= alerts.min_scored_turns

    def _app_is_allowed(self) -> bool:
        """Whether the policy allows the whole app, so that it raises no alerts."""
        app_id = self.head.app_id
        return any(not allowed.topics and allowed.app_id == app_id for allowed in self.policy.alerts.allow)

    def _topic_is_allowed(self, app_id: str, seen: TurnFindings) -> bool:
        """Whether the turn is about an allowed topic of the app, without an attempt to change the rules."""
        allow = self.policy.alerts.allow
        if not allow or seen.features.meta_instruction:
            return False
        named = distinct_topics(seen.words, self.policy.risk.risky_topics)
        return any(not named.keys().isdisjoint(each.topics) for each in allow if each.app_id in ("", app_id))


def _bounded(risk: float | None) -> float | None:
    """Bound a scorer's risk: values outside 0-1, and NaN, which intake refuses, must not reach the sums."""
    if risk is None:
        return None
    return float(risk) if 0.0 <= risk <= 1.0 else float(risk > 1.0)
