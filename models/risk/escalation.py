"""Escalation state of a session, turn by turn: its signals, the share of each turn, and other judgements.

Stored as part `e` of a session that a model judges (`Policy.judging_model`), when it changed. The state has the signals
before the last message, and that message: a further piece of it can still arrive and replace it, and the current
signals are one observation away.

| input | rule |
|---|---|
| a scored user turn | observed in order of arrival, with any number |
| duplicate, late, or without a risk of the scorer | not observed |
| consecutive user turns within `merge_within` of the first | one message: its highest risk, all of its features |
| about an allowed topic | not weighed |
| refusal by the assistant | an input of the next user turn |
| no risky turn among the last `around_turns` | signals of the course count up to `alone_bound` |
| other weights or rules than at the last turn | earlier turns are weighed again, as one sum |
| a second reader's reading of it | observed with it, if one is configured |
| a slower judge's answer | counts as long as its alert exists |
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct, structs

from models.events import Contribution, Escalation, TurnShare
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.policy.stream import ZERO
from models.risk.combination import JUDGE, UNITS, UPSTREAM, Grounds, Judgement, judge, probability_of
from models.risk.reading import READER, Readings
from models.risk.sequence import Observation, SequenceSignals
from models.state.parts import Parts
from models.text.features import Features

PART = "e"


class Piece(Struct, array_like=True, frozen=True, gc=False):
    """A user turn, or all pieces so far of a message that was sent as several turns within seconds.

    New fields are only appended.

    Attributes:
        turn: Number of the latest piece; fields not listed here are as in `Observation`.
        features: Bits, in the order of the fields of `Features`.
        at: Event time of the latest piece.
        counted: Counted turns of the session up to it, to detect turns in between.
        begun_at: Event time of the first piece; None with a single piece.
    """

    turn: int
    risk: float
    features: int
    marks: int
    nearness: float | None
    refused: bool
    at: datetime
    counted: int
    begun_at: datetime | None = None

    def continues(self, before: Piece, within: timedelta) -> bool:
        """Whether it is a further piece of the message `before`, by the time since its first piece.

        By the time since the latest piece, turns sent fast enough would be one endless message.
        """
        begun_at = before.begun_at or before.at
        return within > ZERO and self.counted == before.counted + 1 and abs(self.at - begun_at) <= within

    def joined_to(self, before: Piece) -> Piece:
        """The message with this piece added; the turn before the message is the one before its first piece."""
        return structs.replace(
            self,
            risk=max(self.risk, before.risk),
            features=self.features | before.features,
            marks=self.marks | before.marks,
            nearness=before.nearness,
            refused=before.refused,
            begun_at=before.begun_at or before.at,
        )

    def observation(self) -> Observation:
        """The observation for the signals."""
        return Observation(self.turn, self.risk, _features_of(self.features), self.marks, self.nearness, self.refused)


def bits_of(features: Features) -> int:
    """Features as bits; the first field is the lowest bit.

    >>> bits_of(Features(question=True, imperative=True))
    5
    """
    return sum([flag << place for place, flag in enumerate(structs.astuple(features))])


def _features_of(bits: int) -> Features:
    return Features(*[bits >> place & 1 == 1 for place in range(len(Features.__struct_fields__))])


class KeptJudgement(Struct, array_like=True):
    """Layout of the part. New fields are only appended."""

    unused_signals: bytes = b""
    """Unused position of the signals of earlier releases: their sessions continue with the last message."""
    message: Piece | None = None
    """The last observed message."""
    unused: int = 0
    """Unused position of a removed field."""
    log_odds: int = 0
    """Log-odds of the last judgement in ten-thousandths, like the following."""
    shares: list[tuple[int, int]] = []
    """Last turns with their shares, in order of arrival."""
    earlier: int = 0
    """Shares before those, and those of a judge."""
    evidence_turns: int = 0
    """Turns of the whole session with a positive share."""
    begun: bool = False
    """Whether a user turn was observable."""
    refused: bool = False
    """Whether the assistant refused since the last user turn."""
    upstream: float | None = None
    judge: float | None = None
    risky_ago: int = 1
    """Weighed turns since a risky one, including it; 0: none nearby. Unknown for state of an earlier release."""
    before: bytes = b""
    """The signals before `message`, encoded; empty: their initial state."""
    readings: Readings | None = None
    """Readings of a second reader, including `message`; None, and not stored, without any."""


_decode = msgspec.msgpack.Decoder(KeptJudgement).decode
_decode_signals = msgspec.msgpack.Decoder(SequenceSignals).decode
_encode = msgspec.msgpack.Encoder().encode


class Escalating:
    """The judgement of one open session. Reads and writes its own part.

    Attributes:
        kept: Its stored state; only this class changes it.
    """

    def __init__(self, parts: Parts, model: CombinationModel, policy: EscalationPolicy) -> None:
        self._parts = parts
        self._model = model
        self._policy = policy
        stored = parts.get(PART)
        self.kept = kept = KeptJudgement(risky_ago=0) if stored is None else _decode(stored)
        self._signals: SequenceSignals | None = None
        self._changed = False
        kept.log_odds = self.judgement().log_odds
        gained = kept.log_odds - model.base
        earlier = gained - sum(share for _, share in kept.shares)
        if earlier != kept.earlier:  # Other weights, signals or rules than the last turn was judged by.
            kept.earlier = earlier
            kept.evidence_turns = max(kept.evidence_turns, int(gained > 0))

    def flush(self) -> None:
        """Write the part if anything changed."""
        if self._changed:
            whole = structs.astuple(self.kept)
            self._parts.put(PART, _encode(whole if self.kept.readings else whole[:-1]))
            self._changed = False

    @property
    def probability(self) -> float:
        """Probability that the session escalates, 0-1, after the last weighed turn."""
        return probability_of(self.kept.log_odds)

    @property
    def values(self) -> Mapping[str, float]:
        """Values of the sequence signals by name, each 0-1."""
        return self._grounds().values

    def evidence(self, risks: Mapping[int, float]) -> dict[int, float]:
        """The last turns with a positive share of the log-odds, and their shares.

        The session's first turn sets the first level, so its share is always positive: it counts as evidence only from
        `first_evidence_risk`.

        Args:
            risks: Risk of turns by number.
        """
        kept = self.kept
        found = {turn: share / UNITS for turn, share in kept.shares if share > 0}
        if kept.shares and not kept.earlier and risks.get(kept.shares[0][0], 0.0) < self._policy.first_evidence_risk:
            found.pop(kept.shares[0][0], None)
        return found

    def refuse(self) -> None:
        """Record a refusal by the assistant."""
        self.kept.refused = self._changed = True

    def pass_over(self) -> None:
        """Record a user turn that is not weighed."""
        self.kept.begun, self.kept.refused, self._changed = True, False, True

    def observe(self, seen: Observation, at: datetime, counted: int, *, risky: bool) -> None:
        """Show a user turn to the signals; `weigh` it afterwards.

        Args:
            seen: The turn with the scorer's risk, also if a producer sent another one.
            at: Its event time.
            counted: Counted turns of the session up to and including it.
            risky: Whether the turn alone is risky.
        """
        kept = self.kept
        features = bits_of(seen.features)
        message = Piece(seen.turn, seen.risk, features, seen.marks, seen.nearness, seen.refused, at, counted)
        share, continues = 0, False
        if kept.message is not None and message.continues(kept.message, self._policy.merge_within):
            continues = True
            message = message.joined_to(kept.message)
            self._signals = _signals_from(kept.before)
            _, share = kept.shares.pop()
        else:
            kept.before = _encode(self._present_signals())
            kept.risky_ago = kept.risky_ago + 1 if 0 < kept.risky_ago < self._policy.around_turns else 0
        self._present_signals().observe(message.observation() if continues else seen)
        if seen.reading is not None:
            kept.readings = kept.readings or Readings()
            kept.readings.observe(seen.reading, continues=continues)
        kept.shares.append((seen.turn, share))
        kept.risky_ago = 1 if risky else kept.risky_ago
        kept.message, kept.begun, kept.refused, self._changed = message, True, False, True

    def weigh(self, turn: int, upstream: float | None) -> None:
        """Update the judgement after a counted turn; the change is the turn's share.

        Args:
            turn: Its number.
            upstream: Score of the source formulas after it; None if no turn of the session came with a risk.
        """
        kept = self.kept
        self._changed |= kept.upstream != upstream
        kept.upstream = upstream
        added = self._judge_anew()
        if not kept.begun:
            kept.earlier += added  # As a session that is read again would have it.
            return
        if not kept.shares or kept.shares[-1][0] != turn:
            if not added:
                return
            kept.shares.append((turn, 0))
        _, before = kept.shares.pop()
        share = before + added
        kept.shares.append((turn, share))
        kept.evidence_turns += (share > 0) - (before > 0)
        surplus = max(0, len(kept.shares) - self._policy.kept_turns)
        kept.earlier += sum(share for _, share in kept.shares[:surplus])
        del kept.shares[:surplus]

    def hear(self, probability: float | None) -> bool:
        """Apply a slower judge's answer, or withdraw it (None); the change belongs to no turn's share.

        Returns:
            Whether the answer changed.
        """
        kept = self.kept
        if kept.judge == probability:
            return False
        kept.judge, self._changed = probability, True
        kept.earlier += self._judge_anew()
        return True

    def judgement(self) -> Judgement:
        """The current judgement, by signal."""
        return judge(self._grounds(), self._model, self._policy)

    def escalation(self, threshold: float) -> Escalation:
        """The judgement for alerts, strongest contribution first."""
        kept, grounds, whole = self.kept, self._grounds(), self.judgement()
        phrases = self._present_signals().phrases()
        phrases[UPSTREAM] = (
            f"with the risks that producers sent along, the seed's score is {grounds.value(UPSTREAM):.2f}"
        )
        phrases[READER] = f"a second reader finds harmful intent in the user's turns at {grounds.value(READER):.2f}"
        phrases[JUDGE] = f"a judge who read the last turns says {grounds.value(JUDGE):.2f}"
        contributions = []
        for name in sorted(filter(whole.parts.__getitem__, whole.parts), key=lambda name: -abs(whole.parts[name])):
            without = judge(grounds.without(name), self._model, self._policy).probability
            value, log_odds = grounds.value(name), whole.parts[name] / UNITS
            contributions.append(Contribution(name, value, log_odds, without, without >= threshold, phrases[name]))
        return Escalation(
            probability=whole.probability,
            log_odds=whole.log_odds / UNITS,
            base_log_odds=whole.base / UNITS,
            threshold=threshold,
            model=self._model.name,
            contributions=contributions,
            turns=[TurnShare(turn, share / UNITS) for turn, share in kept.shares],
            earlier_log_odds=kept.earlier / UNITS,
        )

    def _judge_anew(self) -> int:
        """Update the judgement; returns the change of the log-odds."""
        kept, log_odds = self.kept, self.judgement().log_odds
        added, kept.log_odds = log_odds - kept.log_odds, log_odds
        self._changed |= added != 0
        return added

    def _grounds(self) -> Grounds:
        kept = self.kept
        return Grounds(
            self._present_signals().values(),
            kept.upstream,
            kept.judge,
            risky=kept.risky_ago > 0,
            reader=None if kept.readings is None else kept.readings.value,
        )

    def _present_signals(self) -> SequenceSignals:
        if self._signals is None:
            kept = self.kept
            self._signals = _signals_from(kept.before)
            if kept.message is not None:
                self._signals.observe(kept.message.observation())
        return self._signals


def _signals_from(encoded: bytes) -> SequenceSignals:
    return _decode_signals(encoded) if encoded else SequenceSignals()
