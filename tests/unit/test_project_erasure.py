"""Erasing in the fold of a project: what only the erased sessions said goes, what others said too stays theirs."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from models import events
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PARTITION_ENTITY, folded_offset
from models.policy import Policy
from models.wire.arrival import Command
from tests.support.entity_driver import NOON, Entities
from tests.support.project_driver import Project
from tests.support.user_partition import commands, gather, keep, keep_result

GONE = "We decided to use PostgreSQL."


def erase(project: Project, *sessions: str) -> None:
    """Erase sessions."""
    project.do(events.ProjectSessionErased, session_ids=list(sessions), request_id="e")


def test_an_erased_project_leaves_nothing_and_begins_anew() -> None:
    """All shelves and conversations; nothing is told; what comes next has another birth and revision 1."""
    project = Project(stores=True)
    for n in range(30):
        project.do(events.ProjectMemoryAdded, memory_type="fact", content=f"Fact number {n} of them.")
        project.say(f"Subject{n} is what we speak of.", f"s{n % 3}")
    born = project.stats.born
    outputs = project.do(events.ProjectErased, request_id="e")
    left = dict(project.stored)
    project.say("Good morning to everybody.")

    assert ([], {}) == (outputs, left)
    assert 1 == project.stats.revision
    assert born != project.stats.born


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
