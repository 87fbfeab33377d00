"""User memory, over all sessions of one app: three tiers.

`fold` takes the user and one event of `commands.v1`, and gives the user after it and what is to be emitted. It is the
same in the stream and in replay.

- **Short-term**: the last turns, `UserPolicy` says how many. A turn that comes again (its place in `turns.v1` is not
  beyond what was seen of that partition) changes nothing.
- **Episodes**: when enough turns are in none, one is asked for; a stage of its own summarises and answers. Until the
  answer is here the turns stay, whatever crashes. An answer that is nobody's, or comes again, changes nothing. A stage
  that stays away for long is not waited for: the extractive summary is made here.
- **Mode**: while it is not active, turns are seen and left out; what is done by hand still counts.
- **Facts**: rules read every message of the user; what a slower extractor finds comes as an event, and so does what
  somebody writes by hand. `user/facts.py` has the rules of what replaces what.

What is erased leaves no trace here: of a user nothing at all, of a session neither its turns nor what they said. Its
places in the short-term tier stay empty, so that ranges of episodes stay right; an episode that waits for an answer
with such a turn is made here of the others at once, and the answer is nobody's. Nor is what was asked before of facts
taken, as it may tell of the session. What nobody knows is not erased.
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
"""Of the last commands, which the memory tells of."""


def fold(
    state: UserState, event: events.UserEvent | events.UserErasure, position: events.Position, policy: Policy
) -> list[events.UserOutput]:
    """Fold one event into a user, possibly a new one, who is changed in place; gives what is to be emitted, in order.

    `position` is the record of `commands.v1` that carried the event.
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
    """Whether there is something in it to know a user by: an answer to nobody leaves none, nor does an erasure."""
    found = isinstance(event, events.FactsExtracted) and bool(event.facts or event.retractions)
    found |= isinstance(event, events.MemoryModeSet) and event.mode is not events.MemoryMode.ACTIVE
    return (
        found
        or isinstance(event, events.UserTurnAdded)
        or (isinstance(event, events.FactEdited) and event.value is not None)
    )


class _UserStep(Emission[events.UserOutput]):
    """One event on its way into a user."""

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
        """Take a turn into the short-term tier, its facts into the upper one, and emit how far the memory is."""
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
        """Give a session the topics of earlier ones, once: with the first turn after one of them ended."""
        head = self._head
        if turn.session_id in head.recalled_in:
            return
        if topics := self._state.topics.living(turn.session_id, turn.timestamp):
            head.recalled_in = [*head.recalled_in, turn.session_id][-_RECALLED_IN:]
            self.emit(events.TopicsRecalled, turn.session_id, source=turn.source, topics=topics)

    def topics_kept(self, closed: events.TopicsKept) -> None:
        """A session ended: its topics are the user's until they fade."""
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
        """Take what a slower extractor found, or somebody knows."""
        if is_late(answer, self._head.erased_offset):
            return
        by = answer.extracted_by[: events.NAME_CHARS]
        said = FactProvenance(answer.timestamp, answer.session_id[: events.NAME_CHARS], answer.turn, by)
        changes = self._state.facts.take(answer.facts, answer.retractions, said)
        self._emit_facts(changes)
        if changes:
            self._emit_progress(said.session_id)

    def by_hand(self, command: events.UserDeed) -> None:
        """Do what somebody says of a fact or of the memory's mode, and emit what came of it."""
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
        """Take the new text of a turn; what it says of the user is read anew where the old one's facts still hold.

        A value before these stays in their history, and what a slower extractor finds in the old text counts if it
        comes later: it was asked.
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
        """Let go of a session's turns, of what they said, and of answers that could bring them back."""
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
        # Under no session's name: who forgets this one elsewhere must not lose how far the user is.
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
        """The oldest request is not waited for any longer; nor is it while later ones are answered."""
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

    # --- how far it is

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
    """The extractive summary of an episode, as the stage that answers requests makes it too."""
    return summarise(
        said,
        sentences=policy.users.summary_sentences,
        sentence_chars=policy.memory.sentence_chars,
        key_topics=policy.memory.key_topics,
        risky=policy.risk.risky_topics,
    )
