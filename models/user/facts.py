"""Structured facts of a user: one active value for each category and key, with its past values.

| input | effect |
|---|---|
| confidence or importance below the policy's minimum | none: never stored |
| the same category and key several times in one message | the highest confidence counts, among equals the last |
| a new key | stored |
| the active value again | none, unless its confidence is higher: confirmed |
| another value of at least the stored confidence | updated; the old value moves to the history, with its times |
| another value of lower confidence | none (user memory, conflict resolution) |
| a correction ("my full name is …") | as with confidence 1 |
| a retraction | the value is no longer active; the history keeps it |
| a value after a retraction | stored, with any confidence |
| a value from before the active one became valid | none: a late answer does not replace a newer statement |
| a later value other than one written by hand | updated, with any confidence: an edit covers only earlier statements |
| another value than a pinned one, or a retraction | the pinned value stays; the history gets the statement |
| a correction of the turn that states the active value | withdrawn, unless the new text still states it |
| a value from before its retraction | none, also if the retraction arrived before the value |
| a denied value ("in Leipzig now, not Hamburg") | ends under every key; under a key with a new value: updated |
| a retraction in a message that states the active value | none: the retraction means another value |
| erasure of a session | removes its facts with their history, past values that began in its time, and retractions |

So at most one value of a key is valid at any time. The latest statement counts, whichever extractor was faster; among
statements of the same time, the last to arrive counts.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from models.events import BY_HAND, ExtractedFact, FactCategory, FactCause, FactCommand, FactEdited, Outcome, Retraction
from models.policy.user import FactPolicy
from models.state.entity import digest_of, encode, write_part
from models.state.parts import Parts
from models.user.fact import LAYOUT, Fact, FactChange, FactProvenance, PastValue, TakenBack

PREFIX = "f:"
"""Prefix of parts with a fact; one fact a part."""
RETRACTED = "r"
"""Name of the part with the latest retractions."""
_IMPORTANCE = 0.8
"""Default importance of a fact written by hand."""
RETRACTIONS = 16
"""Retractions that are kept: enough to cover slower extractors, but bounded."""
_ERASURE_BYTES = 1024 * 1024
"""Limit of facts that an erasure rewrites; beyond it they lose their whole history, so that one write is enough."""


class Facts:
    """Facts in the parts of a user; changed in place."""

    def __init__(self, parts: Parts, policy: FactPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def get(self, category: FactCategory, key: str) -> Fact | None:
        """One fact, active or past."""
        return LAYOUT.part(self._parts, part_of(category, key), Fact)

    def all(self) -> list[tuple[FactCategory, str, Fact]]:
        """All facts, active or past, sorted by category and key."""
        known: list[tuple[FactCategory, str, Fact]] = []
        for name in self._parts.names(PREFIX):
            fact = LAYOUT.part(self._parts, name, Fact)
            assert fact is not None, "a part that is named has bytes"  # noqa: S101
            known.append((FactCategory(name.removeprefix(PREFIX).split("/", 1)[0]), fact.key, fact))
        return sorted(known, key=lambda each: each[:2])

    def count_active(self) -> int:
        """Number of active facts."""
        return sum(fact.active for _, _, fact in self.all())

    def take(
        self, facts: Iterable[ExtractedFact], retractions: Iterable[Retraction], said: FactProvenance
    ) -> list[FactChange]:
        """Apply the statements of one message: first its retractions, then its facts.

        Returns:
            Changes, in that order.
        """
        found = _surest(facts, self._policy)
        changes = [change for retraction in retractions for change in self._retract(retraction, found, said)]
        changes += [change for extracted in found if (change := self._store(extracted, said)) is not None]
        return changes + self._make_room(said) if changes else []

    def edit(self, command: FactEdited) -> tuple[Outcome, list[FactChange]]:
        """Apply an edit: write, correct, pin or unpin a fact. Returns the outcome and the changes."""
        category, key = command.category, command.key
        known = self.get(category, key)
        if known is not None and not known.active:
            known = msgspec.structs.replace(known, pinned=False)
        fact = self._written(command, known)
        if fact is None:
            return "not_found", []
        if command.pinned is not None:
            pinned = sum(each.pinned for _, _, each in self.all())
            if command.pinned and not (known and known.pinned) and pinned >= self._policy.most // 2:
                return "too_many_pinned", []
            fact = msgspec.structs.replace(fact, pinned=command.pinned)
        if command.importance is not None:
            fact = msgspec.structs.replace(fact, importance=command.importance)
        if fact == known:
            return "unchanged", []
        change = self._put(category, key, msgspec.structs.replace(fact, by=command.by), "edited")
        return "done", [change, *self._make_room(FactProvenance(fact.valid_from, "", -1, BY_HAND, command.by))]

    def delete(self, command: FactCommand) -> tuple[Outcome, list[FactChange]]:
        """End a fact, pinned or not. Returns the outcome and the changes."""
        known = self.get(command.category, command.key)
        if known is None or not known.active:
            return "not_found", []
        ended = _ended(known, FactProvenance(command.timestamp, "", -1, BY_HAND, command.by))
        return "done", [self._put(command.category, command.key, ended, "deleted")]

    def said_at(self, session_id: str, turn: int) -> datetime | None:
        """Latest `valid_from` of the active facts of a turn; None if it has none."""
        return max((fact.valid_from for _, _, fact in self._of_turn(session_id, turn)), default=None)

    def withdraw(self, said: FactProvenance, still: Iterable[ExtractedFact]) -> list[FactChange]:
        """End the facts of a corrected turn that its new text does not state, as of their start; pinned facts stay."""
        stands = {(fact.category, fact.key, fact.value.casefold()) for fact in still}
        return [
            self._put(category, key, _ended(fact, said._replace(at=fact.valid_from)), "withdrawn")
            for category, key, fact in self._of_turn(said.session_id, said.turn)
            if not fact.pinned and (category, key, fact.value.casefold()) not in stands
        ]

    def _of_turn(self, session_id: str, turn: int) -> list[tuple[FactCategory, str, Fact]]:
        return [
            (category, key, fact)
            for category, key, fact in self.all()
            if fact.active and (fact.session_id, fact.turn) == (session_id, turn)
        ]

    def _written(self, command: FactEdited, known: Fact | None) -> Fact | None:
        """The fact with the value of a command; None if the command has no value and no fact is active."""
        holds = known is not None and known.active
        if holds and command.value in (None, known.value):  # type: ignore[union-attr] # it holds
            return known
        if command.value is None:
            return None
        if known is None:
            return Fact(command.value, 1.0, _IMPORTANCE, True, command.timestamp, None, "", -1, BY_HAND)
        at = max(command.timestamp, known.valid_until or known.valid_from)
        return Fact(
            *(command.value, 1.0, known.importance, True, at, None, "", -1, BY_HAND),
            history=self._history(known, at),
            key=known.key,
            pinned=known.pinned,
        )

    def erase(self, session_id: str, first: datetime, last: datetime, *, at: datetime) -> list[FactChange]:
        """Erase the facts of a session, and its retractions.

        Past values do not record their session: those that became valid in the session's time are removed. So is a fact
        that another session confirmed or ended, since only this time shows its origin. A fact written by hand belongs
        to no session.

        Args:
            session_id: The session.
            first: Event time of its first turn.
            last: Event time of its last turn.
            at: Time of the erasure.

        Returns:
            Changes; a removed fact has neither value nor history.
        """
        write_part(self._parts, RETRACTED, [each for each in self._retracted() if not first <= each.at <= last])
        known = self.all()
        nothing = Fact("", 0.0, 0.0, False, at, at, session_id, -1, "")
        changes, shortened = [], []
        for category, key, fact in known:
            history = tuple(past for past in fact.history if not first <= past.valid_from <= last)
            if fact.session_id == session_id or (first <= fact.valid_from <= last and not fact.written):
                self._parts.drop(part_of(category, key))
                changes.append(FactChange(category, key, nothing, "erased"))
            elif len(history) < len(fact.history):
                shortened.append((category, key, msgspec.structs.replace(fact, history=history)))
        if sum(len(encode(fact)) for _, _, fact in shortened) > _ERASURE_BYTES:
            shortened = [(c, k, msgspec.structs.replace(fact, history=())) for c, k, fact in shortened]
        return changes + [self._put(category, key, fact, "erased") for category, key, fact in shortened]

    def _store(self, extracted: ExtractedFact, said: FactProvenance) -> FactChange | None:
        category, key, value = extracted.category, extracted.key, extracted.value
        confidence = _confidence(extracted)
        stored = self.get(category, key)
        fresh = Fact(value, confidence, extracted.importance, True, said.at, None, *said[1:4])
        if stored is not None and stored.active and stored.value.casefold() == value.casefold():
            return self._confirm(category, key, stored, fresh) if confidence > stored.confidence else None
        ended = any(each.at > said.at and each.names(category, key, value) for each in self._retracted())
        if ended or (stored is not None and said.at < (stored.valid_until or stored.valid_from)):
            return None
        if stored is None:
            return self._put(category, key, fresh, "stored")
        if stored.active and stored.pinned:
            return self._contradict(category, key, stored, PastValue(value, confidence, said.at, said.at))
        if not stored.active or stored.written or confidence >= stored.confidence:
            next_one = msgspec.structs.replace(fresh, history=self._history(stored, said.at))
            return self._put(category, key, next_one, "updated" if stored.active else "stored")
        return None

    def _confirm(self, category: FactCategory, key: str, stored: Fact, fresh: Fact) -> FactChange:
        surer = msgspec.structs.replace(
            fresh,
            importance=max(stored.importance, fresh.importance),
            valid_from=stored.valid_from,
            history=stored.history,
            pinned=stored.pinned,
            by=stored.by,
        )
        return self._put(category, key, surer, "confirmed")

    def _contradict(self, category: FactCategory, key: str, stored: Fact, said: PastValue) -> FactChange | None:
        """Add a statement against a pinned fact to its history, unless it equals the last one."""
        last = stored.history[-1] if stored.history else None
        if not self._policy.history or (last and last.contradicted and last.value.casefold() == said.value.casefold()):
            return None
        history = self._kept((*stored.history, msgspec.structs.replace(said, contradicted=True)))
        return self._put(category, key, msgspec.structs.replace(stored, history=history), "contradicted")

    def _history(self, stored: Fact, until: datetime) -> tuple[PastValue, ...]:
        ended = stored.valid_until or until
        # What found one that ended is not known any more: it says what ended it.
        by = (stored.extracted_by, stored.by) if stored.active else ()
        return self._kept((*stored.history, PastValue(stored.value, stored.confidence, stored.valid_from, ended, *by)))

    def _kept(self, past: tuple[PastValue, ...]) -> tuple[PastValue, ...]:
        return past[len(past) - min(len(past), self._policy.history) :]

    def _retract(
        self, retraction: Retraction, found: Sequence[ExtractedFact], said: FactProvenance
    ) -> list[FactChange]:
        taken_back = TakenBack(retraction.category, retraction.key, retraction.value, said.at)
        self._remember(taken_back)
        stands = {(fact.category, fact.key, fact.value.casefold()) for fact in found}
        # A value that is denied wherever it stands ("not Hamburg") ends there by what takes its place.
        named = retraction.key is None and retraction.value is not None
        replaced = {(fact.category, fact.key) for fact in found} if named else set()
        ending = [
            (category, key, fact)
            for category, key, fact in self._active_named(taken_back)
            if fact.valid_from <= said.at
            and (category, key) not in replaced
            and (category, key, fact.value.casefold()) not in stands
        ]
        changes = [
            self._contradict(category, key, fact, PastValue("", 0.0, said.at, said.at))
            if fact.pinned
            else self._put(category, key, _ended(fact, said), "retracted")
            for category, key, fact in ending
        ]
        return [change for change in changes if change is not None]

    def _remember(self, taken_back: TakenBack) -> None:
        known = self._retracted()
        same = [each for each in known if msgspec.structs.replace(each, at=taken_back.at) == taken_back]
        latest = max([*same, taken_back], key=lambda each: each.at)
        others = [each for each in known if each not in same]
        write_part(self._parts, RETRACTED, [*others, latest][-RETRACTIONS:])

    def _retracted(self) -> list[TakenBack]:
        return LAYOUT.part(self._parts, RETRACTED, list[TakenBack]) or []

    def _active_named(self, taken_back: TakenBack) -> list[tuple[FactCategory, str, Fact]]:
        if taken_back.category is not None and taken_back.key is not None:
            one = self.get(taken_back.category, taken_back.key)
            known = [] if one is None else [(taken_back.category, taken_back.key, one)]
        else:
            known = self.all()
        return [each for each in known if each[2].active and taken_back.names(each[0], each[1], each[2].value)]

    def _make_room(self, said: FactProvenance) -> list[FactChange]:
        """Remove facts beyond the policy's maximum: past ones, oldest first, then the least important active ones."""
        surplus = self._parts.count(PREFIX) - self._policy.most
        if surplus <= 0:
            return []
        known = self.all()
        past = sorted((f.valid_until or f.valid_from, c, k) for c, k, f in known if not f.active)[:surplus]
        active = [each for each in known if each[2].active and not each[2].pinned]
        active.sort(key=lambda each: (each[2].importance, each[2].valid_from))
        evicted = active[: surplus - len(past)]
        for category, key in [*(each[1:] for each in past), *(each[:2] for each in evicted)]:
            self._parts.drop(part_of(category, key))
        return [FactChange(category, key, _ended(fact, said), "evicted") for category, key, fact in evicted]

    def _put(self, category: FactCategory, key: str, fact: Fact, cause: FactCause) -> FactChange:
        kept = msgspec.structs.replace(fact, key=key)
        self._parts.put(part_of(category, key), encode(kept))
        return FactChange(category, key, kept, cause)


def _confidence(extracted: ExtractedFact) -> float:
    return 1.0 if extracted.corrects else extracted.confidence


def _surest(facts: Iterable[ExtractedFact], policy: FactPolicy) -> list[ExtractedFact]:
    """Facts above the policy's minimums, one for each category and key (user memory, flow 2, step 2)."""
    best: dict[tuple[FactCategory, str], ExtractedFact] = {}
    for fact in facts:
        if fact.confidence < policy.min_confidence or fact.importance < policy.min_importance:
            continue
        place = (fact.category, fact.key)
        known = best.get(place)
        if known is None or _confidence(fact) >= _confidence(known):
            best[place] = fact
    return list(best.values())


def part_of(category: FactCategory, key: str) -> str:
    """Name of the part of a fact: a digest without the user's words, as the log keeps the name longer than the fact."""
    return f"{PREFIX}{category}/{digest_of(key)}"


def _ended(fact: Fact, said: FactProvenance) -> Fact:
    """The fact as ended, with the turn and session that ended it."""
    who = {name: value for name, value in said._asdict().items() if name != "at"}
    return msgspec.structs.replace(fact, active=False, pinned=False, valid_until=max(said.at, fact.valid_from), **who)
