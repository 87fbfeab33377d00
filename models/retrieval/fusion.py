"""One ranking from a lexical and a dense one, and of turns by what stands beside each.

Both scores are put on one scale, standard deviations among the candidates, and added:

    s(turn)     = z(lexical) + dense_weight · z(dense)
    score(turn) = Σ_distance neighbour_decay^|distance| · s(turn + distance)      |distance| ≤ neighbour_reach

so that a turn is carried by the ones around it: the answer to a question shares few words with what asks for it later.
A point that one ranking does not have counts as its last one. A neighbour before the first turn of a session cannot be
ranked; it counts as an average candidate, or the first turns would lose for standing where they stand.

Measured on LoCoMo (recall@10 of turns, questions 1-4, wordllama): lexical alone 63; with neighbours 72.5; with dense
scores too 74.8; with the rule for first turns 75.8; with a share of the session's best and a bonus for the speaker that
is named 78.4. What does worse: reciprocal ranks instead of scores; scores divided by the best (72.7) or by their root
mean square (73.0); one neighbour each side (71.3); terms or names of the best turns asked again (-1.5 to +0.5).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import sqrt
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.events.base import SessionName
from models.policy.retrieval import RetrievalPolicy

_Key = TypeVar("_Key", bound=Hashable)
_Session = TypeVar("_Session", bound=Hashable)
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
    scores, average = _above_last(lexical, max(policy.candidates, len(lexical)), 1.0)
    likeness, likeness_average = _above_last(dense, len(dense), policy.dense_weight)
    for key, score in likeness.items():
        scores[key] = scores.get(key, 0.0) + score
    return scores, average + likeness_average


class CarriedTurns(NamedTuple, Generic[_Session]):
    """Turns that a ranking has, and those beside them; whether these are there, the caller must look.

    Attributes:
        sessions: Those that they are of.
        of: Which of them each is of, shape `(n_turns,)`, as the next three.
        turns: Numbers of turns.
        carried: Its score with what its neighbours give.
        session_best: The best score of its session.
    """

    sessions: list[_Session]
    of: NDArray[np.intp]
    turns: NDArray[np.int64]
    carried: NDArray[np.float64]
    session_best: NDArray[np.float64]

    def part(self, first: int, most: int) -> list[tuple[tuple[_Session, int], float, float]]:
        """Place, score and session's best of so many from one on."""
        of, turns, carried, bests = (each[first : first + most].tolist() for each in self[1:])
        return [*zip(zip(map(self.sessions.__getitem__, of), turns, strict=True), carried, bests, strict=True)]


def carried(
    scores: Mapping[tuple[_Session, int], float], average: float, policy: RetrievalPolicy
) -> CarriedTurns[_Session]:
    """Turns by what they, their neighbours and a share of their session have, the best first.

    Of equal ones by session and number.

    Args:
        scores: Of turns that a ranking has.
        average: Of a candidate.
        policy: What neighbours and sessions give.
    """
    of_each = [session for session, _ in scores]
    of, sessions = numbered(of_each), list(dict.fromkeys(of_each))
    own = np.fromiter(scores.values(), np.float64, len(scores))
    best = np.zeros(len(sessions))
    np.maximum.at(best, of, own)
    steps = np.arange(-policy.neighbour_reach, policy.neighbour_reach + 1)
    weights = policy.neighbour_decay ** np.abs(steps)
    # Each gives to all around it; what one turn is given is summed.
    turns = np.add.outer(np.array([turn for _, turn in scores], np.int64), steps).ravel()
    there = turns >= 0
    width = int(turns.max(initial=0)) + 1
    at, given_to = np.unique((np.repeat(of, len(steps)) * width + turns)[there], return_inverse=True)
    got = np.bincount(given_to, np.multiply.outer(own, weights).ravel()[there], len(at)).astype(np.float64)
    of, turns = np.divmod(at, width)
    missing = weights[policy.neighbour_reach + 1 :][::-1].cumsum()[::-1]  # before turn 0, 1, …
    early = turns < len(missing)
    got[early] += average * missing[turns[early]]
    order = np.argsort(-(got + policy.session_share * best[of]), kind="stable")
    return CarriedTurns(sessions, of[order], turns[order], got[order], best[of[order]])


def numbered(values: Sequence[Hashable]) -> NDArray[np.intp]:
    """Which of the different values each is, in the order in which they are met, shape `(n_values,)`.

    >>> numbered("abca").tolist()
    [0, 1, 2, 0]
    """
    numbers = {each: number for number, each in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(numbers.__getitem__, values), np.intp, len(values))


def ranked(scores: Mapping[_Key, float]) -> list[tuple[_Key, float]]:
    """Best first; of equal scores the first met."""
    return sorted(scores.items(), key=itemgetter(1), reverse=True)


def _above_last(scores: Mapping[_Key, float], candidates: int, weight: float) -> tuple[dict[_Key, float], float]:
    """Scores above the last candidate's, in standard deviations, times a weight, and their mean.

    Zeros fill up to `candidates`.
    """
    if not scores:
        return {}, 0.0
    last = min(scores.values()) if candidates == len(scores) else 0.0
    mean = sum(scores.values()) / candidates
    deviation = sqrt(max(0.0, sum(score * score for score in scores.values()) / candidates - mean * mean))
    if deviation < _SAME:
        return dict.fromkeys(scores, 0.0), 0.0
    step = weight / deviation
    return {key: (score - last) * step for key, score in scores.items()}, (mean - last) * step


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
