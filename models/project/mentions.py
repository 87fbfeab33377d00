"""Mentions of an event of project memory: sessions, users, and items of the project.

A memory is said in many conversations and by many people, so its events name more than the one session and user that
every output does. Erasing goes by this (`models.erasure`), and the archive keeps it in columns.
"""

from collections.abc import Iterator
from itertools import chain, product
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
    names = dict.fromkeys(_named(event))
    return Mentions(*(tuple(name for of, name in names if of == kind) for kind in (_SESSION, _USER, _ITEM)))


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
            yield from ((_ITEM, name) for name in (*event.archived_ids, *chain.from_iterable(event.merged)))
        case events.ProjectChanged():
            yield from product((_SESSION, _ITEM), (result.item_id for result in event.results if result.item_id))
        case events.ProjectAudited():
            yield _SESSION if event.action == _OF_CONVERSATIONS else _ITEM, event.item_id
        case events.ProjectImported():
            items: tuple[events.ProjectItem, ...]
            items = (*event.memories, *event.episodes, *event.chunks, *event.conversations, *event.pending)
            for item in items:
                yield _ITEM, item.id
                yield from _in_item(item)
            yield from chain.from_iterable(map(_in_fields, event.messages))
        case events.ProjectCommand():
            yield from _in_fields(event)
        case _:
            pass


def _in_item(item: events.ProjectItem) -> _Names:
    match item:
        case events.ProjectMemory():
            yield from chain.from_iterable(map(_in_fields, (*item.sources, *item.relationships)))
        case events.PendingFact():
            yield from _in_fields(item.source)
        case events.ProjectEpisode():
            yield from ((_USER, name) for name in item.participants if name not in _ROLES)
        case events.ProjectConversation():
            yield _SESSION, item.id
        case _:
            pass
    yield from _in_fields(item)


_NAMING = {
    **dict.fromkeys(("memory_id", "pending_id", "source_id", "target_id", "ids", "closed_by"), _ITEM),
    **dict.fromkeys(("conversation_id", "session_ids"), _SESSION),
    "user_id": _USER,
}
"""What the names in a field of a command, an item or a part of one are of."""


def _in_fields(of: Struct) -> _Names:
    for field, kind in _NAMING.items():
        value = getattr(of, field, ())
        yield from ((kind, name) for name in ([value] if isinstance(value, str) else value) if name or kind == _SESSION)
