"""The learned ranking of turns: a sum of weighted signals over the best candidates of the formula in `fusion`.

    score(turn) = Σ_signal  weight · (signal(turn) − mean over the candidates)

so that 0 is an average candidate, and a hit says itself why it is there. Weights are trained listwise on questions with
known answers (`turntide lab train ranker`); each embedder has its own. Signals that read English words are the same for
all turns of other languages, and then decide nothing.
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
"""Runs before a turn's and after it by whose terms it covers a question: it stands in their talk."""
_NEAR_DAYS = 14
"""What happened is often told some days later."""
_FEW_TERMS = 3
"""A turn of so many terms has half the substance of a long one."""
_LISTED: Final = 60
"""Candidates among which those of a list are chosen."""
_LAST_TERM = np.array([2**32 - 1], np.uint32)
"""No id of a term is larger: behind it nothing is looked for."""
Floats = NDArray[np.float64]


class CandidateTurn(NamedTuple):
    """A turn that may answer.

    Attributes:
        place: Its session, and its number in there.
        speaker: Name that it begins with, folded; may be empty.
        role: Of who says it.
        said: Day on which it was said, an ordinal.
        event: Days that it tells of.
        traits: Of its text, packed.
        carried: Its score by words and meaning with what its neighbours give (`fusion.carried`).
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
    """A candidate by its row, its score, and what each signal gave."""

    row: int
    score: float
    contributions: dict[str, float]


SIGNALS: Final = (
    "carried", "session_best", "similarity", "coverage_talk", "word_to_word", "speaker",
    "when_temporal", "when_temporal_run", "who_names", "near_date", "event_date", "previous_asks", "asks", "substance",
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
        weights: Signal → weight; one that is missing weighs nothing.
        list_penalty: What a further turn of a session loses, in standard deviations of the scores, where a question
            asks for several things: they stand in several sessions.
    """

    def __init__(self, weights: Mapping[str, float], list_penalty: float = 0.25) -> None:
        self._weights = np.array([weights.get(name, 0.0) for name in SIGNALS])
        self._list_penalty = list_penalty

    def rank(self, question: str, turns: Sequence[CandidateTurn], top_k: int | None = None) -> list[RankedTurn]:
        """The best of the candidates, or all of them, best first; of equal ones the first given."""
        return self.weighed(question, turns, signals(question, turns), top_k) if turns else []

    def weighed(
        self, question: str, turns: Sequence[CandidateTurn], values: Floats, top_k: int | None = None
    ) -> list[RankedTurn]:
        """Likewise, of signals that are known already."""
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
    """The ranker whose weights were trained with an embedder's vectors; None: rank by the formula."""
    weights = read_table("ranker", "retrieval").get(embedder)
    return Ranker(weights) if weights else None


def formula(policy: RetrievalPolicy) -> Ranker:
    """Ranks where no weights are known: by `fusion` and the speaker that is named."""
    return Ranker(
        {"carried": 1.0, "session_best": policy.session_share, "speaker": policy.speaker_bonus}, list_penalty=0.0
    )


def named_speakers(query: str, speakers: Iterable[str]) -> set[str]:
    """Speakers, folded, whom a question names. "John's dog" is John's."""
    asked = f" {' '.join(words_of(fold_text(query)))} ".replace("'s ", " ")
    return {speaker for speaker in speakers if speaker and f" {' '.join(words_of(speaker))} " in asked}


def _matches(question: str, speakers: Iterable[str], traits: TurnTraits) -> tuple[Floats, Floats]:
    """Whether each turn has each term of the question, and how near its nearest one is, `(n_turns, n_terms)`."""
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
    """1 where some days meet an interval that is asked for, else 0, `(n_turns,)`."""
    return np.array([each is not None and any(each.overlaps(other) for other in asked) for each in days], np.float64)


def _spread(
    order: NDArray[np.intp], total: Floats, sessions: Sequence[Hashable], penalty: float, most: int
) -> NDArray[np.intp]:
    """The best anew, one after the other: each loses with every turn of its session that is chosen already."""
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
