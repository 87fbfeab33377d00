"""The learned ranking: its signals, its sum, and questions for a list."""

from collections.abc import Mapping
from datetime import date

import pytest

from models.events import SessionName
from models.retrieval.event_times import event_interval
from models.retrieval.lexical import terms
from models.retrieval.ranker import SIGNALS, CandidateTurn, Ranker, ranker_of, signals
from models.retrieval.traits import packed_traits, speaker_of
from models.retrieval.word_table import word_table

DAY = date(2023, 5, 8)
CHAT, OTHER = SessionName("app", "chat"), SessionName("app", "other")


def candidate(turn: int, content: str, *, session: SessionName = CHAT, said: date = DAY) -> CandidateTurn:
    """A turn as the index has it."""
    told = event_interval(content, said)
    return CandidateTurn((session, turn), speaker_of(content), "user", said.toordinal(), told, packed_traits(content))


def values(question: str, *contents: str) -> list[Mapping[str, float]]:
    """Signals of the turns of a session, by name."""
    rows = signals(question, [candidate(turn, content) for turn, content in enumerate(contents)])
    return [dict(zip(SIGNALS, row.tolist(), strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("signal", "question", "better", "worse"),
    [
        ("speaker", "What does Anna play?", "Anna: the flute", "Bob: the flute"),
        ("when_temporal", "When did they meet?", "It was in June.", "It was in Oslo."),
        ("who_names", "Who came along?", "It was with Peter Hansen.", "It was with a friend."),
        ("near_date", "What happened on 8 May 2023?", "Nothing.", ""),
        ("event_date", "What happened on 7 May 2023?", "I fell yesterday.", "I fell today."),
        ("asks", "Where?", "Where is it?", "It is there."),
        ("word_to_word", "Does she own a dog?", "She has a puppy.", "She has a spoon."),
        ("coverage_talk", "Which violin?", "The violin.", "The spoon."),
        ("substance", "What?", "Oslo, in the old harbour.", "ok"),
    ],
)
def test_a_signal_tells_turns_apart(signal: str, question: str, better: str, worse: str) -> None:
    """What answers has more of it."""
    said = [candidate(0, better), candidate(9, worse or better, said=date(2023, 1, 1) if not worse else DAY)]
    first, second = signals(question, said)[:, SIGNALS.index(signal)]

    assert first > second


def test_neighbours_cover_a_question_and_what_was_asked_before_counts() -> None:
    """A turn stands in its talk; the next session's first turn does not."""
    asked, answer, far = values("Which violin did she buy?", "Anna: Which violin?", "Bob: The old one.", "Anna: Ah.")

    assert asked["coverage_talk"] == answer["coverage_talk"] > 0
    assert (answer["previous_asks"], far["previous_asks"], asked["previous_asks"]) == (1, 0, 0)

    other = [candidate(0, "Which violin?"), candidate(1, "The old one.", session=OTHER)]
    assert signals("Which violin?", other)[1, SIGNALS.index("coverage_talk")] == 0


def test_a_burst_of_one_voice_has_the_neighbours_that_a_long_turn_has() -> None:
    """Its messages share what is around them; a name or else a role is a voice, and a gap ends a run."""
    asks, which, answers, again = values("Which violin?", "Anna: Which?", "Anna: violin", "Bob: The old", "Bob: one.")

    assert asks["coverage_talk"] == which["coverage_talk"] == answers["coverage_talk"] == again["coverage_talk"] > 0
    assert [each["previous_asks"] for each in (asks, which, answers, again)] == [0, 0, 1, 1]

    places = [(0, "user", "Which violin?"), (1, "user", "That is."), (2, "assistant", "The old."), (4, "user", "Yes.")]
    said = [candidate(turn, content)._replace(role=role) for turn, role, content in places]
    rows = signals("Which violin?", said)

    assert rows[:, SIGNALS.index("previous_asks")].tolist() == [0, 0, 1, 0]
    assert rows[3, SIGNALS.index("coverage_talk")] == 0


def test_contributions_are_the_score_and_zero_is_an_average_candidate() -> None:
    """So a hit says itself why it is there."""
    said = [candidate(n, f"Anna: number {n}, in June") for n in range(5)]
    said[3] = said[3]._replace(carried=2.0, session_best=2.0, similarity=0.9)
    ranked = Ranker({"session_best": 1.0, "carried": 0.5, "similarity": 2.0}).rank("Which number?", said)

    assert said[ranked[0].row].place == (CHAT, 3)
    assert sum(each.score for each in ranked) == pytest.approx(0, abs=1e-9)
    assert all(each.score == pytest.approx(sum(each.contributions.values())) for each in ranked)
    assert Ranker({}).rank("?", []) == []


def test_a_list_is_gathered_from_several_sessions() -> None:
    """A second turn of a session loses to the first of another that is hardly worse; not so for one thing."""
    said = [candidate(0, "a"), candidate(9, "b"), candidate(0, "c", session=OTHER)]
    said = [each._replace(carried=score) for each, score in zip(said, (3.0, 2.9, 2.8), strict=True)]
    ranker = Ranker({"carried": 1.0}, list_penalty=2.0)

    assert [each.row for each in ranker.rank("What hobbies does she have?", said)] == [0, 2, 1]
    assert [each.row for each in ranker.rank("Where does she live?", said)] == [0, 1, 2]


def test_words_of_one_meaning_are_near_and_unknown_ones_have_no_neighbours() -> None:
    """What the package ships; ids ascend, as they are searched by halves."""
    near, cosines = word_table().nearest(terms("dog")[0])

    assert dict(zip(near.tolist(), cosines.tolist(), strict=True))[terms("puppy")[0]] > 0.5
    assert near.tolist() == sorted(near.tolist())
    assert not len(word_table().nearest(terms("qwzxv")[0])[0])


def test_shipped_weights_are_of_known_signals() -> None:
    """Each embedder that ships has some; another's vectors are ranked by the formula."""
    assert ranker_of("wordllama") is not None
    assert ranker_of("somebody's") is None
