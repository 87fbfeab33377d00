"""`turntide lab eval topics`: at which cosine a message belongs to a topic, for one embedder, on real dialogues.

The project's own fold over sessions whose topics are known (`topics_matching`), for each threshold with and without the
bonus of the active topic.
"""

from collections.abc import Hashable, Sequence
from itertools import count
from operator import itemgetter
from statistics import mean

from msgspec.structs import replace

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import TopicDialogue
from jobs.lab.eval.scores import ScoreFigures
from jobs.lab.eval.topics_matching import DIALOGUES_PER_SESSION, Mixed, count_pairs, inputs_of, match, mix
from jobs.shared.output import Progress
from models.policy import Policy
from models.policy.topic import SEED_SIMILARITY
from streams.ports import Embedder

THRESHOLDS = (*(n / 20 for n in range(1, 17)), *(n / 100 for n in range(82, 96, 2)))
"""0.05 to 0.8; above it for e5, whose cosines are all above 0.65."""
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

    `curve` has every threshold, `best` the best of them for each bonus, `at_shipped` and `at_seed` those of the policy
    and of the source; `best_threshold` is that with the bonus as it is shipped.

    Args:
        dialogues: At least five of four user turns.
        embedder: Whose threshold is looked for.
        policy: Rules of everything but threshold and bonus.
        progress: Told after every run.
        sessions: How many to make of the dialogues.
        seed: Of which dialogues meet, where they are cut and how they alternate.
        thresholds: Cosines to try, beside the policy's and the source's.

    Raises:
        ConfigurationError: Too few dialogues are long enough.
    """
    mixed = mix(dialogues, embedder, sessions=sessions, seed=seed)
    shipped = policy.topics.threshold
    tried = sorted({*thresholds, shipped, SEED_SIMILARITY})
    bonuses = list(dict.fromkeys((SEEDS_BONUS, policy.topics.active_bonus)))
    prepared = [(session, inputs_of(session, mixed.vectors)) for session in mixed.sessions]
    done, runs = count(1), len(tried) * len(bonuses)

    def at(threshold: float, active_bonus: float) -> Figures:
        """All sessions once: pairs of user turns in one topic against pairs of one dialogue."""
        rules = replace(policy.topics, similarity_threshold=threshold, active_bonus=active_bonus)
        under = replace(policy, topics=rules)
        matched = [match(inputs, session.user_places, under) for session, inputs in prepared]
        progress(next(done), runs)
        pairs = _pairs_of(mixed, matched)
        ratios = {"precision": pairs.precision, "recall": pairs.recall, "f1": pairs.f1}
        return {
            "threshold": threshold,
            "active_bonus": active_bonus,
            **{name: 1.0 if ratio is None else ratio for name, ratio in ratios.items()},
            "topics_per_session": mean(len(set(joined)) for joined in matched),
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
    }


def _pairs_of(mixed: Mixed, joined: Sequence[Sequence[Hashable]]) -> ScoreFigures:
    dialogues = [session.user_dialogues for session in mixed.sessions]
    return count_pairs(zip(joined, dialogues, strict=True))
