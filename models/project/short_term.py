"""Short-term memory of a project: the last messages verbatim, older ones as chunks (project memory, Layer 2). Pure.

| condition | effect |
|---|---|
| more than `recent_messages` verbatim messages | the oldest `chunk_messages` become a chunk |
| more than `max_chunks` of a conversation | the two oldest are merged: `Earlier: … Then: …` |
| an inactive conversation, after `retention_turns` turns of the project | its remaining messages become chunks, too |
| a late turn | is inserted by its number, also before all verbatim messages |

The state of a conversation (`ConversationState`), a separate entity:

| part | content | written |
|---|---|---|
| `head` | the conversation, its slot, its chunks' slots | by each of its turns |
| `t<turn>` | a verbatim message | by its turn |
| `k<number>` | a chunk, by its first number | when it is created or merged |
| `w` | state of the detection of episodes | when it changes |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from models.events.base import Role
from models.events.ids import sortable_id
from models.events.project import ProjectSummarised
from models.events.project_items import ConversationChunk, ConversationStatus, ProjectConversation, ProjectEpisode
from models.language.narrative_detection import NarrativeState
from models.policy.project import ShortTermPolicy
from models.project.store import LAYOUT
from models.state.entity import HEAD, encode
from models.state.parts import Parts
from models.text.summary import Passage, summarise
from models.text.words import estimate_tokens

_EARLIER, _THEN = "Earlier: ", "\n\nThen: "


class RecentMessage(Struct, frozen=True, array_like=True, gc=False):
    """A verbatim turn, its content truncated to `message_chars`."""

    turn: int
    role: Role
    user_id: str
    content: str
    timestamp: datetime


class ChunkPlace(Struct, frozen=True, gc=False):
    """Identity of a new chunk, and its creation time."""

    key: str
    """Key of the project."""
    conversation_id: str
    number: int
    now: datetime


def chunk_of(
    messages: Sequence[RecentMessage], place: ChunkPlace, policy: ShortTermPolicy, risky: tuple[str, ...] = ()
) -> ConversationChunk:
    """Compress messages, oldest first; at least one."""
    sentence_chars = max(1, policy.summary_chars // policy.summary_sentences)
    said = summarise(
        [Passage(message.content) for message in messages],
        sentences=policy.summary_sentences,
        sentence_chars=sentence_chars,
        key_topics=policy.key_topics,
        risky=risky,
    )
    summary = cut_short(said.text, policy.summary_chars)
    times = [message.timestamp for message in messages]
    started_at = min(times)
    return ConversationChunk(
        id=sortable_id(started_at, place.key, "chunk", place.conversation_id, str(place.number)),
        conversation_id=place.conversation_id,
        first_number=place.number,
        last_number=place.number,
        first_turn=messages[0].turn,
        last_turn=messages[-1].turn,
        messages=len(messages),
        summary=summary,
        key_topics=said.key_topics,
        token_count=sum(estimate_tokens(message.content) for message in messages),
        summary_tokens=estimate_tokens(summary),
        started_at=started_at,
        ended_at=max(times),
        created_at=place.now,
    )


def is_as_asked(item: ConversationChunk | ProjectEpisode, answer: ProjectSummarised) -> bool:
    """Whether an item is unchanged since the request for its summary: neither extended nor merged."""
    said = (item.id, item.conversation_id, item.first_turn, item.last_turn)
    return said == (answer.item_id, answer.session_id, answer.first_turn, answer.last_turn)


def told_anew(chunk: ConversationChunk, answer: ProjectSummarised, policy: ShortTermPolicy) -> ConversationChunk:
    """The chunk with a slower summariser's summary, and with its topics if it has any."""
    summary = cut_short(answer.summary, policy.summary_chars)
    return msgspec.structs.replace(
        chunk,
        summary=summary,
        summarised_by=answer.summarised_by,
        key_topics=answer.key_topics[: policy.key_topics] or chunk.key_topics,
        summary_tokens=estimate_tokens(summary),
    )


def merged(earlier: ConversationChunk, later: ConversationChunk, policy: ShortTermPolicy) -> ConversationChunk:
    """Merge two adjacent chunks (project memory, Chunk Compression); the result has the earlier one's id."""
    summary = joined_in_order([*_passages(earlier.summary), *_passages(later.summary)], policy.merged_summary_chars)
    topics = list(dict.fromkeys([*earlier.key_topics, *later.key_topics]))
    return msgspec.structs.replace(
        earlier,
        last_number=later.last_number,
        first_turn=min(earlier.first_turn, later.first_turn),
        last_turn=max(earlier.last_turn, later.last_turn),
        messages=earlier.messages + later.messages,
        summary=summary,
        key_topics=topics[-policy.merged_key_topics :],
        token_count=earlier.token_count + later.token_count,
        summary_tokens=estimate_tokens(summary),
        started_at=min(earlier.started_at, later.started_at),
        ended_at=max(earlier.ended_at, later.ended_at),
    )


def joined_in_order(passages: Sequence[str], most_chars: int) -> str:
    r"""Summaries joined as in the source; if they are too long, the oldest ones are dropped.

    >>> joined_in_order(["We met.", "We built.", "We sang."], 100)
    'Earlier: We met.\n\nThen: We built.\n\nThen: We sang.'
    >>> joined_in_order(["We met.", "We built.", "We sang."], 40)
    'Earlier: We built.\n\nThen: We sang.'
    """
    kept = list(passages)
    while len(kept) > 1 and len(_EARLIER) + sum(map(len, kept)) + len(_THEN) * (len(kept) - 1) > most_chars:
        kept.pop(0)
    return cut_short(_EARLIER + _THEN.join(kept), most_chars)


def _passages(summary: str) -> list[str]:
    return summary.removeprefix(_EARLIER).split(_THEN)


def cut_short(text: str, most_chars: int) -> str:
    """The text, truncated with an ellipsis if it is too long."""
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"


def with_turn(conversation: ProjectConversation, turn: int, at: datetime) -> ProjectConversation:
    """The conversation after a turn, as active."""
    recent = conversation.recent
    place = len(recent)
    while place and recent[place - 1] > turn:
        place -= 1
    return msgspec.structs.replace(
        conversation,
        status="active",
        started_at=min(conversation.started_at, at),
        last_at=max(conversation.last_at, at),
        ended_at=None,
        total_turns=conversation.total_turns + 1,
        recent=[*recent[:place], turn, *recent[place:]],
    )


def with_status(
    conversation: ProjectConversation, status: ConversationStatus, at: datetime, summary: str = ""
) -> ProjectConversation:
    """The conversation in another state; only its first end counts."""
    if status == conversation.status and summary in {"", conversation.summary}:
        return conversation
    return msgspec.structs.replace(
        conversation,
        status=status,
        ended_at=max(conversation.last_at, at) if status == "ended" else None,
        summary=summary or conversation.summary,
    )


def named_in(names: Sequence[str], more: Sequence[str], most: int) -> list[str]:
    """Names and further ones after them, without repeats, at most the latest `most`.

    >>> named_in(["a", "b"], ["a", "c"], 2)
    ['a', 'c']
    """
    kept = [name for name in names if name not in more] + list(dict.fromkeys(more))
    return kept[len(kept) - most :] if most < len(kept) else kept


class ConversationHead(Struct, array_like=True):
    """State of a conversation without its messages and chunks."""

    conversation: ProjectConversation
    slot: int
    user_id: str = ""
    """User of its first turn."""
    numbered: int = 0
    """Number of chunks of all time, and number of the newest."""
    chunks: list[tuple[int, int]] = []
    """First number and slot of each existing chunk, in order."""


_WATCH = "w"


class ConversationState:
    """Working copy of one conversation.

    Attributes:
        head: Its head; `save` writes it.
    """

    def __init__(self, parts: Parts, head: ConversationHead) -> None:
        self._parts = parts
        self.head = head

    @classmethod
    def load(cls, parts: Parts) -> ConversationState | None:
        """The stored conversation; None if there is none."""
        head = LAYOUT.part(parts, HEAD, ConversationHead)
        return None if head is None else cls(parts, head)

    def save(self) -> None:
        """Write the head."""
        self._parts.put(HEAD, encode(self.head))

    def put(self, message: RecentMessage) -> None:
        """Store a message verbatim."""
        self._parts.put(f"t{message.turn}", encode(message))

    def message(self, turn: int) -> RecentMessage | None:
        """A verbatim message."""
        return LAYOUT.part(self._parts, f"t{turn}", RecentMessage)

    def messages(self, turns: Iterable[int]) -> list[RecentMessage]:
        """Verbatim messages, without those that an import lacks."""
        return [message for turn in turns if (message := self.message(turn)) is not None]

    def take(self, turns: Iterable[int]) -> list[RecentMessage]:
        """Remove messages from the short term and return them."""
        found = self.messages(turns)
        for message in found:
            self._parts.drop(f"t{message.turn}")
        return found

    def put_chunk(self, chunk: ConversationChunk, slot: int) -> None:
        """Store a chunk, new or changed."""
        head = self.head
        place = (chunk.first_number, slot)
        if place not in head.chunks:
            head.chunks = sorted([*head.chunks, place])
        head.numbered = max(head.numbered, chunk.last_number)
        self._parts.put(f"k{chunk.first_number}", encode(chunk))

    def chunk(self, number: int) -> ConversationChunk:
        """A chunk of the head, by its first number."""
        chunk = LAYOUT.part(self._parts, f"k{number}", ConversationChunk)
        assert chunk is not None, "the head and its parts are written together"  # noqa: S101
        return chunk

    def drop_chunk(self, number: int) -> tuple[ConversationChunk, int]:
        """Remove a chunk; returns it and its slot."""
        chunk = self.chunk(number)
        (slot,) = [slot for first, slot in self.head.chunks if first == number]
        self.head.chunks = [place for place in self.head.chunks if place[0] != number]
        self._parts.drop(f"k{number}")
        return chunk, slot

    def watch(self) -> NarrativeState:
        """State of episode detection; changed in place, then `keep_watch`."""
        return LAYOUT.part(self._parts, _WATCH, NarrativeState) or NarrativeState()

    def keep_watch(self, watch: NarrativeState) -> None:
        """Write the state of episode detection."""
        self._parts.put(_WATCH, encode(watch))

    def drop(self) -> None:
        """Delete everything of the conversation."""
        for name in self._parts.names(""):
            self._parts.drop(name)
