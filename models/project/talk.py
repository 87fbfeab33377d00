"""Conversations of a project: messages at hand, chunks, status (rules: `project.short_term`)."""

from datetime import datetime

import msgspec

from models.events import ConversationChunk, ItemCause, ProjectSummarised, ProjectTurnAdded, Role
from models.events.project_items import ConversationStatus, ProjectConversation
from models.project import short_term
from models.project.outputs import ProjectEmission
from models.project.short_term import ConversationState, RecentMessage
from models.project.state import CHUNK


class ProjectTalk(ProjectEmission):
    """The conversations of a project, while one event is folded."""

    def add_turn(self, turn: ProjectTurnAdded) -> tuple[ConversationState, RecentMessage, str]:
        """Take a turn in; gives its conversation, the message as it is kept, and what an assistant said before it."""
        policy, state = self._policy.short_term, self._state.conversation(turn.session_id)
        if state is None:
            begun = self.started(turn.session_id, turn.timestamp)
            state = self._begin(short_term.with_turn(begun, turn.turn, turn.timestamp), turn.user_id, "created")
        else:
            state.head.user_id = state.head.user_id or turn.user_id
            self._keep(state, short_term.with_turn(state.head.conversation, turn.turn, turn.timestamp))
        recent = state.head.conversation.recent
        message = RecentMessage(
            turn.turn, turn.role, turn.user_id, turn.content[: policy.message_chars], turn.timestamp
        )
        place = recent.index(turn.turn)
        previous = state.message(recent[place - 1]) if place else None
        state.put(message)
        if len(recent) > policy.recent_messages:
            self._compress(state, recent[: policy.chunk_messages])
        self._state.spoken(state)
        proposed = previous.content if previous is not None and previous.role is Role.ASSISTANT else ""
        return state, message, proposed

    @staticmethod
    def started(conversation_id: str, at: datetime) -> ProjectConversation:
        """A conversation of which nothing was said."""
        return ProjectConversation(
            id=conversation_id, status="active", started_at=at, last_at=at, total_turns=0, recent=[], chunks=0
        )

    def begin_conversation(self, conversation: ProjectConversation, cause: ItemCause) -> None:
        """Keep a conversation that was not kept."""
        self._note_silence(self._begin(conversation, "", cause))

    def _begin(self, conversation: ProjectConversation, user_id: str, cause: ItemCause) -> ConversationState:
        state = self._state.begin(conversation, user_id)
        self._keep(state, conversation, cause)
        while self._head.conversations > self._policy.short_term.conversations:
            silent = self._state.longest_silent(but=conversation.id)
            if silent is None:
                break
            self.drop_conversation(silent, "displaced")
        return state

    def set_status(self, state: ConversationState, status: ConversationStatus, at: datetime, summary: str = "") -> bool:
        """Start, pause or end a conversation; whether that changes it."""
        conversation = short_term.with_status(state.head.conversation, status, at, summary)
        if conversation == state.head.conversation:
            return False
        self._keep(state, conversation)
        self._note_silence(state)
        return True

    def _note_silence(self, state: ConversationState) -> None:
        if state.head.conversation.status == "active":
            self._state.spoken(state)
        else:
            self._state.fell_silent(state)

    def _keep(
        self, state: ConversationState, conversation: ProjectConversation, cause: ItemCause = "continued"
    ) -> None:
        state.head.conversation = conversation
        state.save()
        self.item(conversation, state.head.slot, cause, state.head.user_id)

    def _change(self, state: ConversationState, **fields: object) -> None:
        self._keep(state, msgspec.structs.replace(state.head.conversation, **fields))

    def replace_conversation(self, state: ConversationState, conversation: ProjectConversation) -> None:
        """Put an imported conversation in the place of the one that is kept; messages that it lacks become chunks."""
        lacking = [turn for turn in state.head.conversation.recent if turn not in conversation.recent]
        most = self._policy.short_term.chunk_messages
        for first in range(0, len(lacking), most):
            self._compress(state, lacking[first : first + most])
        turns = max(conversation.total_turns, state.head.conversation.total_turns)
        whole = msgspec.structs.replace(conversation, total_turns=turns, chunks=len(state.head.chunks))
        self._keep(state, whole, "imported")
        self._note_silence(state)

    def name_in(self, state: ConversationState, facts: list[str], milestones: list[str]) -> None:
        """Note memories that were said in a conversation, and its episodes."""
        if facts or milestones:
            conversation, most = state.head.conversation, self._policy.short_term.named
            self._change(
                state,
                active_facts=short_term.named_in(conversation.active_facts, facts, most),
                milestones=short_term.named_in(conversation.milestones, milestones, most),
            )

    def unname(self, conversation_id: str, gone: frozenset[str]) -> None:
        """Memories or episodes went that a conversation may name."""
        state = self._state.conversation(conversation_id)
        if state is None:
            return
        facts, milestones = state.head.conversation.active_facts, state.head.conversation.milestones
        if not gone.isdisjoint([*facts, *milestones]):
            left = {"active_facts": facts, "milestones": milestones}
            self._change(state, **{of: [each for each in names if each not in gone] for of, names in left.items()})

    def drop_conversation(self, state: ConversationState, cause: ItemCause) -> None:
        """A conversation goes, with its chunks."""
        head = state.head
        session_id = head.conversation.id
        for number, slot in head.chunks:
            self.gone(CHUNK, slot, state.chunk(number).id, cause, (session_id, ""))
        self.gone("conversation", head.slot, session_id, cause, (session_id, head.user_id))
        self._state.drop(state)

    # --- chunks

    def release(self) -> None:
        """One conversation that is not active, and after which the project went on for long, becomes chunks."""
        state = self._state.released()
        while state is not None and state.head.conversation.recent:
            self._compress(state, state.head.conversation.recent[: self._policy.short_term.chunk_messages])

    def put_chunk(self, state: ConversationState, chunk: ConversationChunk) -> None:
        """Keep a chunk of an import, in the place of the one that has its number."""
        slot = dict(state.head.chunks).get(chunk.first_number)
        if slot is not None and (known := state.chunk(chunk.first_number)).id != chunk.id:
            self.gone(CHUNK, slot, known.id, "imported", (chunk.conversation_id, ""))
        self._keep_chunk(state, chunk, slot, "imported")
        self._fit(state)

    def _compress(self, state: ConversationState, turns: list[int]) -> None:
        """Messages at hand become a chunk."""
        said = state.take(turns)
        self._change(state, recent=[turn for turn in state.head.conversation.recent if turn not in turns])
        if said:
            conversation_id, number = state.head.conversation.id, state.head.numbered + 1
            place = short_term.ChunkPlace(self._state.key, conversation_id, number, self.now)
            chunk = short_term.chunk_of(said, place, self._policy.short_term, self._rules.risk.risky_topics)
            self._keep_chunk(state, chunk, None, "created")
            self.ask_summary(chunk, said)
            self._fit(state)

    def chunk_summarised(self, state: ConversationState, answer: ProjectSummarised) -> None:
        """A slower summariser's words for a chunk that is what was asked for."""
        for number, slot in state.head.chunks:
            chunk = state.chunk(number)
            if short_term.is_as_asked(chunk, answer):
                chunk = short_term.told_anew(chunk, answer, self._policy.short_term)
                state.put_chunk(chunk, slot)
                self.item(chunk, slot, "summarised")

    def _fit(self, state: ConversationState) -> None:
        """The two oldest become one while there are too many."""
        policy, head = self._policy.short_term, state.head
        while len(head.chunks) > policy.max_chunks:
            (first, slot), (second, _) = head.chunks[:2]
            later, free = state.drop_chunk(second)
            self._state.slots.give(CHUNK, free)
            self._head.chunks -= 1
            self.gone(CHUNK, free, later.id, "merged", (later.conversation_id, ""))
            self._keep_chunk(state, short_term.merged(state.chunk(first), later, policy), slot, "merged")

    def _keep_chunk(
        self, state: ConversationState, chunk: ConversationChunk, slot: int | None, cause: ItemCause
    ) -> None:
        if slot is None:
            slot = self._state.slots.take(CHUNK)
            self._head.chunks += 1
        state.put_chunk(chunk, slot)
        self.item(chunk, slot, cause)
        self._change(state, chunks=len(state.head.chunks))
