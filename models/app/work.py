"""The work that ended conversations ask for: a memory is made of each, and of one too many it is decided which goes.

One piece after the other, in the order in which conversations ended, each only while there is energy; what a slower
stage is asked for is waited for. What cannot be done now stays in the state and goes on with the next event.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from models import events
from models.app.composing import Draft, compose
from models.app.energy import Work as Kind
from models.app.energy import charge, cost_units, may_begin
from models.app.memory_set import MemorySet, named
from models.app.rules import CompactionDecision, decide, oldest, refusal
from models.app.state import KeptMemory, UnansweredRequest, paragraph, tags_of
from models.app.worth import is_of_use
from models.events import NAME_CHARS, ConversationEnded
from models.language.contradiction import conflicts, sentences_of
from models.state.entity import same_fields
from models.text.summary import EXTRACTIVE
from models.text.words import estimate_tokens

NOTHING_SAID: Final = "nothing_said"
NOT_ACTIVE: Final = "not_active"
NO_ANSWER: Final = "no_answer"
RUBBISH: Final = "rubbish"
FAILURES: Final = frozenset({"timeout", "llm_error", RUBBISH})
"""Of a language model, as a reason why a memory was not made."""
RULES: Final = "rules"
FIFO: Final = "fifo"
TOO_MANY: Final = "too_many"
"""Fallback where the policy allows fewer memories than before."""
_MIDDLE_IMPORTANCE: Final = 0.5
_NO_TIME: Final = timedelta()


class Worker(MemorySet):
    """Makes memories and compacts them, one event long.

    Attributes:
        gives_up: Whether an answer that is overdue is not waited for. Of the log's other records than `WorkDue` none
            says that there was time to answer: a worker may be far behind them.
    """

    gives_up = False

    def _go_on(self) -> None:
        """Do what can be done now; the rest waits."""
        while len(self._state.memories) > self._policy.most and self._lose_oldest():
            pass
        while self._do_next():
            pass
        self._state.keep_waiting()

    # --- answers

    def _proposed(self, answer: events.MemoryProposed) -> None:
        """Take the memory that a slower stage made, if it is the one that is waited for."""
        state = self._state
        ended = state.first_waiting()
        if not self._is_asked(answer.request) or state.candidate is not None or ended is None:
            return
        state.head.asked = None
        self._pay("creation", answer.tokens, timedelta(milliseconds=answer.elapsed_ms))
        content = paragraph(answer.content)
        if answer.failure or len(content) > self._policy.most_content_chars:
            self._fail(ended, answer.failure if answer.failure in FAILURES else RUBBISH)
            return
        state.next_waiting()
        if not content:
            self._skip(ended, NOTHING_SAID)
            return
        known = self._known(ended)
        own = compose(ended, self._policy) or Draft("", _MIDDLE_IMPORTANCE, [])
        importance = own.importance if answer.importance is None else answer.importance
        made = Draft(content, importance, tags_of(answer.tags, self._policy.tags) or own.tags)
        self._keep(ended, made, answer.made_by[:NAME_CHARS], whole=known is None or not known.related)

    def _decided(self, answer: events.CompactionDecided) -> None:
        """Carry out the decision of a slower stage, or, where it cannot be, let the oldest go (app memory, FIFO)."""
        if not self._is_asked(answer.request) or self._state.candidate is None:
            return
        self._state.head.asked = None
        self._pay("compaction", answer.tokens, timedelta(milliseconds=answer.elapsed_ms))
        if answer.failure:
            self._fall_back(answer.failure if answer.failure in FAILURES else RUBBISH)
            return
        decision = CompactionDecision(
            action=answer.action,
            target_memory_id=answer.target_memory_id,
            new_content=None if answer.new_content is None else paragraph(answer.new_content),
            reason=paragraph(answer.reason)[: self._policy.most_content_chars],
        )
        self._carry_out(decision, answer.decided_by[:NAME_CHARS], *self._to_decide_on())

    def _is_asked(self, request: int) -> bool:
        asked = self._state.head.asked
        return asked is not None and asked.request == request

    # --- one piece of work after the other

    def _do_next(self) -> bool:
        """The next piece; False when there is none, or it must wait."""
        state, now = self._state, self.now
        if state.candidate is not None and self._has_room:
            state.head.asked = None
            candidate, state.candidate = state.candidate, None
            self._add(candidate)
            return True
        ended = state.first_waiting()
        hurries = state.queued > self._policy.waiting
        if state.head.asked is not None:
            overdue = self.gives_up and now >= state.head.asked.at + self._policy.answer_within
            if overdue or hurries:
                state.head.asked = None
                self._do_without_answer(ended, hurries)
            return overdue or hurries
        if state.candidate is None and ended is None:
            return False
        if not hurries and not self._has_energy():
            return False
        if state.candidate is not None:
            self._begin_compaction(asks=self._policy.ask and not hurries)
        elif ended is not None:
            self._begin_memory(ended, asks=self._policy.ask and not hurries)
        return True

    def _has_energy(self) -> bool:
        """Whether the space's budget and that of all have enough; where not, it is counted."""
        state, now, policy = self._state, self.now, self._policy.energy
        held = "" if state.shared.may_begin(now) else "all"
        if not may_begin(state.head.energy, now, policy):
            held = "space"
        elif held and state.head.energy is None:
            state.head.energy = charge(None, 0.0, now, policy)  # a space that waits is reminded from its level on
        state.shared.held.update([held] if held else ())
        return not held

    def _do_without_answer(self, ended: ConversationEnded | None, hurries: bool) -> None:
        """A request is not waited for any longer; where too many wait, the rules do what it was for."""
        if hurries:
            return
        if self._state.candidate is not None:
            self._pay("compaction", 0, _NO_TIME)
            self._fall_back(NO_ANSWER)
        elif ended is not None:
            self._pay("creation", 0, _NO_TIME)
            self._fail(ended, NO_ANSWER)

    def _begin_memory(self, ended: ConversationEnded, *, asks: bool) -> None:
        if asks:
            known = self._known(ended)
            # What was made of the conversation before it went on is in no turn that is sent along. What others' put
            # into the memory stays here: a request names one session, and an erasure finds it by that.
            before = [known.content] if known is not None and not known.related else []
            self.emit(
                events.MemoryRequested,
                *(ended.session_id, ended.user_id),
                **same_fields(ended, events.MemoryRequested, "summary", "space"),
                space=self._space,
                request=self._ask(),
                summary=" ".join([*before, ended.summary]),
            )
            return
        self._state.next_waiting()
        tokens = sum(map(estimate_tokens, (ended.summary, *(each.text for each in ended.notables))))
        self._pay("creation", tokens, _NO_TIME)
        self._make(ended, NOTHING_SAID)

    def _begin_compaction(self, *, asks: bool) -> None:
        memories, new = self._to_decide_on()
        if asks:
            self.emit(
                events.CompactionRequested,
                *named(self._state.candidate),
                space=self._space,
                request=self._ask(),
                memories=memories,
                new_memory=new,
            )
            return
        self._pay("compaction", sum(estimate_tokens(each.content) for each in (*memories, new)), _NO_TIME)
        known, subjects = self._known_facts(), self._subjects()
        decision = decide(memories, new, self.now, self._policy, known=known, subjects=subjects)
        self._carry_out(decision, RULES, memories, new)

    def _ask(self) -> int:
        head = self._state.head
        head.requests += 1
        head.asked = UnansweredRequest(head.requests, self.now)
        return head.requests

    # --- memories

    def _make(self, ended: ConversationEnded, otherwise: str) -> None:
        draft = compose(ended, self._policy)
        if draft is None:
            self._skip(ended, otherwise)
        else:
            self._keep(ended, draft, EXTRACTIVE, whole=False)

    def _fail(self, ended: ConversationEnded, reason: str) -> None:
        self._state.next_waiting()
        if self._policy.when_it_fails == "extractive":
            self._make(ended, reason)
        else:
            self._skip(ended, reason)

    def _skip(self, ended: ConversationEnded, reason: str) -> None:
        self._state.head.skipped += 1
        self.emit(events.AppMemorySkipped, ended.session_id, ended.user_id, space=self._space, reason=reason)

    def _skips(self, ended: ConversationEnded) -> bool:
        """Pass over a conversation that has nothing to read, or whose user switched memory off, at no cost."""
        if self._state.head.mode is not events.MemoryMode.ACTIVE:
            self._skip(ended, NOT_ACTIVE)
        elif not (ended.turn_count > 0 and (ended.notables or ended.turns or ended.summary.strip())):
            self._skip(ended, NOTHING_SAID)
        else:
            return False
        return True

    def _known(self, ended: ConversationEnded) -> KeptMemory | None:
        slot = self._made_of(ended.session_id)
        return None if slot is None else self._state.memories[slot]

    def _keep(self, ended: ConversationEnded, draft: Draft, made_by: str, *, whole: bool) -> None:
        """A draft becomes a memory: a new one, or that of the conversation before it went on is made anew.

        Args:
            ended: What it was made of.
            draft: The memory.
            made_by: Who made it.
            whole: Whether the draft tells of the conversation before it went on, too.
        """
        slot = self._made_of(ended.session_id)
        head = self._state.head
        if slot is None:
            head.created += 1
            fresh = KeptMemory(
                memory_id=head.created,
                content=draft.content,
                importance=draft.importance,
                tags=tuple(draft.tags),
                session_id=ended.session_id,
                user_id=ended.user_id,
                last_turn=ended.last_turn,
                related=(),
                created_at=ended.timestamp,
                updated_at=ended.timestamp,
                made_by=made_by,
            )
            self._add(fresh)
            return
        known = self._state.memories[slot]
        replaces = whole or (ended.first_turn <= known.last_turn and not known.related)
        content = draft.content if replaces else self._continued(known.content, draft.content)
        remade = msgspec.structs.replace(
            known,
            content=content,
            importance=max(known.importance, draft.importance),
            tags=tuple(dict.fromkeys((*draft.tags, *known.tags)))[: self._policy.tags],
            last_turn=max(known.last_turn, ended.last_turn),
            updated_at=max(known.updated_at, ended.timestamp),
            made_by=made_by,
            # Whoever shared it has not seen what it says now.
            shared_with=known.shared_with if content == known.content else (),
        )
        self._change(slot, remade, "remade")

    def _continued(self, before: str, now: str) -> str:
        """What was said before and since; where not both fit, the later, and of the earlier what is most of use."""
        later = sentences_of(now)
        kept = [
            one for one in sentences_of(before) if not any(one == other or conflicts(one, other) for other in later)
        ]
        kept += later
        most = self._policy.most_content_chars
        while len(kept) > len(later) and (len(kept) > self._policy.sentences or len(" ".join(kept)) > most):
            del kept[min(range(len(kept) - len(later)), key=lambda place: is_of_use(kept[place]))]
        return now if len(kept) == len(later) else " ".join(kept)

    # --- compaction

    def _carry_out(
        self,
        decision: CompactionDecision,
        decided_by: str,
        memories: Sequence[events.MemoryToKeep],
        new: events.MemoryToKeep,
    ) -> None:
        refused = refusal(decision, memories, new, self._policy)
        if refused:
            self._fall_back(refused)
        else:
            self._compact(decision, decided_by, memories, new)

    def _fall_back(self, reason: str) -> None:
        memories, new = self._to_decide_on()
        self._compact(oldest(memories, new), FIFO, memories, new, reason)

    def _lose_oldest(self) -> bool:
        """The policy allows fewer than before; pinned ones stay all the same."""
        memories, new = self._to_decide_on()
        if all(memory.pinned for memory in (*memories, new)):
            return False
        if self._state.candidate is not None:
            self._state.head.asked = None
        self._fall_back(TOO_MANY)
        return True

    def _pay(self, kind: Kind, tokens: int, elapsed: timedelta) -> None:
        state, policy = self._state, self._policy.energy
        units = cost_units(kind, tokens, elapsed, policy)
        state.head.energy = charge(state.head.energy, units, self.now, policy)
        state.shared.charge(units, self.now)
        state.head.spent_units += units
        state.spent[kind] = state.spent.get(kind, 0.0) + units
