"""`turntide lab eval topics`: at which cosine a message belongs to a topic, for one embedder, on real dialogues.

Sessions are made whose topics are known: each holds stretches of several dialogues, cut in two and said by one person
in turn. The project's own fold sorts their messages into topics, for each threshold with and without the bonus of the
active topic. What is counted are pairs of messages: two belong together if they come from one dialogue.
"""

import random
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import count
from operator import itemgetter
from statistics import mean
from typing import Final, NamedTuple

from msgspec.structs import asdict, replace
from sklearn.metrics.cluster import pair_confusion_matrix

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import BEGINS, TopicDialogue
from jobs.lab.eval.scores import ScoreFigures, figures_of
from jobs.shared.output import Progress
from models.errors import ConfigurationError
from models.events import Position, Role, TopicChanged, Turn
from models.policy import Policy
from models.policy.topic import SEED_SIMILARITY
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from streams.ports import Embedder, Vectors

THRESHOLDS = (*(n / 20 for n in range(1, 17)), *(n / 100 for n in range(82, 96, 2)))
"""0.05 to 0.8; above it for e5, whose cosines are all above 0.65."""
SEEDS_BONUS = 0.0
SESSION_ID: Final = "eval"
_BETWEEN_TURNS = timedelta(seconds=30)
_COMES_TO = frozenset({"started", "returned", "unpacked"})
"""Causes after which a topic is the active one."""
DIALOGUES_PER_SESSION = 5
STRETCH_TURNS = 24
"""Longest stretch of one dialogue: a topic is compacted within it, and none outweighs the others."""
_MIN_USER_TURNS = 4
"""Two in either part."""


class MixedTurn(NamedTuple):
    """A turn of a session of several dialogues, and which of them it comes from; turns of users are `matched`."""

    turn: Turn
    dialogue: int

    @property
    def matched(self) -> bool:
        """True if it is matched to a topic."""
        return self.turn.role is Role.USER and bool(self.turn.content.strip())


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
    and of the source; `best_threshold` is that with the bonus as it is shipped. The policy has all other rules;
    `thresholds` are tried beside its own and the source's.

    Raises:
        ConfigurationError: Too few dialogues are long enough.
    """
    mixed = mix(dialogues, sessions=sessions, seed=seed)
    texts = list(dict.fromkeys(each.turn.content for session in mixed for each in session if each.matched))
    vectors = dict(zip(texts, embedder.embed(texts), strict=True))
    prepared = [(session, inputs_of(session, vectors)) for session in mixed]
    shipped = policy.topics.threshold
    tried = sorted({*thresholds, shipped, SEED_SIMILARITY})
    bonuses = list(dict.fromkeys((SEEDS_BONUS, policy.topics.active_bonus)))
    done, runs = count(1), len(tried) * len(bonuses)

    def at(threshold: float, active_bonus: float) -> Figures:
        """All sessions once: pairs of user turns in one topic against pairs of one dialogue."""
        rules = replace(policy.topics, similarity_threshold=threshold, active_bonus=active_bonus)
        matched = [match(session, inputs, replace(policy, topics=rules)) for session, inputs in prepared]
        progress(next(done), runs)
        ratios = asdict(count_pairs(matched))
        return {
            "threshold": threshold,
            "active_bonus": active_bonus,
            **{name: 1.0 if ratios[name] is None else ratios[name] for name in ("precision", "recall", "f1")},
            "topics_per_session": mean(len({topic for topic, _ in session}) for session in matched),
        }

    curve = [at(threshold, bonus) for bonus in bonuses for threshold in tried]
    best = [max((each for each in curve if each["active_bonus"] == bonus), key=itemgetter("f1")) for bonus in bonuses]
    return {
        "embedder": embedder.name,
        "seed": seed,
        "dialogues": len(dialogues),
        "sessions": len(mixed),
        "dialogues_per_session": DIALOGUES_PER_SESSION,
        "user_turns": sum(each.matched for session in mixed for each in session),
        "turns": sum(map(len, mixed)),
        "best_threshold": best[-1]["threshold"],
        "shipped_threshold": shipped,
        "best": best,
        "at_shipped": [each for each in curve if each["threshold"] == shipped],
        "at_seed": [each for each in curve if each["threshold"] == SEED_SIMILARITY],
        "curve": curve,
    }


def mix(dialogues: Sequence[TopicDialogue], *, sessions: int, seed: int) -> list[list[MixedTurn]]:
    """Make sessions of five dialogues each, turns in the order in which they are said; the same seed, the same ones.

    Every dialogue is used once before one is used again. A dialogue with less than four user turns is left out.

    Raises:
        ConfigurationError: Fewer than five dialogues are long enough.
    """
    usable = [dialogue for dialogue in dialogues if dialogue.user_turns >= _MIN_USER_TURNS]
    if len(usable) < DIALOGUES_PER_SESSION:
        raise ConfigurationError(
            f"{len(usable)} dialogues have {_MIN_USER_TURNS} user turns or more, {DIALOGUES_PER_SESSION} are needed: "
            "give more files, or none for the demo's"
        )
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    mixed, waiting = [], list[TopicDialogue]()
    for _ in range(sessions):
        if len(waiting) < DIALOGUES_PER_SESSION:
            waiting = rng.sample(usable, len(usable))
        chosen, waiting = waiting[:DIALOGUES_PER_SESSION], waiting[DIALOGUES_PER_SESSION:]
        mixed.append(_interleaved([_stretch(dialogue, rng) for dialogue in chosen], rng))
    return mixed


def _stretch(dialogue: TopicDialogue, rng: random.Random) -> Sequence[Turn]:
    """A run of turns with enough user turns in it; of a short dialogue all of it."""
    turns = dialogue.turns
    begins = _next_user(turns, rng.randrange(max(1, len(turns) - STRETCH_TURNS + 1)))
    run = turns[begins : begins + STRETCH_TURNS]
    said = sum(turn.role is Role.USER for turn in run)
    return run if said >= _MIN_USER_TURNS else turns[-STRETCH_TURNS:]


def _interleaved(stretches: Sequence[Sequence[Turn]], rng: random.Random) -> list[MixedTurn]:
    """Every stretch in two parts, the second some time after the first."""
    order = [*range(len(stretches)), *range(len(stretches))]
    rng.shuffle(order)
    turns: list[MixedTurn] = []
    for place, number in enumerate(order):
        stretch = stretches[number]
        middle = _next_user(stretch, len(stretch) // 2)
        part = stretch[middle:] if number in order[:place] else stretch[:middle]
        turns += [MixedTurn(turn, number) for turn in part]
    return turns


def _next_user(turns: Sequence[Turn], begin: int) -> int:
    """Where the user speaks next: people come to a matter, and back to it, by saying something."""
    return next((n for n in range(begin, len(turns)) if turns[n].role is Role.USER), begin)


def count_pairs(sessions: Iterable[Sequence[tuple[str, int]]]) -> ScoreFigures:
    """Pairs in one topic against pairs of one dialogue; of each session the topic and dialogue of each message.

    >>> count_pairs([[("a", 1), ("a", 1), ("b", 1)]])
    ScoreFigures(precision=1.0, recall=0.3333333333333333, f1=0.5, gold=3, found=1)
    """
    # Ordered pairs, so each counts twice, by whether they are of one dialogue, and in one topic.
    counted = [pair_confusion_matrix([n for _, n in each], [topic for topic, _ in each]) // 2 for each in sessions]
    return figures_of((int(both), int(both + apart), int(both + wrong)) for (_, wrong), (apart, both) in counted)


def inputs_of(session: Sequence[MixedTurn], vectors: dict[str, Vectors]) -> list[SessionInput]:
    """A session's turns as the fold takes them, half a minute apart."""
    inputs = []
    for number, each in enumerate(session):
        at = BEGINS + number * _BETWEEN_TURNS
        event = replace(each.turn, session_id=SESSION_ID, turn=number, timestamp=at, metadata=None)
        vector = vectors[event.content] if each.matched else None
        inputs.append(SessionInput(event, Position("turns", 0, number), at, None, vector))
    return inputs


def match(session: Sequence[MixedTurn], inputs: Sequence[SessionInput], policy: Policy) -> list[tuple[str, int]]:
    """Topic, by the events of the fold, and dialogue of each turn that is matched."""
    state: SessionState | None = None
    active, joined = "", list[tuple[str, int]]()
    for each, item in zip(session, inputs, strict=True):
        state, outputs = fold(state, item, policy)
        for event in outputs:
            if isinstance(event, TopicChanged) and event.cause in _COMES_TO:
                active = event.topic_id
        if each.matched:
            joined.append((active, each.dialogue))
    return joined
