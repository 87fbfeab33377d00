"""A project's view: events in any order make the same, and every way to ask it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import permutations

import pytest
from msgspec.structs import replace

from models.events import ProjectErased, ProjectMemoryAdded, project_items
from models.policy import Policy
from models.policy.project import ProjectPolicy
from models.project.fold import FoldedProject
from models.project.validity import known_at
from models.project.view import ProjectView
from models.retrieval.relevance import Found, RetrievalFilters, RetrievalQuery
from models.state.entity import same_fields
from tests.support.blank_events import blank
from tests.support.project_found import BEGIN, DAY, chunk, episode, gone, memory, related, told

ASKED = RetrievalQuery(text="PostgreSQL", threshold=0.0)


def view_of(*items: project_items.ProjectItem) -> ProjectView:
    """These are there, each in a slot of its own."""
    view = ProjectView("shop", "web", ProjectPolicy())
    for slot, item in enumerate(items):
        view.apply(told(item, slot, slot + 1))
    return view


def ids(view: ProjectView, query: RetrievalQuery, at: datetime = BEGIN) -> list[str]:
    """What is found, the best first."""
    return [found.id for found in view.retrieve(query, at)]


CONVERSATION = blank(project_items.ProjectConversation, id="s1", total_turns=9)


def held(view: ProjectView) -> list[list[project_items.ProjectItem]]:
    """What is there of each kind."""
    kinds: list[Mapping[str, project_items.ProjectItem]]
    kinds = [view.memories, view.episodes, view.chunks, view.conversations, view.pending]
    return [list(kind.values()) for kind in kinds]


def test_every_kind_is_held_and_goes() -> None:
    """Each in its own place; what went is counted no longer."""
    items = (
        memory(1, "PostgreSQL"),
        episode(1, "PostgreSQL"),
        chunk(1, "PostgreSQL"),
        CONVERSATION,
        blank(project_items.PendingFact, id="p-1"),
    )
    view = view_of(*items)

    assert held(view) == [[item] for item in items]
    assert (view.size, view.revision) == (5, 5)

    kinds: tuple[project_items.ItemKind, ...] = ("memory", "episode", "chunk", "conversation", "pending")
    for slot, (kind, item_id) in enumerate(zip(kinds, ("m-001", "e-1", "k-1", "s1", "p-1"), strict=True)):
        view.apply(gone(kind, item_id, slot, 10 + slot))
    assert held(view) == [[], [], [], [], []]
    assert (view.size, view.revision, len(view.graph)) == (0, 14, 0)
    assert ids(view, replace(ASKED, filters=RetrievalFilters(include_chunks=True))) == []


def test_events_in_any_order_make_the_same() -> None:
    """A slot that was used again, and an item that went and came back into another slot."""
    events = [
        told(memory(1, "first"), 0, 1),
        told(memory(2, "second"), 1, 2),
        gone("memory", "m-001", 0, 3),
        told(memory(3, "third"), 0, 4),
        told(memory(1, "first again"), 2, 5),
    ]
    expected = {"m-001": "first again", "m-002": "second", "m-003": "third"}

    for order in permutations(events):
        view = ProjectView("shop", "web", ProjectPolicy())
        for event in [*order, *order]:
            view.apply(event)
        assert {item_id: held.content for item_id, held in view.memories.items()} == expected
        assert view.size == 3


def test_what_was_found_is_told_whole() -> None:
    """Kind, text, score and its parts; the policy's threshold leaves the rest out."""
    view = view_of(memory(1, "PostgreSQL it is."), memory(2, "Something else."), episode(1, "Chose PostgreSQL"))
    found = view.retrieve(RetrievalQuery(text="PostgreSQL"), BEGIN)

    assert sorted((each.kind, each.id, each.text) for each in found) == [
        ("episode", "e-1", "Chose PostgreSQL: Chose PostgreSQL"),
        ("memory", "m-001", "PostgreSQL it is."),
    ]
    assert {each.id: each.item for each in found} == {**view.episodes, "m-001": view.memories["m-001"]}
    assert all(each.scores.keyword == 1 and each.score > 0.3 and each.via == "" for each in found)


def test_related_memories_come_along() -> None:
    """Below their hit by strength and distance, named after it, in either direction, through the filters."""
    view = view_of(
        related(memory(1, "PostgreSQL it is."), "m-002", strength=0.5),
        related(memory(2, "Backups at night."), "m-003"),
        memory(3, "Disks are cheap."),
        related(memory(4, "Nobody knows it.", kind=project_items.MemoryType.ENTITY), "m-001"),
        related(replace(memory(5, "Over."), valid_until=BEGIN), "m-001"),
    )
    query = RetrievalQuery(text="PostgreSQL it", related_depth=2)
    hit, *others = view.retrieve(query, BEGIN)

    assert (hit.id, hit.via) == ("m-001", "")
    assert [(each.id, each.via) for each in others] == [("m-004", "m-001"), ("m-002", "m-001"), ("m-003", "m-001")]
    assert [each.score / hit.score for each in others] == pytest.approx([0.5, 0.25, 0.125])
    assert ids(view, replace(query, related_depth=1)) == ["m-001", "m-004", "m-002"]
    assert ids(view, replace(query, top_k=2)) == ["m-001", "m-004"]
    assert ids(view, replace(query, filters=RetrievalFilters(memory_types=[project_items.MemoryType.FACT]))) == [
        "m-001",
        "m-002",
        "m-003",
    ]


def test_contradictions_are_shown() -> None:
    """On both sides, as long as both hold."""
    view = view_of(
        related(memory(1, "PostgreSQL is fast."), "m-002", "contradicts"),
        memory(2, "PostgreSQL is slow."),
        related(replace(memory(3, "PostgreSQL is old."), valid_until=BEGIN), "m-001", "contradicts"),
    )
    found = {each.id: each.contradicted_by for each in view.retrieve(ASKED, BEGIN)}

    assert found == {"m-001": ["m-002"], "m-002": ["m-001"]}


def test_another_strategys_ranking_goes_through_the_same_filters() -> None:
    """By its own scores and scale; what is gone or does not hold is left out."""
    over = replace(memory(2, "PostgreSQL"), valid_until=BEGIN)
    view = view_of(related(memory(1, "Kafka"), "m-004"), over, episode(1, "Chose"), memory(4, "Disks"))
    scores: dict[Found, float] = {
        ("memory", "m-001"): 2.5,
        ("memory", "m-002"): 9.0,
        ("memory", "m-009"): 9.0,
        ("episode", "e-1"): 0.1,
    }
    query = RetrievalQuery(text="x", related_depth=1)

    assert [(each.id, each.score, each.via) for each in view.retrieve(query, BEGIN, scores)] == [
        ("m-001", 2.5, ""),
        ("m-004", 1.25, "m-001"),
        ("e-1", 0.1, ""),
    ]
    assert [each.id for each in view.retrieve(replace(query, threshold=0.5, top_k=1), BEGIN, scores)] == ["m-001"]


def edited() -> project_items.ProjectMemory:
    """It was said to be MySQL; two days later somebody knew that it had been PostgreSQL all along."""
    wrong = project_items.MemoryRevision(
        recorded_at=BEGIN, content="It is MySQL.", importance=0.5, valid_from=BEGIN, valid_until=None
    )
    return replace(memory(1, "It is PostgreSQL."), recorded_at=BEGIN + 2 * DAY, history=[wrong])


def test_as_it_was_known_then() -> None:
    """Found by the words of then, told in the words of then; what came later is unknown."""
    view = view_of(
        edited(),
        memory(2, "PostgreSQL is fast.", at=BEGIN + 3 * DAY),
        episode(1, "Chose PostgreSQL", at=BEGIN + 3 * DAY),
        chunk(1, "PostgreSQL", at=BEGIN + 3 * DAY),
    )
    everything = RetrievalFilters(include_chunks=True)
    then = RetrievalQuery(text="MySQL", known_at=BEGIN + DAY, filters=everything, threshold=0.0)
    now = BEGIN + 9 * DAY

    assert [(each.text, each.scores.keyword) for each in view.retrieve(then, now)] == [("It is MySQL.", 1.0)]
    assert view.retrieve(replace(then, known_at=None), now)[0].scores.keyword == 0
    assert len(ids(view, replace(then, known_at=BEGIN + 4 * DAY), now)) == 4
    assert ids(view, replace(then, known_at=BEGIN - timedelta(seconds=1)), now) == []


def test_what_was_put_right_again_and_again_is_known_as_of_each_time() -> None:
    """Other words, the words of before again, said once more, another importance: as a view of what was known then."""
    was, past, view = memory(1, "sail one"), list[project_items.MemoryRevision](), view_of(memory(2, "sail two"))
    query = RetrievalQuery(text="sail one xebec", threshold=0.0, top_k=9)
    words = ("sail one", "xebec one", "sail one", "sail one", "gaff", "gaff")
    for day, content in enumerate(words):
        at = BEGIN + day * DAY
        said = [*was.sources, project_items.MemorySource(said_at=at, turn=day)]
        if content != was.content:
            past.append(project_items.MemoryRevision(**same_fields(was, project_items.MemoryRevision)))
            was = replace(was, content=content, recorded_at=at, history=past[-2:])
        was = replace(was, sources=said, importance=min(1.0, 0.1 * day))
        view.apply(told(was, 9, 10 + day))
        known = list(view.memories.values())

        assert view_of(*known).retrieve(query, at) == view.retrieve(query, at)
        for hours in range(-12, 24 * day + 13, 12):
            then = BEGIN + timedelta(hours=hours)
            of_then = [each for item in known if (each := known_at(item, then)) is not None]
            assert view_of(*of_then).retrieve(query, at) == view.retrieve(replace(query, known_at=then), at)

    view.apply(gone("memory", was.id, 9, 99))
    assert ids(view, replace(query, known_at=BEGIN + 9 * DAY)) == ["m-002"]


def test_the_first_event_of_a_new_life_is_seen() -> None:
    """In a project without a log nothing of the life before, and everything that comes after it."""
    web = {"app_id": "shop", "project_id": "web"}
    folded, sizes = FoldedProject(**web, policy=Policy()), []
    for n in (1, 2, 3, 0, 9):
        fact = blank(ProjectMemoryAdded, **web, memory_type=project_items.MemoryType.FACT, content=f"Fact {n}.")
        folded.take(fact if n else blank(ProjectErased, **web), BEGIN + timedelta(seconds=n))
        sizes.append(folded.view.size)

    assert ([1, 2, 3, 0, 1], ["Fact 9."]) == (sizes, [each.content for each in folded.view.memories.values()])
    assert folded.view.stats is not None
    assert 1 == folded.view.stats.memories
