"""A project as four JSON files: names, round trip, and files that are damaged, newer or contradict themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events.project_items import (
    ConversationChunk,
    EpisodeKind,
    ImportedMessage,
    MemoryRevision,
    MemorySource,
    MemoryType,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectMemory,
    Relationship,
)
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

AT = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
_times = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware
_words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
_ratios = st.floats(0, 1)
_counts = st.integers(0, 10**6)
_names = st.sampled_from(["s1", "s2", "gone"])
_roles = st.sampled_from(["user", ""])
_sources = st.builds(
    MemorySource,
    conversation_id=_names,
    turn=_counts,
    role=st.sampled_from(["user", ""]),
    user_id=_words,
    said_at=_times,
)


def _ids(letter: str, number: int) -> str:
    return f"{letter}{number:07}-00000000"


def _numbered(letter: str, made: list[Any]) -> list[Any]:
    return [msgspec.structs.replace(each, id=_ids(letter, n)) for n, each in enumerate(made)]


@st.composite
def memories(draw: st.DrawFn) -> list[ProjectMemory]:
    """Memories with relationships to later ones, so that none goes in a circle."""
    count = draw(st.integers(0, 4))
    return [
        ProjectMemory(
            id=_ids("m", n),
            type=draw(st.sampled_from(MemoryType)),
            content=draw(_words),
            category=draw(st.sampled_from(["", "technical"])),
            tags=draw(st.lists(_words, max_size=2)),
            subject=draw(st.sampled_from(["", "database"])),
            importance=draw(_ratios),
            confidence=draw(_ratios),
            archived=draw(st.booleans()),
            valid_from=AT,
            valid_until=draw(st.none() | st.just(datetime(2027, 1, 1, tzinfo=UTC))),
            closed_by=draw(st.sampled_from(["", _ids("m", 0)])),
            recorded_at=draw(_times),
            created_at=draw(_times),
            updated_at=draw(_times),
            sources=draw(st.lists(_sources, max_size=3)),
            mentions=draw(_counts),
            access_count=draw(_counts),
            last_accessed_at=draw(_times),
            decay_factor=draw(_ratios),
            tokens=draw(_counts),
            relationships=[
                Relationship(target_id=_ids("m", n + 1), type="depends_on", strength=draw(_ratios), created_at=AT)
            ]
            if n + 1 < count and draw(st.booleans())
            else [],
            history=draw(
                st.lists(
                    st.builds(
                        MemoryRevision,
                        recorded_at=_times,
                        content=_words,
                        importance=_ratios,
                        valid_from=_times,
                        valid_until=st.none() | _times,
                    ),
                    max_size=2,
                )
            ),
        )
        for n in range(count)
    ]


_episodes = st.lists(
    st.builds(
        ProjectEpisode,
        id=st.just("x-0"),
        kind=st.sampled_from(EpisodeKind),
        title=_words,
        summary=_words,
        context=_words,
        participants=st.lists(_words, max_size=2),
        outcome=st.none() | _words,
        emotional_valence=st.floats(-1, 1),
        significance=_ratios,
        linked_memories=st.lists(st.just(_ids("m", 0)), max_size=1),
        conversation_id=_names,
        first_turn=_counts,
        last_turn=_counts,
        started_at=_times,
        ended_at=_times,
        merged_ids=st.lists(_words, max_size=1),
        access_count=_counts,
        last_accessed_at=_times,
        tokens=_counts,
    ),
    max_size=2,
)
_chunks = st.lists(
    st.builds(
        ConversationChunk,
        id=st.just("x-0"),
        conversation_id=_names,
        first_number=_counts,
        last_number=_counts,
        first_turn=_counts,
        last_turn=_counts,
        messages=_counts,
        summary=_words,
        key_topics=st.lists(_words, max_size=2),
        token_count=_counts,
        summary_tokens=_counts,
        started_at=_times,
        ended_at=_times,
        created_at=_times,
    ),
    max_size=2,
)
_pending = st.lists(
    st.builds(
        PendingFact,
        id=st.just("x-0"),
        content=_words,
        type=st.sampled_from(MemoryType),
        confidence=_ratios,
        source=_sources,
        extracted_at=_times,
        doubts=st.lists(st.sampled_from(["question", "negated"]), max_size=2),
    ),
    max_size=3,
)
_conversations = st.builds(
    ProjectConversation,
    id=st.just("s1"),
    status=st.sampled_from(["active", "paused", "ended"]),
    started_at=_times,
    last_at=_times,
    ended_at=st.none() | _times,
    total_turns=_counts,
    recent=st.lists(st.integers(0, 9), max_size=3),
    chunks=_counts,
    active_facts=st.lists(_words, max_size=1),
    milestones=st.lists(_words, max_size=1),
    summary=_words,
)
_messages = st.lists(
    st.builds(SavedMessage, turn=_counts, role=st.just("user"), content=_words, timestamp=_times),
    min_size=1,
    max_size=2,
)


@st.composite
def projects(draw: st.DrawFn) -> SavedProject:
    """Any project; of its two conversations one may be gone."""
    first = draw(_conversations)
    talks = [first] + [msgspec.structs.replace(draw(_conversations), id="s2")] * draw(st.booleans())
    messages = {"s1": draw(_messages)} if draw(st.booleans()) else {}
    by_conversation = sorted(
        _numbered("p", draw(_pending)),
        key=lambda fact: [*(each.id for each in talks), "gone", "s2"].index(fact.source.conversation_id),
    )
    return msgspec.convert(
        msgspec.to_builtins(
            SavedProject(
                memories=draw(memories()),
                episodes=_numbered("e", draw(_episodes)),
                conversations=talks,
                chunks=_numbered("k", draw(_chunks)),
                pending=by_conversation,
                messages=messages,
            )
        ),
        SavedProject,
    )


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
    last = {item.id: item for item in items if not isinstance(item, ImportedMessage)}
    said = [item for item in items if isinstance(item, ImportedMessage)]
    placed: set[str] = set()
    unmet: dict[str, bool] = {}
    for piece in pieces:
        for memory in piece.get("memories", []):
            assert isinstance(memory, ProjectMemory)
            placed.add(memory.id)
            unmet[memory.id] = any(each.target_id not in placed for each in memory.relationships)

    assert all(sum(map(len, piece.values())) <= most for piece in pieces)
    assert len(last) == project.count
    assert [(each.conversation_id, each.turn, each.content) for each in said] == [
        (name, each.turn, each.content) for name, messages in project.messages.items() for each in messages
    ]
    assert not any(unmet.values())


def saved(**more: Any) -> SavedProject:
    """One memory, said in a conversation that is kept, and a fact of one that is not."""
    source = MemorySource(conversation_id="s1", turn=2, role="user", user_id="u", said_at=AT)
    fields: dict[str, Any] = {"recorded_at": AT, "created_at": AT, "updated_at": AT, "last_accessed_at": AT}
    memory = ProjectMemory(
        id="m0-0",
        type=MemoryType.DECISION,
        content="We use PostgreSQL.",
        importance=0.7,
        valid_from=AT,
        sources=[source],
        **{**fields, **more},
    )
    fact = PendingFact(
        id="p0-0",
        content="Maybe Redis.",
        type=MemoryType.FACT,
        confidence=0.5,
        source=msgspec.structs.replace(source, conversation_id="gone"),
        extracted_at=AT,
    )
    return SavedProject(memories=[memory], pending=[fact])


def test_the_names_are_the_seeds() -> None:
    """camelCase; metadata, source and access nested as `LongTermMemory` and `ItemMetadata` have them."""
    files = written(saved(), "web")
    (memory,) = json.loads(files[MEMORIES])
    (rest,) = json.loads(files[CONVERSATIONS])

    assert set(files) == set(FILES)
    assert {**memory["metadata"], "source": None} == {
        "source": None,
        "importance": 0.7,
        "accessCount": 0,
        "lastAccessedAt": "2026-01-05T09:30:00Z",
        "decayFactor": 1.0,
        "tokens": 0,
    }
    assert memory["metadata"]["source"]["conversationId"] == "s1"
    assert (memory["validFrom"], memory["formatVersion"]) == ("2026-01-05T09:30:00Z", FORMAT_VERSION)
    assert "validUntil" not in memory
    assert (rest["id"], [each["content"] for each in rest["pendingFacts"]]) == ("", ["Maybe Redis."])
    assert files[MEMORIES].startswith('[\n  {\n    "formatVersion"')


def _changed(file: str, change: Any) -> dict[str, str]:
    files = written(saved(), "web")
    items = json.loads(files[file])
    change(items)
    return files | {file: json.dumps(items)}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({MEMORIES: '[\n  {"id": }\n]'}, "long-term-memory.json, line 2, column 10"),
        ({EPISODES: '{"id": "x"}'}, "episodic-memory.json is no array"),
        ({CHUNKS: "[1]"}, "conversation-chunks.json, item 1 is no object"),
        ({CHUNKS: "[" * 100_000}, "nested too deeply"),
        ({MEMORIES: '[{"importance": NaN}]'}, "a number that JSON does not know"),
        (_changed(MEMORIES, lambda items: items[0].update(formatVersion=2)), "Upgrade turntide"),
        (_changed(MEMORIES, lambda items: items[0].update(importence=1)), "not known: importence"),
        (_changed(MEMORIES, lambda items: items[0].update(type="opinion")), "item 1 is wrong: Invalid enum value"),
        (_changed(MEMORIES, lambda items: items[0].pop("content")), "missing required field `content`"),
        (_changed(MEMORIES, lambda items: items.append(items[0])), "the id m0-0 twice"),
        (
            _changed(MEMORIES, lambda items: items[0].update(validUntil="2020-01-01T00:00:00Z")),
            "not after its validFrom",
        ),
        (
            _changed(
                MEMORIES,
                lambda items: items[0].update(
                    relationships=[{"targetId": "m0-0", "type": "related_to", "createdAt": "2026-01-05T09:30:00Z"}]
                ),
            ),
            "a relationship to itself",
        ),
        (
            _changed(
                MEMORIES,
                lambda items: items.extend(
                    {
                        **items[0],
                        "id": f"m{a}-0",
                        "relationships": [
                            {"targetId": f"m{b}-0", "type": "depends_on", "createdAt": "2026-01-05T09:30:00Z"}
                        ],
                    }
                    for a, b in ((1, 2), (2, 1))
                ),
            ),
            "a circle of depends_on: m",
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
