"""Short-term memory of a project: messages at hand, chunks, status (project memory, Layer 2)."""

from __future__ import annotations

from models.events import ProjectConversation
from tests.support.fields import assert_fields
from tests.support.project_driver import Project, causes


def conversation(project: Project, session: str = "s0") -> ProjectConversation:
    """A conversation as last told."""
    found: ProjectConversation = project.items("conversation")[session]
    return found


def talk(project: Project, turns: int, session: str = "s0") -> None:
    """So many messages, each of its own."""
    for n in range(turns):
        project.say(f"Item {n} of {session} is about subject{n} and nothing else.", session)


def test_twenty_messages_stay_verbatim_and_the_twenty_first_makes_a_chunk() -> None:
    """The source's numbers: at most 20 at hand, the oldest 10 become a chunk."""
    project = Project()
    talk(project, 20)
    before = (len(conversation(project).recent), conversation(project).chunks)
    talk(project, 1)
    (chunk,) = project.items("chunk").values()

    assert (20, 0) == before
    assert list(range(10, 21)) == conversation(project).recent
    assert conversation(project).chunks == 1
    assert_fields(chunk, first_turn=0, last_turn=9, messages=10, first_number=1)
    assert chunk.key_topics
    assert 0 < chunk.summary_tokens <= chunk.token_count


def test_250_turns_give_about_25_chunks() -> None:
    """23 while it goes on, 25 when the rest is released after it ended."""
    project = Project(short_term={"retention_turns": 5})
    talk(project, 250)
    going_on = len(project.items("chunk"))
    project.end()
    talk(project, 5, "s1")
    chunks = sorted(project.items("chunk").values(), key=lambda chunk: chunk.first_turn)

    assert (23, 25) == (going_on, len(chunks))
    assert 250 == sum(chunk.messages for chunk in chunks)
    assert [0, *(chunk.last_turn + 1 for chunk in chunks[:-1])] == [chunk.first_turn for chunk in chunks]


def test_beyond_the_most_chunks_the_two_oldest_merge() -> None:
    """`Earlier: … Then: …`, flat however often; topics once; numbers and turns add up; slots are taken again."""
    project = Project(short_term={"recent_messages": 2, "chunk_messages": 2, "max_chunks": 3})
    talk(project, 21)
    chunks = sorted(project.items("chunk").values(), key=lambda chunk: chunk.first_number)
    first = chunks[0]

    assert [(1, 8), (9, 9), (10, 10)] == [(chunk.first_number, chunk.last_number) for chunk in chunks]
    assert 1 == first.summary.count("Earlier: ")
    assert first.summary.count("\n\nThen: ") == first.last_number - 1
    assert len(first.key_topics) == len(set(first.key_topics))
    assert (0, 2 * first.last_number - 1, 2 * first.last_number) == (first.first_turn, first.last_turn, first.messages)
    assert {0, 1, 2, 3} >= {event.slot for event in project.told.values() if event.kind == "chunk"}


def test_a_conversation_is_active_paused_and_ended() -> None:
    """A time-out pauses, a turn makes it active again, an end ends it; a time-out does not take the end back."""
    project, status = Project(), []
    project.say("Hello there, shall we start with the plan?")
    for step in ("paused", "goes on", "ended", "paused"):
        if step == "goes on":
            project.say("We go on with the plan now.")
        else:
            project.end(status=step)
        status.append((conversation(project).status, conversation(project).ended_at is not None))

    assert [("paused", False), ("active", False), ("ended", True), ("ended", True)] == status


def test_of_too_many_conversations_the_longest_silent_goes() -> None:
    """With its messages and chunks; its slot is taken by the new one, so the topic stays small."""
    project = Project(short_term={"conversations": 2, "recent_messages": 2, "chunk_messages": 2}, stores=True)
    talk(project, 5, "a")
    talk(project, 1, "b")
    outputs = project.say("Something new begins here today.", "c")
    talk(project, 1, "d")

    assert ("a", "displaced") in causes(outputs, "conversation")
    assert {"displaced"} == {cause for _, cause in causes(outputs, "chunk")}
    assert {"c", "d"} == set(project.items("conversation"))
    assert (2, 0) == (project.stats.conversations, project.stats.chunks)
    assert {0, 1, 2} >= {slot for kind, slot in project.told if kind == "conversation"}
    assert 2 == sum("/conversation/" in entity for entity in project.stored)


def test_a_number_that_is_used_twice_keeps_what_was_said_first() -> None:
    """A session that its fold forgot began anew and counts from 0 again: nothing of it is learned, nothing replaced."""
    project = Project()
    project.say("We decided to use PostgreSQL for the orders.", turn=0)
    before = ({each.content for each in project.items("memory").values()}, conversation(project))
    project.say("We decided to use MongoDB for the invoices.", turn=0)
    after = ({each.content for each in project.items("memory").values()}, conversation(project))

    assert after == before
    assert before[0]
