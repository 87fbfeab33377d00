"""The state of one conversation of a project: an entity of its own.

| part | content | written |
|---|---|---|
| `head` | the conversation, its place, its chunks' places | by each of its turns |
| `t<turn>` | messages at hand, one each | by its turn |
| `k<number>` | chunks by their first number | when one comes or merges |
| `w` | what detection of episodes remembers between turns | when it changes |
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from models.events.project_items import ConversationChunk, ProjectConversation
from models.project.narrative import NarrativeState
from models.project.short_term import RecentMessage
from models.project.store import decoded
from models.state.entity import HEAD, encode
from models.state.parts import Parts


class ConversationHead(Struct, array_like=True):
    """What is kept of a conversation beside its messages and chunks."""

    conversation: ProjectConversation
    slot: int
    user_id: str = ""
    """Who spoke first in it."""
    numbered: int = 0
    """Chunks of all time; the newest has this number."""
    chunks: list[tuple[int, int]] = []
    """First number and place of each present one, in order."""


_decode_head = msgspec.msgpack.Decoder(ConversationHead).decode
_decode_message = msgspec.msgpack.Decoder(RecentMessage).decode
_decode_chunk = msgspec.msgpack.Decoder(ConversationChunk).decode
_decode_watch = msgspec.msgpack.Decoder(NarrativeState).decode
_WATCH = "w"


class ConversationState:
    """Working copy of one conversation.

    Attributes:
        head: What is known of it; `save` writes it.
    """

    def __init__(self, parts: Parts, head: ConversationHead) -> None:
        self._parts = parts
        self.head = head

    @classmethod
    def load(cls, parts: Parts) -> ConversationState | None:
        """The stored conversation; None if there is none."""
        data = parts.get(HEAD)
        return None if data is None else cls(parts, decoded("conversation", data, _decode_head))

    def save(self) -> None:
        """Write the head."""
        self._parts.put(HEAD, encode(self.head))

    def put(self, message: RecentMessage) -> None:
        """Keep a message verbatim."""
        self._parts.put(f"t{message.turn}", encode(message))

    def message(self, turn: int) -> RecentMessage | None:
        """A message at hand."""
        data = self._parts.get(f"t{turn}")
        return None if data is None else decoded(f"t{turn}", data, _decode_message)

    def take(self, turns: Iterable[int]) -> list[RecentMessage]:
        """Messages that leave the short term; those that an import does not have are left out."""
        found = [message for turn in turns if (message := self.message(turn)) is not None]
        for message in found:
            self._parts.drop(f"t{message.turn}")
        return found

    def put_chunk(self, chunk: ConversationChunk, slot: int) -> None:
        """Keep a chunk, new or as it is now."""
        head = self.head
        place = (chunk.first_number, slot)
        if place not in head.chunks:
            head.chunks = sorted([*head.chunks, place])
        head.numbered = max(head.numbered, chunk.last_number)
        self._parts.put(f"k{chunk.first_number}", encode(chunk))

    def chunk(self, number: int) -> ConversationChunk:
        """A chunk that the head names, by its first number."""
        data = self._parts.get(f"k{number}")
        assert data is not None, "the head and its parts are written together"  # noqa: S101
        return decoded(f"k{number}", data, _decode_chunk)

    def drop_chunk(self, number: int) -> tuple[ConversationChunk, int]:
        """Let go of a chunk; gives it and its place."""
        chunk = self.chunk(number)
        (slot,) = [slot for first, slot in self.head.chunks if first == number]
        self.head.chunks = [place for place in self.head.chunks if place[0] != number]
        self._parts.drop(f"k{number}")
        return chunk, slot

    def watch(self) -> NarrativeState:
        """What detection remembers; changed in place, then `keep_watch`."""
        data = self._parts.get(_WATCH)
        return NarrativeState() if data is None else decoded(_WATCH, data, _decode_watch)

    def keep_watch(self, watch: NarrativeState) -> None:
        """Write it."""
        self._parts.put(_WATCH, encode(watch))

    def drop(self) -> None:
        """Everything of the conversation goes."""
        for name in self._parts.names(""):
            self._parts.drop(name)
