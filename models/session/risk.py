"""What one input does to the risk of an open session: profile, judgement, mode and alert."""

from __future__ import annotations

from models.events import AlertAcknowledged, Mode, Role, Turn, TurnsJudged
from models.events.ids import named_id
from models.policy import Policy
from models.risk.alerts import Cause, Situation, acknowledge, after_turn, judged
from models.risk.modes import next_mode
from models.risk.sequence.observation import Observation
from models.session.outbox import Outbox
from models.session.profile import Seen, insert_risk, observe_behaviour
from models.session.risk_outputs import RiskEmission
from models.session.state import Open, SessionState
from models.state.vectors import Mark, quantise
from models.text.features import is_refusal
from models.text.keywords import distinct_topics

_UPSTREAM = "upstream"
_RULES = "rules"


class RiskStep:
    """One input on its way through the risk of a session.

    Args:
        state: The session.
        head: Its head.
        outbox: Of the input.
        emission: Takes what is told of risk.
        policy: The rules.
    """

    def __init__(self, state: SessionState, head: Open, outbox: Outbox, emission: RiskEmission, policy: Policy) -> None:
        self._state = state
        self._head = head
        self._item = outbox.item
        self._timestamp = outbox.timestamp
        self._emission = emission
        self._policy = policy

    def count(self, turn: Turn) -> tuple[float | None, bool]:
        """Count a turn's risk and behaviour; gives the risk that counts, and whether the mode changed by it."""
        head, policy = self._head, self._policy
        behaves = turn.role in policy.risk.scored_roles
        risk = _bounded(turn.risk if turn.risk is not None or not behaves else self._item.risk)
        if risk is not None:
            insert_risk(head, turn.turn, risk, policy.risk.trajectory_window)
        vector = None if self._item.vector is None else quantise(self._item.vector)
        asked = head.last_user_turn  # Before the turn itself is one, where the assistant's are scored too.
        refuses = turn.role is Role.ASSISTANT and turn.turn > asked >= 0 and is_refusal(turn.content)
        if head.alert is None and (behaves or risk is not None):
            self._dismiss_judge()
        if behaves:
            seen = observe_behaviour(self._state, head, turn, vector, risk=risk or 0.0, policy=policy)
            self._observe(turn, seen)
        if refuses:
            self._note_refusal(asked)
        # A turn that is neither scored nor behaviour moves no signal but by the count it is divided by.
        if not behaves and risk is None:
            return None, False
        self._weigh(turn)
        score = self._emission.score
        changed_mode = self._move_mode(score)
        if risk is not None:
            source = _RULES if turn.risk is None else _UPSTREAM
            head.risk_points.append((turn.turn, self._timestamp, risk, score, head.mode, source))
        return risk, changed_mode

    def move_alert(self, turn: Turn, risk: float | None) -> Cause | None:
        """What a counted turn of this risk does to the session's alert."""
        head, at = self._head, self._item.position
        # Where a model judges, the scorer's risk of one turn is one ground among others, no alert by itself.
        alarming = risk if risk is None or turn.risk is not None or not self._judges() else None
        session_id = self._item.event.session_id
        alert, cause = after_turn(
            head.alert,
            Situation(head.latest_at, head.mode, head.scored_turns, alarming, self._enough_evidence()),
            self._policy.alerts,
            lambda: named_id("alert", session_id, at.topic, str(at.partition), str(at.offset)),
        )
        if cause == "raised" and self._app_is_allowed():
            return None
        head.alert = alert
        if alert is None or cause is None:
            return None
        head.alerts_raised += cause == "raised"
        self._emission.alert(alert, cause)
        if cause in ("raised", "worsened") and self._policy.escalation.ask_judge and self._judges():
            self._emission.judgement_request(alert)
        if cause == "resolved":
            head.alert = None
        return cause

    def acknowledge(self, event: AlertAcknowledged) -> None:
        """Note that somebody looks at the alert."""
        self._head.alert, cause = acknowledge(self._head.alert, event.alert_id)
        if self._head.alert is not None and cause is not None:
            self._emission.alert(self._head.alert, cause)
            self._emission.profile(still_open=True)

    def take_judgement(self, event: TurnsJudged) -> None:
        """Weigh the present alert anew with what a slower judge says. No answer, the same, another alert: nothing."""
        head, judgement = self._head, self._state.judged(self._policy)
        if head.alert is None or head.alert.alert_id != event.alert_id:
            return
        if event.probability is None or judgement is None:
            return
        if not judgement.hear(event.probability):
            return
        self._move_mode(judgement.probability)
        head.alert, cause = judged(head.alert, head.mode, head.latest_at)
        self._emission.alert(head.alert, cause)
        self._emission.profile(still_open=True)

    def _observe(self, turn: Turn, seen: Seen) -> None:
        """Show a user's turn to the sequence signals, where a model judges."""
        escalating, risk = self._state.escalating(self._policy), _bounded(self._item.risk)
        if escalating is None or risk is None or turn.role is not Role.USER:
            return
        if self._topic_is_allowed(turn.app_id, seen):
            escalating.pass_over()
            return
        observation = Observation(turn.turn, risk, seen.features, seen.marks, seen.nearness, escalating.refused)
        escalating.observe(observation, self._timestamp, self._head.turn_count)

    def _dismiss_judge(self) -> None:
        """What was said of an alert that is resolved says nothing of what comes now."""
        escalating = self._state.escalating(self._policy)
        if escalating is not None:
            escalating.hear(None)

    def _note_refusal(self, asked: int) -> None:
        self._state.vectors(self._policy.memory.recent_vectors).mark(asked, Mark.REFUSED)
        escalating = self._state.escalating(self._policy)
        if escalating is not None:
            escalating.refuse()

    def _weigh(self, turn: Turn) -> None:
        escalating = self._state.escalating(self._policy)
        if escalating is None:
            return
        upstream = None
        if turn.risk is not None or escalating.upstream is not None:
            upstream = self._emission.measured.combination.score
        escalating.weigh(turn.turn, upstream)

    def _move_mode(self, score: float) -> bool:
        """Whether the score changes the mode, which is noted."""
        head = self._head
        mode = next_mode(head.mode, score, head.turns_in_mode, self._policy.modes, head.app_id)
        if mode is head.mode:
            return False
        head.mode, head.turns_in_mode = mode, 0
        head.mode_transitions.append((head.last_turn, mode))
        del head.mode_transitions[: -self._policy.profile.mode_transitions]
        return True

    def _judges(self) -> bool:
        return self._state.judged(self._policy) is not None

    def _enough_evidence(self) -> bool | None:
        """Whether enough turns raised the judgement, or are scored where upstream risks alone demand an alert."""
        if self._head.mode in (Mode.CALM, Mode.WATCH):
            return None  # There is nothing to be raised by the mode.
        judgement = self._state.judged(self._policy)
        if judgement is None:
            return None  # The seed's formulas decide.
        alerts = self._policy.alerts
        if judgement.evidence_turns >= alerts.min_evidence_turns:
            return True
        threshold = self._policy.modes.thresholds(self._head.app_id)[1].enter
        demanded = judgement.upstream is not None and judgement.upstream >= threshold
        return demanded and self._head.scored_turns >= alerts.min_scored_turns

    def _app_is_allowed(self) -> bool:
        """Whether nobody is woken for the app. A session in which several apps spoke is not only this one's."""
        app_id = self._head.app_id
        whole = any(not allowed.topics and allowed.app_id == app_id for allowed in self._policy.alerts.allow)
        return whole and not self._head.other_app

    def _topic_is_allowed(self, app_id: str, seen: Seen) -> bool:
        """Whether the turn is about what the app may be about, and does not try to rewrite the rules."""
        allow = self._policy.alerts.allow
        if not allow or seen.features.meta_instruction:
            return False
        named = distinct_topics(seen.words, self._policy.risk.risky_topics)
        return any(not named.keys().isdisjoint(each.topics) for each in allow if each.app_id in ("", app_id))


def _bounded(risk: float | None) -> float | None:
    """Scorers are plug-ins: what they give outside 0-1 must not poison the sums, nor NaN, which intake lets in none."""
    if risk is None:
        return None
    return float(risk) if 0.0 <= risk <= 1.0 else float(risk > 1.0)
