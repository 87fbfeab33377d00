"""`turntide lab train ranker`: weights of the ranking of turns, from questions whose answers are known.

Listwise: a softmax over a question's candidates, cross-entropy against the turns that answer it, which share its one
evenly; L2; L-BFGS. Signals are standardised for the fit, and the weights written for signals as they are.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy.optimize import minimize

from jobs.lab.eval.dialogues import Dialogues, LabelledQuestion
from jobs.lab.eval.retrieval import DEPTHS, QuestionResult, index_all, recalls
from jobs.shared.output import Progress
from models.policy import Policy
from models.retrieval.ranker import SIGNALS, Ranker, signals
from streams.index.hybrid_search import HybridSearch, Scope, TurnCandidates
from streams.ports import Embedder

Floats = NDArray[np.float64]
L2 = 10.0
_SAME = 1e-9


class RankedQuestion(Struct, frozen=True):
    """A question and what may answer it.

    Attributes:
        values: Signals of the candidates, `(n_turns, n_signals)`.
        answers: Which candidates answer it, `(n_turns,)`.
    """

    question: LabelledQuestion
    found: TurnCandidates
    values: Floats
    answers: NDArray[np.bool_]


class TrainedRanker(Struct, frozen=True, kw_only=True):
    """Weights, and what they are worth on conversations that they were not learned from.

    Attributes:
        recall: Group of categories → recall@10, each question ranked by weights learned from other users' alone.
        formula: Likewise by the formula.
    """

    embedder: str
    questions: int
    conversations: int
    recall: dict[str, float]
    formula: dict[str, float]
    weights: dict[str, float]


async def train_ranker(dialogues: Dialogues, embedder: Embedder, policy: Policy, progress: Progress) -> TrainedRanker:
    """Learn from all questions, and measure with one conversation left out at a time."""
    async with index_all(dialogues, embedder) as store:
        search, asked = HybridSearch(store, embedder, policy.retrieval), list[RankedQuestion]()
        for number, question in enumerate(dialogues.questions, 1):
            found = await search.candidates(question.text, Scope(user_id=question.user_id), max(DEPTHS))
            places = [(session.session_id, turn) for (session, turn), *_ in found.turns]
            answers = np.array([place in question.evidence for place in places])
            asked.append(RankedQuestion(question, found, signals(question.text, found.turns, found.scores), answers))
            progress(number, len(dialogues.questions))
    users = sorted({each.question.user_id for each in asked})
    rankers = {user: Ranker(fit(each for each in asked if each.question.user_id != user)) for user in users}
    return TrainedRanker(
        embedder=embedder.name,
        questions=len(asked),
        conversations=len(users),
        recall=_recalls([(each, _ranked(each, rankers[each.question.user_id])) for each in asked]),
        formula=_recalls([(each, range(len(each.found.turns))) for each in asked]),
        weights=fit(asked),
    )


def fit(asked: Iterable[RankedQuestion]) -> dict[str, float]:
    """Weights by signal, of questions with an answer among the candidates."""
    answered = [each for each in asked if each.answers.any()]
    values = np.concatenate([each.values for each in answered])
    target = np.concatenate([each.answers / each.answers.sum() for each in answered])
    sizes = [len(each.answers) for each in answered]
    starts, of = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    spread = values.std(axis=0) + _SAME
    scaled = (values - values.mean(axis=0)) / spread

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = scaled @ weights
        scores -= np.maximum.reduceat(scores, starts)[of]
        odds = np.exp(scores)
        total = np.add.reduceat(odds, starts)[of]
        surprise = -(target * (scores - np.log(total))).sum()
        return surprise + L2 / 2 * weights @ weights, scaled.T @ (odds / total - target) + L2 * weights

    found = minimize(loss, np.zeros(len(SIGNALS)), jac=True, method="L-BFGS-B").x / spread
    return {name: float(f"{weight:.4g}") for name, weight in zip(SIGNALS, found, strict=True)}


def _ranked(asked: RankedQuestion, ranker: Ranker) -> Sequence[int]:
    return [each.row for each in ranker.rank(asked.question.text, asked.found.turns, asked.found.scores)]


def _recalls(ranked: Iterable[tuple[RankedQuestion, Sequence[int]]]) -> dict[str, float]:
    results = []
    for asked, rows in ranked:
        places = [asked.found.turns[row].place for row in rows[: max(DEPTHS)]]
        turns = [(session.session_id, turn) for session, turn in places]
        results.append(QuestionResult(asked.question, turns, [], 0.0))
    return {group: depths["recall@10"] for group, depths in recalls(results)[0].items()}
