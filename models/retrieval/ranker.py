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
_BEFORE, _BEHIND = 3, 2
"""Runs before a turn's and after it by whose terms it covers a question: it stands in their talk."""
_NEAR_DAYS = 14
"""What happened is often told some days later."""
_FEW_TERMS = 3
"""A turn of so many terms has half the substance of a long one."""
_LISTED: Final = 60
"""Candidates among which those of a list are chosen."""
Floats = NDArray[np.float64]


class CandidateTurn(NamedTuple):
    """A turn that may answer.

    Attributes:
        speaker: Name that it begins with, folded; may be empty.
        role: Of who says it.
        said: Day on which it was said, an ordinal.
        event: Days that it tells of.
        traits: Of its text.
    """

    place: Place
    speaker: str
    role: str
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
    "carried", "session_best", "similarity", "similarity_beside", "coverage_talk", "word_to_word", "speaker",
    "when_temporal", "when_temporal_run", "who_names", "near_date", "event_date", "previous_asks", "asks",
    "first_person", "substance",
)  # fmt: skip
"""Columns of `signals`: `deploy/user-memory.md` says what each is."""


class _Runs:
    """Runs of the candidates: turns of a session that follow each other and are one voice's, a name or else a role.

    So a message of a burst has the neighbours that a long turn has. What is no candidate is unknown: a run ends there,
    and has no neighbour. Where one voice says everything, each turn is a run.

    Attributes:
        of: Each turn's run, `(n_turns,)`.
        before: The run before each, and after; `n_runs`, which holds nothing, where there is none, `(n_runs + 1,)`.
    """

    def __init__(self, turns: Sequence[CandidateTurn]) -> None:
        voices = [turn.speaker or turn.role for turn in turns]
        alone = len(set(voices)) == 1
        self._order = sorted(range(len(turns)), key=lambda row: turns[row].place)
        starts, joined, last = [0], [False], self._order[0]
        for at, row in enumerate(self._order[1:], 1):
            (session, turn), (last_session, last_turn) = turns[row].place, turns[last].place
            follows = session == last_session and turn == last_turn + 1
            if alone or not follows or voices[row] != voices[last]:
                starts.append(at)
                joined.append(follows)
            last = row
        count = len(starts)
        self._starts = starts
        self.of = np.empty(len(turns), dtype=np.intp)
        self.of[self._order] = np.repeat(np.arange(count), np.diff([*starts, len(turns)]))
        runs, after_one = np.arange(count), np.array(joined)
        self.before = np.append(np.where(after_one, runs - 1, count), count)
        self.after = np.append(np.where(np.append(after_one[1:], False), runs + 1, count), count)

    def most(self, values: Floats) -> Floats:
        """The largest of each run's turns, and 0 of the run that holds nothing, `(n_runs + 1, …)`."""
        most = np.maximum.reduceat(values[self._order], self._starts, axis=0)
        return np.concatenate([most, np.zeros_like(most[:1])])

    def around(self, values: Floats, before: int, behind: int) -> Floats:
        """The largest of each turn's run and so many runs before and behind it, `(n_turns, …)`."""
        whole = most = self.most(values)
        for steps, towards in ((before, self.before), (behind, self.after)):
            there = towards
            for _ in range(steps):
                whole, there = np.maximum(whole, most[there]), towards[there]
        return whole[self.of]


def signals(question: str, turns: Sequence[CandidateTurn], scores: StoreScores) -> Floats:
    """Every signal of every candidate, at least one, shape `(n_turns, len(SIGNALS))`."""
    runs = _Runs(turns)
    speakers = {turn.speaker for turn in turns} - {""}
    asked = named_speakers(question, speakers)
    exact, soft = _matches(question, speakers, turns)
    holding = exact.sum(axis=0)
    rarity = np.log((len(turns) - holding + 0.5) / (holding + 0.5) + 1)
    share = rarity / (rarity.sum() or 1.0)
    best = defaultdict[SessionName, float](float)
    for (session, _), score in scores.found.items():
        best[session] = max(score, best[session])
    least = min(scores.dense.values(), default=0.0)
    similarity = np.array([scores.dense.get(turn.place, least) for turn in turns]) - least
    nearest = runs.most(similarity)
    asks, has_question, temporal, first_person, names = np.array([turn.traits[:5] for turn in turns], np.float64).T
    when = bool(_RE.WHEN.search(question))
    lengths = np.array([len(turn.traits.terms) for turn in turns])
    columns = {
        "carried": [scores.carried.get(turn.place, 0.0) for turn in turns],
        "session_best": [best[turn.place[0]] for turn in turns],
        "similarity": similarity,
        "similarity_beside": (nearest[runs.before] + nearest[runs.after])[runs.of],
        "coverage_talk": runs.around(exact, _BEFORE, _BEHIND) @ share,
        "word_to_word": runs.around(soft, 1, 1) @ share,
        "speaker": [0.5 if len(asked) != 1 else float(turn.speaker in asked) for turn in turns],
        "when_temporal": temporal * when,
        "when_temporal_run": runs.around(temporal, 0, 0) * when,
        "who_names": np.log1p(names) * bool(_RE.NAMES.search(question)),
        **_dates(question, turns),
        "previous_asks": runs.most(has_question)[runs.before][runs.of],
        "asks": asks,
        "first_person": first_person,
        "substance": lengths / (lengths + _FEW_TERMS),
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
        return self.weighed(question, turns, signals(question, turns, scores), top_k) if turns else []

    def weighed(
        self, question: str, turns: Sequence[CandidateTurn], values: Floats, top_k: int | None = None
    ) -> list[RankedTurn]:
        """Likewise, of signals that are known already."""
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
    """Whether each turn has each term of the question, and how near its nearest one is, `(n_turns, n_terms)`."""
    names = {term for speaker in speakers for term in terms(speaker)}
    asked = [forms for forms in dict.fromkeys(asked_terms(question, language_of(question))) if forms[0] not in names]
    table = word_table()
    lengths = [len(turn.traits.terms) for turn in turns]
    held = np.concatenate([turn.traits.terms for turn in turns])
    rows = np.repeat(np.arange(len(turns)), lengths)
    exact = np.zeros((len(turns), len(asked)))
    soft = np.zeros_like(exact)
    for column, term in ((column, term) for column, forms in enumerate(asked) for term in forms):
        near, cosines = table.nearest(term)
        if len(near):
            found = np.minimum(np.searchsorted(near, held), len(near) - 1)
            same = near[found] == held
            np.maximum.at(soft[:, column], rows[same], cosines[found[same]])
        exact[rows[held == term], column] = 1.0
    return exact, np.maximum(exact, soft)


def _dates(question: str, turns: Sequence[CandidateTurn]) -> dict[str, list[float]]:
    """Whether turns were said in the days that the question names or soon after them, or tell of them."""
    asked = intervals(question, date.fromordinal(max(turn.said for turn in turns)))

    def meet(days: DayInterval | None) -> float:
        return float(days is not None and any(days.overlaps(each) for each in asked))

    return {
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
