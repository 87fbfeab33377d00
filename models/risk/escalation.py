"""Escalation state of a session, turn by turn: its signals, what each turn added, and what others say of it.

Kept as part `e` of a session that a model judges (`Policy.judging_model`), written when it changed. What
is kept of the signals is what they were before the last message, and that message: another piece of it can still come
and take its place, and what they are now is always one observation away.

| input | rule |
|---|---|
| a scored user turn | observed in the order of arrival, whatever its number |
| duplicate, late, or without a risk of the scorer | not observed |
| user turns with none between, within `merge_within` of the first | one message: its highest risk, all that it does |
| about an allowed topic | passed over |
| refusal by the assistant | known to the next user turn |
| no risky turn among the last `around_turns` | signals of the course count up to `alone_bound` |
| weights or rules other than the last turn was judged by | what came before is weighed anew, as one sum |
| a slower judge's answer | stands as long as the alert that it is about |
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from msgspec import Struct

from models.events import Contribution, Escalation, TurnShare
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.combination import JUDGE, UNITS, UPSTREAM, Grounds, Judgement, judge, probability_of
from models.risk.message import Piece, bits_of
from models.risk.sequence.observation import Observation
from models.risk.sequence.signals import SequenceSignals
from models.state.parts import Parts

PART = "e"


class _Kept(Struct, array_like=True):
    """Layout of the part. Fields are only ever added at the end."""

    unused_signals: bytes = b""
    """Keeps the place of signals as earlier releases had them: a session of theirs goes on with its last message."""
    message: Piece | None = None
    """The last one that was observed."""
    unused: int = 0
    """Keeps the place of what is no longer read."""
    log_odds: int = 0
    """Of the last judgement, in ten-thousandths, as all that follows."""
    shares: list[tuple[int, int]] = []
    """Turn and what it added, the last ones, in the order of arrival."""
    earlier: int = 0
    """What was added before those, and by a judge."""
    evidence_turns: int = 0
    """Turns that added more than nothing, over the whole session."""
    begun: bool = False
    """Whether a user turn came that could be observed."""
    refused: bool = False
    """Whether the assistant refused since the last user turn."""
    upstream: float | None = None
    judge: float | None = None
    risky_ago: int = 1
    """Weighed turns since a risky one, itself included; 0: none is around. Unknown of what an earlier release kept."""
    before: bytes = b""
    """The signals before `message`, encoded; empty: as they begin."""


_decode = msgspec.msgpack.Decoder(_Kept).decode
_decode_signals = msgspec.msgpack.Decoder(SequenceSignals).decode
_encode = msgspec.msgpack.Encoder().encode


class Escalating:
    """The judgement of one session as it goes on. Reads and writes its own part."""

    def __init__(self, parts: Parts, model: CombinationModel, policy: EscalationPolicy) -> None:
        self._parts = parts
        self._model = model
        self._policy = policy
        stored = parts.get(PART)
        self._kept = kept = _Kept(risky_ago=0) if stored is None else _decode(stored)
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
            self._parts.put(PART, _encode(self._kept))
            self._changed = False

    @property
    def begun(self) -> bool:
        """Whether there is a judgement: a user turn came that could be observed."""
        return self._kept.begun

    @property
    def probability(self) -> float:
        """That the session escalates, 0-1, after the last turn that was weighed."""
        return probability_of(self._kept.log_odds)

    @property
    def evidence_turns(self) -> int:
        """Turns that raised the log-odds, over the whole session."""
        return self._kept.evidence_turns

    @property
    def upstream(self) -> float | None:
        """The source formulas' score, where any turn brought a risk of its own."""
        return self._kept.upstream

    @property
    def values(self) -> Mapping[str, float]:
        """Of the sequence signals by name, each 0-1."""
        return self._grounds().values

    def evidence(self, risks: Mapping[int, float]) -> dict[int, float]:
        """Turns that added to the log-odds, and what, of the last ones.

        The session's first turn makes a level where none was, so it always adds: it is evidence from a risk on that
        stands out (`first_evidence_risk`); a greeting is none.

        Args:
            risks: Risk of turns by number.
        """
        kept = self._kept
        found = {turn: share / UNITS for turn, share in kept.shares if share > 0}
        if kept.shares and not kept.earlier and risks.get(kept.shares[0][0], 0.0) < self._policy.first_evidence_risk:
            found.pop(kept.shares[0][0], None)
        return found

    @property
    def refused(self) -> bool:
        """Whether the assistant refused since the last user turn."""
        return self._kept.refused

    def refuse(self) -> None:
        """The assistant declined to answer."""
        self._kept.refused = self._changed = True

    def pass_over(self) -> None:
        """A user turn came that is not to be weighed."""
        self._kept.begun, self._kept.refused, self._changed = True, False, True

    def observe(self, seen: Observation, at: datetime, counted: int, *, risky: bool) -> None:
        """Show a user turn to the signals; `weigh` it afterwards.

        Args:
            seen: The turn with the scorer's risk, also where a producer sent another one.
            at: Its event time.
            counted: Turns of the session that were counted up to it, itself included.
            risky: Whether it is risky by itself.
        """
        kept = self._kept
        features = bits_of(seen.features)
        message = Piece(seen.turn, seen.risk, features, seen.marks, seen.nearness, seen.refused, at, counted)
        share = 0
        if kept.message is not None and message.continues(kept.message, self._policy.merge_within):
            message = message.joined_to(kept.message)
            self._signals = _signals_from(kept.before)
            _, share = kept.shares.pop()
        else:
            kept.before = _encode(self._present_signals())
            kept.risky_ago = kept.risky_ago + 1 if 0 < kept.risky_ago < self._policy.around_turns else 0
        self._present_signals().observe(message.observation())
        kept.shares.append((seen.turn, share))
        kept.risky_ago = 1 if risky else kept.risky_ago
        kept.message, kept.begun, kept.refused, self._changed = message, True, False, True

    def weigh(self, turn: int, upstream: float | None) -> None:
        """Judge anew after a counted turn; what changed is the turn's share.

        Args:
            turn: Its number.
            upstream: The source formulas' score after it, None where no turn of the session brought a risk of its own.
        """
        kept = self._kept
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
        """A slower judge answered, or (None) its answer stands no longer; what it changes is no turn's share.

        Returns:
            Whether that is another answer than the one that stood.
        """
        kept = self._kept
        if kept.judge == probability:
            return False
        kept.judge, self._changed = probability, True
        kept.earlier += self._judge_anew()
        return True

    def judgement(self) -> Judgement:
        """As it is now, taken apart by signal."""
        return judge(self._grounds(), self._model, self._policy)

    def escalation(self, threshold: float) -> Escalation:
        """The judgement as alerts tell it, the strongest contribution first."""
        kept, grounds, whole = self._kept, self._grounds(), self.judgement()
        phrases = self._present_signals().phrases()
        phrases[UPSTREAM] = (
            f"with the risks that producers sent along, the seed's score is {grounds.value(UPSTREAM):.2f}"
        )
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
        """What the judgement gains by what is known now."""
        kept, log_odds = self._kept, self.judgement().log_odds
        added, kept.log_odds = log_odds - kept.log_odds, log_odds
        self._changed |= added != 0
        return added

    def _grounds(self) -> Grounds:
        kept = self._kept
        return Grounds(self._present_signals().values(), kept.upstream, kept.judge, risky=kept.risky_ago > 0)

    def _present_signals(self) -> SequenceSignals:
        if self._signals is None:
            kept = self._kept
            self._signals = _signals_from(kept.before)
            if kept.message is not None:
                self._signals.observe(kept.message.observation())
        return self._signals


def _signals_from(encoded: bytes) -> SequenceSignals:
    return _decode_signals(encoded) if encoded else SequenceSignals()
