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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import msgspec

from models import events
from models.project import saved

FORMAT_VERSION: Final = 1

_VERSION = "formatVersion"
_Path = tuple[str, ...]
_Item = TypeVar("_Item")
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
    """The four files, by name; equal projects give equal texts."""
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
    return {name: _text(array) for name, array in arrays.items()}


def read(files: Mapping[str, str]) -> saved.SavedProject:
    """The project that files have.

    Raises:
        ProjectFileError: One is damaged, newer, or contradicts itself; the message says which, where and what to do.
    """
    items = {name: [_Read(name, number, item) for number, item in _array(name, files)] for name in saved.FILES}
    real = [each for each in items[saved.CONVERSATIONS] if each.item.get("id") != ""]
    project = saved.SavedProject(
        memories=[each.as_a(events.ProjectMemory) for each in items[saved.MEMORIES]],
        episodes=[each.as_a(events.ProjectEpisode) for each in items[saved.EPISODES]],
        conversations=[each.as_a(events.ProjectConversation) for each in real],
        chunks=[each.as_a(events.ConversationChunk) for each in items[saved.CHUNKS]],
        pending=[fact for each in items[saved.CONVERSATIONS] for fact in each.pending()],
        messages={str(each.item["id"]): said for each in real if (said := each.messages("recentMessages"))},
        originals={str(each.item["id"]): said for each in items[saved.CHUNKS] if (said := each.messages("messages"))},
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


def _text(array: Sequence[Mapping[str, Any]]) -> str:
    return msgspec.json.format(msgspec.json.encode(array), indent=2).decode() + "\n"


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


def _array(name: str, files: Mapping[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Items of a file with their numbers, from 1."""
    if name not in files:
        return
    try:
        array = json.loads(files[name], parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"{name}, line {error.lineno}, column {error.colno}: {error.msg}"
        raise saved.ProjectFileError(
            f"{where}. The file is damaged: correct it there, or take another copy; nothing was imported."
        ) from None
    except (RecursionError, ValueError):
        saved.refuse(name, "is nested too deeply, or has a number that JSON does not know")
    if not isinstance(array, list):
        saved.refuse(name, "is no array of items")
    for number, item in enumerate(array, start=1):
        if not isinstance(item, dict):
            saved.refuse(f"{name}, item {number}", "is no object")
        version = item.get(_VERSION, FORMAT_VERSION)
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise saved.ProjectFileError(
                f"{name}, item {number}: its {_VERSION} is not one that this release reads (up to {FORMAT_VERSION}). "
                "Upgrade turntide, or export the project with the release that is here; nothing was imported."
            )
        yield number, item


class _Read(NamedTuple):
    """An item of a file on its way in."""

    file: str
    number: int
    item: dict[str, Any]

    def as_a(self, kind: type[Any]) -> Any:
        """The item."""
        return _converted(f"{self.file}, item {self.number}", self.item, kind)

    def pending(self) -> list[events.PendingFact]:
        """Facts that wait, of a conversation."""
        facts, where = self._list("pendingFacts", dict[str, Any]), f"{self.file}, item {self.number}, pendingFacts"
        return [_converted(f"{where} {number}", fact, events.PendingFact) for number, fact in enumerate(facts, start=1)]

    def messages(self, name: str) -> list[saved.SavedMessage]:
        """Messages at hand, of a conversation, or those of a chunk."""
        return self._list(name, saved.SavedMessage)

    def _list(self, name: str, kind: type[_Item]) -> list[_Item]:
        return _checked(f"{self.file}, item {self.number}, {name}", self.item.get(name, []), list[kind])  # type: ignore[valid-type]


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
        saved.refuse(where, f"has fields that are not known: {', '.join(unknown)}")
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
