"""A project as four JSON files: names, round trip, and files that are damaged, newer or contradict themselves."""

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from models import events
from models.project.files import FORMAT_VERSION, read, written
from models.project.saved import (
    CHUNKS,
    CONVERSATIONS,
    EPISODES,
    FILES,
    MEMORIES,
    ProjectFileError,
    SavedMessage,
    SavedProject,
    batches,
)
from tests.support.blank_events import blank
from tests.support.project_found import memory

AT = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def _ids(letter: str, number: int) -> str:
    return f"{letter}{number:07}-00000000"


_TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware
_NAMES = st.sampled_from(["s1", "s2", "gone"])
_GIVEN: dict[str, st.SearchStrategy[Any]] = {
    "id": st.just("x-0"),
    "conversation_id": _NAMES,
    "valid_from": st.just(AT),
    "valid_until": st.none() | st.just(datetime(2027, 1, 1, tzinfo=UTC)),
    "closed_by": st.sampled_from(["", _ids("m", 0)]),
    "linked_memories": st.lists(st.just(_ids("m", 0)), max_size=1),
    "relationships": st.builds(list),
}
"""Fields that must fit others."""


def any_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any value of a struct, but for fields that must fit others."""
    return _any(inspect.type_info(kind))


def _any(kind: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one for each kind of type
    match kind:
        case inspect.StructType():
            return st.builds(kind.cls, **{f.name: _GIVEN.get(f.name, _any(f.type)) for f in kind.fields})
        case inspect.ListType():
            return st.lists(_any(kind.item_type), max_size=2)
        case inspect.UnionType():
            return st.one_of([_any(each) for each in kind.types])
        case inspect.Metadata():
            return _any(kind.type)
        case inspect.EnumType():
            return st.sampled_from(kind.cls)
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.FloatType():
            return st.floats(-1 if kind.ge is None else kind.ge, 1)
        case inspect.IntType():
            return st.integers(0, 10**6)
        case inspect.StrType():
            return st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
    return {inspect.BoolType: st.booleans(), inspect.DateTimeType: _TIMES, inspect.NoneType: st.none()}[type(kind)]


def _numbered(letter: str, made: list[Any]) -> list[Any]:
    return [msgspec.structs.replace(each, id=_ids(letter, n)) for n, each in enumerate(made)]


@st.composite
def projects(draw: st.DrawFn) -> SavedProject:
    """Any project; relationships lead to later memories, so that none goes in a circle; a conversation may be gone."""
    memories = _numbered("m", draw(st.lists(any_of(events.ProjectMemory), max_size=4)))
    for kept, later in pairwise(memories):
        if draw(st.booleans()):
            edge = events.Relationship(
                target_id=later.id, type="depends_on", strength=draw(st.floats(0, 1)), created_at=AT
            )
            kept.relationships.append(edge)
    conversations = ["s1", "s2"][: draw(st.integers(1, 2))]
    talks = [msgspec.structs.replace(draw(any_of(events.ProjectConversation)), id=name) for name in conversations]
    messages = st.lists(any_of(SavedMessage), min_size=1, max_size=2)
    places = ["s1", "s2", "gone"] if len(talks) > 1 else ["s1", "gone", "s2"]
    return SavedProject(
        memories=memories,
        episodes=_numbered("e", draw(st.lists(any_of(events.ProjectEpisode), max_size=2))),
        conversations=talks,
        chunks=_numbered("k", draw(st.lists(any_of(events.ConversationChunk), max_size=2))),
        pending=sorted(
            _numbered("p", draw(st.lists(any_of(events.PendingFact), max_size=3))),
            key=lambda fact: places.index(fact.source.conversation_id),
        ),
        messages={"s1": draw(messages)} if draw(st.booleans()) else {},
    )


@pytest.mark.behaviour("project-20")
@given(projects())
def test_what_is_written_is_read_again(project: SavedProject) -> None:
    """Item by item, whatever they hold; and the files of the same project are the same."""
    files = written(project, "web")
    again = read(files)

    assert msgspec.structs.replace(again, pending=[]) == msgspec.structs.replace(project, pending=[])
    assert sorted(each.id for each in again.pending) == sorted(each.id for each in project.pending)
    assert written(again, "web") == files


@given(projects(), st.integers(1, 4))
def test_pieces_have_all_and_each_finds_what_it_refers_to(project: SavedProject, most: int) -> None:
    """No piece is too large; when the last is in, every relationship had its end when its memory came last."""
    pieces = list(batches(project, most, 10**9))
    items = [item for piece in pieces for each in piece.values() for item in each]
    last = {item.id: item for item in items if not isinstance(item, events.ImportedMessage)}
    said = [item for item in items if isinstance(item, events.ImportedMessage)]
    placed: set[str] = set()
    unmet: dict[str, bool] = {}
    for piece in pieces:
        for kept in piece.get("memories", []):
            assert isinstance(kept, events.ProjectMemory)
            placed.add(kept.id)
            unmet[kept.id] = any(each.target_id not in placed for each in kept.relationships)

    assert all(sum(map(len, piece.values())) <= most for piece in pieces)
    assert len(last) == project.count
    assert [(each.conversation_id, each.turn, each.content) for each in said] == [
        (name, each.turn, each.content) for name, messages in project.messages.items() for each in messages
    ]
    assert not any(unmet.values())


def saved() -> SavedProject:
    """One memory, said in a conversation that is kept, and a fact of one that is not."""
    source = events.MemorySource(conversation_id="s1", turn=2, role="user", user_id="u", said_at=AT)
    said = memory(
        0, "We use PostgreSQL.", kind=events.MemoryType.DECISION, at=AT, id="m0-0", importance=0.7, sources=[source]
    )
    elsewhere = msgspec.structs.replace(source, conversation_id="gone")
    fact = blank(events.PendingFact, id="p0-0", content="Maybe Redis.", source=elsewhere, extracted_at=AT)
    return SavedProject(memories=[said], pending=[fact])


@pytest.mark.behaviour("project-20")
def test_the_names_are_the_seeds() -> None:
    """camelCase; metadata, source and access nested as `LongTermMemory` and `ItemMetadata` have them."""
    files = written(saved(), "web")
    (kept,) = json.loads(files[MEMORIES])
    (rest,) = json.loads(files[CONVERSATIONS])

    assert set(files) == set(FILES)
    assert {**kept["metadata"], "source": None} == {
        "source": None,
        "importance": 0.7,
        "accessCount": 0,
        "lastAccessedAt": "2026-01-05T09:30:00Z",
        "decayFactor": 1.0,
        "tokens": 0,
    }
    assert kept["metadata"]["source"]["conversationId"] == "s1"
    assert (kept["validFrom"], kept["formatVersion"]) == ("2026-01-05T09:30:00Z", FORMAT_VERSION)
    assert "validUntil" not in kept
    assert (rest["id"], [each["content"] for each in rest["pendingFacts"]]) == ("", ["Maybe Redis."])
    assert files[MEMORIES].startswith('[\n  {\n    "formatVersion"')


def _leading_to(target: str) -> dict[str, Any]:
    edge = {"targetId": target, "type": "depends_on", "createdAt": "2026-01-05T09:30:00Z"}
    return {"relationships": [edge]}


def _changed(file: str, change: Any) -> dict[str, str]:
    files = written(saved(), "web")
    items = json.loads(files[file])
    change(items)
    return files | {file: json.dumps(items)}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({MEMORIES: '[\n  {"id": }\n]'}, "long-term-memory.json, line 2, column 10"),
        ({EPISODES: '{"id": "x"}'}, "episodic-memory.json is not an array"),
        ({CHUNKS: "[1]"}, "conversation-chunks.json, item 1 is not an object"),
        ({CHUNKS: "[" * 100_000}, "nested too deeply"),
        ({MEMORIES: '[{"importance": NaN}]'}, "a number outside JSON"),
        (_changed(MEMORIES, lambda items: items[0].update(formatVersion=2)), "Upgrade turntide"),
        (_changed(MEMORIES, lambda items: items[0].update(importence=1)), "unknown fields: importence"),
        (_changed(MEMORIES, lambda items: items[0].update(type="opinion")), "item 1 is wrong: Invalid enum value"),
        (_changed(MEMORIES, lambda items: items[0].pop("content")), "missing required field `content`"),
        (_changed(MEMORIES, lambda items: items.append(items[0])), "the id m0-0 twice"),
        (_changed(MEMORIES, lambda items: items[0].update(validUntil="2020-01-01T00:00:00Z")), "after its validFrom"),
        (_changed(MEMORIES, lambda items: items[0].update(_leading_to("m0-0"))), "a relationship to itself"),
        (
            _changed(
                MEMORIES,
                lambda items: items.extend(
                    {**items[0], "id": f"m{a}-0", **_leading_to(f"m{b}-0")} for a, b in ((1, 2), (2, 1))
                ),
            ),
            "a cycle of depends_on: m",
        ),
        (_changed(CONVERSATIONS, lambda items: items[0].update(pendingFacts=[{"id": "p"}])), "pendingFacts 1 is wrong"),
    ],
)
def test_files_that_cannot_be_taken(files: dict[str, str], said: str) -> None:
    """Which file, where, what is wrong and what to do; nothing is given back, so nothing is taken by half."""
    with pytest.raises(ProjectFileError) as refused:
        read(files)

    assert said in str(refused.value)
    assert "nothing was imported" in str(refused.value)
