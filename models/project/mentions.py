"""Mentions of an event of project memory: sessions, users, and items of the project.

A memory is said in many conversations and by many people, so its events name more than the one session and user that
every output does. Erasing goes by this (`models.erasure`), and the archive keeps it in columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from models import events
from models.wire.envelope import tag_of

_ROLES = frozenset(role.value for role in events.Role)
_OF_CONVERSATIONS = tag_of(events.ConversationStatusSet)


class Mentions(NamedTuple):
    """Names that an event mentions, each once.

    Attributes:
        sessions: Conversations; an empty name for what somebody added by hand.
        users: Who said it or took part, beside the event's own user.
        items: Ids of other items of the project; of an item that is gone its own.
    """

    sessions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    items: tuple[str, ...] = ()


_Names = Iterator[tuple[str, str]]
_SESSION, _USER, _ITEM = "session", "user", "item"


def mentions(event: Struct) -> Mentions:
    """Collect the names that an event mentions; of an event that is no project's only the session.

    | event | beside its own session |
    |---|---|
    | item | sessions and users of all its sources, ends of its relationships, what superseded it |
    | item that is gone | the item |
    | import | all that its items mention, and the items |
    | command or audit of an item, access, consolidation | the items |
    | status of a conversation, and its audit | the conversation |
    | standing of a project | what the last commands by hand were about, items or conversations |
    """
    names = [*_named(event)]
    by_kind = {kind: dict.fromkeys(name for of, name in names if of == kind) for kind in (_SESSION, _USER, _ITEM)}
    return Mentions(tuple(by_kind[_SESSION]), tuple(by_kind[_USER]), tuple(by_kind[_ITEM]))


def item_of(event: events.ProjectItemChanged) -> events.ProjectItem | None:
    """The item as it is now; None if it is gone."""
    return event.memory or event.episode or event.chunk or event.conversation or event.pending


def _named(event: Struct) -> _Names:
    if session := getattr(event, "session_id", ""):
        yield _SESSION, session
    match event:
        case events.ProjectItemChanged():
            present = item_of(event)
            yield from _in_item(present) if present is not None else [(_ITEM, event.item_id)]
            if event.kind == "conversation":
                yield _SESSION, event.item_id
        case events.ProjectConsolidated():
            yield from _all(_ITEM, (*event.archived_ids, *(each for merged in event.merged for each in merged)))
        case events.ProjectChanged():
            names = [result.item_id for result in event.results if result.item_id]
            yield from (*_all(_SESSION, names), *_all(_ITEM, names))
        case events.ProjectAudited():
            yield _SESSION if event.action == _OF_CONVERSATIONS else _ITEM, event.item_id
        case events.ProjectCommand():
            yield from _in_command(event)
        case _:
            pass


def _in_command(event: events.ProjectCommand) -> _Names:
    match event:
        case events.ProjectImported():
            yield from _in_import(event)
        case events.MemoriesAccessed():
            yield from _all(_ITEM, event.ids)
        case events.ProjectMemoryEdited() | events.ProjectMemoryDeleted():
            yield _ITEM, event.memory_id
        case events.PendingFactDecided():
            yield _ITEM, event.pending_id
        case events.RelationshipSet():
            yield from _all(_ITEM, (event.source_id, event.target_id))
        case events.ConversationStatusSet():
            yield _SESSION, event.conversation_id
        case events.ProjectSessionErased():
            yield from _all(_SESSION, event.session_ids)
        case _:
            pass


def _in_import(event: events.ProjectImported) -> _Names:
    for item in _imported(event):
        yield _ITEM, item.id
        yield from _in_item(item)
    yield from _all(_SESSION, (said.conversation_id for said in event.messages))
    yield from _all(_USER, (said.user_id for said in event.messages if said.user_id))


def _imported(event: events.ProjectImported) -> Iterator[events.ProjectItem]:
    yield from event.memories
    yield from event.episodes
    yield from event.chunks
    yield from event.conversations
    yield from event.pending


def _in_item(item: events.ProjectItem) -> _Names:
    match item:
        case events.ProjectMemory():
            yield from _all(_SESSION, (source.conversation_id for source in item.sources))
            yield from _all(_USER, (source.user_id for source in item.sources if source.user_id))
            yield from _all(_ITEM, (edge.target_id for edge in item.relationships))
            if item.closed_by:
                yield _ITEM, item.closed_by
        case events.PendingFact():
            yield _SESSION, item.source.conversation_id
            if item.source.user_id:
                yield _USER, item.source.user_id
        case events.ProjectEpisode():
            yield _SESSION, item.conversation_id
            yield from _all(_USER, (name for name in item.participants if name not in _ROLES))
        case events.ConversationChunk():
            yield _SESSION, item.conversation_id
        case events.ProjectConversation():
            yield _SESSION, item.id


def _all(kind: str, names: Iterable[str]) -> _Names:
    return ((kind, name) for name in names)
