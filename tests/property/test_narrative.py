"""Promises of episodic memory for any turns: bounded, deterministic, and its merging comes to an end."""

from datetime import timedelta
from itertools import combinations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models.events import Role
from models.events.project_items import EpisodeKind, ProjectEpisode
from models.language.narrative_detection import ConversationTurn, NarrativeState, detect
from models.policy.project import NarrativePolicy
from models.project.narrative import merge_overlapping, narrative_arc
from tests.support.narrative_episodes import KEY, POLICY, episode, taken, turn

_MOST_WATCH_BYTES = 4_096
_SENTENCES = [
    "There is a bug in the import.",
    "The import bug is fixed!",
    "We decided to use SQLite, because it is simple.",
    "We decided to switch the store from SQLite to PostgreSQL.",
    "The migration is finished.",
    "What a breakthrough!",
    "Is it fixed?",
]
_SAID = st.lists(st.tuples(st.integers(0, 300), st.sampled_from(_SENTENCES) | st.text(max_size=200)), max_size=25)
_EPISODES = st.lists(
    st.builds(
        lambda kind, first, length, significance, conversation: episode(
            first,
            first + length,
            kind,
            id=f"{first:03}-{length}{kind[:2]}{conversation}",
            significance=significance / 10,
            conversation_id=conversation,
        ),
        st.sampled_from([kind.value for kind in EpisodeKind]),
        st.integers(0, 60),
        st.integers(0, 9),
        st.integers(3, 10),
        st.sampled_from(["s0", "s1"]),
    ),
    max_size=12,
    unique_by=lambda each: each.id,
)


def _turns(said: list[tuple[int, str]]) -> list[ConversationTurn]:
    return [turn(number, content, Role.USER if number % 2 else Role.ASSISTANT) for number, content in said]


def _read(said: list[tuple[int, str]]) -> tuple[list[ProjectEpisode], NarrativeState]:
    watch = NarrativeState()
    return [found for each in _turns(said) for found in detect(watch, each, [], KEY, POLICY)], watch


@given(_SAID)
def test_what_is_told_is_valid_bounded_and_the_same_again(said: list[tuple[int, str]]) -> None:
    """Any text in any order: every field within its type and policy, no range inverted, the watch small."""
    found, watch = _read(said)

    assert found == _read(said)[0]
    assert len(msgspec.msgpack.encode(watch)) <= _MOST_WATCH_BYTES
    for each in found:
        assert each == msgspec.json.decode(msgspec.json.encode(each), type=ProjectEpisode)
        assert each.first_turn <= each.last_turn
        assert each.started_at <= each.ended_at
        assert len(each.title) <= POLICY.title_chars
        assert len(each.summary) <= POLICY.summary_chars
        assert each.significance >= POLICY.min_significance


@given(_EPISODES, st.integers(1, 5))
def test_kept_ones_stay_few_and_apart(episodes: list[ProjectEpisode], most: int) -> None:
    """At most as many as the policy says, and no two that should be one, whatever comes."""
    policy = NarrativePolicy(most=most)
    kept: list[ProjectEpisode] = []
    for each in episodes:
        kept = taken(kept, each, policy)

        assert len(kept) <= most
        assert [] == merge_overlapping(kept, policy)


@given(_EPISODES)
def test_merging_loses_nothing(episodes: list[ProjectEpisode]) -> None:
    """Every episode stays, or is named by one whose range covers it; merging again does nothing."""
    merged = merge_overlapping(episodes, POLICY)
    gone = {each for _, ids in merged for each in ids}
    grown = {each.id: each for each, _ in merged}
    stay = [grown.get(each.id, each) for each in episodes if each.id not in gone]
    holder = {each: keeper for keeper, ids in merged for each in [keeper.id, *ids]}

    assert [] == merge_overlapping(stay, POLICY)
    for each in episodes:
        keeper = holder.get(each.id, each)
        assert keeper.first_turn <= each.first_turn <= each.last_turn <= keeper.last_turn
        assert each.id == keeper.id or each.id in keeper.merged_ids
    for one, other in combinations(stay, 2):
        same = one.kind is other.kind and one.conversation_id == other.conversation_id
        assert not same or one.last_turn < other.first_turn or other.last_turn < one.first_turn


@given(_EPISODES, st.sampled_from(["s0", None]))
def test_an_arc_has_each_episode_once(episodes: list[ProjectEpisode], conversation_id: str | None) -> None:
    """Thirds share out the conversation's episodes; key moments are among them."""
    arc = narrative_arc(episodes, conversation_id, POLICY)
    parts = [*arc.beginning, *arc.middle, *arc.end]
    expected = [each.id for each in episodes if conversation_id in (None, each.conversation_id)]

    assert sorted(expected) == sorted(each.id for each in parts)
    assert {each.id for each in arc.key_moments} <= set(expected)


@given(st.permutations(range(4)))
def test_ids_do_not_depend_on_what_else_was_said(order: list[int]) -> None:
    """A decision's id follows from its place, so that a replay after other erasures names it the same."""
    alone = detect(NarrativeState(), turn(50, _SENTENCES[2]), [], KEY, POLICY)
    watch = NarrativeState()
    for place in order:
        detect(watch, turn(place, f"Something else, {place}."), [], KEY, POLICY)
    found = detect(watch, turn(50, _SENTENCES[2]), [], KEY, POLICY)

    assert [each.id for each in alone] == [each.id for each in found]
    assert timedelta(0) == found[0].started_at - alone[0].started_at
