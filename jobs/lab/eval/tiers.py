"""`turntide lab eval tiers`: what the three tiers keep of real conversations, and how near episodes are to questions.

Every turn of a user goes through the project's own fold; requests are answered at once, extractively. What is kept is
counted, and of every question with evidence the distance to the nearest episode that holds some of it is held against
those to the user's other episodes and to other users': that is what an embedder's `episode_distance` divides.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import Dialogues, Place
from jobs.lab.eval.user_index import folded_user
from jobs.shared.output import Progress
from models.events import EpisodeCompressed, EpisodeRequested, Role, Turn, UserMemoryChanged
from models.events.user import UserOutput
from models.policy import Policy
from streams.inference.episode_embeddings import episode_vectors
from streams.ports import Embedder, Vectors

DISTANCES = (*(n / 100 for n in range(12, 30, 2)), *(n / 100 for n in range(40, 95, 5)))
"""The first ones for e5, whose cosines are all above 0.65."""
NEAREST = 3
"""Episodes that retrieval gives (user memory, top 3)."""
_ODD = "5"
"""Adversarial questions of LoCoMo ask for what was never said."""
_Output = TypeVar("_Output", bound=UserOutput)


_Outputs = list[UserOutput]


def _of(outputs: _Outputs, kind: type[_Output]) -> list[_Output]:
    """Outputs of one type, in order."""
    return [output for output in outputs if isinstance(output, kind)]


def measure(dialogues: Dialogues, embedder: Embedder, policy: Policy, progress: Progress) -> Figures:
    """Fold every user, embed the episodes, and compare them with the questions.

    `kept` has what the tiers keep over all users; `ratio` is turns for each record kept of them, facts and episodes.
    `shares` has, for each distance, what lies within it: `right` of the questions have an episode with some of their
    evidence there, `same_user` and `foreign` are shares of the user's other episodes and of other users'. `nearest_3`
    is the share of evidence that the three nearest episodes hold.
    """
    users, vectors, of_user = dict[str, _Outputs](), dict[str, Vectors](), dialogues.of_users
    for number, (user_id, turns) in enumerate(of_user.items(), 1):
        user = users[user_id] = [*folded_user(map(_said, turns), policy)]
        if texts := [[turn.content for turn in asked.turns] for asked in _of(user, EpisodeRequested)]:
            vectors[user_id] = episode_vectors(embedder, texts)
        progress(number, len(of_user))
    asked = [each for each in dialogues.questions if each.user_id in vectors and _ODD not in each.groups]
    right, found = list[float](), list[float]()
    others, foreign = [np.empty(0, np.float32)], [np.empty(0, np.float32)]
    for question, row in zip(asked, embedder.embed_queries([question.text for question in asked]), strict=True):
        distances = 1.0 - vectors[question.user_id] @ row
        foreign += [1.0 - other @ row for user_id, other in vectors.items() if user_id != question.user_id]
        places: list[set[Place]] = [
            {(run.session_id, number) for run in each.turns for number in run.turns}
            for each in _of(users[question.user_id], EpisodeCompressed)
        ]
        holds = np.array([bool(question.evidence & each) for each in places])
        others.append(distances[~holds])
        if holds.any():
            right.append(float(distances[holds].min()))
            nearest = set().union(*(places[n] for n in np.argsort(distances)[:NEAREST]))
            found.append(len(question.evidence & nearest) / len(question.evidence))
    compared = {"right": np.array(right), "same_user": np.concatenate(others), "foreign": np.concatenate(foreign)}
    return {
        "embedder": embedder.name,
        "questions": len(right),
        "nearest_3": _mean(np.array(found)),
        "episode_distance": embedder.episode_distance,
        "kept": _kept(list(users.values())),
        "shares": [
            {"distance": distance, **{name: _mean(each < distance) for name, each in compared.items()}}
            for distance in DISTANCES
        ],
    }


def _said(turn: Turn) -> Turn:
    """A file of friends' talk says who speaks inside the text; a user of an assistant does not."""
    return replace(turn, content=turn.content.partition(": ")[2]) if turn.role is Role.USER else turn


def _mean(values: NDArray[np.generic]) -> float:
    return round(float(values.mean()), 4) if values.size else 0.0


def _kept(users: Sequence[_Outputs]) -> Figures:
    episodes = [each for user in users for each in _of(user, EpisodeCompressed)]
    stats = [_of(user, UserMemoryChanged) for user in users]
    turns, facts, kept = (sum(getattr(of[-1], name) for of in stats) for name in ("turn_count", "facts", "episodes"))
    at_hand = (sum(len(run.turns) for run in each.short_term) for of in stats for each in of)
    return {
        "users": len(users),
        "turns": turns,
        "facts": facts,
        "episodes": kept,
        "most_at_hand": max(at_hand, default=0),
        "tokens_before": sum(each.tokens_before for each in episodes),
        "tokens_after": sum(each.tokens_after for each in episodes),
        "ratio": round(turns / (facts + kept), 1) if facts + kept else 0.0,
    }
