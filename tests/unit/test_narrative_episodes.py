"""Episodes of a project: what is told of them, which merge, which stay, and the arc that they make."""

from collections import Counter
from datetime import timedelta

import pytest
from msgspec.structs import replace

from jobs.demo.conversations import load_project_conversation, schedule
from models.events import Role, Turn
from models.events.project_items import EpisodeKind, MemoryType, ProjectEpisode
from models.language.narrative_detection import ConversationTurn, NarrativeState, detect
from models.language.narrative_sentences import tellings
from models.policy.project import NarrativePolicy
from models.project.narrative import merge_overlapping, narrative_arc, take
from tests.support.data_files import data_file
from tests.support.narrative_episodes import KEY, POLICY, episode, taken, told, turn
from tests.support.project_found import memory, related
from tests.support.session_driver import NOON

CRASH = "There is a bug: the import crashes on long rows."
SOLVED = "The import bug is fixed, long rows are split now."


@pytest.mark.behaviour("project-08")
def test_a_decision_is_told_with_its_reason() -> None:
    """Title without the reason, summary with it, and who took part."""
    said = [turn(0, "Which one?", Role.ASSISTANT), turn(1, "So: we decided to use SQLite, because it is simple.")]
    (found,) = told(said)

    assert found.title == "We decided to use SQLite"
    assert found.summary == "We decided to use SQLite, because it is simple."
    assert found.outcome == found.summary
    assert found.participants == ["assistant", "nora"]
    assert found.significance == POLICY.significance.decision_made + POLICY.reason_gain


@pytest.mark.behaviour("project-08")
def test_who_has_no_id_takes_part_by_role() -> None:
    """A message without a user id, also one that an earlier release kept as spoken by nobody, alone and merged."""
    said = [turn(1, "So: we decided to use SQLite, because it is simple.", user_id="")]
    (found,) = told(said)
    (earlier,) = told(said, watch=NarrativeState(speakers={"": 0}))
    (merged,) = taken([episode(1, 4, participants=["", "nora"])], episode(2, 3, participants=["", "assistant"]))

    assert found.participants == earlier.participants == ["user"]
    assert merged.participants == ["assistant", "nora"]


def test_a_solution_spans_from_its_issue() -> None:
    """The issue goes into it; between them anything may be said."""
    said = [turn(3, CRASH), turn(4, "Is it fixed?"), turn(6, "It is still not fixed."), turn(9, SOLVED)]
    (found,) = told(said)

    assert (found.kind, found.first_turn, found.last_turn) == (EpisodeKind.PROBLEM_SOLVED, 3, 9)
    assert found.started_at == NOON + timedelta(minutes=3)
    assert found.summary.startswith("There is a bug")
    assert len(found.merged_ids) == 1


@pytest.mark.parametrize(
    ("said", "ranges"),
    [
        ({3: CRASH, 8: "There is an issue with the colours of the logo.", 20: SOLVED}, [(3, 20), (8, 8)]),
        ({1: CRASH, 30: "The colours of the logo are fixed."}, [(1, 1), (30, 30)]),
        ({1: CRASH, 5: CRASH, 9: CRASH}, [(1, 1)]),
    ],
    ids=["its own among several", "of nothing known", "told again"],
)
def test_a_solution_finds_its_own_issue(said: dict[int, str], ranges: list[tuple[int, int]]) -> None:
    """By topics, not by recency; the same trouble in the same words makes no second episode."""
    found = told(turn(number, content) for number, content in said.items())

    assert ranges == [(each.first_turn, each.last_turn) for each in found]


def test_a_long_struggle_matters_more() -> None:
    """Solved after 50 turns it is a key moment, after two it is not."""
    (soon,) = told([turn(1, CRASH), turn(3, SOLVED)])
    (late,) = told([turn(1, CRASH), turn(51, SOLVED)])

    assert soon.significance < POLICY.key_moment <= late.significance


def test_a_decision_that_takes_the_place_of_another_is_a_pivot() -> None:
    """Its memory says so, not its words; it links to it and gains by its importance."""
    said = turn(1, "We decided to use Vue.")
    decided = memory(1, "Use Vue", kind=MemoryType.DECISION)
    (found,) = detect(
        NarrativeState(), said, [related(replace(decided, importance=0.9), "a-1", "supersedes")], KEY, POLICY
    )
    (plain,) = detect(NarrativeState(), said, [decided], KEY, POLICY)

    assert (found.kind, plain.kind) == (EpisodeKind.PIVOT, EpisodeKind.DECISION_MADE)
    assert found.linked_memories == ["m-001"]
    assert found.significance == pytest.approx(POLICY.significance.pivot + 0.4 * POLICY.importance_gain)


@pytest.mark.parametrize("role", [Role.SYSTEM, Role.TOOL])
def test_tools_tell_nothing(role: Role) -> None:
    """A tool's output full of errors is no issue of the project."""
    assert [] == detect(NarrativeState(), turn(1, CRASH, role), [], KEY, POLICY)


def test_what_is_not_significant_enough_is_none() -> None:
    """The policy's floor."""
    policy = NarrativePolicy(min_significance=0.95)

    assert [] == detect(NarrativeState(), turn(1, "We decided to use SQLite."), [], KEY, policy)


@pytest.mark.parametrize(
    ("first", "second", "ranges"),
    [
        (episode(1, 5), episode(4, 9), [(1, 9)]),
        (episode(1, 5), episode(7), [(1, 7)]),
        (episode(1, 5), episode(8), [(1, 5), (8, 8)]),
        (episode(1, 5), episode(4, 9, conversation_id="s1"), [(1, 5), (4, 9)]),
        (episode(3, 9, "problem_solved"), episode(3, kind="issue_identified"), [(3, 9)]),
        (episode(3, 9, "problem_solved"), episode(5, kind="issue_identified"), [(3, 9), (5, 5)]),
        (episode(1, 60, "problem_solved"), episode(30, kind="pivot"), [(1, 60), (30, 30)]),
        (episode(4), episode(4, kind="task_completed"), [(4, 4)]),
    ],
    ids=["overlap", "gap", "far", "other", "own issue", "other issue", "pivot inside", "same turns"],
)
def test_what_merges(first: ProjectEpisode, second: ProjectEpisode, ranges: list[tuple[int, int]]) -> None:
    """Each row of the module's table, taken one by one and in a consolidation, in both orders."""
    for pair in ([first, second], [second, first]):
        kept = taken([pair[0]], pair[1])
        merged = merge_overlapping(pair, POLICY)

        assert sorted((each.first_turn, each.last_turn) for each in kept) == ranges
        assert len(merged) == 2 - len(ranges)


def test_of_merged_ones_the_more_significant_keeps_its_name() -> None:
    """Links, participants and accesses are those of both; the other is named and goes."""
    weak = episode(1, 4, linked_memories=["a-1"], participants=["nora"], access_count=1)
    strong = episode(3, 6, linked_memories=["a-2"], participants=["tomas"], access_count=2, significance=0.8)
    change = take([weak], strong, NOON, POLICY)
    (merged,) = change.changed

    assert (merged.id, merged.title, merged.merged_ids) == (strong.id, strong.title, [weak.id])
    assert sorted(merged.linked_memories) == ["a-1", "a-2"]
    assert merged.participants == ["nora", "tomas"]
    assert merged.access_count == 3
    assert change.gone == [weak.id]


def test_beyond_the_most_the_weakest_goes() -> None:
    """By significance × decay: a strong one that nobody looked at for a year goes before a weak new one."""
    policy = NarrativePolicy(most=2)
    old = episode(1, significance=0.9, last_accessed_at=NOON - timedelta(days=365))
    kept = [old, episode(10, significance=0.4)]
    change = take(kept, episode(20, significance=0.35), NOON + timedelta(hours=1), policy)

    assert [each.first_turn for each in change.changed] == [20]
    assert change.gone == [old.id]


@pytest.mark.behaviour("project-10")
def test_arc_by_thirds_of_the_turns() -> None:
    """An episode stands at the middle of its range; the bounds of thirds fall to the later one."""
    kept = [episode(0), episode(29), episode(30), episode(0, 89), episode(60), episode(89), episode(95)]
    arc = narrative_arc(kept, "s0", POLICY, turns=(0, 89))

    assert [each.first_turn for each in arc.beginning] == [0, 29]
    assert [(each.first_turn, each.last_turn) for each in arc.middle] == [(0, 89), (30, 30)]
    assert [each.first_turn for each in arc.end] == [60, 89, 95]


@pytest.mark.behaviour("project-10")
def test_arc_names_key_moments() -> None:
    """From the policy's significance on, exactly 0.7 among them, in order of turns."""
    kept = [episode(9, significance=0.9), episode(5, significance=0.7), episode(1, significance=0.699)]

    assert [5, 9] == [each.first_turn for each in narrative_arc(kept, "s0", POLICY).key_moments]


def test_arc_of_a_project_goes_by_time() -> None:
    """Conversations one after the other, thirds by number of episodes."""
    kept = [episode(n, conversation_id=f"s{n}") for n in (5, 1, 3, 2, 4, 6)]
    arc = narrative_arc(kept, None, POLICY)

    assert [[1, 2], [3, 4], [5, 6]] == [[e.first_turn for e in part] for part in (arc.beginning, arc.middle, arc.end)]


def test_an_episode_names_the_latest_that_were_merged_into_it() -> None:
    """However many there were: it is one record."""
    policy = NarrativePolicy(most=3)
    kept: list[ProjectEpisode] = []
    for n in range(8):
        kept = take(kept, episode(n), NOON, policy).changed

    assert [["e-de5", "e-de6", "e-de7"]] == [each.merged_ids for each in kept]


TURNS = (0, 249)


@pytest.fixture(scope="module")
def turns() -> list[Turn]:
    """The events of its turns."""
    events = [cue.event(NOON) for cue in schedule([load_project_conversation()])]
    return [event for event in events if isinstance(event, Turn)]


@pytest.fixture(scope="module")
def episodes(turns: list[Turn]) -> list[ProjectEpisode]:
    """What is told of them, without memories."""
    return told(
        ConversationTurn(
            conversation_id=each.session_id,
            turn=each.turn,
            role=each.role,
            user_id=each.user_id,
            content=each.content,
            timestamp=each.timestamp,
        )
        for each in turns
    )


@pytest.mark.behaviour("project-09")
def test_its_story_is_told(episodes: list[ProjectEpisode]) -> None:
    """All six kinds, about one episode in ten turns, a long struggle, both pivots; key moments are in their order."""
    kinds = Counter(each.kind.value for each in episodes)

    assert len(kinds) == 6
    assert 20 <= len(episodes) <= 28
    assert [100, 148] == [each.first_turn for each in episodes if each.kind == "pivot"]
    assert (122, 181) in [(each.first_turn, each.last_turn) for each in episodes if each.kind == "problem_solved"]

    arc = narrative_arc(episodes, "tool-library", POLICY, turns=TURNS)
    words = ["PostgreSQL", "React to HTMX", "Docker Compose", "trigram", "live"]
    moments = [each.summary for each in arc.key_moments]
    places = [next(n for n, summary in enumerate(moments) if word in summary) for word in words]

    assert min(len(arc.beginning), len(arc.middle), len(arc.end)) >= 5
    assert places == sorted(places)
    assert len(moments) <= 10


SENTENCES = data_file("narrative")


@pytest.mark.behaviour("project-09")
@pytest.mark.parametrize(
    ("role", "said", "kinds"),
    [
        *((Role.USER, each, [kind]) for kind, telling in SENTENCES["telling"].items() for each in telling),
        # Questions, negations, suppositions, hearsay, what lies ahead and other meanings of the words.
        *((Role.USER, each, []) for each in SENTENCES["silent"]),
        # A log or a quotation is nobody's own words.
        (Role.USER, "Look:\n```\nwe decided to use X\nERROR: it crashes\n```", []),
        # What an assistant proposes or recaps is no episode; what it did is.
        (
            Role.ASSISTANT,
            "Let's go with Postgres. The problem is that SQLite locks. You decided to use PostgreSQL.",
            [],
        ),
        (Role.ASSISTANT, "I've fixed the race and finished the migration.", ["problem_solved"]),
    ],
)
def test_it_tells(role: Role, said: str, kinds: list[str]) -> None:
    """A sentence of each wording tells of its kind, and of no other; what is nobody's own news of none."""
    assert kinds == [request.kind.value for request in tellings(said, role)]


def test_of_a_turn_the_sentence_that_says_more_is_taken() -> None:
    """A bare cry of joy would make an empty title."""
    (request,) = tellings("Fixed! The double booking is solved.", Role.USER)

    assert request.sentence == "The double booking is solved."
