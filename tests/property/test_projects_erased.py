"""What an erased session said to a project is nowhere, what others said stands, and the sweep takes nothing of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models import events
from models.events import ProjectItemChanged, ProjectOutput
from models.wire.codec import encode
from tests.support.project_driver import Project
from tests.support.subjects import of_session

CANARY, GONE = "zanzibarcanary", "s1-of-bert"
"""A word that only the erased session says, and its name."""
SAID = (
    "We decided to use {0} for storage.",
    "We decided to use PostgreSQL as our database.",
    "Our goal is to ship the {0} release in May.",
    "The API must not depend on {0}.",
    "We fixed the {0} bug, it works now.",
    "Maybe we should prefer {0} in the editor?",
    "We decided to switch from PostgreSQL to SQLite as our database.",
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say"] * 6 + ["end", "status", "edit", "relate", "delete", "access", "add", "promote", "consolidate"]
        ),
        st.sampled_from(["s0", GONE, GONE, "s2"]),
        st.integers(0, len(SAID) - 1),
    ),
    min_size=5,
    max_size=40,
)
Step = tuple[str, str, int]


def take(project: Project, step: Step) -> None:
    """Let something happen."""
    kind, session, pick = step
    pending = sorted(project.items("pending"))
    if kind == "say":
        user = "bert" if session == GONE else "anna"
        project.say(SAID[pick].format(CANARY if session == GONE else f"boat{pick}"), session, user_id=user)
    elif kind == "end":
        project.end(session)
    elif kind == "status":
        project.do(events.ConversationStatusSet, conversation_id=session, status="active")
    elif kind == "promote" and pending:
        project.do(events.PendingFactDecided, pending_id=pending[pick % len(pending)], promoted=True)
    else:
        by_hand(project, kind, pick)


def by_hand(project: Project, kind: str, pick: int) -> None:
    """Somebody does something to one of the memories."""
    memories = sorted(project.items("memory")) or ["a-0"]
    item = memories[pick % len(memories)]
    match kind:
        case "edit":
            project.do(events.ProjectMemoryEdited, memory_id=item, importance=0.9)
        case "relate":
            project.do(events.RelationshipSet, source_id=memories[0], target_id=item, relation="depends_on")
        case "delete":
            project.do(events.ProjectMemoryDeleted, memory_id=item)
        case "access":
            project.do(events.MemoriesAccessed, ids=[item])
        case "add":
            project.do(events.ProjectMemoryAdded, memory_type="decision", content=SAID[1])
        case _:
            project.do(events.ConsolidationAsked)


def stats(project: Project) -> list[ProjectOutput]:
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


@given(STEPS)
def test_an_erased_session_is_forgotten(steps: list[Step]) -> None:
    """Its words and name are in no state and no record that stands; no record that stands would be swept."""
    project = Project(stores=True)
    project.say("Hello there.", "s0")
    for step in steps:
        take(project, step)
    kept, before = of_others(project), len(project.outputs)
    project.do(events.ProjectSessionErased, session_ids=[GONE])
    subject = of_session(GONE, app_id="shop").follow(project.outputs)
    left = stats(project)

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
