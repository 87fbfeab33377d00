"""User memory, over all sessions of one app: three tiers.

`fold` applies one event of `commands.v1` to a user and returns the outputs. Stream and replay use the same function.

- **Short-term**: the last turns (`UserPolicy` sets the number). A repeated turn changes nothing; its offset in
  `turns.v1` is not above the last one seen of that partition.
- **Episodes**: when enough turns are in no episode, the fold requests a summary from role `enrich`. The state keeps the
  turns until the answer arrives, also across crashes. Unknown and repeated answers change nothing. After too many
  unanswered requests, the fold makes the extractive summary itself.
- **Mode**: while it is not active, turns are counted as seen but not stored; edits by hand still apply.
- **Facts**: rules read every message of the user; results of slower extractors and edits by hand arrive as events.
  `user/facts.py` has the rules of replacement.

An erasure leaves no trace in the state: nothing of an erased user, and neither turns nor facts of an erased session.
The session's places in the short-term tier stay empty, so that ranges of episodes stay correct. If a requested episode
has such a turn, the fold makes its summary of the other turns at once, and ignores the later answer. Answers to earlier
requests for facts are ignored too, as they may quote the session. Erasing an unknown user is a no-op.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from models import events
from models.language.facts.extraction import extract
from models.policy import Policy
from models.state.entity import Emission, Folding, is_late, same_fields
from models.text.language import ENGLISH
from models.text.summary import EXTRACTIVE, Passage, Summary, summarise
from models.text.words import estimate_tokens
from models.user.fact import FactChange, FactProvenance
from models.user.state import UserState, UserTurn, runs

_RULES: Final = "rules"
_RECALLED_IN: Final = 64
_RESULTS: Final = 16
"""Results of the last commands that the state keeps."""


def fold(
    state: UserState, event: events.UserEvent | events.UserErasure, position: events.Position, policy: Policy
) -> list[events.UserOutput]:
    """Fold one event into a user, possibly a new one, in place. Returns the outputs in order.

    `position` is the position of the event in `commands.v1`.
    """
    if not state.known and not _begins(event):
        return []
    step = _UserStep(state, event, position, policy)
    match event:
        case events.UserTurnAdded():
            step.turn(event)
        case events.UserTurnCorrected():
            step.corrected(event)
        case events.EpisodeSummarised():
            step.summarised(event)
        case events.FactsExtracted():
            step.extracted(event)
        case events.TopicsKept():
            step.topics_kept(event)
        case events.UserDeed():
            step.by_hand(event)
        case events.UserSessionErased():
            step.session_erased(event)
        case events.UserErased():
            state.erase()
    return step.outputs


FOLDING: Final = Folding(
    UserState, lambda state, command, policy: (fold(state, command.event, command.position, policy), True)
)


def _begins(event: events.UserEvent | events.UserErasure) -> bool:
    """Whether an event creates a user: empty answers and erasures do not."""
    found = isinstance(event, events.FactsExtracted) and bool(event.facts or event.retractions)
    found |= isinstance(event, events.MemoryModeSet) and event.mode is not events.MemoryMode.ACTIVE
    return (
        found
        or isinstance(event, events.UserTurnAdded)
        or (isinstance(event, events.FactEdited) and event.value is not None)
    )


class _UserStep(Emission[events.UserOutput]):
    """Application of one event to a user."""

    def __init__(
        self, state: UserState, event: events.UserEvent | events.UserErasure, position: events.Position, policy: Policy
    ) -> None:
        key = events.user_key(event.app_id, event.user_id)
        super().__init__(key, event.app_id, event.user_id, position, event.timestamp)
        self._state = state
        self._head = state.head
        self._rules = policy
        self._policy = policy.users
        self._head.app_id, self._head.user_id = event.app_id, event.user_id

    def turn(self, turn: events.UserTurnAdded) -> None:
        """Add a turn to the short-term tier and its facts to the long-term tier, and emit the progress."""
        head, place = self._head, turn.source
        if place.offset <= head.seen.get(place.partition, -1):
            return
        head.seen[place.partition] = place.offset
        if head.mode is not events.MemoryMode.OFF:
            self._recall(turn)
        if head.mode is not events.MemoryMode.ACTIVE:
            self._emit_progress(turn.session_id)
            return
        self._state.add(UserTurn(turn.session_id, turn.turn, turn.role, turn.content, turn.timestamp))
        if turn.role is events.Role.USER:
            found = extract(turn.content)
            said = FactProvenance(turn.timestamp, turn.session_id, turn.turn, _RULES)
            self._emit_facts(self._state.facts.take(found.facts, found.retractions, said))
            if self._policy.facts.ask and turn.content.strip():
                self._ask_for_facts(turn, turn.timestamp)
            head.language = turn.language
            head.unsupported_turns += turn.language != ENGLISH and not self._policy.facts.ask
        self._ask_for_episodes(turn.session_id)
        self._state.release()
        self._emit_progress(turn.session_id)

    def _recall(self, turn: events.UserTurnAdded) -> None:
        """Hand the topics of earlier sessions to a session, once: at the first turn after one of them ended."""
        head = self._head
        if turn.session_id in head.recalled_in:
            return
        if topics := self._state.topics.living(turn.session_id, turn.timestamp):
            head.recalled_in = [*head.recalled_in, turn.session_id][-_RECALLED_IN:]
            self.emit(events.TopicsRecalled, turn.session_id, source=turn.source, topics=topics)

    def topics_kept(self, closed: events.TopicsKept) -> None:
        """Take the topics of a session that ended; the user keeps them until they decay."""
        head, place = self._head, closed.source
        offset, known = head.told.get(place.partition, (-1, []))
        if place.offset < offset or (place.offset == offset and closed.id in known):
            return
        head.told[place.partition] = (place.offset, [*(known if place.offset == offset else ()), closed.id])
        head.recalled_in = [each for each in head.recalled_in if each != closed.session_id]
        if head.mode is events.MemoryMode.ACTIVE:
            self._state.topics.keep(closed.session_id, closed.topics, closed.timestamp)

    def summarised(self, answer: events.EpisodeSummarised) -> None:
        """Turn the turns of an answered request into an episode."""
        place = (answer.first_turn, answer.last_turn)
        if place not in self._head.waiting:
            return
        topics = answer.key_topics[: self._rules.memory.key_topics]
        summary = Summary(
            answer.summary.strip()[: self._policy.summary_chars], [topic[: events.NAME_CHARS] for topic in topics]
        )
        by = answer.summarised_by[: events.NAME_CHARS]
        self._compress(place, summary, by, (answer.embedding, answer.embedded_by[: events.NAME_CHARS]))
        self._state.release()
        self._emit_progress(self.outputs[-1].session_id)

    def extracted(self, answer: events.FactsExtracted) -> None:
        """Apply facts of a slower extractor or another source."""
        if is_late(answer, self._head.erased_offset):
            return
        by = answer.extracted_by[: events.NAME_CHARS]
        said = FactProvenance(answer.timestamp, answer.session_id[: events.NAME_CHARS], answer.turn, by)
        changes = self._state.facts.take(answer.facts, answer.retractions, said)
        self._emit_facts(changes)
        if changes:
            self._emit_progress(said.session_id)

    def by_hand(self, command: events.UserDeed) -> None:
        """Carry out a command about a fact or the memory's mode, and emit its result."""
        facts = self._state.facts
        outcome: events.Outcome = "unchanged"
        changes: list[FactChange] = []
        match command:
            case events.FactEdited():
                outcome, changes = facts.edit(command)
            case events.FactCommand():
                outcome, changes = facts.delete(command)
            case events.MemoryModeSet() if command.mode is not self._head.mode:
                outcome, self._head.mode = "done", command.mode
        result = events.CommandResult(request_id=command.request_id, outcome=outcome, count=len(changes[:1]))
        self._head.results = [*self._head.results, result][-_RESULTS:]
        self._emit_facts(changes)
        self._emit_progress("")

    def corrected(self, turn: events.UserTurnCorrected) -> None:
        """Replace the text of a turn; extract its facts again if facts of the old text are still active.

        Values before these stay in the history. A later answer of a slower extractor about the old text still counts.
        """
        self._state.replace_text(turn.session_id, turn.turn, turn.content)
        said_at = self._state.facts.said_at(turn.session_id, turn.turn)
        if said_at is None:
            return
        found, said = extract(turn.content), FactProvenance(said_at, turn.session_id, turn.turn, _RULES)
        changes = self._state.facts.withdraw(said, found.facts)
        changes += self._state.facts.take(found.facts, found.retractions, said)
        self._emit_facts(changes)
        if self._policy.facts.ask and turn.content.strip():
            self._ask_for_facts(turn, said_at)
        if changes:
            self._emit_progress(turn.session_id)

    def session_erased(self, erased: events.UserSessionErased) -> None:
        """Erase a session's turns and facts, and ignore answers that could restore them."""
        state, session_id = self._state, erased.session_id
        self._head.erased_offset = self._position.offset
        concerned = [place for place in self._head.waiting if session_id in state.sessions(*place)]
        state.erase_turns(session_id)
        for place in concerned:
            if state.sessions(*place):
                self._compress(place, self._summary_of(*place), EXTRACTIVE, ([], ""))
            else:
                self._head.waiting.remove(place)
        state.release()
        state.topics.erase(session_id)
        self._head.recalled_in = [each for each in self._head.recalled_in if each != session_id]
        self._emit_facts(state.facts.erase(session_id, erased.started_at, erased.ended_at, at=erased.timestamp))
        # Without a session: erasing this one elsewhere must not remove the user's progress.
        self._emit_progress("")

    # --- episodes

    def _ask_for_episodes(self, session_id: str) -> None:
        head, policy = self._head, self._policy
        while head.turn_count - head.requested >= policy.high_turns:
            first, last = head.requested + 1, head.requested + policy.high_turns
            head.requested = last
            turns = self._state.turns(first, last)
            if not turns:
                continue
            head.waiting.append((first, last))
            asked = [events.RequestedTurn(turn.role, turn.content[: policy.asked_chars]) for turn in turns]
            sessions = list(dict.fromkeys(turn.session_id for turn in turns))
            place = {"first_turn": first, "last_turn": last}
            self.emit(events.EpisodeRequested, session_id, "", **place, turns=asked, session_ids=sessions)
        while head.waiting and self._waited_long():
            self._compress(head.waiting[0], self._summary_of(*head.waiting[0]), EXTRACTIVE, ([], ""))

    def _waited_long(self) -> bool:
        """Whether the oldest request has waited too long, by open requests or by turns requested since."""
        head, policy = self._head, self._policy
        behind = head.requested - head.waiting[0][1]
        return len(head.waiting) > policy.waiting_episodes or behind >= policy.waiting_episodes * policy.high_turns

    def _summary_of(self, first: int, last: int) -> Summary:
        said = [Passage(turn.content) for turn in self._state.turns(first, last)]
        return summarise_episode(said, self._rules)

    def _compress(self, place: tuple[int, int], summary: Summary, by: str, embedded: tuple[list[float], str]) -> None:
        head = self._head
        turns = self._state.turns(*place)
        head.waiting.remove(place)
        head.episodes += 1
        text = summary.text or "(no text)"
        self.emit(
            events.EpisodeCompressed,
            turns[-1].session_id,
            episode=head.episodes,
            first_turn=place[0],
            last_turn=place[1],
            turn_range=f"turns {place[0]}-{place[1]}",
            turns=runs(turns),
            summary=text,
            summarised_by=by,
            key_topics=list(summary.key_topics),
            embedding=embedded[0],
            embedded_by=embedded[1],
            started_at=min(turn.timestamp for turn in turns),
            ended_at=max(turn.timestamp for turn in turns),
            tokens_before=sum(estimate_tokens(turn.content) for turn in turns),
            tokens_after=estimate_tokens(text),
        )

    # --- facts

    def _ask_for_facts(self, turn: events.UserTurnAdded | events.UserTurnCorrected, said_at: datetime) -> None:
        content = turn.content[: self._policy.facts.asked_chars]
        self.emit(events.FactsRequested, turn.session_id, timestamp=said_at, turn=turn.turn, content=content)

    def _emit_facts(self, changes: list[FactChange]) -> None:
        for category, key, fact, cause in changes:
            fields = same_fields(fact, events.FactChanged, "key", "history")
            fields |= {"category": category, "key": key, "cause": cause, "history": fact.past()}
            self.emit(events.FactChanged, fact.session_id, **fields)
        if changes:
            self._head.facts = self._state.facts.count_active()

    # --- progress

    def _emit_progress(self, session_id: str) -> None:
        head = self._head
        self.emit(
            events.UserMemoryChanged,
            session_id,
            **same_fields(head, events.UserMemoryChanged, "seen"),
            compressed_turns=head.compressed,
            requested_turns=head.requested,
            short_term=self._state.at_hand(),
            seen={str(partition): offset for partition, offset in head.seen.items()},
            memory_mode=head.mode,
        )


def summarise_episode(said: Sequence[Passage], policy: Policy) -> Summary:
    """The extractive summary of an episode; role `enrich` uses the same function."""
    return summarise(
        said,
        sentences=policy.users.summary_sentences,
        sentence_chars=policy.memory.sentence_chars,
        key_topics=policy.memory.key_topics,
        risky=policy.risk.risky_topics,
    )
