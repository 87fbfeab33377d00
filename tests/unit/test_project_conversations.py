"""Short-term memory of a project (project memory, Layer 2), and what goes of a project with an erased session."""

import itertools

import msgspec
import pytest

from models import events
from models.events import ProjectConversation
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PARTITION_ENTITY, folded_offset
from models.policy import Policy
from models.wire.arrival import Command
from tests.support.entity_driver import NOON, Entities
from tests.support.fields import assert_fields
from tests.support.project_driver import Project, causes
from tests.support.user_partition import commands, gather, keep, keep_result


def conversation(project: Project, session: str = "s0") -> ProjectConversation:
    """A conversation as last told."""
    found: ProjectConversation = project.items("conversation")[session]
    return found


def talk(project: Project, turns: int, session: str = "s0") -> None:
    """So many messages, each of its own."""
    for n in range(turns):
        project.say(f"Item {n} of {session} is about subject{n} and nothing else.", session)


@pytest.mark.behaviour("project-03", "project-27")
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


@pytest.mark.behaviour("project-05")
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


@pytest.mark.behaviour("project-02")
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


GONE = "We decided to use PostgreSQL."


def erase(project: Project, *sessions: str) -> None:
    """Erase sessions."""
    project.do(events.ProjectSessionErased, session_ids=list(sessions), request_id="e")


def test_a_project_that_nobody_knows_does_not_come_back() -> None:
    """Accesses, work, erasures and commands leave nothing; a command is audited all the same."""
    project = Project(stores=True)
    silent = project.do(events.MemoriesAccessed, ids=["mf0k3x2a-00000000"]) + project.wait(days=9) + project.end()
    erase(project, "s0")
    project.do(events.ProjectErased, request_id="e")
    (audited,) = project.do(events.ProjectMemoryDeleted, memory_id="mf0k3x2a-00000000")

    assert ([], {}) == (silent, project.stored)
    assert isinstance(audited, events.ProjectAudited)
    assert "not_found" == audited.outcome


def talked() -> list[events.ProjectTurnAdded]:
    """Two sessions that say the same, and each something of its own."""
    project, turns = Project(), []
    for session in ("s0", "s1"):
        said = [f"We decided to use PostgreSQL for store{n}." for n in range(6)]
        turns += [
            project.turn(text, session, role=events.Role.USER) for text in [*said, f"The goal is to ship {session}."]
        ]
    return turns


def erasure(name: str) -> events.ProjectErasure:
    """Of the project, or of its session s0."""
    common = {"app_id": "shop", "project_id": "web", "timestamp": NOON, "request_id": "e"}
    if name == "project":
        return msgspec.convert(common, events.ProjectErased)
    return msgspec.convert(common | {"session_ids": ["s0"]}, events.ProjectSessionErased)


@pytest.mark.parametrize("erased", ["project", "session"])
def test_a_large_erasure_takes_several_writes(monkeypatch: pytest.MonkeyPatch, erased: str) -> None:
    """Each bounded; a crash between any two repeats the erasure, and it comes to the same as without one."""
    log = commands(*talked())
    last = Command(erasure(erased), events.Position("commands", 5, len(log)), NOON)
    monkeypatch.setattr("models.project.state.EVENT_STATE_BYTES", 1_000)
    states: list[Entities] = [{}, {}]
    found: list[dict[str, bytes]] = [{}, {}]
    for state, outputs in zip(states, found, strict=True):
        keep(state, MemoryPartitionFold(state, Policy()), log)
        results = []
        while folded_offset(state) < last.position.offset:
            fold = MemoryPartitionFold(state, Policy())
            steps = fold.fold([last])
            for result in steps if state is states[0] else itertools.islice(steps, 1):
                gather(outputs, keep_result(state, result))
                results.append((result.offset, result.erased, folded_offset(state)))

    assert 3 < len(results)
    assert {(len(log), 1)} == {result[:2] for result in results}
    assert [len(log) - 1] * (len(results) - 1) + [len(log)] == [clock for _, _, clock in results]
    assert states[0] == states[1]
    assert found[0] == found[1]
    assert (erased == "project") == ({PARTITION_ENTITY} == set(states[0]))


def test_why_something_was_refused_names_nothing_that_is_erased() -> None:
    """The chain of a refused cycle: its ids come from what was said."""
    project = Project()
    project.say(GONE, "secret", role=events.Role.USER)
    project.say("We decided to use Redis for the cache.", "secret", role=events.Role.USER)
    one, other = project.items("memory")
    for source, target in ((one, other), (other, one)):
        project.do(events.RelationshipSet, source_id=source, target_id=target, relation="depends_on")
    refused = project.stats.results[-1].detail
    erase(project, "secret")

    assert one in refused
    assert ["", ""] == [result.item_id + result.detail for result in project.stats.results]
