"""What holds for every project, whatever is said, done and erased, wherever the log is cut."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import events
from models.events import ProjectItemChanged, ProjectOutput
from models.policy import Policy
from models.policy.project import ProjectPolicy
from models.project.state import ProjectState
from models.wire.arrival import Command
from models.wire.codec import encode
from tests.support.cut_log import assert_cuts_change_nothing
from tests.support.data_files import data_file
from tests.support.project_driver import Project
from tests.support.subjects import of_session

SMALL = {
    "short_term": {
        "recent_messages": 3, "chunk_messages": 2, "max_chunks": 2, "retention_turns": 4,
        "conversations": 2, "named": 3,
    },
    "long_term": {"most": 10, "pending": 2, "results": 3, "rivals": 3, "relationships": 4},
    "narrative": {"most": 3},
    "consolidation": {"step_memories": 10, "every": "PT1H"},
}  # fmt: skip
"""Small numbers, so that everything happens often."""
POLICY = Policy(projects=msgspec.convert(SMALL, ProjectPolicy))
TEXTS = (
    *("We decided to use PostgreSQL.", "We decided to use MySQL for the database.", "Maybe we decided to use Redis."),
    *("Perhaps we want dark mode for the app.", "The login is broken again.", "The bug is fixed now, it works."),
    *("We're switching from MySQL to SQLite.", "Good morning!", "Ünïcödé \U0001f984 must not break.", ""),
    *("The goal is to ship in May.", "The API runs on port 8080."),
)
KINDS = (
    *("say",) * 6, "end", "pause", "add", "edit", "delete", "relate", "decide", "access", "status", "ask", "due",
    "again", "erase session", "erase",
)  # fmt: skip
STEP = st.tuples(st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 11))
Step = tuple[str, int, int]
STEPS = st.one_of(st.lists(STEP, max_size=10), st.lists(STEP, min_size=20, max_size=60))


class Log:
    """Makes commands of one project from steps. Ids that exist are found by folding along."""

    def __init__(self, project: Project | None = None) -> None:
        self.project = project or Project(POLICY)
        self.commands: list[Command] = []
        self.outputs: list[events.OutputEvent] = []
        self.last: events.ProjectEvent | events.ProjectErasure | None = None

    def take(self, step: Step) -> None:
        """One step becomes one command."""
        project = self.project
        event = self._event(*step)
        if event is not None:
            self.last = event
            self.outputs += project.put(event)
            self.commands.append(Command(event, events.Position("commands", 5, project.offset - 1), project.now))

    def session(self, pick: int) -> str:
        """A name of a session."""
        return f"s{pick % 4}"

    def turn(self, session: str, other: int) -> events.ProjectTurnAdded:
        """What somebody says in it."""
        return self.project.turn(TEXTS[other], session)

    def _event(self, kind: str, pick: int, other: int) -> events.ProjectEvent | events.ProjectErasure | None:  # noqa: C901, PLR0911, PLR0912 - one for each kind
        project, session = self.project, self.session(pick)
        common: dict[str, Any] = {"timestamp": project.now} | project.ids
        deed = common | {"request_id": f"r{other}"}
        names = [*project.items("memory"), "mf0k3x2a-0000000f"]
        one, two = names[pick % len(names)], names[other % len(names)]
        match kind:
            case "say":
                return self.turn(session, other)
            case "end" | "pause":
                return project.ending(session, "ended" if kind == "end" else "paused")
            case "add":
                return events.ProjectMemoryAdded(
                    **deed, memory_type=events.MemoryType.FACT, content=TEXTS[other] or "x", subject=f"s{pick % 2}"
                )
            case "edit":
                project.now += timedelta(minutes=5)
                return events.ProjectMemoryEdited(**deed, memory_id=one, importance=other / 11, archived=other % 2 == 0)
            case "delete":
                return events.ProjectMemoryDeleted(**deed, memory_id=one)
            case "relate":
                relation = ("depends_on", "supersedes", "see_also")[other % 3]
                return events.RelationshipSet(**deed, source_id=one, target_id=two, relation=relation)
            case "decide":
                pending = [*project.items("pending"), "mf0k3x2a-0000000f"]
                return events.PendingFactDecided(**deed, pending_id=pending[0], promoted=other % 2 == 0)
            case "access":
                return events.MemoriesAccessed(**common, ids=[one, two, *project.items("episode")])
            case "status":
                return events.ConversationStatusSet(
                    **deed, conversation_id=session, status=("active", "ended")[other % 2]
                )
            case "ask":
                return events.ConsolidationAsked(**deed)
            case "due":
                project.now += timedelta(hours=other * 40)
                return events.ProjectWorkDue(**common)
            case "again":
                return self.last
            case "erase session":
                return events.ProjectSessionErased(**common, session_ids=[session], request_id="e")
        return events.ProjectErased(**common, request_id="e")


def logged(steps: Sequence[Step]) -> Log:
    """The log of these steps, folded once in one piece."""
    log = Log()
    for step in steps:
        log.take(step)
    return log


@given(STEPS, st.lists(st.integers(1, 5), min_size=1), st.lists(st.integers(0, 7), min_size=1), st.booleans())
def test_how_the_log_is_cut_changes_nothing(
    steps: list[Step], cuts: list[int], rewinds: list[int], small_writes: bool
) -> None:
    """Any cuts, recoveries, crashes and repeats give the same outputs and the same bytes of state."""
    with pytest.MonkeyPatch.context() as patch:
        if small_writes:
            patch.setattr("models.project.state.EVENT_STATE_BYTES", 2_000)
        assert_cuts_change_nothing(logged(steps).commands, POLICY, cuts, rewinds, small_chunks=small_writes)


@given(STEPS)
def test_the_compacted_topic_has_what_the_state_has(steps: list[Step]) -> None:
    """The latest of each slot: counts agree, and no relationship, episode or conversation has a loose end."""
    project = logged(steps).project
    kinds = ("memory", "episode", "chunk", "conversation", "pending")
    items = {kind: project.items(kind) for kind in kinds}
    if not project.state.known:
        return
    head, stats = project.state.head, project.stats
    kept = (head.memories.count, head.episodes, head.chunks, head.conversations, head.pending)
    memories, episodes = items["memory"], items["episode"]

    assert kept == tuple(len(items[kind]) for kind in kinds)
    assert kept[0] == stats.memories
    assert head.memories.archived == sum(memory.archived for memory in memories.values())
    assert all(edge.target_id in memories for memory in memories.values() for edge in memory.relationships)
    assert all(name in memories for episode in episodes.values() for name in episode.linked_memories)
    assert all(name in memories for each in items["conversation"].values() for name in each.active_facts)
    assert all(memory == kept_memory(project.state, name) for name, memory in memories.items())
    most = POLICY.projects
    assert kept[0] <= most.long_term.most
    assert kept[1] <= most.narrative.most
    assert kept[3] <= most.short_term.conversations
    assert kept[4] <= most.long_term.pending


def kept_memory(state: ProjectState, memory_id: str) -> object:
    """As the state has it."""
    kept = state.memories.get(memory_id)
    return None if kept is None else kept.memory


@given(STEPS)
def test_revisions_rise_and_items_carry_theirs(steps: list[Step]) -> None:
    """By one with each event that changes anything; every item of it has the same, and the standing comes last."""
    last = 0
    for outputs in by_cause(logged(steps).outputs):
        revisions = {
            event.revision for event in outputs if isinstance(event, events.ProjectItemChanged | events.ProjectChanged)
        }
        if not revisions:
            continue
        (revision,) = revisions

        assert isinstance(outputs[-1], events.ProjectChanged)
        assert revision in {last + 1, 1}
        last = revision


def by_cause(outputs: Sequence[events.OutputEvent]) -> list[list[events.OutputEvent]]:
    """Outputs by the record that caused them."""
    found: dict[int, list[events.OutputEvent]] = {}
    for event in outputs:
        assert isinstance(event, events.Output)
        found.setdefault(event.source.offset, []).append(event)
    return list(found.values())


CANARY, GONE = "zanzibarcanary", "s1-of-bert"
"""A word that only the erased session says, and its name."""
SAID_BY_TWO = tuple(data_file("projects_erased")["said"])
ERASING_KINDS = ["say"] * 6 + ["end", "status", "edit", "relate", "delete", "access", "add", "decide", "ask"]
ERASING_STEPS = st.lists(
    st.tuples(st.sampled_from(ERASING_KINDS), st.integers(0, 3), st.integers(0, 11)), min_size=5, max_size=40
)


class Told(Log):
    """A log of two sessions, of which one says the canary."""

    def session(self, pick: int) -> str:
        """Often the one that is erased."""
        return ("s0", GONE, GONE, "s0")[pick % 4]

    def turn(self, session: str, other: int) -> events.ProjectTurnAdded:
        """It says the canary where others say something else."""
        word, user = (CANARY, "bert") if session == GONE else (f"boat{other}", "anna")
        return self.project.turn(SAID_BY_TWO[other % len(SAID_BY_TWO)].format(word), session, user_id=user)


def compacted(project: Project) -> list[ProjectOutput]:
    """What a reader of the compacted topic finds."""
    items: list[ProjectItemChanged] = [event for event in project.told.values() if event.active]
    return [*items, project.stats]


def of_others(project: Project) -> set[str]:
    """Memories that somebody else said, too, or added by hand."""
    return {
        memory.id
        for memory in project.items("memory").values()
        if any(source.conversation_id != GONE for source in memory.sources)
    }


@given(ERASING_STEPS)
def test_an_erased_session_is_forgotten(steps: list[Step]) -> None:
    """Its words and name are in no state and no record that stands; no record that stands would be swept."""
    project = Project(stores=True)
    project.say("Hello there.", "s0")
    log = Told(project)
    for step in steps:
        log.take(step)
    kept, before = of_others(project), len(project.outputs)
    project.do(events.ProjectSessionErased, session_ids=[GONE])
    subject = of_session(GONE, app_id="shop").follow(project.outputs)
    left = compacted(project)

    assert [] == [event for event in left if subject.concerns(event)]
    assert kept <= set(project.items("memory"))
    for trace in (CANARY, GONE):
        assert [] == [event for event in left if trace.encode() in encode(event).lower()]
        assert [] == [
            (entity, part)
            for entity, parts in project.stored.items()
            for part, data in parts.items()
            if trace.encode() in data.lower()
        ]
        named = [event for event in project.outputs[:before] if trace.encode() in encode(event).lower()]
        assert [] == [event for event in named if not subject.concerns(event)]
