"""The source's usage example as a Python session, and going on from its files."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.demo.conversations import load_project_conversation
from models.errors import BudgetTooSmall, ConfigurationError
from models.events.ids import sortable_id
from models.policy.project import ConsolidationPolicy, LongTermPolicy, NarrativePolicy, ProjectPolicy, ShortTermPolicy
from models.project.files import written
from models.project.saved import CHUNKS, FILES, MEMORIES, SavedProject
from models.text.words import estimate_tokens
from streams.embedded.project_session import MemorySystem
from tests.support.api_projects import SAID
from tests.support.project_found import memory as memory_of

QUESTION = "What was our database decision?"


class Clock:
    """Time that a test moves; a second passes with every look at it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Now."""
        self.now += timedelta(seconds=1)
        return self.now


def system(folder: Path, clock: Clock | None = None, **more: object) -> MemorySystem:
    """As the source configures it."""
    return MemorySystem(
        folder,
        "My Project",
        max_context_tokens=128_000,
        chunk_size=10,
        max_recent_messages=20,
        now=clock or Clock(),
        **more,  # type: ignore[arg-type] # policy
    )


def talk(memory: MemorySystem) -> None:
    """The source's conversation."""
    memory.start_conversation()
    for role, content in SAID:
        memory.add_message(role, content)


@pytest.mark.behaviour("project-26")
def test_the_seeds_usage_example(tmp_path: Path) -> None:
    """The question finds the decision, in the context and by a search; what is kept stands in the four files."""
    folder = tmp_path / "memory"
    memory = system(folder)
    talk(memory)
    context = memory.build_context(QUESTION)
    results = memory.search("PostgreSQL database")
    memory.end_conversation("Database selection complete")
    memory.flush()
    (conversation,) = memory.view.conversations.values()

    assert ["PostgreSQL" in found[0].text for found in (context.retrieval_results, results)] == [True, True]
    assert 0 < context.allocation.total_tokens == sum(each.tokens for each in context.allocation.items)
    assert estimate_tokens(context.allocation.text) <= context.allocation.total_tokens
    assert (conversation.status, conversation.summary) == ("ended", "Database selection complete")
    assert sorted(each.name for each in folder.iterdir()) == sorted(FILES)


def test_another_session_goes_on(tmp_path: Path) -> None:
    """Memories, messages at hand and numbers of turns are as they were; nothing is known twice."""
    clock = Clock()
    with system(tmp_path, clock) as first:
        talk(first)
        name = next(iter(first.view.conversations))
    with system(tmp_path, clock) as second:
        second.start_conversation(name)
        second.add_message("assistant", "Good choice.")
        context = second.build_context(QUESTION)
        (conversation,) = second.view.conversations.values()

    assert "We decided to use PostgreSQL." in context.allocation.text
    assert [item.id for item in context.allocation.items if item.section == "recent"] == ["0", "1", "2", "3"]
    assert (conversation.total_turns, conversation.recent) == (4, [0, 1, 2, 3])
    assert list(second.view.memories) == list(first.view.memories)


def test_a_long_conversation_over_a_restart_has_its_chunks(tmp_path: Path) -> None:
    """Messages that were said before it become a chunk as those after it do, with what they said."""
    clock = Clock()
    with system(tmp_path, clock) as first:
        name = first.start_conversation()
        for number in range(18):
            first.add_message("user", f"Giraffe number {number} eats leaves of tall trees.")
    with system(tmp_path, clock) as second:
        second.start_conversation(name)
        for number in range(4):
            second.add_message("user", f"Zebra number {number} eats grass of the plain.")
    (chunk,) = second.view.chunks.values()

    file = json.loads((tmp_path / CHUNKS).read_text())
    said = [each.content for each in system(tmp_path).messages_of(chunk.id)]

    assert (chunk.messages, chunk.first_turn, chunk.last_turn) == (10, 0, 9)
    assert [each["content"] for each in file[0]["messages"]] == said
    assert (10, True) == (len(said), "iraffe" in said[0])
    assert "giraffe" in chunk.summary.lower()


@pytest.mark.behaviour("project-21")
def test_reading_writes_nothing_and_a_flush_only_what_changed(tmp_path: Path) -> None:
    """Lazy loading and dirty tracking: a session that does nothing touches no file."""
    folder = tmp_path / "memory"
    system(folder).flush()
    existed = folder.exists()
    clock = Clock()
    with system(folder, clock) as memory:
        talk(memory)
    before = {each: each.stat().st_mtime_ns for each in folder.iterdir()}
    (folder / MEMORIES).chmod(0o600)
    with system(folder, clock) as again:
        again.start_conversation()
    changed = [each.name for each, at in before.items() if each.stat().st_mtime_ns != at]

    assert (existed, changed) == (False, ["conversations.json"])


def test_consolidation_archives_what_is_old_and_weak(tmp_path: Path) -> None:
    """By the session's clock, with what it saved; the memory stays in the files, and a decision in force in use."""
    clock = Clock()
    with system(tmp_path, clock, policy=ProjectPolicy(consolidation=ConsolidationPolicy(archive_below=0.3))) as memory:
        talk(memory)
        memory.add_message("user", "The timeout is 30 minutes.")
        clock.now += timedelta(days=200)
        done = memory.consolidate()
    kept = json.loads((tmp_path / MEMORIES).read_text())

    assert done is not None
    assert (done.memories_archived, done.tokens_reclaimed > 0) == (1, True)
    assert {each["type"]: each["archived"] for each in kept} == {"decision": False, "fact": True}


def test_what_makes_no_sense(tmp_path: Path) -> None:
    """A message before the conversation, a window of nothing, a prompt larger than it."""
    with pytest.raises(ConfigurationError, match="start_conversation"):
        system(tmp_path).add_message("user", "x")
    with pytest.raises(ConfigurationError, match="max_context_tokens"):
        MemorySystem(tmp_path, max_context_tokens=0)
    with pytest.raises(BudgetTooSmall):
        MemorySystem(tmp_path, max_context_tokens=10_001).build_context("x", system_prompt="word " * 10_000)


def test_what_is_told_counts_as_accessed(tmp_path: Path) -> None:
    """What was found and did not fit nobody read; what a search finds counts, but for chunks."""
    memory = MemorySystem(tmp_path, max_context_tokens=20, now=Clock())
    talk(memory)
    context = memory.build_context(QUESTION)
    told = {item.id for item in context.allocation.items if item.section == "memories"}
    found = {each.id for each in context.retrieval_results}
    after_context = {each.id for each in memory.view.memories.values() if each.access_count}
    memory.search("PostgreSQL")

    assert told < found
    assert after_context == told & set(memory.view.memories)
    assert [each.access_count > 0 for each in memory.view.memories.values()] == [True]


@pytest.mark.parametrize(
    ("policy", "lost"),
    [
        (ProjectPolicy(long_term=LongTermPolicy(content_chars=50)), "memories"),
        (ProjectPolicy(narrative=NarrativePolicy(most=2)), "episodes"),
        (ProjectPolicy(narrative=NarrativePolicy(summary_chars=50)), "episodes"),
        (ProjectPolicy(short_term=ShortTermPolicy(recent_messages=5, chunk_messages=5)), "messages"),
    ],
    ids=["content", "most", "cut", "recent"],
)
def test_nothing_that_was_not_taken_in_is_written_over(tmp_path: Path, policy: ProjectPolicy, lost: str) -> None:
    """A policy that keeps less refuses the folder, also at the second try, and its files stay as they are."""
    with MemorySystem(tmp_path, now=Clock()) as first:
        first.start_conversation("planning")
        for turn in load_project_conversation().turns[:40]:
            ((role, content),) = turn.items()
            first.add_message(role, content)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    second = MemorySystem(tmp_path, policy=policy, now=Clock())
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=f"{lost}.* would be lost or truncated"):
            second.search("x")
    second.flush()

    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_consolidation_goes_to_its_end(tmp_path: Path) -> None:
    """Also where one event does not write as much as it changes."""
    clock = Clock()
    fact = "Room {n} of the house has a lamp that is {n} years old, and a table beside it. "
    events = [fact.format(n=n) + "It was told at length. " * 39 for n in range(1_500)]
    saved = SavedProject(memories=[])
    for n, text in enumerate(events):
        at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=n)
        saved.memories.append(memory_of(n, text, at=at, id=sortable_id(at, "k", str(n)), importance=0.3))
    for name, text in written(saved, "P").items():
        (tmp_path / name).write_text(text)
    policy = ProjectPolicy(long_term=LongTermPolicy(most=2_000))
    done = MemorySystem(tmp_path, policy=policy, now=clock).consolidate()

    assert done is not None
    assert (done.memories_looked_at, done.memories_archived) == (1_500, 1_500)


def test_messages_of_merged_chunks_are_let_go(tmp_path: Path) -> None:
    """A long session does not grow by every message: held are those at hand and of unmerged chunks."""
    memory = system(tmp_path, policy=ProjectPolicy(short_term=ShortTermPolicy(max_chunks=2)))
    memory.start_conversation()
    for number in range(60):
        memory.add_message("user", f"Giraffe number {number} eats leaves of tall trees.")
    (conversation,) = memory.view.conversations.values()

    assert [each.turn for each in memory.saved().messages[conversation.id]] == conversation.recent
    assert sum(map(len, memory._messages.values())) == len(conversation.recent) + 10
    assert [0, 10] == [len(memory.messages_of(chunk_id)) for chunk_id in sorted(memory.view.chunks)]
