"""The events a session emits of its risk: profiles, alerts, and what a slower judge is asked."""

from __future__ import annotations

from functools import cached_property

from models.events import AlertChanged, JudgementRequested, ModeTransition, ProfileUpdated, RiskPoint
from models.events.ids import named_id
from models.policy import Policy
from models.policy.digest import policy_digest
from models.risk.alerts import Alert, Cause
from models.risk.signals import suspicion_score
from models.session.explain import evidence, explain, explain_judgement
from models.session.outbox import Outbox
from models.session.profile import Measured, measure
from models.session.state import Open, SessionState


class RiskEmission:
    """What one fold emits of risk.

    Args:
        state: The session.
        head: Its head, which the outputs describe as it is when they are made.
        outbox: Where they go.
        policy: The rules.
    """

    def __init__(self, state: SessionState, head: Open, outbox: Outbox, policy: Policy) -> None:
        self._state = state
        self._head = head
        self._outbox = outbox
        self._policy = policy

    @cached_property
    def measured(self) -> Measured:
        """The seed's signals, measured once per input: first looked at when all that moves them has been counted."""
        return measure(self._head, self._policy)

    @property
    def score(self) -> float:
        """That moves the mode, 0-1: the calibrated probability, or the seed's score where no model judges."""
        judged = self._state.judged(self._policy)
        return self.measured.combination.score if judged is None else judged.probability

    def alert(self, alert: Alert, cause: Cause) -> None:
        """An alert changed."""
        head, policy, session_id = self._head, self._policy, self._outbox.item.event.session_id
        measured, judged = self.measured, self._state.judged(policy)
        signals = measured.combination.shares()
        ring = self._state.vectors(policy.memory.recent_vectors)
        if judged is None:
            escalation, shares = None, None
            reason = explain(head, signals, measured.slope, ring, policy)
        else:
            escalation, shares = judged.told(policy.modes.thresholds(head.app_id)[1].enter), judged.shares
            reason = explain_judgement(escalation)
        self._outbox.outputs.append(
            AlertChanged(
                **self._outbox.common("alert_changed"),
                alert_id=alert.alert_id,
                fingerprint=named_id("alert-fingerprint", session_id),
                status=alert.status,
                severity=alert.severity,
                cause=cause,
                reason=reason,
                score=self.score,
                mode=head.mode,
                signals=signals,
                slope=measured.slope,
                evidence=evidence(session_id, head, ring, policy.alerts.evidence_turns, shares),
                turn=head.last_turn,
                fired_at=alert.fired_at,
                notifications=alert.notifications,
                policy_version=policy.version,
                policy_digest=policy_digest(policy),
                escalation=escalation,
            )
        )

    def judgement_request(self, alert: Alert) -> None:
        """A slower judge is to read the turns at hand."""
        self._outbox.outputs.append(
            JudgementRequested(
                **self._outbox.common("judgement_requested"),
                alert_id=alert.alert_id,
                turn=self._head.last_turn,
                turns=self._state.buffer.judged(self._policy.escalation.judge_turn_chars),
            )
        )

    def profile(self, *, still_open: bool) -> None:
        """The profile as it is now; the risk points since the one before go with it."""
        head, policy = self._head, self._policy
        measured = self.measured
        counts = head.behaviour
        self._outbox.outputs.append(
            ProfileUpdated(
                **self._outbox.common("profile_updated"),
                open=still_open,
                turn_count=head.turn_count,
                last_turn=head.last_turn,
                duplicate_turns=head.duplicate_turns,
                late_turns=head.late_turns,
                started_at=head.started_at,
                peak_risk=head.peak_risk,
                mean_risk=head.mean_risk,
                slope=measured.slope,
                mode=head.mode,
                mode_transitions=[ModeTransition(turn, mode) for turn, mode in head.mode_transitions],
                question_count=counts.question_count,
                imperative_count=counts.imperative_count,
                topic_changes=counts.topic_changes,
                repeated_topics=dict(head.repeated_topics),
                probing_attempts=counts.probing_attempts,
                hypothetical_count=counts.hypothetical_count,
                meta_instruction_count=counts.meta_instruction_count,
                suspicion=suspicion_score(counts, head.turn_count, policy.risk.suspicion),
                score=self.score,
                signals=measured.combination.shares(),
                risk_points=[RiskPoint(*point) for point in head.risk_points],
            )
        )
        head.risk_points = []
        head.turns_since_profile = 0
