"""The learned ranking of turns: a sum of weighted signals over the best candidates of the formula in `fusion`.

    score(turn) = Σ_signal  weight · (signal(turn) − mean over the candidates)

so that 0 is an average candidate, and the signals of a hit explain its rank. Weights are trained listwise on questions
with known answers (`turntide lab train ranker`); each embedder has its own. Signals that read English words are equal
for all turns in other languages, and then have no effect.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.policy.retrieval import RetrievalPolicy
from models.retrieval.event_times import DayInterval, intervals
from models.retrieval.fusion import numbered
from models.retrieval.lexical import asked_terms, terms
from models.retrieval.traits import TurnTraits, unpacked
from models.retrieval.word_table import word_table
from models.text.language import language_of
from models.text.tables import PatternTables, read_table
from models.text.words import fold_text, words_of

_RE = PatternTables("forms", room="retrieval").section("question")
_BEFORE, _BEHIND = 3, 2
"""Runs before and after a turn's run whose terms also count for how much of a question the turn covers."""
_NEAR_DAYS = 14
"""Days before a turn that count as near its event: events are often reported some days later."""
_FEW_TERMS = 3
"""Number of terms at which a turn has half the substance of a long one."""
_LISTED: Final = 60
"""Candidates from which the results are chosen for a question that asks for a list."""
_LAST_TERM = np.array([2**32 - 1], np.uint32)
"""Largest possible id of a term, as the end of a search."""
Floats = NDArray[np.float64]


class CandidateTurn(NamedTuple):
    """A candidate turn.

    Attributes:
        place: Its session and turn number.
        speaker: Name that it begins with, folded; may be empty.
        role: Role of the speaker.
        said: Day of the turn, an ordinal.
        event: Days of the event that it describes.
        traits: Traits of its text, packed.
        carried: Its score by words and meaning, including its neighbours' contribution (`fusion.carried`).
        session_best: The best score of its session.
        similarity: Its cosine to the question.
    """

    place: tuple[Hashable, int]
    speaker: str
    role: str
    said: int
    event: DayInterval | None
    traits: str
    carried: float = 0.0
    session_best: float = 0.0
    similarity: float = 0.0


class RankedTurn(NamedTuple):
    """Row of a candidate, its score, and the contribution of each signal."""

    row: int
    score: float
    contributions: dict[str, float]


SIGNALS: Final = (
    "carried", "session_best", "similarity", "coverage_talk", "word_to_word", "speaker",
    "when_temporal", "when_temporal_run", "who_names", "near_date", "event_date", "previous_asks", "asks", "substance",
)  # fmt: skip
"""Columns of `signals`: `deploy/user-memory.md` says what each is."""


class _Runs:
    """Runs of candidates: consecutive turns of a session with the same speaker name, or without names the same role.

    So each message of a burst has the same neighbours as one long turn. Turns that are not candidates are unknown: a
    run ends there, and has no neighbour. If all turns have one speaker, each turn is a run.

    Attributes:
        of: Each turn's run, `(n_turns,)`.
        before: The run before each; `n_runs`, the empty run, if there is none, `(n_runs + 1,)`. `after` likewise.
    """

    def __init__(self, places: Sequence[tuple[Hashable, int]], voices: Sequence[str]) -> None:
        sessions, numbers = zip(*places, strict=True)
        session, number, voice = numbered(sessions), np.array(numbers), numbered(voices)
        self._order = order = np.lexsort((number, session))
        session, number, voice = session[order], number[order], voice[order]
        follows = (session[1:] == session[:-1]) & (number[1:] == number[:-1] + 1)
        begins = ~follows | (voice[1:] != voice[:-1]) | (not voice.any())
        self._starts = np.append(0, np.flatnonzero(begins) + 1)
        count = len(self._starts)
        self.of = np.empty(len(places), dtype=np.intp)
        self.of[order] = np.append(0, begins.cumsum())
        # Runs that follow the one before them, and those before which these are.
        joined = np.flatnonzero(follows[begins]) + 1
        self.before, self.after = np.full((2, count + 1), count)
        self.before[joined], self.after[joined - 1] = joined - 1, joined

    def most(self, values: Floats) -> Floats:
        """The largest value of each run's turns, and 0 for the empty run, `(n_runs + 1, …)`."""
        most = np.maximum.reduceat(values[self._order], self._starts, axis=0)
        return np.concatenate([most, np.zeros_like(most[:1])])

    def around(self, values: Floats, before: int, behind: int) -> Floats:
        """The largest value of each turn's run and the given numbers of runs before and behind it, `(n_turns, …)`."""
        whole = most = self.most(values)
        for steps, towards in ((before, self.before), (behind, self.after)):
            there = towards
            for _ in range(steps):
                whole, there = np.maximum(whole, most[there]), towards[there]
        return whole[self.of]


def signals(question: str, turns: Sequence[CandidateTurn]) -> Floats:
    """Every signal of every candidate, at least one, shape `(n_turns, len(SIGNALS))`."""
    places, speakers, roles, said, events, packed, carried, session_best, cosines = zip(*turns, strict=True)
    voices = [speaker or role for speaker, role in zip(speakers, roles, strict=True)]
    traits, runs, names = unpacked(packed), _Runs(places, voices), set(speakers) - {""}
    asked = named_speakers(question, names)
    exact, soft = _matches(question, names, traits)
    holding = exact.sum(axis=0)
    rarity = np.log((len(turns) - holding + 0.5) / (holding + 0.5) + 1)
    share = rarity / (rarity.sum() or 1.0)
    temporal = traits.temporal.astype(np.float64)
    when, days = bool(_RE.WHEN.search(question)), intervals(question, date.fromordinal(max(said)))
    columns: dict[str, ArrayLike] = {
        "carried": carried,
        "session_best": session_best,
        "similarity": cosines,
        "coverage_talk": runs.around(exact, _BEFORE, _BEHIND) @ share,
        "word_to_word": runs.around(soft, 1, 1) @ share,
        "speaker": [speaker in asked for speaker in speakers] if len(asked) == 1 else 0.5,
        "when_temporal": temporal if when else 0.0,
        "when_temporal_run": runs.around(temporal, 0, 0) if when else 0.0,
        "who_names": np.log1p(traits.names, dtype=np.float64) if _RE.NAMES.search(question) else 0.0,
        "near_date": _meet([DayInterval(day - _NEAR_DAYS, day) for day in said], days) if days else 0.0,
        "event_date": _meet(events, days) if days else 0.0,
        "previous_asks": runs.most(traits.has_question.astype(np.float64))[runs.before][runs.of],
        "asks": traits.asks,
        "substance": traits.lengths / (traits.lengths + _FEW_TERMS),
    }
    values = np.empty((len(turns), len(SIGNALS)))
    for column, name in enumerate(SIGNALS):
        values[:, column] = columns[name]
    return values


class Ranker:
    """Ranks by the weights of one embedder.

    Args:
        weights: Signal → weight; a missing one is 0.
        list_penalty: Penalty of each further turn of a session, in standard deviations of the scores, if a question
            asks for several things: these are usually in several sessions.
    """

    def __init__(self, weights: Mapping[str, float], list_penalty: float = 0.25) -> None:
        self._weights = np.array([weights.get(name, 0.0) for name in SIGNALS])
        self._list_penalty = list_penalty

    def rank(self, question: str, turns: Sequence[CandidateTurn], top_k: int | None = None) -> list[RankedTurn]:
        """The best candidates, or all, best first; of equal ones the first given."""
        return self.weighed(question, turns, signals(question, turns), top_k) if turns else []

    def weighed(
        self, question: str, turns: Sequence[CandidateTurn], values: Floats, top_k: int | None = None
    ) -> list[RankedTurn]:
        """As `rank`, from computed signals."""
        parts = (values - values.mean(axis=0)) * self._weights
        total = parts.sum(axis=1)
        order = np.argsort(-total, kind="stable")
        if self._list_penalty and _RE.LIST.search(question):
            order = _spread(order, total, [turn.place[0] for turn in turns], self._list_penalty, top_k or _LISTED)
        return [
            RankedTurn(row, float(total[row]), dict(zip(SIGNALS, parts[row].tolist(), strict=True)))
            for row in order[:top_k].tolist()
        ]


@cache
def ranker_of(embedder: str) -> Ranker | None:
    """The ranker trained with an embedder's vectors; None: use the formula."""
    weights = read_table("ranker", "retrieval").get(embedder)
    return Ranker(weights) if weights else None


def formula(policy: RetrievalPolicy) -> Ranker:
    """Ranker for embedders without weights: by `fusion` and the named speaker."""
    return Ranker(
        {"carried": 1.0, "session_best": policy.session_share, "speaker": policy.speaker_bonus}, list_penalty=0.0
    )


def named_speakers(query: str, speakers: Iterable[str]) -> set[str]:
    """Speakers, folded, that a question names, also in the genitive ("John's dog")."""
    asked = f" {' '.join(words_of(fold_text(query)))} ".replace("'s ", " ")
    return {speaker for speaker in speakers if speaker and f" {' '.join(words_of(speaker))} " in asked}


def _matches(question: str, speakers: Iterable[str], traits: TurnTraits) -> tuple[Floats, Floats]:
    """Whether each turn has each term of the question, and the cosine of its nearest term, `(n_turns, n_terms)`."""
    names = {term for speaker in speakers for term in terms(speaker)}
    asked = [forms for forms in dict.fromkeys(asked_terms(question, language_of(question))) if forms[0] not in names]
    own, column = np.array([term for forms in asked for term in forms], np.uint32), np.arange(len(asked))
    column = np.repeat(column, np.fromiter(map(len, asked), np.intp, len(asked)))
    near = [word_table().nearest(term) for term in own.tolist()]
    known, at = np.unique(np.concatenate([own, *(ids for ids, _ in near), _LAST_TERM]), return_inverse=True)
    # How near each known term is to each of the question's, and whether it is one.
    cosines, nearby = np.zeros((2, len(known), len(asked))), np.array([len(ids) for ids, _ in near], np.intp)
    cosines[:, at[: len(own)], column] = 1.0
    alike = np.concatenate([np.ones(len(own), np.float32), *(likeness for _, likeness in near)])
    np.maximum.at(cosines[1], (at[:-1], np.append(column, np.repeat(column, nearby))), alike)
    at = known.searchsorted(traits.terms)
    held = known[at] == traits.terms
    found = np.zeros((2, len(traits.lengths), len(asked)))
    rows = np.repeat(np.arange(len(traits.lengths)), traits.lengths)[held]
    if len(rows):
        starts = np.append(0, np.flatnonzero(rows[1:] != rows[:-1]) + 1)
        found[:, rows[starts]] = np.maximum.reduceat(cosines[:, at[held]], starts, axis=1)
    return found[0], found[1]


def _meet(days: Sequence[DayInterval | None], asked: Sequence[DayInterval]) -> Floats:
    """1 where a turn's days overlap an interval of the question, else 0, `(n_turns,)`."""
    return np.array([each is not None and any(each.overlaps(other) for other in asked) for each in days], np.float64)


def _spread(
    order: NDArray[np.intp], total: Floats, sessions: Sequence[Hashable], penalty: float, most: int
) -> NDArray[np.intp]:
    """Choose the best one after the other: each is penalised for every turn of its session chosen before."""
    listed, step = order[:_LISTED], penalty * float(total.std())
    left, of = total[listed], numbered([sessions[row] for row in listed.tolist()])
    spread = list[int]()
    for _ in range(min(most, len(listed))):
        spread.append(best := int(np.argmax(left)))
        left[of == of[best]] -= step
        left[best] = -np.inf
    kept = np.ones(len(order), np.bool_)
    kept[spread] = False
    return np.concatenate([listed[spread], order[kept]])
