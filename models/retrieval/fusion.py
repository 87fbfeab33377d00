"""One ranking of turns, and of sessions, from a lexical and a dense one and what stands beside each turn.

Both scores are put on one scale, standard deviations among the candidates, and added:

    s(turn)     = z(lexical) + dense_weight · z(dense)
    score(turn) = Σ_distance neighbour_decay^|distance| · s(turn + distance)      |distance| ≤ neighbour_reach

so that a turn is carried by the ones around it: the answer to a question shares few words with what asks for it later.
A point that one ranking does not have counts as its last one. A neighbour before the first turn of a session cannot be
ranked; it counts as an average candidate, or the first turns would lose for standing where they stand.

Measured on LoCoMo (recall@10 of turns, questions 1-4, wordllama / MiniLM): lexical alone 63; with neighbours 72.5; with
dense scores too 74.8 / 77.2; with the rule for first turns 75.8 / 78.2. What does worse: reciprocal ranks instead of
scores; scores divided by the best (72.7) or by their root mean square (73.0); one neighbour each side (71.3 / 75.2).

Questions whose answer stands in several turns (multi-hop), recall@10, wordllama / MiniLM: 41.5 / 45.1 with all of the
above, 46 to 47 / 48 to 50 with a share of the session's best score and a bonus for the speaker that is named; all of
questions 1-4 78.4 / 80.7. Chosen on four conversations and measured on the fifth: 78.9 / 81.4, multi-hop 47.1 / 49.7.
What did not help: fewer turns of a session of which some were taken (down to 41), terms or names of the best turns
asked again (-1.5 to +0.5), a turn's own score counted twice, the sum over a session in place of its best.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np

from models.events.base import SessionName
from models.policy.retrieval import RetrievalPolicy
from models.text.words import fold_text, words_of

_Key = TypeVar("_Key", bound=Hashable)
Place = tuple[SessionName, int]
"""Session, with its app, and number of a turn: a search may span apps."""
_SAME = 1e-6
"""Scores this near differ by rounding only."""


def fuse(
    lexical: Mapping[_Key, float], dense: Mapping[_Key, float], policy: RetrievalPolicy
) -> tuple[dict[_Key, float], float]:
    """Put two rankings on one scale and add them.

    Args:
        lexical: BM25 of the best points; points without a term of the query are missing, as their score is 0.
        dense: Cosines of the best points.
        policy: How much the dense ranking weighs.

    Returns:
        Scores of all points that at least one ranking has, 0 being those of the others, and that of an average
        candidate.
    """
    # Points without a common term are candidates all the same: without them one single match would be no deviation.
    words, words_average = _above_last(lexical, max(policy.candidates, len(lexical)))
    likeness, likeness_average = _above_last(dense, len(dense))
    scores = {
        key: words.get(key, 0.0) + policy.dense_weight * likeness.get(key, 0.0)
        for key in dict.fromkeys((*lexical, *dense))
    }
    return scores, words_average + policy.dense_weight * likeness_average


class CarriedTurn(NamedTuple):
    """A turn that a ranking has, or one beside it; whether that is there, the caller must look.

    Attributes:
        carried: Its score with what its neighbours give.
        lifted: That with a share of the best score of its session.
    """

    place: Place
    carried: float
    lifted: float


def carried(scores: Mapping[Place, float], average: float, policy: RetrievalPolicy) -> Iterator[CarriedTurn]:
    """Turns by what they and their neighbours have, the best first, of equal ones by session and number.

    Args:
        scores: Of turns that a ranking has.
        average: Of a candidate.
        policy: What neighbours and sessions give.
    """
    names = {session: number for number, session in enumerate(dict.fromkeys(session for session, _ in scores))}
    of = np.array([names[session] for session, _ in scores], np.intp)
    own = np.fromiter(scores.values(), np.float64, len(scores))
    best = np.zeros(len(names))
    np.maximum.at(best, of, own)
    steps = np.arange(-policy.neighbour_reach, policy.neighbour_reach + 1)
    weights = policy.neighbour_decay ** np.abs(steps)
    # Each gives to all around it, sorted so that what one turn is given stands together.
    turns = np.add.outer(np.array([turn for _, turn in scores], np.int64), steps).ravel()
    of, given = np.repeat(of, len(steps)), np.multiply.outer(own, weights).ravel()
    order = np.lexsort((turns, of))
    order = order[turns[order] >= 0]
    turns, of = turns[order], of[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (turns[1:] != turns[:-1]) | (of[1:] != of[:-1])
    starts = np.flatnonzero(is_first)
    turns, of, got = turns[starts], of[starts], np.add.reduceat(given[order], starts)
    missing = weights[policy.neighbour_reach + 1 :][::-1].cumsum()[::-1]  # before turn 0, 1, …
    early = turns < len(missing)
    got[early] += average * missing[turns[early]]
    lifted = got + policy.session_share * best[of]
    ranked_rows = np.argsort(-lifted, kind="stable")
    sessions = list(names)
    for session, turn, *both in zip(*(each[ranked_rows].tolist() for each in (of, turns, got, lifted)), strict=True):
        yield CarriedTurn((sessions[session], turn), *both)


def of_sessions(scores: Mapping[Place, float], policy: RetrievalPolicy) -> dict[SessionName, float]:
    """Scores of sessions: the best of their turns, and a share of all.

    Args:
        scores: Of turns, with what their neighbours give.
        policy: The share.
    """
    best: defaultdict[SessionName, float] = defaultdict(float)
    total: defaultdict[SessionName, float] = defaultdict(float)
    for (session, _), score in scores.items():
        best[session] = max(best[session], score)
        total[session] += score
    return {session: score + policy.session_sum_weight * total[session] for session, score in best.items()}


def ranked(scores: Mapping[_Key, float]) -> list[tuple[_Key, float]]:
    """Best first; of equal scores the first met."""
    return sorted(scores.items(), key=itemgetter(1), reverse=True)


def _above_last(scores: Mapping[_Key, float], candidates: int) -> tuple[dict[_Key, float], float]:
    """Scores above the last candidate's, in standard deviations, and their mean; zeros fill up to `candidates`."""
    if not scores:
        return {}, 0.0
    last = min(scores.values()) if candidates == len(scores) else 0.0
    mean = sum(scores.values()) / candidates
    deviation = sqrt(max(0.0, sum(score * score for score in scores.values()) / candidates - mean * mean))
    if deviation < _SAME:
        return dict.fromkeys(scores, 0.0), 0.0
    return {key: (score - last) / deviation for key, score in scores.items()}, (mean - last) / deviation


def beside(hits: Iterable[Place], reach: int) -> dict[Place, Place]:
    """Places of hits, each followed by those around it, and for each the hit that brings it; the first to do so counts.

    >>> s = SessionName("shop", "s")
    >>> [turn for _, turn in beside([(s, 4), (s, 0), (s, 5)], 1)]
    [4, 5, 3, 0, 1, 6]
    """
    brought: dict[Place, Place] = {}
    for session, turn in hits:
        for distance in range(reach + 1):
            # What follows first: it is the answer.
            for number in (turn + distance, turn - distance):
                if number >= 0:
                    brought.setdefault((session, number), (session, turn))
    return brought


def named_speakers(query: str, speakers: Iterable[str]) -> set[str]:
    """Speakers, folded, whom a question names. "John's dog" is John's."""
    asked = f" {' '.join(words_of(fold_text(query)))} ".replace("'s ", " ")
    return {speaker for speaker in set(speakers) if speaker and f" {' '.join(words_of(speaker))} " in asked}


def speaker_bonuses(query: str, speakers: Sequence[str], bonus: float) -> list[float]:
    """What each turn gets for being said by whom the query names.

    Nothing where the query names none of the speakers, or more than one: then it is about both.
    """
    named = named_speakers(query, speakers)
    return [bonus if len(named) == 1 and speaker in named else 0.0 for speaker in speakers]
