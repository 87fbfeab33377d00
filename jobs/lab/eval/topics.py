"""`turntide lab eval topics`: at which cosine a message belongs to a topic, for one embedder, on real dialogues.

Two looks: the project's own fold over sessions whose topics are known (`topics_matching`), for each threshold with and
without the bonus of the active topic; and what merging does to the best of them. Beside it, the same rule with other
embeddings of a topic, simulated.
"""

from collections.abc import Hashable, Sequence
from itertools import count
from operator import itemgetter
from statistics import mean

from msgspec.structs import replace

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import TopicDialogue
from jobs.lab.eval.scores import ScoreFigures
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
from jobs.shared.output import Progress
from models.policy import Policy
from models.policy.topic import SEED_SIMILARITY
from streams.ports import Embedder, Vectors

THRESHOLDS = (*(n / 20 for n in range(1, 17)), *(n / 100 for n in range(82, 96, 2)))
"""0.05 to 0.8; above it for e5, whose cosines are all above 0.65."""
MERGE_SIMILARITIES = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)
_NEVER = 1.0
SEEDS_BONUS = 0.0


def measure(
    dialogues: Sequence[TopicDialogue],
    embedder: Embedder,
    policy: Policy,
    progress: Progress,
    *,
    sessions: int,
    seed: int,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Figures:
    """Measure one embedder; the same dialogues and seed give the same report.

    `curve` has every threshold without merging, `best` the best of them for each bonus, `at_shipped` and `at_seed` what
    the policy's and the source's give; `merging` is at the best with the bonus as it is shipped (`best_threshold`).

    Args:
        dialogues: At least five of four user turns.
        embedder: Whose threshold is looked for.
        policy: Rules of everything but threshold, bonus and merging.
        progress: Told after every run.
        sessions: How many to make of the dialogues.
        seed: Of which dialogues meet, where they are cut and how they alternate.
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

    def at(threshold: float, active_bonus: float, merge_similarity: float = _NEVER) -> Figures:
        """All sessions once: pairs of user turns in one topic against pairs of one dialogue."""
        cosines = {"similarity_threshold": threshold, "merge_similarity": merge_similarity}
        under = replace(policy, topics=replace(policy.topics, active_bonus=active_bonus, **cosines))
        matched = [match(inputs, session.user_places, under) for session, inputs in prepared]
        progress(next(done), runs)
        pairs = _pairs_of(mixed, [joined for joined, _ in matched])
        ratios = {"precision": pairs.precision, "recall": pairs.recall, "f1": pairs.f1}
        return {
            "threshold": threshold,
            "active_bonus": active_bonus,
            "merge_similarity": merge_similarity,
            **{name: 1.0 if ratio is None else ratio for name, ratio in ratios.items()},
            "topics_per_session": mean(len(set(joined)) for joined, _ in matched),
            "merges_per_session": mean(merges for _, merges in matched),
        }

    curve = [at(threshold, bonus) for bonus in bonuses for threshold in tried]
    best = [max((each for each in curve if each["active_bonus"] == bonus), key=itemgetter("f1")) for bonus in bonuses]
    return {
        "embedder": embedder.name,
        "seed": seed,
        "dialogues": len(dialogues),
        "sessions": len(mixed.sessions),
        "dialogues_per_session": DIALOGUES_PER_SESSION,
        "user_turns": sum(len(session.user_places) for session in mixed.sessions),
        "turns": sum(len(session.turns) for session in mixed.sessions),
        "best_threshold": best[-1]["threshold"],
        "shipped_threshold": shipped,
        "best": best,
        "at_shipped": [each for each in curve if each["threshold"] == shipped],
        "at_seed": [each for each in curve if each["threshold"] == SEED_SIMILARITY],
        "curve": curve,
        "merging": [at(best[-1]["threshold"], best[-1]["active_bonus"], value) for value in MERGE_SIMILARITIES],
        "variants": _variants(mixed, short, tried, bonuses),
    }


def _pairs_of(mixed: Mixed, joined: Sequence[Sequence[Hashable]]) -> ScoreFigures:
    dialogues = [session.user_dialogues for session in mixed.sessions]
    return count_pairs(zip(joined, dialogues, strict=True))


def _variants(mixed: Mixed, short: Vectors, thresholds: Sequence[float], bonuses: Sequence[float]) -> list[Figures]:
    """Of each way to embed a topic, simulated without merging, and each bonus, the best threshold."""
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
            made = {"embedding": embedding, "dims": vectors.shape[1], "active_bonus": bonus}
            found.append({**made, "threshold": best, "f1": f1[best]})
    return found
