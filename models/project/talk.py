"""Conversations of a project: messages at hand, chunks, status (rules: `project.short_term`)."""

from datetime import datetime

import msgspec

from models.events import ConversationChunk, ItemCause, ProjectSummarised, ProjectTurnAdded, Role
from models.events.project_items import ConversationStatus, ProjectConversation
from models.policy import Policy
from models.project.outputs import ProjectEmission
from models.project.short_term import (
    ChunkPlace,
    ConversationState,
    RecentMessage,
    chunk_of,
    is_as_asked,
    merged,
    named_in,
    told_anew,
    with_status,
    with_turn,
)
from models.project.state import CHUNK, ProjectState


class ProjectTalk:
    """The conversations of a project, while one event is folded."""

    def __init__(self, state: ProjectState, emission: ProjectEmission, policy: Policy) -> None:
        self._state = state
        self._emission = emission
        self._policy, self._asked = policy.projects.short_term, policy.projects
        self._risky = policy.risk.risky_topics

    def has(self, turn: ProjectTurnAdded) -> bool:
        """Whether a message at hand has the number: its session was forgotten, began anew and counts from 0 again."""
        known = self._state.conversation(turn.session_id)
        return known is not None and turn.turn in known.head.conversation.recent

    def add(self, turn: ProjectTurnAdded) -> tuple[ConversationState, RecentMessage, str]:
        """Take a turn in; gives its conversation, the message as it is kept, and what an assistant said before it."""
        known = self._state.conversation(turn.session_id)
        before = self.started(turn.session_id, turn.timestamp) if known is None else known.head.conversation
        conversation = with_turn(before, turn.turn, turn.timestamp)
        if known is None:
            state = self._begin(conversation, turn.user_id, "created")
        else:
            state = known
            state.head.user_id = state.head.user_id or turn.user_id
            self.change(state, conversation)
        content = turn.content[: self._policy.message_chars]
        message = RecentMessage(turn.turn, turn.role, turn.user_id, content, turn.timestamp)
        place = conversation.recent.index(turn.turn)
        previous = state.message(conversation.recent[place - 1]) if place else None
        state.put(message)
        if len(conversation.recent) > self._policy.recent_messages:
            self._compress(state, conversation.recent[: self._policy.chunk_messages])
        self._state.spoken(state)
        proposed = previous.content if previous is not None and previous.role is Role.ASSISTANT else ""
        return state, message, proposed

    @staticmethod
    def started(conversation_id: str, at: datetime) -> ProjectConversation:
        """A conversation of which nothing was said."""
        return ProjectConversation(
            id=conversation_id, status="active", started_at=at, last_at=at, total_turns=0, recent=[], chunks=0
        )

    def begin(self, conversation: ProjectConversation, user_id: str = "", cause: ItemCause = "created") -> None:
        """Keep a conversation that was not kept."""
        self._settle(self._begin(conversation, user_id, cause))

    def _begin(self, conversation: ProjectConversation, user_id: str, cause: ItemCause) -> ConversationState:
        state = self._state.begin(conversation, user_id)
        self.change(state, conversation, cause)
        while self._state.head.conversations > self._policy.conversations:
            silent = self._state.longest_silent(but=conversation.id)
            if silent is None:
                break
            self.drop(silent, "displaced")
        return state

    def set_status(self, state: ConversationState, status: ConversationStatus, at: datetime, summary: str = "") -> bool:
        """Start, pause or end a conversation; whether that changes it."""
        known = state.head.conversation
        conversation = with_status(known, status, at, summary)
        if conversation == known:
            return False
        self.change(state, conversation)
        self._settle(state)
        return True

    def _settle(self, state: ConversationState) -> None:
        if state.head.conversation.status == "active":
            self._state.spoken(state)
        else:
            self._state.fell_silent(state)

    def change(
        self, state: ConversationState, conversation: ProjectConversation, cause: ItemCause = "continued"
    ) -> None:
        """Keep a conversation as it is now."""
        state.head.conversation = conversation
        state.save()
        self._emission.item(conversation, state.head.slot, cause, state.head.user_id)

    def replace(self, state: ConversationState, conversation: ProjectConversation) -> None:
        """Put an imported conversation in the place of the one that is kept; messages that it lacks become chunks."""
        lacking = [turn for turn in state.head.conversation.recent if turn not in conversation.recent]
        for first in range(0, len(lacking), self._policy.chunk_messages):
            self._compress(state, lacking[first : first + self._policy.chunk_messages])
        turns = max(conversation.total_turns, state.head.conversation.total_turns)
        chunks = len(state.head.chunks)
        self.change(state, msgspec.structs.replace(conversation, total_turns=turns, chunks=chunks), "imported")
        self._settle(state)

    def name(self, state: ConversationState, facts: list[str], milestones: list[str]) -> None:
        """Note memories that were said in a conversation, and its episodes."""
        conversation, most = state.head.conversation, self._policy.named
        if facts or milestones:
            named = msgspec.structs.replace(
                conversation,
                active_facts=named_in(conversation.active_facts, facts, most),
                milestones=named_in(conversation.milestones, milestones, most),
            )
            self.change(state, named)

    def unname(self, conversation_id: str, gone: frozenset[str]) -> None:
        """Memories or episodes went that a conversation may name."""
        state = self._state.conversation(conversation_id)
        if state is None:
            return
        conversation = state.head.conversation
        facts = [name for name in conversation.active_facts if name not in gone]
        milestones = [name for name in conversation.milestones if name not in gone]
        if (facts, milestones) != (conversation.active_facts, conversation.milestones):
            self.change(state, msgspec.structs.replace(conversation, active_facts=facts, milestones=milestones))

    def drop(self, state: ConversationState, cause: ItemCause) -> None:
        """A conversation goes, with its chunks."""
        head, emission = state.head, self._emission
        session_id = head.conversation.id
        for number, slot in head.chunks:
            emission.gone(CHUNK, slot, state.chunk(number).id, cause, (session_id, ""))
        emission.gone("conversation", head.slot, session_id, cause, (session_id, head.user_id))
        self._state.drop(state)

    # --- chunks

    def release(self) -> None:
        """One conversation that is not active, and after which the project went on for long, becomes chunks."""
        state = self._state.released()
        while state is not None and state.head.conversation.recent:
            self._compress(state, state.head.conversation.recent[: self._policy.chunk_messages])

    def put_chunk(self, state: ConversationState, chunk: ConversationChunk) -> None:
        """Keep a chunk of an import, in the place of the one that has its number."""
        slots = dict(state.head.chunks)
        slot = slots.get(chunk.first_number)
        if slot is not None:
            known = state.chunk(chunk.first_number)
            if known.id != chunk.id:
                self._emission.gone(CHUNK, slot, known.id, "imported", (chunk.conversation_id, ""))
        self._keep(state, chunk, slot, "imported")
        self._fit(state)

    def _compress(self, state: ConversationState, turns: list[int]) -> None:
        """Messages at hand become a chunk."""
        conversation = state.head.conversation
        said = state.take(turns)
        left = [turn for turn in conversation.recent if turn not in turns]
        self.change(state, msgspec.structs.replace(conversation, recent=left))
        if said:
            place = ChunkPlace(self._state.key, conversation.id, state.head.numbered + 1, self._emission.now)
            chunk = chunk_of(said, place, self._policy, self._risky)
            self._keep(state, chunk, None, "created")
            self._emission.ask_summary(chunk, said, self._asked)
            self._fit(state)

    def summarised(self, state: ConversationState, answer: ProjectSummarised) -> None:
        """A slower summariser's words for a chunk that is what was asked for."""
        for number, slot in state.head.chunks:
            chunk = state.chunk(number)
            if is_as_asked(chunk, answer):
                chunk = told_anew(chunk, answer, self._policy)
                state.put_chunk(chunk, slot)
                self._emission.item(chunk, slot, "summarised")

    def _fit(self, state: ConversationState) -> None:
        """The two oldest become one while there are too many."""
        head = state.head
        while len(head.chunks) > self._policy.max_chunks:
            (first, slot), (second, _) = head.chunks[:2]
            later, free = state.drop_chunk(second)
            self._state.slots.give(CHUNK, free)
            self._state.head.chunks -= 1
            self._emission.gone(CHUNK, free, later.id, "merged", (later.conversation_id, ""))
            self._keep(state, merged(state.chunk(first), later, self._policy), slot, "merged")

    def _keep(self, state: ConversationState, chunk: ConversationChunk, slot: int | None, cause: ItemCause) -> None:
        if slot is None:
            slot = self._state.slots.take(CHUNK)
            self._state.head.chunks += 1
        state.put_chunk(chunk, slot)
        self._emission.item(chunk, slot, cause)
        kept = msgspec.structs.replace(state.head.conversation, chunks=len(state.head.chunks))
        self.change(state, kept)
