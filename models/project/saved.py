"""A saved project before it is written to files or sent: what it holds, whether it is sound, and in which pieces.

What would be lost if what was taken in of one were saved in its place (`losses`):

| of an item | is lost |
|---|---|
| it is not there | all of it: the policy has no room, or another says the same |
| a text or a list is shorter | what the policy cuts off |
| a time, a number, a state differs | nothing: it follows from the rest |
| what leads to a memory that the files do not have | nothing |
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from models import events
from models.errors import ConfigurationError
from models.events.fields import UtcTime
from models.project.view import ProjectView

MEMORIES, EPISODES = "long-term-memory.json", "episodic-memory.json"
CONVERSATIONS, CHUNKS = "conversations.json", "conversation-chunks.json"
FILES: Final = (MEMORIES, EPISODES, CONVERSATIONS, CHUNKS)
_ACYCLIC = (events.DEPENDS_ON, events.SUPERSEDES)
_FILE_OF: Final = {
    "memories": MEMORIES, "episodes": EPISODES, "conversations": CONVERSATIONS, "chunks": CHUNKS,
    "pending": CONVERSATIONS,
}  # fmt: skip
"""Kind of items → the file that has them."""
_SENT = ("conversations", "chunks", "episodes", "pending")
"""After the memories, which they name."""


class ProjectFileError(ConfigurationError):
    """A file is damaged, newer than this release, or contradicts itself; nothing of the project was taken."""


class SavedMessage(Struct, frozen=True, kw_only=True, rename="camel"):
    """A message at hand (project memory, `ConversationMessage`)."""

    turn: int
    role: events.Role
    content: str
    timestamp: UtcTime
    user_id: str = ""


class SavedProject(Struct, frozen=True, kw_only=True):
    """Content of a project's files."""

    memories: list[events.ProjectMemory] = []
    episodes: list[events.ProjectEpisode] = []
    conversations: list[events.ProjectConversation] = []
    chunks: list[events.ConversationChunk] = []
    pending: list[events.PendingFact] = []
    messages: dict[str, list[SavedMessage]] = {}
    """Conversation → its messages at hand, as far as they are known."""
    originals: dict[str, list[SavedMessage]] = {}
    """Chunk → the messages it was made of, as far as they are known: for readers, no import sends them."""

    @property
    def count(self) -> int:
        """Items in it; messages are none."""
        return sum(len(getattr(self, name)) for name in _FILE_OF)


def saved_of(view: ProjectView, said: Mapping[str, Mapping[int, SavedMessage]]) -> SavedProject:
    """A project as it is now, by id, with its messages (`with_messages`)."""
    items: dict[str, Any] = {name: [each for _, each in sorted(getattr(view, name).items())] for name in _FILE_OF}
    return with_messages(SavedProject(**items), said)


def with_messages(project: SavedProject, said: Mapping[str, Mapping[int, SavedMessage]]) -> SavedProject:
    """The project with those of the messages (conversation → turn → message) that are at hand or in its chunks."""
    at_hand = {
        each.id: [texts[turn] for turn in each.recent if turn in texts]
        for each in sorted(project.conversations, key=lambda each: each.id)
        if (texts := said.get(each.id))
    }
    originals = {each.id: originals_of(each, said.get(each.conversation_id, {})) for each in project.chunks}
    return msgspec.structs.replace(
        project,
        messages={name: messages for name, messages in at_hand.items() if messages},
        originals={name: messages for name, messages in originals.items() if messages},
    )


def originals_of(chunk: events.ConversationChunk, said: Mapping[int, SavedMessage]) -> list[SavedMessage]:
    """The messages of a chunk, in order; of one that was merged none (project memory, Chunk Compression)."""
    if chunk.first_number != chunk.last_number:
        return []
    return [said[turn] for turn in sorted(said) if chunk.first_turn <= turn <= chunk.last_turn]


Batch = dict[str, list[events.ProjectItem | events.ImportedMessage]]
"""Field of `ProjectImported` → what it brings."""


def batches(project: SavedProject, most_items: int, most_bytes: int) -> Iterator[Batch]:
    """A project in pieces, in an order in which each finds what it refers to.

    Memories whose relationships lead to later ones come again at the end: an end that is not there yet would be left
    out. A piece holds `most_items` at the most, and fewer where their JSON is larger than `most_bytes`, but for a
    single item that is.
    """
    placed: set[str] = set()
    again: list[events.ProjectMemory] = []
    sequence: list[tuple[str, events.ProjectItem | events.ImportedMessage]] = []
    for memory in project.memories:
        placed.add(memory.id)
        sequence.append(("memories", memory))
        if any(each.target_id not in placed for each in memory.relationships):
            again.append(memory)
    sequence += [("memories", memory) for memory in again]
    for name in _SENT:
        sequence += [(name, item) for item in getattr(project, name)]
    sequence += [("messages", message) for message in _messages(project)]
    batch: Batch = {}
    items = size = 0
    for name, item in sequence:
        item_bytes = len(msgspec.json.encode(item)) + 1
        if items and (items >= most_items or size + item_bytes > most_bytes):
            yield batch
            batch, items, size = {}, 0, 0
        batch.setdefault(name, []).append(item)
        items, size = items + 1, size + item_bytes
    if batch:
        yield batch


def _messages(project: SavedProject) -> Iterator[events.ImportedMessage]:
    for name, said in project.messages.items():
        for each in said:
            fields = msgspec.structs.asdict(each) | {"content": each.content[: events.MOST_MESSAGE_CHARS]}
            yield events.ImportedMessage(conversation_id=name, **fields)


def require_sound(project: SavedProject) -> None:
    """Refuse what contradicts itself.

    Raises:
        ProjectFileError: An id twice, an end before its beginning, a relationship to itself or in a circle.
    """
    for kind, name in _FILE_OF.items():
        twice = [each for each, count in Counter(each.id for each in getattr(project, kind)).items() if count > 1]
        if twice:
            refuse(name, f"has the id {twice[0]} twice")
    for memory in project.memories:
        if memory.valid_until is not None and memory.valid_until <= memory.valid_from:
            refuse(f"{MEMORIES}, {memory.id}", "has a validUntil that is not after its validFrom")
        if any(each.target_id == memory.id for each in memory.relationships):
            refuse(f"{MEMORIES}, {memory.id}", "has a relationship to itself")
    for relation in _ACYCLIC:
        ends = {
            memory.id: [each.target_id for each in memory.relationships if each.type == relation]
            for memory in project.memories
        }
        try:
            TopologicalSorter(ends).prepare()
        except CycleError as error:
            refuse(MEMORIES, f"has a cycle of {relation}: {' → '.join(reversed(error.args[1]))}")


def refuse(where: str, what: str) -> NoReturn:
    """Say what is wrong, where, and what to do.

    Raises:
        ProjectFileError: Always.
    """
    raise ProjectFileError(f"{where} {what}. Correct it, or use another copy; nothing was imported.")


def losses(given: SavedProject, kept: SavedProject) -> list[str]:
    """Count the items of each kind that are cut or missing; messages at hand are one kind.

    Args:
        given: As it was read.
        kept: As it would be written.
    """
    known = {memory.id for memory in given.memories}
    found: dict[str, int] = {}
    for name in _FILE_OF:
        there = {each.id: each for each in getattr(kept, name)}
        found[name] = sum(_shorter(_closed(each, known), there.get(each.id)) for each in getattr(given, name))
    found["messages"] = sum(
        _shorter(said, next((each for each in kept.messages.get(name, []) if each.turn == said.turn), None))
        for name, messages in given.messages.items()
        for said in messages
    )
    return [f"{count} {name}" for name, count in found.items() if count]


def _closed(item: Struct, known: set[str]) -> Struct:
    """The item without what leads nowhere."""
    if not isinstance(item, events.ProjectMemory):
        return item
    return msgspec.structs.replace(
        item,
        relationships=[each for each in item.relationships if each.target_id in known],
        closed_by=item.closed_by if item.closed_by in known else "",
    )


def _shorter(given: Any, kept: Any) -> bool:
    if isinstance(given, Struct):
        return kept is None or _shorter(msgspec.structs.asdict(given), msgspec.structs.asdict(kept))
    if isinstance(given, Mapping):
        return any(_shorter(value, kept[name]) for name, value in given.items())
    if isinstance(given, list):
        return len(kept) < len(given) or any(map(_shorter, given, kept))
    return isinstance(given, str) and len(kept or "") < len(given)
