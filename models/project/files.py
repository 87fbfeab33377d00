"""A project as four human-readable JSON files (project memory, Storage Structure), and back. Pure: texts in, texts out.

Each file is an array. Names are the source's: camelCase, `metadata` and `conversationRef` nested. Beyond the source:

| where | what |
|---|---|
| every item | `formatVersion`, 1; without it an item counts as 1, a higher one is refused |
| a memory | `metadata.source`: where it was said first; `metadata.furtherSources`: where again |
| a conversation | `recentTurns`: numbers of the turns at hand; `recentMessages`: their texts, where they are known |
| a conversation | `pendingFacts`: facts of it that wait to be promoted |
| `conversations.json` | an entry with the id "" has pending facts of conversations that are no longer kept |
| a chunk | `messageCount`; `messages`: the originals, where they are known and it was not merged |

Fields that do not hold are left out, embeddings too: they are made anew. What is written and read is equal, item by
item. All files are read and checked before anything is given back, so nothing is imported by half.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from models import events
from models.project import saved

FORMAT_VERSION: Final = 1

_VERSION = "formatVersion"
_Path = tuple[str, ...]
_Item = TypeVar("_Item")
_Placed = tuple[str, dict[str, Any]]
"""An item of a file, and where it stands, for what is refused."""
_METADATA = ("importance", "access_count", "last_accessed_at", "decay_factor", "tokens")
_NESTED: dict[type, dict[str, _Path]] = {
    events.ProjectMemory: dict.fromkeys(_METADATA, ("metadata", "")),
    events.ProjectEpisode: {
        "conversation_id": ("conversationRef", "conversationId"),
        "first_turn": ("conversationRef", "turnRange", "start"),
        "last_turn": ("conversationRef", "turnRange", "end"),
        **dict.fromkeys(("access_count", "last_accessed_at", "tokens"), ("metadata", "")),
    },
    events.ConversationChunk: {
        "first_number": ("chunkNumber",),
        "last_number": ("lastChunkNumber",),
        "first_turn": ("turnRange", "start"),
        "last_turn": ("turnRange", "end"),
        "messages": ("messageCount",),
    },
    events.ProjectConversation: {"recent": ("recentTurns",), "chunks": ("chunkCount",)},
    events.PendingFact: {},
}
"""Where a field stands in the files, if not under its own name in camelCase; "" is that name."""
_BESIDE: dict[type, frozenset[str]] = {
    events.ProjectMemory: frozenset({"metadata.embedding"}),
    events.ProjectEpisode: frozenset({"type", "metadata.embedding"}),
    events.ConversationChunk: frozenset({"messages"}),
    events.ProjectConversation: frozenset({"projectId", "recentMessages", "pendingFacts"}),
    events.PendingFact: frozenset({"promoted"}),
}
"""What an item may have in the files that is no field of its own."""


def written(project: saved.SavedProject, project_id: str) -> dict[str, str]:
    """The four files, by name; equal projects give equal texts.

    Args:
        project: What is to be kept.
        project_id: Its name, for readers: an import may give it another.
    """
    waiting: dict[str, list[dict[str, Any]]] = {each.id: [] for each in project.conversations}
    for fact in project.pending:
        place = fact.source.conversation_id if fact.source.conversation_id in waiting else ""
        waiting.setdefault(place, []).append(_shown(fact))
    conversations = [
        {
            **_marked(each),
            "projectId": project_id,
            "recentMessages": msgspec.to_builtins(project.messages.get(each.id, [])),
            "pendingFacts": waiting[each.id],
        }
        for each in project.conversations
    ]
    if waiting.get(""):
        conversations.append({_VERSION: FORMAT_VERSION, "id": "", "pendingFacts": waiting[""]})
    arrays = {
        saved.MEMORIES: list(map(_marked, project.memories)),
        saved.EPISODES: [{**_marked(each), "type": "episode"} for each in project.episodes],
        saved.CONVERSATIONS: conversations,
        saved.CHUNKS: [
            _marked(each)
            | ({"messages": msgspec.to_builtins(said)} if (said := project.originals.get(each.id)) else {})
            for each in project.chunks
        ],
    }
    texts = ((name, msgspec.json.format(msgspec.json.encode(each), indent=2)) for name, each in arrays.items())
    return {name: f"{text.decode()}\n" for name, text in texts}


def read(files: Mapping[str, str]) -> saved.SavedProject:
    """The project that files have.

    Args:
        files: Texts by name; a file that is missing has nothing in it.

    Raises:
        ProjectFileError: One is damaged, newer, or contradicts itself; the message says which, where and what to do.
    """
    items = {name: list(_items_of(name, files)) for name in saved.FILES}
    talks = items[saved.CONVERSATIONS]
    real = [(where, item) for where, item in talks if item.get("id") != ""]
    facts = (
        (f"{where}, pendingFacts {number}", fact)
        for where, item in talks
        for number, fact in enumerate(_list_in(where, item, "pendingFacts", dict[str, Any]), start=1)
    )
    project = saved.SavedProject(
        memories=_all_as(events.ProjectMemory, items[saved.MEMORIES]),
        episodes=_all_as(events.ProjectEpisode, items[saved.EPISODES]),
        conversations=_all_as(events.ProjectConversation, real),
        chunks=_all_as(events.ConversationChunk, items[saved.CHUNKS]),
        pending=_all_as(events.PendingFact, facts),
        messages=_messages(real, "recentMessages"),
        originals=_messages(items[saved.CHUNKS], "messages"),
    )
    saved.require_sound(project)
    return project


# --- writing


def _marked(item: events.ProjectItem) -> dict[str, Any]:
    return {_VERSION: FORMAT_VERSION, **_shown(item)}


def _shown(item: events.ProjectItem) -> dict[str, Any]:
    """An item under the files' names."""
    shown: dict[str, Any] = {}
    fields = msgspec.to_builtins(item)
    sources = fields.pop("sources", [])
    for name, value in fields.items():
        if value is not None:
            *outer, last = _place(type(item), name)
            inside = shown
            for each in outer:
                inside = inside.setdefault(each, {})
            inside[last] = _renamed(value, _camel)
    if sources:
        source, *further = _renamed(sources, _camel)
        shown["metadata"] |= {"source": source} | ({"furtherSources": further} if further else {})
    return shown


def _place(kind: type, name: str) -> _Path:
    *outer, last = _NESTED[kind].get(name, ("",))
    return (*outer, last or _camel(name))


def _camel(name: str) -> str:
    """A field's name in the files.

    >>> _camel("last_accessed_at"), _snake("lastAccessedAt")
    ('lastAccessedAt', 'last_accessed_at')
    """
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _renamed(value: Any, rename: Any) -> Any:
    """Keys of what is nested in a field."""
    if isinstance(value, Mapping):
        return {rename(key): _renamed(each, rename) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, rename) for each in value]
    return value


# --- reading


def _items_of(name: str, files: Mapping[str, str]) -> Iterator[_Placed]:
    """Items of a file, and where they stand."""
    if name not in files:
        return
    try:
        array = json.loads(files[name], parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"{name}, line {error.lineno}, column {error.colno}: {error.msg}"
        raise saved.ProjectFileError(
            f"{where}. The file is damaged: correct it, or use another copy; nothing was imported."
        ) from None
    except (RecursionError, ValueError):
        saved.refuse(name, "is nested too deeply, or has a number outside JSON")
    if not isinstance(array, list):
        saved.refuse(name, "is not an array of items")
    for number, item in enumerate(array, start=1):
        where = f"{name}, item {number}"
        if not isinstance(item, dict):
            saved.refuse(where, "is not an object")
        version = item.get(_VERSION, FORMAT_VERSION)
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise saved.ProjectFileError(
                f"{where}: this release cannot read its {_VERSION} (it reads up to {FORMAT_VERSION}). "
                "Upgrade turntide, or export the project with this release; nothing was imported."
            )
        yield where, item


def _list_in(where: str, item: Mapping[str, Any], name: str, kind: type[_Item]) -> list[_Item]:
    return _checked(f"{where}, {name}", item.get(name, []), list[kind])  # type: ignore[valid-type]


def _messages(items: Iterable[_Placed], name: str) -> dict[str, list[saved.SavedMessage]]:
    found = {str(item["id"]): _list_in(where, item, name, saved.SavedMessage) for where, item in items}
    return {item_id: said for item_id, said in found.items() if said}


def _all_as(kind: type[Any], items: Iterable[_Placed]) -> list[Any]:
    return [_converted(where, item, kind) for where, item in items]


def _converted(where: str, item: Mapping[str, Any], kind: type[Any]) -> Any:
    given = dict(_flat(item))
    given.pop(_VERSION, None)
    fields: dict[str, Any] = {}
    for name in kind.__struct_fields__:
        place = ".".join(_place(kind, name))
        if place in given:
            fields[name] = _renamed(given.pop(place), _snake)
    if kind is events.ProjectMemory:
        first, further = given.pop("metadata.source", None), given.pop("metadata.furtherSources", [])
        fields["sources"] = _renamed([*([] if first is None else [first]), *further], _snake)
    unknown = sorted(set(given) - _BESIDE[kind])
    if unknown:
        saved.refuse(where, f"has unknown fields: {', '.join(unknown)}")
    return _checked(where, fields, kind)


def _checked(where: str, value: object, kind: type[_Item]) -> _Item:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        saved.refuse(where, f"is wrong: {error}")


def _flat(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields with their paths, down to those that are values of their own."""
    for key, value in item.items():
        if key in {"metadata", "conversationRef", "turnRange"} and isinstance(value, Mapping):
            for path, inner in _flat(value):
                yield f"{key}.{path}", inner
        else:
            yield key, value


def _no_number(_name: str) -> NoReturn:
    """`NaN` and `Infinity` are Python's, not JSON's."""
    raise ValueError
