"""What holds for long-term memories whatever is said, in whatever order, and whatever becomes of them."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from models.events.project_items import MemoryType
from models.policy.project import LongTermPolicy
from tests.support.long_term_memories import DAY, Project
from tests.support.session_driver import NOON

CHOICES = ("Use PostgreSQL.", "Use MySQL.", "Use SQLite.")
STATEMENTS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(CHOICES)), min_size=1, max_size=8, unique_by=lambda each: each[0]
)
SUBJECT = "database"


def expected_intervals(statements: list[tuple[int, str]]) -> list[tuple[str, float, float | None]]:
    """Each choice holds from when it was said until another was."""
    in_order = sorted(statements)
    changes = [said for n, said in enumerate(in_order) if n == 0 or said[1] != in_order[n - 1][1]]
    ends = [float(begin) for begin, _ in changes[1:]] + [None]
    return [(choice, float(begin), end) for (begin, choice), end in zip(changes, ends, strict=True)]


@given(STATEMENTS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_no_interval(statements: list[tuple[int, str]], random: Random) -> None:
    """What was said when decides, not what came first; so no two of a subject overlap."""
    random.shuffle(statements)
    project = Project()
    for day, choice in statements:
        project.say(choice, day, SUBJECT)

    assert expected_intervals(statements) == project.intervals()
    for (_, _, end), (_, begin, _) in pairwise(project.intervals()):
        assert end == begin


@given(STATEMENTS, st.data())
def test_what_is_erased_was_never_said(statements: list[tuple[int, str]], data: st.DataObject) -> None:
    """Once a session is erased, the intervals are those of the others, also of those that were listed no longer."""
    sessions = [data.draw(st.sampled_from(("s1", "s2"))) for _ in statements]
    project, other = Project(LongTermPolicy(rivals=data.draw(st.sampled_from((1, 2, 32))))), Project()
    for (day, choice), session in zip(statements, sessions, strict=True):
        project.say(choice, day, SUBJECT, session=session)
    project.long_term().erase_sessions(frozenset({"s1"}))
    left = [said for said, session in zip(statements, sessions, strict=True) if session != "s1"]
    for day, choice in left:
        other.say(choice, day, SUBJECT, session="s2")

    held = {
        day: [c for c, begin, end in project.intervals() if begin <= day and (end is None or day < end)]
        for day in range(13)
    }
    assert held == {
        day: [c for c, begin, end in other.intervals() if begin <= day and (end is None or day < end)]
        for day in range(13)
    }
    assert all(s.conversation_id != "s1" for kept in project.memories.kept.values() for s in kept.memory.sources)


SAID = st.tuples(
    st.just("say"),
    st.sampled_from((*CHOICES, "We won't use MySQL.", "Never use SQLite.", "Deploy on Fridays.")),
    st.integers(0, 9),
    st.sampled_from(("", "database", "deployment")),
    st.sampled_from(list(MemoryType)),
    st.sampled_from(("ann", "bob")),
)
PLACE = st.integers(0, 9)
RELATED = st.tuples(
    st.just("relate"),
    PLACE,
    PLACE,
    st.sampled_from(("depends_on", "supersedes", "part_of")),
    st.sampled_from((None, 0.0, 0.5, 1.0)),
)
EDITED = st.tuples(
    st.just("edit"), PLACE, st.sampled_from(("valid_from", "valid_until", "content", "reopened")), st.integers(-2, 12)
)
DELETED = st.tuples(st.sampled_from(("delete", "displace", "erase", "again")), PLACE)
SMALL = LongTermPolicy(rivals=3, relationships=3, history=2, sources=2, most=10, tags=2, related=2)


@given(
    st.lists(st.one_of(SAID, SAID, RELATED, EDITED, DELETED), max_size=25), st.sampled_from((LongTermPolicy(), SMALL))
)
def test_whatever_is_done_leaves_memories_whole(deeds: list[tuple[object, ...]], policy: LongTermPolicy) -> None:
    """No relationship without an end, no interval without a length, no cycle; bounds kept, and everything told."""
    project = Project(policy)
    for deed in deeds:
        before = {name: kept.memory for name, kept in project.memories.kept.items()}
        project.told.clear()
        do(project, deed)
        after = {name: kept.memory for name, kept in project.memories.kept.items()}
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}

        assert changed <= {name for name, _ in project.told}
        whole(project)


def do(project: Project, deed: tuple[object, ...]) -> None:
    """One deed; a place is that of a memory, by id."""
    ids = sorted(project.memories.kept)
    if deed[0] == "say":
        _, content, day, subject, memory_type, user = deed
        project.say(content, day, subject, memory_type=memory_type, user=user, session=f"of {user}", tags=["db"])  # type: ignore[arg-type]
        return
    if not ids:
        return
    first = ids[deed[1] % len(ids)]  # type: ignore[operator]
    if deed[0] == "relate":
        project.relate(first, ids[deed[2] % len(ids)], deed[3], deed[4])  # type: ignore[operator, arg-type]
    elif deed[0] == "edit":
        values = {"content": CHOICES[deed[3] % 3], "reopened": True}  # type: ignore[operator]
        project.edit(first, **{str(deed[2]): values.get(str(deed[2]), NOON + deed[3] * DAY)})  # type: ignore[operator]
    elif deed[0] == "again":
        assert project.long_term().put_back(project.memory(first)) == "unchanged"
    elif deed[0] == "erase":
        project.long_term().erase_sessions(frozenset({"of ann"}))
    else:
        project.long_term().delete(first, "deleted" if deed[0] == "delete" else "displaced")


def whole(project: Project) -> None:
    """What always holds."""
    kept_ones = project.memories.kept
    policy = project.policy
    for name, kept in kept_ones.items():
        memory = kept.memory
        assert name == memory.id
        assert memory.valid_until is None or memory.valid_until > memory.valid_from
        assert memory.closed_by == "" or memory.closed_by in kept_ones
        assert len(memory.relationships) <= policy.relationships
        assert len(kept.incoming) <= policy.relationships
        assert len(memory.history) <= policy.history
        assert len(memory.sources) <= policy.sources
        assert all(0 <= edge.strength <= 1 and edge.target_id != name for edge in memory.relationships)
        assert all(name in kept_ones[edge.target_id].incoming for edge in memory.relationships)
        assert all(any(e.target_id == name for e in kept_ones[by].memory.relationships) for by in kept.incoming)
        assert all(0 <= value <= 1 for value in (memory.importance, memory.confidence, memory.decay_factor))
    assert len({kept.slot for kept in kept_ones.values()}) == len(kept_ones) <= policy.most + policy.rivals
    assert all(each in kept_ones for ids in project.memories.lists.values() for each in ids)
    for relation in ("depends_on", "supersedes"):
        left = {n: {e.target_id for e in k.memory.relationships if e.type == relation} for n, k in kept_ones.items()}
        while ends := [name for name, targets in left.items() if not targets & left.keys()]:
            for name in ends:
                del left[name]
        assert left == {}


@given(st.lists(st.one_of(SAID, SAID, RELATED, EDITED, DELETED), max_size=15), st.randoms(use_true_random=False))
def test_a_saved_project_comes_back_as_it_was(deeds: list[tuple[object, ...]], random: Random) -> None:
    """In whatever order its memories are put back, and putting them back again changes nothing."""
    project, copy = Project(), Project()
    for deed in deeds:
        do(project, deed)
    saved = [kept.memory for kept in project.memories.kept.values()]
    random.shuffle(saved)
    outcomes = [copy.long_term().put_back(memory) for memory in saved]

    assert outcomes == ["done"] * len(saved)
    assert {memory.id: memory for memory in saved} == {name: kept.memory for name, kept in copy.memories.kept.items()}
    assert [copy.long_term().put_back(memory) for memory in saved] == ["unchanged"] * len(saved)
    whole(copy)
