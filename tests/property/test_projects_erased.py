"""What an erased session said to a project is nowhere, what others said stands, and the sweep takes nothing of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models import events
from models.events import ProjectItemChanged, ProjectOutput
from models.wire.codec import encode
from tests.property.test_projects import Log, Step
from tests.support.data_files import data_file
from tests.support.project_driver import Project
from tests.support.subjects import of_session

CANARY, GONE = "zanzibarcanary", "s1-of-bert"
"""A word that only the erased session says, and its name."""
SAID = tuple(data_file("projects_erased")["said"])
KINDS = ["say"] * 6 + ["end", "status", "edit", "relate", "delete", "access", "add", "decide", "ask"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 11)), min_size=5, max_size=40)


class Told(Log):
    """A log of two sessions, of which one says the canary."""

    def session(self, pick: int) -> str:
        """Often the one that is erased."""
        return ("s0", GONE, GONE, "s0")[pick % 4]

    def turn(self, session: str, other: int) -> events.ProjectTurnAdded:
        """It says the canary where others say something else."""
        word, user = (CANARY, "bert") if session == GONE else (f"boat{other}", "anna")
        return self.project.turn(SAID[other % len(SAID)].format(word), session, user_id=user)


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
    log = Told(project)
    for step in steps:
        log.take(step)
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
