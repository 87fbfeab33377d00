"""App memory's scenarios and success criteria, as far as they are of the fold, and what compactions come to."""

from __future__ import annotations

import pytest

from models.events import AppMemoryChanged, ConversationEnded, Role
from models.events.app import AppUninstalled, MemoriesPurged
from models.policy import Policy
from models.wire.arrival import SessionTimedOut
from models.wire.codec import decode_command, encode
from models.wire.envelope import key_of
from tests.support.app_driver import Space, causes
from tests.support.session_driver import Session


def test_compacts_memories_when_limit_reached() -> None:
    """App memory: the eleventh leaves ten; one event says what was before and after, who decided what and why."""
    space = Space()
    space.fill()
    assert (len(space.active), space.compactions) == (10, [])
    space.end()
    (compaction,) = space.compactions

    assert len(space.active) == len(space.memories) == space.stats.memories == 10
    assert ([m.memory_id for m in compaction.before], len(compaction.after)) == ([*range(1, 12)], 10)
    assert {m.memory_id: m.content for m in compaction.after} == {n: m.content for n, m in space.active.items()}
    assert (compaction.decided_by, compaction.fallback) == ("rules", "")
    assert compaction.reason
    assert (space.stats.created, space.stats.compactions) == (11, 1)


@pytest.mark.parametrize("uninstalls", [False, True])
def test_purges_memories_on_admin_request_or_uninstall(uninstalls: bool) -> None:
    """App memory: each is told gone without its text; again it finds nothing, which is no error; numbers go on."""
    space = Space()
    space.fill(8)
    audited = space.command(AppUninstalled, purge_memories=True) if uninstalls else space.command(MemoriesPurged)
    gone = space.outputs[-10:-2]

    assert (audited.outcome, audited.count, audited.by) == ("done", 8, "root")
    assert causes(gone) == [(number, "purged") for number in range(1, 9)]
    assert {(o.active, o.content, tuple(o.tags)) for o in gone if isinstance(o, AppMemoryChanged)} == {(False, "", ())}
    assert (space.active, space.memories, space.stats.uninstalled) == ({}, {}, uninstalls)
    again = space.command(MemoriesPurged)
    assert (again.outcome, again.count) == ("unchanged", 0)
    space.end()
    assert list(space.active) == [9]


def test_a_policy_that_allows_fewer_lets_the_oldest_go() -> None:
    """With the next event, each with its own compaction; one that allows more leaves them."""
    space = Space()
    space.fill()
    space.store()
    space.policy = Policy(apps=Space(most=7, most_pinned=5).policy.apps)
    space.state = space.load()
    space.wait(seconds=1)

    assert list(space.active) == [4, 5, 6, 7, 8, 9, 10]
    assert [(c.decided_by, c.fallback, c.target_memory_id) for c in space.compactions] == [
        ("fifo", "too_many", number) for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("times_out", [False, True])
def test_turns_of_a_session_become_a_memory(times_out: bool) -> None:
    """From the first turn to the memory: through the session's fold, the topic between, and the space's."""
    session = Session()
    said = ["Which bicycle is good?", "A red one.", "I decided to buy the red bicycle.", "Good.", "I prefer tea."]
    for turn, content in enumerate(said):
        session.say(turn, content, role=Role.ASSISTANT if turn % 2 else Role.USER)
    session.put(SessionTimedOut("s", session.deadline)) if times_out else session.end()
    (end,) = [output for output in session.outputs if isinstance(output, ConversationEnded)]
    received = decode_command(encode(end), key_of(end), end.timestamp, Policy().intake)
    space = Space(app=end.app_id)
    assert isinstance(received, ConversationEnded)
    space.put(received)

    assert (received, end.reason) == (end, "timed_out" if times_out else "bye")
    assert [(memory.session_id, memory.user_id) for memory in space.active.values()] == [("s", end.user_id)]
    assert "red bicycle" in space.contents[0]
    assert "tea" in space.contents[0]
