"""`turntide lab eval topics`: at which cosine a message belongs to a topic, for one embedder, on real dialogues.

Two looks: the project's own fold over sessions whose topics are known (`topics_matching`), for each threshold with and
without the bonus of the active topic; and what merging does to the best of them. Beside it, the same rule with other
embeddings of a topic, simulated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from statistics import mean

from msgspec import Struct
from msgspec.structs import asdict, replace

from jobs.lab.eval.dialogues import TopicDialogue
from jobs.lab.eval.scores import ScoreFigures, cell
from jobs.lab.eval.topics_matching import (
    DIALOGUES_PER_SESSION,
    Embedding,
    Mixed,
    count_pairs,
    inputs_of,
    match,
    mix,
    shortened,
    simulate,
    unit,
)
from jobs.shared.output import Printer, Progress
from models.policy import Policy
from models.policy.topic import SEED_SIMILARITY
from streams.http import pages
from streams.ports import Embedder, Vectors

THRESHOLDS = tuple(n / 20 for n in range(1, 17))
"""0.05 to 0.8."""
MERGE_SIMILARITIES = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)
_NEVER = 1.0
SEEDS_BONUS = 0.0


class MatchPoint(Struct, frozen=True):
    """What the fold does with a threshold: pairs of user turns in one topic against pairs of one dialogue."""

    threshold: float
    active_bonus: float
    merge_similarity: float
    precision: float
    recall: float
    f1: float
    topics_per_session: float
    """There are five dialogues in each."""
    merges_per_session: float


class Variant(Struct, frozen=True):
    """Another way to embed a topic, simulated without merging, at the threshold that is best for it."""

    embedding: Embedding
    dims: int
    active_bonus: float
    threshold: float
    f1: float


class TopicScores(Struct, frozen=True):
    """Everything about one embedder.

    Attributes:
        best_threshold: Of the best F1 with the bonus as it is shipped: what this embedder should have.
        shipped_threshold: The policy's: the embedder's own, unless a policy file says another.
        best: Best threshold for each bonus.
        at_shipped: What the shipped one gives, for each bonus.
        at_seed: What the source's threshold gives, for each bonus.
        curve: Every threshold, without merging.
        merging: At the best threshold.
        variants: Simulated.
    """

    embedder: str
    seed: int
    dialogues: int
    sessions: int
    dialogues_per_session: int
    user_turns: int
    turns: int
    best_threshold: float
    shipped_threshold: float
    best: list[MatchPoint]
    at_shipped: list[MatchPoint]
    at_seed: list[MatchPoint]
    curve: list[MatchPoint]
    merging: list[MatchPoint]
    variants: list[Variant]


def measure(
    dialogues: Sequence[TopicDialogue],
    embedder: Embedder,
    policy: Policy,
    *,
    sessions: int,
    seed: int,
    progress: Progress,
    thresholds: Sequence[float] = THRESHOLDS,
) -> TopicScores:
    """Measure one embedder; the same dialogues and seed give the same report.

    Args:
        dialogues: At least five of four user turns.
        embedder: Whose threshold is looked for.
        policy: Rules of everything but threshold, bonus and merging.
        sessions: How many to make of the dialogues.
        seed: Of which dialogues meet, where they are cut and how they alternate.
        progress: Told after every run.
        thresholds: Cosines to try, beside the policy's and the source's.

    Raises:
        ConfigurationError: Too few dialogues are long enough.
    """
    mixed = mix(dialogues, embedder, sessions=sessions, seed=seed)
    short = shortened(mixed.vectors)
    shipped = policy.topics.threshold
    tried = sorted({*thresholds, shipped, SEED_SIMILARITY})
    bonuses = list(dict.fromkeys((SEEDS_BONUS, policy.topics.active_bonus)))
    prepared = [(session, inputs_of(session, mixed.vectors)) for session in mixed.sessions]
    done, runs = count(1), len(tried) * len(bonuses) + len(MERGE_SIMILARITIES)

    def at(threshold: float, active_bonus: float, merge_similarity: float = _NEVER) -> MatchPoint:
        """All sessions once."""
        cosines = {"similarity_threshold": threshold, "merge_similarity": merge_similarity}
        under = replace(policy, topics=replace(policy.topics, active_bonus=active_bonus, **cosines))
        matched = [match(inputs, session.user_places, under) for session, inputs in prepared]
        progress(next(done), runs)
        pairs = _pairs_of(mixed, [joined for joined, _ in matched])
        precision, recall, f1 = (1.0 if each is None else each for each in (pairs.precision, pairs.recall, pairs.f1))
        return MatchPoint(
            threshold,
            active_bonus,
            merge_similarity,
            precision,
            recall,
            f1,
            mean(len(set(joined)) for joined, _ in matched),
            mean(merges for _, merges in matched),
        )

    curve = [at(threshold, bonus) for bonus in bonuses for threshold in tried]
    best = [
        max((point for point in curve if point.active_bonus == bonus), key=lambda point: point.f1) for bonus in bonuses
    ]
    return TopicScores(
        embedder=embedder.name,
        seed=seed,
        dialogues=len(dialogues),
        sessions=len(mixed.sessions),
        dialogues_per_session=DIALOGUES_PER_SESSION,
        user_turns=sum(len(session.user_places) for session in mixed.sessions),
        turns=sum(len(session.turns) for session in mixed.sessions),
        best_threshold=best[-1].threshold,
        shipped_threshold=shipped,
        best=best,
        at_shipped=[point for point in curve if point.threshold == shipped],
        at_seed=[point for point in curve if point.threshold == SEED_SIMILARITY],
        curve=curve,
        merging=[at(best[-1].threshold, best[-1].active_bonus, value) for value in MERGE_SIMILARITIES],
        variants=_variants(mixed, short, tried, bonuses),
    )


def _pairs_of(mixed: Mixed, joined: Sequence[Sequence[Hashable]]) -> ScoreFigures:
    dialogues = [session.user_dialogues for session in mixed.sessions]
    return count_pairs(zip(joined, dialogues, strict=True))


def _variants(mixed: Mixed, short: Vectors, thresholds: Sequence[float], bonuses: Sequence[float]) -> list[Variant]:
    """Of each way to embed a topic and each bonus, the best threshold."""
    ways: list[tuple[Embedding, Vectors]] = [
        ("running mean", short),
        ("first message", short),
        ("running mean", unit(mixed.vectors)),
    ]
    found = []
    for embedding, vectors in ways:
        rows = [vectors[session.user_rows] for session in mixed.sessions]
        for bonus in bonuses:
            joined = {each: [simulate(row, each, bonus, embedding) for row in rows] for each in thresholds}
            f1 = {each: _pairs_of(mixed, topics).f1 or 0.0 for each, topics in joined.items()}
            best = max(f1, key=f1.__getitem__)
            found.append(Variant(embedding, vectors.shape[1], bonus, best, f1[best]))
    return found


def show(printed: Printer, report: TopicScores) -> None:
    """Print the tables and what they say."""
    macros = pages.macros("jobs/lab/eval/topics.md.j2")
    printed.message(macros.sample(report).strip())
    printed.rows("Threshold, without merging", rows_of(report.curve))
    printed.rows("Merging, at the best threshold", rows_of(report.merging))
    printed.rows("Other embeddings of a topic, simulated, each at its best threshold", rows_of(report.variants))
    for said in macros.verdicts(report).splitlines():
        printed.message(said)


def rows_of(points: Sequence[MatchPoint] | Sequence[Variant]) -> Iterator[dict[str, str]]:
    """A row for each."""
    return ({name: cell(value) for name, value in asdict(point).items()} for point in points)
