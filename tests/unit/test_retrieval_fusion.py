"""Texts as sparse vectors; two rankings become one; what being named in the question is worth."""

from datetime import UTC, datetime, timedelta, timezone
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events import SessionName
from models.policy.retrieval import RetrievalPolicy
from models.retrieval import fusion
from models.retrieval.fusion import Place, fuse, ranked
from models.retrieval.lexical import AVERAGE_TERMS, K1, asked_terms, date_words, query_vector, terms, weights_of
from models.retrieval.lexical import B as LENGTH_SHARE
from models.retrieval.ranker import CandidateTurn, formula
from models.retrieval.traits import packed_traits, speaker_of, unpacked
from tests.support.data_files import data_file

POLICY = RetrievalPolicy()
NO_NEIGHBOURS = RetrievalPolicy(neighbour_reach=0)

A, B, CLEAR = (SessionName("app", each) for each in ("a", "b", "clear"))
sessions = st.builds(SessionName, st.sampled_from(["app", "other"]), st.sampled_from(["a", "b", "a_1"]))
places = st.tuples(sessions, st.integers(0, 30))
bm25 = st.dictionaries(places, st.floats(0.01, 50), max_size=40)
cosines = st.dictionaries(places, st.floats(-1, 1), max_size=40)


def carried(found: dict[Place, float], average: float, policy: RetrievalPolicy) -> dict[Place, float]:
    """Scores with what neighbours give."""
    return {place: score for place, score, _ in fusion.carried(found, average, policy).part(0, 10_000)}


def lifted(found: dict[Place, float], policy: RetrievalPolicy) -> list[tuple[Place, float, float]]:
    """Places, best first, each with its score and that with the share of its session."""
    turns = fusion.carried(found, 0.0, policy).part(0, 10_000)
    return [(place, score, score + policy.session_share * best) for place, score, best in turns]


def test_both_rankings_count() -> None:
    """What both have is before what one has; what one has is there."""
    scores, _ = fuse({"x": 5.0, "both": 4.9}, {"y": 0.9, "both": 0.89, "z": 0.1}, POLICY)

    assert [key for key, _ in ranked(scores)] == ["both", "x", "y", "z"]


def test_neighbours_carry_a_turn() -> None:
    """By half for each step, up to the reach, never into another session; turns that nobody found come up too."""
    scores = carried({(A, 10): 8.0}, 0.0, POLICY)

    assert scores == {
        (A, 10): 8.0,
        **{(A, 10 + d): 8.0 / 2**distance for distance in range(1, 5) for d in (-distance, distance)},
    }


def test_first_turns_do_not_lose_for_standing_first() -> None:
    """What cannot stand before a session counts as average: nearly one (½ + ¼ + ⅛ + …) of it for turn 0."""
    scores = carried({(A, 0): 1.0, (A, 50): 1.0}, 4.0, POLICY)

    assert scores[A, 0] == 1.0 + 4.0 * 0.9375
    assert scores[A, 1] == 0.5 + 4.0 * 0.4375
    assert scores[A, 50] == 1.0


@given(bm25, cosines)
def test_fusion_keeps_what_was_found(lexical: dict[Place, float], dense: dict[Place, float]) -> None:
    """No place is lost or made up, and every score is a number of at least 0."""
    scores, average = fuse(lexical, dense, POLICY)

    assert scores.keys() == lexical.keys() | dense.keys()
    assert all(isfinite(score) and score >= 0 for score in scores.values())
    assert isfinite(average)
    assert average >= -1e-9


@given(st.dictionaries(places, st.integers(1, 5_000).map(lambda hundredths: hundredths / 100), max_size=40))
def test_one_ranking_alone_keeps_its_order(lexical: dict[Place, float]) -> None:
    """Nothing but the scale changes where the other says nothing; scores one rounding apart may come to be equal."""
    scores, _ = fuse(lexical, {}, POLICY)

    assert [lexical[place] for place, _ in ranked(scores)] == sorted(lexical.values(), reverse=True)


@given(bm25, cosines)
def test_without_neighbours_scores_stay(lexical: dict[Place, float], dense: dict[Place, float]) -> None:
    """Reach 0 is the fusion alone."""
    scores, average = fuse(lexical, dense, NO_NEIGHBOURS)

    assert carried(scores, average, NO_NEIGHBOURS) == scores


@given(bm25)
def test_what_neighbours_give_is_what_was_there(scores: dict[Place, float]) -> None:
    """Far from a beginning, the sum over all turns is the sum over those found times the kernel's."""
    far = {(session, turn + 100): score for (session, turn), score in scores.items()}

    assert sum(carried(far, 1.0, POLICY).values()) == pytest.approx(sum(far.values()) * (1 + 2 * 0.9375))


def test_a_turn_is_lifted_by_the_best_of_its_session() -> None:
    """Also one that no ranking has: what counts is what its session speaks of."""
    policy = RetrievalPolicy(session_share=0.5, neighbour_reach=1)
    found: dict[Place, float] = {(A, 1): 4.0, (B, 0): 3.0, (CLEAR, 9): -1.0}

    assert [(place, score) for place, _, score in lifted(found, policy)] == [
        ((A, 1), 6.0), ((B, 0), 4.5), ((A, 0), 4.0), ((A, 2), 4.0), ((B, 1), 3.0),
        ((CLEAR, 8), -0.5), ((CLEAR, 10), -0.5), ((CLEAR, 9), -1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("content", "speaker"), data_file("speakers")["named"])
def test_a_speaker_stands_before_a_colon(content: str, speaker: str) -> None:
    """Addresses and times are nobody."""
    assert speaker_of(content) == speaker


@pytest.mark.parametrize(("query", "bonuses"), data_file("speakers")["asked"])
def test_turns_of_the_one_who_is_named_are_lifted(query: str, bonuses: list[float]) -> None:
    """By the formula, of one speaker only; a question about two is about both."""
    said = ["Anna: I like tea.", "John: I like tea too.", "Tea for me."]
    turns = [CandidateTurn((A, 9 * n), speaker_of(each), "", 1, None, packed_traits("")) for n, each in enumerate(said)]
    scores = {each.row: each.score for each in formula(POLICY).rank(query, turns)}

    assert [round(scores[row] - min(scores.values()), 6) for row in range(3)] == bonuses


LONGEST_TURN = 256 * 1024


@pytest.mark.parametrize(("one", "other"), data_file("lexical")["forms"])
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    """Inflections, cases, possessives, ligatures and punctuation tell nothing."""
    assert sorted(terms(one)) == sorted(terms(other))


@pytest.mark.parametrize("text", ["", "   ", "?!…", "what is it that the", "\u200b\u200b", "_"])
def test_texts_without_content_have_no_terms(text: str) -> None:
    """Stop words and signs are no terms, so they find nothing."""
    assert (len(weights_of(terms(text))), len(query_vector(text))) == (0, 0)


@pytest.mark.parametrize(
    ("language", "said", "asked"),
    [
        ("de", "Die Häuser meiner Schwestern wurden verkauft.", "Schwester Haus"),
        ("es", "Mis hermanas trabajaban en las canciones.", "trabaja la hermana"),
        ("fr", "Les chevaux de l'appartement ont déménagé.", "cheval demenage d'appartement"),
        ("it", "Le sorelle dell'amica cantavano canzoni.", "canta la sorella dell'amica"),
    ],
)
def test_forms_of_a_word_are_one_term_in_its_language(language: str, said: str, asked: str) -> None:
    """By its stem, without accents and articles; what has English terms, of an earlier release, is found as well."""
    own = set(terms(said, language))

    assert all(own.intersection(forms) for forms in asked_terms(asked, language))
    assert set(query_vector(said, language).indices.tolist()) > own


def test_signals_of_english_words_are_neutral_elsewhere() -> None:
    """`me` and `may` are words of other languages, too; a question mark is one everywhere."""
    said = "Nos vemos. ¿Me llevas a la next may?"
    traits = unpacked([packed_traits(said, language=language) for language in ("es", "en")])

    assert (traits.asks.tolist(), traits.temporal.tolist()) == ([True, True], [False, True])


@pytest.mark.parametrize(
    ("asked", "said"),
    [("東京", "昨日東京タワーへ行った"), ("東", "東"), ("boat harbour", f"boat {'filler ' * 10_000} harbour")],
    ids=["text without spaces is cut into pairs", "a single sign", "before and after a paste"],
)
def test_words_inside_a_text_are_terms_of_it(asked: str, said: str) -> None:
    """In a sentence of another script, and at both ends of a long one."""
    assert set() < {*terms(asked)} <= {*terms(said)}


def test_terms_are_the_same_for_ever() -> None:
    """Stored vectors are compared with those of later processes: ids may never change."""
    assert terms("boat race 2023") == [3_631_121_226, 3_664_755_631, 229_457_857]


def test_document_weights_follow_the_formula() -> None:
    """Term frequency saturates, length counts, and indices are ascending."""
    vector = weights_of(terms("boat boat race"))
    by_term = dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True))
    length = K1 * (1 - LENGTH_SHARE + LENGTH_SHARE * 3 / AVERAGE_TERMS)
    boat, race = (terms(word)[0] for word in ("boat", "race"))

    assert by_term == {boat: pytest.approx(2 * (K1 + 1) / (2 + length)), race: pytest.approx((K1 + 1) / (1 + length))}
    assert vector.indices.tolist() == sorted(by_term)


@pytest.mark.parametrize("text", ["x" * LONGEST_TURN, "w " * (LONGEST_TURN // 2), "東" * (LONGEST_TURN // 4)])
def test_a_paste_costs_no_more_than_its_head_and_tail(text: str) -> None:
    """The largest turn there may be has no more terms than the characters that are read."""
    assert len(terms(text)) <= 5_001


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "8 May 2023"),
        (datetime(2023, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))), "1 January 2024"),
    ],
)
def test_dates_are_named_in_utc(moment: datetime, expected: str) -> None:
    """In English whatever the machine's language, and the same for every producer's zone."""
    assert date_words(moment) == expected
