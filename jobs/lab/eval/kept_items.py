"""Recall of what is kept instead of turns: a project's memories, episodes and chunks, and users' episodes.

The talks of `jobs.lab.eval.dialogues` are folded and indexed as the roles do it. Each question of
`data/item_questions.toml` is answered by BM25 alone, by both rankings fused as the API has it, for a project by the
source's formula, and by the turns' ranker over the best hundred of the fused one.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import chain
from statistics import mean
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import Dialogues, Place
from jobs.lab.eval.user_index import folded_user, index_user, own_store
from models.events import EpisodeCompressed, Position, ProjectItemChanged, ProjectTurnAdded, SessionName, project_key
from models.events.topics import TURNS
from models.policy import Policy
from models.project.fold import FoldedProject
from models.retrieval.event_times import event_interval
from models.retrieval.ranker import CandidateTurn, Ranker, formula, ranker_of
from models.retrieval.relevance import RetrievalFilters, RetrievalQuery
from models.retrieval.traits import packed_traits
from models.text.language import language_of
from streams.index.collections import EPISODES, PROJECT_ITEMS, item_text
from streams.index.event_points import Collection
from streams.index.hybrid_search import HybridSearch, Ranking
from streams.index.project_memory import ProjectMemories
from streams.ports import Embedder, Where

_PROJECT = "team"
_MOST = 100
Orders = dict[str, list[str]]
"""Ranking → keys of points, best first."""


class _KeptQuestion(Struct, forbid_unknown_fields=True):
    ask: str
    told: list[str]


class _Answered(NamedTuple):
    orders: Orders
    answers: set[str]


async def measure_kept(dialogues: Mapping[str, Dialogues], embedder: Embedder, policy: Policy) -> Figures:
    """By ranking: recall of what answers among the first 5 and 10, and the reciprocal rank of its first, means.

    Episodes are asked the questions about single turns besides.
    """
    data = (files("jobs.lab.eval") / "data" / "item_questions.toml").read_bytes()
    manners = msgspec.toml.decode(data, type=dict[str, dict[str, list[_KeptQuestion]]])
    asked = {name: [*chain.from_iterable(each.values())] for name, each in manners.items()}
    found = {"project": await _of_project(dialogues[_PROJECT], asked.pop("project"), embedder, policy)}
    of_users = [await _of_episodes(dialogues[name], asked[name], embedder, policy) for name in asked]
    found["episodes"] = [*chain.from_iterable(of_users)]
    return {f"{name}, {by}": _figures(of, by) for name, of in found.items() for by in of[0].orders}


async def _of_project(
    talk: Dialogues, questions: Sequence[_KeptQuestion], embedder: Embedder, policy: Policy
) -> list[_Answered]:
    project, events = FoldedProject("bench", _PROJECT, policy), dict[str, tuple[ProjectItemChanged, int]]()
    for n, turn in enumerate(talk.turns):
        said = {name: getattr(turn, name) for name in ("session_id", "user_id", "timestamp", "turn", "role", "content")}
        place = Position(TURNS.name, 0, n)
        added = ProjectTurnAdded(id=str(n), app_id="bench", project_id=_PROJECT, source=place, **said)
        made = [each for each in project.take(added, turn.timestamp) if isinstance(each, ProjectItemChanged)]
        events |= {PROJECT_ITEMS.key(each): (each, n) for each in made}
    texts = {key: text for key, (event, _) in events.items() if (text := item_text(event))}
    keys = {(events[key][0].kind, events[key][0].item_id): key for key in texts}
    found = list[_Answered]()
    async with own_store(embedder) as store:
        await ProjectMemories(store, embedder, policy.projects).add_items([*events.values()])
        kept = _SearchedItems(
            HybridSearch(store, embedder),
            ranker_of(embedder.name) or formula(policy.retrieval),
            PROJECT_ITEMS,
            {"owner_key": project_key("bench", _PROJECT)},
            {key: events[key][0] for key in texts},
        )
        for each in questions:
            every = RetrievalQuery(
                text=each.ask, filters=RetrievalFilters(include_chunks=True), top_k=_MOST, threshold=0
            )
            source = project.view.retrieve(every, talk.turns[-1].timestamp)
            orders = await kept.orders(each.ask)
            orders["source"] = [keys[item.kind, item.id] for item in source]
            found.append(_Answered(orders, {key for key, text in texts.items() if any(of in text for of in each.told)}))
    return found


async def _of_episodes(
    talks: Dialogues, questions: Sequence[_KeptQuestion], embedder: Embedder, policy: Policy
) -> list[_Answered]:
    outputs = [*folded_user(talks.turns, policy)]
    episodes = {EPISODES.key(each): each for each in outputs if isinstance(each, EpisodeCompressed)}
    holding: dict[str, set[Place]] = {
        key: {(run.session_id, turn) for run in each.turns for turn in run.turns} for key, each in episodes.items()
    }
    asked = [(each.text, set(each.evidence)) for each in talks.questions] + [
        (
            each.ask,
            {(turn.session_id, turn.turn) for turn in talks.turns if any(of in turn.content for of in each.told)},
        )
        for each in questions
    ]
    found = list[_Answered]()
    async with own_store(embedder) as store:
        await index_user(store, embedder, talks.turns, outputs, 0)
        kept = _SearchedItems(
            HybridSearch(store, embedder),
            ranker_of(embedder.name) or formula(policy.retrieval),
            EPISODES,
            {"user_id": talks.turns[0].user_id},
            episodes,
        )
        for text, evidence in asked:
            # Evidence that is still at hand stands in no episode.
            if answers := {key for key, places in holding.items() if places & evidence}:
                found.append(_Answered(await kept.orders(text), answers))
    return found


class _SearchedItems(NamedTuple):
    """What is searched: a collection, within conditions, and the events that may answer, by key."""

    search: HybridSearch
    ranker: Ranker
    collection: Collection[Any]
    where: Where
    events: Mapping[str, Struct]

    async def orders(self, text: str) -> Orders:
        """What each ranking but the source's finds for a question."""
        name, ranked = self.collection.name, dict[Ranking, list[tuple[str, float]]]()
        for by in Ranking:
            found = await self.search.keys(name, text, self.where, _MOST, by=by)
            ranked[by] = sorted(
                (each for each in found if each[0] in self.events), key=lambda each: (-each[1], each[0])
            )
        cosines, fused = dict(ranked[Ranking.SEMANTIC]), ranked[Ranking.HYBRID]
        turns = [self._as_turn(n, *each, cosines.get(each[0], 0.0)) for n, each in enumerate(fused)]
        return {
            "BM25": [key for key, _ in ranked[Ranking.KEYWORD]],
            "fused": [key for key, _ in fused],
            "ranker": [fused[each.row][0] for each in self.ranker.rank(text, turns)],
        }

    def _as_turn(self, number: int, key: str, score: float, cosine: float) -> CandidateTurn:
        """Something that is kept, as a turn of a session of its own."""
        words, dated, event = self.collection.words, self.collection.dated, self.events[key]
        moment = None if dated is None else dated(event)
        assert words is not None, "it is found by words"  # noqa: S101
        assert moment is not None, "it has a time"  # noqa: S101
        text, day, place = words(event), moment.date(), (SessionName("bench", str(number)), 0)
        traits = packed_traits(text, language=language_of(text))
        return CandidateTurn(place, "", "", day.toordinal(), event_interval(text, day), traits, score, 0.0, cosine)


def _figures(asked: Sequence[_Answered], by: str) -> Figures:
    places = [[key in each.answers for key in each.orders[by]] for each in asked]
    whole = [len(each.answers) for each in asked]
    return {
        "questions": len(asked),
        **{
            f"recall@{depth}": round(
                mean(sum(of[:depth]) / min(all_, depth) for of, all_ in zip(places, whole, strict=True)), 4
            )
            for depth in (5, 10)
        },
        "mrr": round(mean(1 / (1 + of.index(True)) if True in of else 0.0 for of in places), 4),
    }
