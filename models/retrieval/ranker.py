"""The learned ranking of turns: a sum of weighted signals over the best candidates of the formula in `fusion`.

    score(turn) = Σ_signal  weight · (signal(turn) − mean over the candidates)

so that 0 is an average candidate, and a hit says itself why it is there. Weights are trained listwise on questions with
known answers (`turntide lab train ranker`); each embedder has its own. Signals that read English words are the same for
all turns of other languages, and then decide nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.events.base import SessionName
from models.retrieval.event_times import DayInterval, intervals
from models.retrieval.fusion import Place, named_speakers
from models.retrieval.lexical import asked_terms, terms
from models.retrieval.traits import TurnTraits
from models.retrieval.word_table import word_table
from models.text.language import language_of
from models.text.tables import PatternTables, read_table

_RE = PatternTables("forms", room="retrieval").section("question")
_BEFORE, _BEHIND = -3, 2
"""Neighbours by whose terms a turn covers a question: it stands in their talk."""
_NEAR_DAYS = 14
"""What happened is often told some days later."""
_NEIGHBOUR_WORDS = 0.9
_NEIGHBOUR_MEANING = 0.6
_LISTED: Final = 60
"""Candidates among which those of a list are chosen."""
Floats = NDArray[np.float64]


class CandidateTurn(NamedTuple):
    """A turn that may answer.

    Attributes:
        speaker: Name that it begins with, folded; may be empty.
        said: Day on which it was said, an ordinal.
        event: Days that it tells of.
        traits: Of its text.
    """

    place: Place
    speaker: str
    said: int
    event: DayInterval | None
    traits: TurnTraits


class StoreScores(NamedTuple):
    """What the store's two rankings say.

    Attributes:
        found: Place → lexical and dense score together, of turns that a ranking has (`fusion.fuse`).
        carried: Likewise with what neighbours give, of more turns (`fusion.carried`).
        dense: Place → cosine, of the best.
    """

    found: Mapping[Place, float]
    carried: Mapping[Place, float]
    dense: Mapping[Place, float]


class RankedTurn(NamedTuple):
    """A candidate by its row, its score, and what each signal gave."""

    row: int
    score: float
    contributions: dict[str, float]


SIGNALS: Final = (
    "own", "carried", "session_best", "dense_around", "coverage_talk", "coverage_near", "word_to_word",
    "word_to_word_near", "speaker", "when_temporal", "who_names", "session_date", "near_date", "event_date",
    "previous_asks", "asks", "first_person",
)  # fmt: skip
"""Columns of `signals`: `deploy/user-memory.md` says what each is."""


def signals(question: str, turns: Sequence[CandidateTurn], scores: StoreScores) -> Floats:
    """Every signal of every candidate, shape `(n_turns, len(SIGNALS))`."""
    count = len(turns)
    rows = {turn.place: row for row, turn in enumerate(turns)}
    # Row `count` is a turn that is no candidate.
    at = {
        step: np.array([rows.get((session, turn + step), count) for session, turn in rows], dtype=np.intp)
        for step in range(_BEFORE, _BEHIND + 1)
    }
    speakers = {turn.speaker for turn in turns} - {""}
    asked = named_speakers(question, speakers)
    exact, soft = _matches(question, speakers, turns)
    holding = exact[:count].sum(axis=0)
    rarity = np.log((count - holding + 0.5) / (holding + 0.5) + 1)
    alike = np.append(soft[:count] @ rarity / (rarity.sum() or 1.0), 0.0)
    best = defaultdict[SessionName, float](float)
    for (session, _), score in scores.found.items():
        best[session] = max(score, best[session])
    least = min(scores.dense.values(), default=0.0)
    dense = {step: [scores.dense.get((s, turn + step), least) for s, turn in rows] for step in (-1, 0, 1)}
    flags = np.array([turn.traits[:5] for turn in turns] + [(0,) * 5], dtype=np.float64)
    asks, has_question, temporal, first_person, names = flags.T
    columns = {
        "own": [scores.found.get(place, 0.0) for place in rows],
        "carried": [scores.carried.get(place, 0.0) for place in rows],
        "session_best": [best[session] for session, _ in rows],
        "dense_around": np.array(dense[0]) + _NEIGHBOUR_MEANING * (np.array(dense[-1]) + np.array(dense[1])),
        "coverage_talk": _coverage(exact, rarity, [*at.values()]),
        "coverage_near": _coverage(exact, rarity, [at[step] for step in (-1, 0, 1)]),
        "word_to_word": alike[:count],
        "word_to_word_near": np.maximum(alike[:count], _NEIGHBOUR_WORDS * np.maximum(alike[at[-1]], alike[at[1]])),
        "speaker": [0.5 if len(asked) != 1 else float(turn.speaker in asked) for turn in turns],
        "when_temporal": temporal[:count] * bool(_RE.WHEN.search(question)),
        "who_names": np.log1p(names[:count]) * bool(_RE.NAMES.search(question)),
        **_dates(question, turns),
        "previous_asks": has_question[at[-1]],
        "asks": asks[:count],
        "first_person": first_person[:count],
    }
    return np.column_stack([columns[name] for name in SIGNALS])


class Ranker:
    """Ranks by the weights of one embedder.

    Args:
        weights: Signal → weight; one that is missing weighs nothing.
        list_penalty: What a further turn of a session loses, in standard deviations of the scores, where a question
            asks for several things: they stand in several sessions.
    """

    def __init__(self, weights: Mapping[str, float], list_penalty: float = 0.25) -> None:
        self._weights = np.array([weights.get(name, 0.0) for name in SIGNALS])
        self._list_penalty = list_penalty

    def rank(
        self, question: str, turns: Sequence[CandidateTurn], scores: StoreScores, top_k: int | None = None
    ) -> list[RankedTurn]:
        """The best of the candidates, or all of them, best first; of equal ones the first given."""
        if not turns:
            return []
        values = signals(question, turns, scores)
        parts = (values - values.mean(axis=0)) * self._weights
        total = parts.sum(axis=1)
        order = np.argsort(-total, kind="stable").tolist()
        if _RE.LIST.search(question):
            order = _spread(order, total, [turn.place[0] for turn in turns], self._list_penalty)
        return [
            RankedTurn(row, float(total[row]), dict(zip(SIGNALS, parts[row].tolist(), strict=True)))
            for row in order[:top_k]
        ]


@cache
def ranker_of(embedder: str) -> Ranker | None:
    """The ranker whose weights were trained with an embedder's vectors; None: rank by the formula."""
    weights = read_table("ranker", "retrieval").get(embedder)
    return Ranker(weights) if weights else None


def _matches(question: str, speakers: Iterable[str], turns: Sequence[CandidateTurn]) -> tuple[Floats, Floats]:
    """Whether each turn has each term of the question, and how near its nearest one is, `(n_turns + 1, n_terms)`."""
    names = {term for speaker in speakers for term in terms(speaker)}
    asked = [forms for forms in dict.fromkeys(asked_terms(question, language_of(question))) if forms[0] not in names]
    table = word_table()
    lengths = [len(turn.traits.terms) for turn in turns]
    held = np.concatenate([turn.traits.terms for turn in turns])
    rows = np.repeat(np.arange(len(turns)), lengths)
    exact = np.zeros((len(turns) + 1, len(asked)))
    soft = np.zeros_like(exact)
    for column, term in ((column, term) for column, forms in enumerate(asked) for term in forms):
        near, cosines = table.nearest(term)
        if len(near):
            found = np.minimum(np.searchsorted(near, held), len(near) - 1)
            same = near[found] == held
            np.maximum.at(soft[:, column], rows[same], cosines[found[same]])
        exact[rows[held == term], column] = 1.0
    return exact, np.maximum(exact, soft)


def _coverage(exact: Floats, rarity: Floats, around: Sequence[NDArray[np.intp]]) -> Floats:
    """Share of the question's terms, by their rarity, that stand in a turn or around it."""
    whole = rarity.sum()
    if not whole:
        return np.zeros(len(around[0]))
    covered: Floats = np.maximum.reduce([exact[rows] for rows in around]) @ rarity / whole
    return covered


def _dates(question: str, turns: Sequence[CandidateTurn]) -> dict[str, list[float]]:
    """Whether turns were said in what the question names, soon after it, or tell of it."""
    asked = intervals(question, date.fromordinal(max(turn.said for turn in turns)))

    def meet(days: DayInterval | None) -> float:
        return float(days is not None and any(days.overlaps(each) for each in asked))

    return {
        "session_date": [meet(DayInterval(turn.said, turn.said)) for turn in turns],
        "near_date": [meet(DayInterval(turn.said - _NEAR_DAYS, turn.said)) for turn in turns],
        "event_date": [meet(turn.event) for turn in turns],
    }


def _spread(order: Sequence[int], total: Floats, sessions: Sequence[SessionName], penalty: float) -> list[int]:
    """The best anew, one after the other: each loses with every turn of its session that is chosen already."""
    step, chosen, left = penalty * float(total.std()), Counter[SessionName](), list(order[:_LISTED])
    spread = []
    while left:
        row = max(left, key=lambda each: total[each] - step * chosen[sessions[each]])
        left.remove(row)
        chosen[sessions[row]] += 1
        spread.append(row)
    return [*spread, *order[_LISTED:]]
