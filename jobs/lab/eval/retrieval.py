"""`turntide lab eval retrieval`: how much of what answers a question is found by search.

The turns go into an index of their own (Qdrant Edge), as the index role writes them, and every question is asked
through `streams.index.hybrid_search.HybridSearch` over it. Candidates are ranked by BM25 alone, by the formula of
`models.retrieval.fusion`, and by the ranker, whose weights never come from the conversation that is asked about: where
a set is one to learn from they are learned here from its other conversations, else they are the shipped ones.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from statistics import mean

import numpy as np
from msgspec import Struct

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import Dialogues, LabelledQuestion, Place
from jobs.lab.eval.user_index import index_user, open_store
from jobs.lab.train.ranker import Bools, fit
from jobs.shared.output import Progress
from models.errors import ConfigurationError
from models.policy import Policy
from models.retrieval.ranker import SIGNALS, Floats, Ranker, formula, ranker_of, signals
from streams.index.collections import TURNS, turn_of_key
from streams.index.hybrid_search import HybridSearch, Ranking, Scope, TurnCandidates
from streams.ports import Embedder

DEPTHS = (5, 10, 20)
_DEPTH = 10
"""By which sets and rankings are compared."""
_PARTS = dict(zip(SIGNALS, SIGNALS, strict=True)) | {
    "when_temporal": "when × temporal",
    "when_temporal_run": "when × temporal",
    "near_date": "dates",
    "event_date": "dates",
    "previous_asks": "asks",
}
"""Signals, and as what they are left out together."""
_RESAMPLES = 1_000
_EQUAL = 10
Recalls = dict[str, float]
"""`recall@5`, `recall@10`, `recall@20`, 0-1."""
Rank = Callable[["AskedQuestion"], Sequence[Place]]


class AskedQuestion(Struct, frozen=True):
    """A question, and what was found for it, best first.

    Attributes:
        values: Signals of the candidates, `(n_turns, n_signals)`.
        answers: Which candidates answer it, `(n_turns,)`.
        words: Turns by BM25 alone; likewise by the formula.
    """

    question: LabelledQuestion
    found: TurnCandidates
    values: Floats
    answers: Bools
    words: list[Place]
    formula: list[Place]

    def recall(self, found: Sequence[Place], depth: int = _DEPTH) -> float:
        """Share of the evidence among the first `depth` found."""
        return len(self.question.evidence.intersection(found[:depth])) / len(self.question.evidence)


async def measure(sets: Sequence[Dialogues], embedder: Embedder, policy: Policy, progress: Progress) -> Figures:
    """Index everything, ask everything.

    `turns` has the recall of evidence turns by group of the first set's questions, and recall@10 of the formula. `sets`
    compares the rankings over all sets, recall@10; `ablation` says by how many points it changes if a signal is left
    out and the weights are learned without it. Intervals are of 95 %, by drawing questions anew.

    Raises:
        ConfigurationError: A set has no question with evidence, or there are no weights for the embedder.
    """
    asked = {each.name: await ask_all(each, embedder, policy, progress) for each in sets}
    first = asked[sets[0].name]
    learnt = first if sets[0].learnt else []
    rank = _left_out(learnt, embedder)
    figures: Figures = {
        "embedder": embedder.name,
        "weights": "learned from the other conversations" if learnt else "shipped",
        "conversations": sets[0].conversations,
        "indexed_turns": len(sets[0].turns),
        "questions": len(first),
        "without_evidence": sets[0].without_evidence,
        "unknown_evidence": sets[0].unknown_evidence,
        "sets": _compared(asked, rank),
        "turns": recalls(first, rank),
    }
    if learnt:
        figures["ablation"] = _ablation(asked, learnt, embedder)
    return figures


async def ask_all(dialogues: Dialogues, embedder: Embedder, policy: Policy, progress: Progress) -> list[AskedQuestion]:
    """Every question of a set, asked of an index of its turns.

    Raises:
        ConfigurationError: It has no question with evidence.
    """
    if not dialogues.questions:
        raise ConfigurationError(f"{dialogues.name}: no question names a turn that answers it")
    async with open_store(embedder) as store:
        await index_user(store, embedder, dialogues.turns)
        search = HybridSearch(store, embedder, policy.retrieval)
        asked, rule = list[AskedQuestion](), formula(policy.retrieval)
        for number, question in enumerate(dialogues.questions, 1):
            asked.append(await _ask(search, rule, question))
            progress(number, len(dialogues.questions))
    return asked


async def _ask(search: HybridSearch, rule: Ranker, question: LabelledQuestion) -> AskedQuestion:
    text, scope, most = question.text, Scope(user_id=question.user_id), max(DEPTHS)
    # From the second search on a user's points are held in memory: every question finds them there.
    await search.turns(text, scope, most)
    found = await search.candidates(text, scope, most)
    # More than are looked at, so that it is not the store's chance which of equal ones are.
    by_words = await search.keys(TURNS.name, text, scope.turns(), _EQUAL * most, by=Ranking.KEYWORD)
    return AskedQuestion(
        question,
        found,
        signals(text, found.turns) if found.turns else np.zeros((0, len(SIGNALS))),
        np.array([_place(each.key) in question.evidence for each in found.hits], dtype=np.bool_),
        [_place(key) for key, _ in sorted(by_words, key=lambda each: (-each[1], each[0]))][:most],
        [_place(found.hits[each.row].key) for each in rule.rank(text, found.turns, most)],
    )


def _place(key: str) -> Place:
    session, turn = turn_of_key(key)
    return session.session_id, turn


def _left_out(learnt: Sequence[AskedQuestion], embedder: Embedder, without: frozenset[str] = frozenset()) -> Rank:
    """Ranks each question by weights learned from other users' alone; by the shipped ones if there are none to learn.

    Args:
        learnt: Questions to learn from.
        embedder: Whose weights are shipped.
        without: Signals that are left out.
    """

    @cache
    def ranker(user_id: str) -> Ranker:
        if not learnt:
            if (shipped := ranker_of(embedder.name)) is None:
                raise ConfigurationError(f"no weights are shipped for {embedder.name}: give --data to learn some from")
            return shipped
        others = [(each.values, each.answers) for each in learnt if each.question.user_id != user_id]
        return Ranker(fit(others or [(each.values, each.answers) for each in learnt], without))

    def rank(asked: AskedQuestion) -> Sequence[Place]:
        if not asked.found.turns:
            return []
        best = ranker(asked.question.user_id).weighed(asked.question.text, asked.found.turns, asked.values, max(DEPTHS))
        return [_place(asked.found.hits[each.row].key) for each in best]

    return rank


def _compared(asked: Mapping[str, Sequence[AskedQuestion]], rank: Rank) -> dict[str, Figures]:
    """Recall@10 of each ranking by set, over all questions (`micro`), and the mean of the sets (`macro`)."""
    rankings: dict[str, Rank] = {"bm25": attrgetter("words"), "formula": attrgetter("formula"), "ranker": rank}
    found = {
        name: {by: np.array([each.recall(ranked(each)) for each in _group(of)]) for by, ranked in rankings.items()}
        for name, of in asked.items()
    }

    def figures(sets: Sequence[Mapping[str, Floats]]) -> Figures:
        means = {by: round(mean(float(each[by].mean()) for each in sets), 4) for by in rankings}
        drawn, rankers = np.random.default_rng(1), [each["ranker"] for each in sets]
        resampled = [drawn.choice(each, (_RESAMPLES, len(each))).mean(axis=1) for each in rankers]
        low, high = np.quantile(np.mean(resampled, axis=0), [0.025, 0.975]).round(4).tolist()
        return {"questions": sum(map(len, rankers)), **means, "low": low, "high": high}

    micro = {by: np.concatenate([each[by] for each in found.values()]) for by in rankings}
    return {
        **{name: figures([each]) for name, each in found.items()},
        "micro": figures([micro]),
        "macro": figures([*found.values()]),
    }


def _group(asked: Sequence[AskedQuestion], name: str = "") -> list[AskedQuestion]:
    """Questions of a group; without a name of that by which the set is judged."""
    return [each for each in asked if (name or asked[0].question.groups[0]) in each.question.groups]


def _ablation(
    asked: Mapping[str, Sequence[AskedQuestion]], learnt: Sequence[AskedQuestion], embedder: Embedder
) -> dict[str, Figures]:
    """By how many points recall@10 of each set changes without a signal, or several that belong together."""
    parts = {name: frozenset(each for each in SIGNALS if _PARTS[each] == name) for name in _PARTS.values()}
    found = {
        name: {of: _mean_recall(_group(each), _left_out(learnt, embedder, without)) for of, each in asked.items()}
        for name, without in {"": frozenset[str](), **parts}.items()
    }
    whole = found.pop("")
    return {name: {of: round(100 * (each[of] - whole[of]), 1) + 0.0 for of in whole} for name, each in found.items()}


def _mean_recall(asked: Sequence[AskedQuestion], rank: Rank, depth: int = _DEPTH) -> float:
    return round(mean(each.recall(rank(each), depth) for each in asked), 4)


def recalls(asked: Sequence[AskedQuestion], rank: Rank) -> dict[str, Recalls]:
    """Mean recall of evidence turns over the questions of each group."""
    names = {group for each in asked for group in each.question.groups}
    groups = {name: _group(asked, name) for name in sorted(names, key=lambda name: (-len(name), name))}
    return {
        name: {
            "formula": _mean_recall(group, attrgetter("formula")),
            **{f"recall@{depth}": _mean_recall(group, rank, depth) for depth in DEPTHS},
        }
        for name, group in groups.items()
    }
