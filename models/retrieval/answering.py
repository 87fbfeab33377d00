"""Hits made an answer: what is related to them comes along, and what contradicts them is named (project memory).

What is pulled in gets of its hit's score the policy's share for each relationship on the way, times the strengths of
all of them, so it ranks below its hit. It must pass the query's filters, not its threshold, and takes one of the places
of `top_k`. An episode is related to the memories that it is linked to.
"""

from collections.abc import Iterable
from typing import NamedTuple

from models.events.project_items import CONTRADICTS
from models.policy.project import ProjectRetrievalPolicy
from models.retrieval.candidates import Candidates, Mask, Scored
from models.retrieval.relations import Graph, neighbours
from models.retrieval.relevance import Found, RetrievalQuery, RetrievedItem, rendered


class ScoredCandidates(NamedTuple):
    """What may be found, its relevance to a query, and which of it the query lets through."""

    candidates: Candidates
    scored: Scored
    allowed: Mask

    def found(self, item_id: str) -> Found | None:
        """The memory or episode of this id, if it is there and let through."""
        both: tuple[Found, Found] = (("memory", item_id), ("episode", item_id))
        return next((each for each in both if self.candidates.lets(self.allowed, each)), None)


def in_order(scores: Iterable[tuple[Found, float]]) -> list[tuple[Found, float]]:
    """The best first; of equal ones the first by kind and id."""
    return sorted(scores, key=lambda each: (-each[1], each[0]))


def answer(
    query: RetrievalQuery,
    asked: ScoredCandidates,
    hits: list[tuple[Found, float]],
    graph: Graph,
    policy: ProjectRetrievalPolicy,
) -> list[RetrievedItem]:
    """Hits, with what is related if the query wants them, at most `top_k`.

    Args:
        query: How far relationships are followed, and how many are wanted.
        asked: What the hits were found in.
        hits: With scores, the best first.
        graph: Relationships of memories and episodes.
        policy: What is left of a score over a relationship.
    """
    via: dict[Found, str] = {}
    if query.related_depth:
        pulled = _pulled_in(query.related_depth, asked, hits, graph, policy.neighbour_share)
        via = {found: hit for found, (_, hit) in pulled.items()}
        hits = in_order([*hits, *((found, score) for found, (score, _) in pulled.items())])
    return [
        RetrievedItem(
            kind=found[0],
            id=found[1],
            text=rendered(item := asked.candidates.item(found)),
            score=score,
            scores=asked.candidates.scores(asked.scored, found),
            item=item,
            via=via.get(found, ""),
            contradicted_by=_contradicting(found, asked, graph),
        )
        for found, score in hits[: query.top_k or policy.top_k]
    ]


def _pulled_in(
    depth: int, asked: ScoredCandidates, hits: list[tuple[Found, float]], graph: Graph, share: float
) -> dict[Found, tuple[float, str]]:
    """What is no hit itself, with what it gets of its best hit, and which that is."""
    direct = dict(hits)
    pulled: dict[Found, tuple[float, str]] = {}
    for (kind, hit), score in hits:
        for each in neighbours(graph, hit, depth) if kind != "chunk" else ():
            found = asked.found(each.id)
            got = score * each.path_strength * share**each.distance
            if found is not None and found not in direct and got > pulled.get(found, (0.0, ""))[0]:
                pulled[found] = got, hit
    return pulled


def _contradicting(found: Found, asked: ScoredCandidates, graph: Graph) -> list[str]:
    """Memories that contradict it, either way round, of those that the query lets through."""
    if found[0] != "memory":
        return []
    others = neighbours(graph, found[1], 1, types=(CONTRADICTS,))
    return sorted(other.id for other in others if asked.found(other.id))
