"""View of a project's memory for readers: built from item events, with all queries.

Pure: readers of the store and in-process sessions each keep a view and update it.

| event | rule |
|---|---|
| older than the item in its kind and slot | no effect |
| repeated, or of the same revision | replaces the item: of one revision the last event counts |
| of an item that is in another slot with a later revision | the later one stays |
| with another `born` of the project | replaces everything before it |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from models import events
from models.policy.project import ProjectPolicy
from models.project.mentions import item_of
from models.project.narrative import NarrativeArc, narrative_arc
from models.project.validity import versions
from models.retrieval.answering import ScoredCandidates, answer, in_order
from models.retrieval.candidates import Candidates
from models.retrieval.relations import Graph, neighbours
from models.retrieval.relevance import Found, RetrievalQuery, RetrievedItem

_Place = tuple[events.ItemKind, int]
_PLURAL = {"memory": "memories", "pending": "pending"}
"""Attributes whose name is not the kind with an s."""


class ProjectView:
    """View of one project.

    Attributes:
        stats: The project's last stats.
        revision: Highest applied revision. Further events of that revision may still arrive.
        memories: Memories by id, including archived ones; so are the following.
        graph: Relationships of memories, and memories of episodes.
    """

    def __init__(self, app_id: str, project_id: str, policy: ProjectPolicy) -> None:
        self.app_id, self.project_id, self.policy = app_id, project_id, policy
        self._clear()

    def _clear(self) -> None:
        self.stats: events.ProjectChanged | None = None
        self.revision = 0
        self.memories: dict[str, events.ProjectMemory] = {}
        self.episodes: dict[str, events.ProjectEpisode] = {}
        self.chunks: dict[str, events.ConversationChunk] = {}
        self.conversations: dict[str, events.ProjectConversation] = {}
        self.pending: dict[str, events.PendingFact] = {}
        self.graph = Graph()
        self._candidates = Candidates(self.policy)
        self._latest: dict[_Place, tuple[int, str]] = {}
        self._place_of: dict[tuple[events.ItemKind, str], _Place] = {}

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self._place_of)

    def slot_of(self, kind: events.ItemKind, item_id: str) -> int:
        """Slot of an item among those of its kind.

        Raises:
            KeyError: The item does not exist.
        """
        return self._place_of[kind, item_id][1]

    def apply(self, event: events.ProjectItemChanged | events.ProjectChanged) -> None:
        """Apply an event by the rules above."""
        if isinstance(event, events.ProjectChanged):
            if self.stats is not None and self.stats.born != event.born:
                self._clear()
            if self.stats is None or self.stats.revision <= event.revision:
                self.stats = event
        else:
            self._apply_item(event)
        self.revision = max(self.revision, event.revision)

    def retrieve(
        self, query: RetrievalQuery, at: datetime, scores: Mapping[Found, float] | None = None
    ) -> list[RetrievedItem]:
        """The most relevant items, at most `top_k`, with at least the threshold.

        Args:
            query: The query; with `scores`, the policy's threshold does not apply, as their scale differs.
            at: Now: the reference of recency, and of validity unless the query sets a time.
            scores: Scores of another strategy than the source's, by kind and id; removed items are ignored.
        """
        policy, seen, least = self.policy.retrieval, self._seen(query.known_at), query.threshold
        among, top_k = ScoredCandidates(seen, seen.score(query, at), seen.allowed(query, at)), query.top_k
        if scores is None:
            least = policy.threshold if least is None else least
            hits = seen.best(among.scored, among.allowed, threshold=least, top_k=top_k or policy.top_k)
        else:
            kept = ((found, score) for found, score in scores.items() if seen.lets(among.allowed, found))
            hits = in_order(each for each in kept if least is None or each[1] >= least)[: top_k or policy.top_k]
        return answer(query, among, hits, self._graph(query, seen, hits), policy)

    def valid_at(self, at: datetime, known: datetime | None = None) -> list[events.ProjectMemory]:
        """Memories that were valid at a time, by id; optionally as known at another time."""
        return self._seen(known).held(at)

    def arc(self, conversation_id: str | None = None) -> NarrativeArc:
        """The narrative arc of a conversation, or of the whole project."""
        conversation = self.conversations.get(conversation_id or "")
        turns = None if conversation is None else (0, max(0, conversation.total_turns - 1))
        return narrative_arc(list(self.episodes.values()), conversation_id, self.policy.narrative, turns=turns)

    def item_in(self, kind: events.ItemKind, slot: int) -> str | None:
        """Id of the item in a slot of its kind; None if the slot is empty."""
        _, item_id = self._latest.get((kind, slot), (0, ""))
        return item_id if self._place_of.get((kind, item_id)) == (kind, slot) else None

    # --- what is held

    def _apply_item(self, event: events.ProjectItemChanged) -> None:
        place = (event.kind, event.slot)
        revision, before = self._latest.get(place, (-1, ""))
        if event.revision < revision:
            return
        self._latest[place] = event.revision, event.item_id
        if (not event.active or before != event.item_id) and self._place_of.get((event.kind, before)) == place:
            self._drop(event.kind, before)
        item = item_of(event)
        if not event.active or item is None:
            return
        elsewhere = self._place_of.get((event.kind, event.item_id), place)
        if self._latest[elsewhere][0] <= event.revision:
            self._place_of[event.kind, event.item_id] = place
            self._put(event.kind, item)

    def _items(self, kind: events.ItemKind) -> dict[str, Any]:
        held: dict[str, Any] = getattr(self, _PLURAL.get(kind, f"{kind}s"))
        return held

    def _put(self, kind: events.ItemKind, item: events.ProjectItem) -> None:
        self._items(kind)[item.id] = item
        if isinstance(item, events.ProjectMemory | events.ProjectEpisode):
            self.graph.put(item)
        if isinstance(item, events.ProjectMemory | events.ProjectEpisode | events.ConversationChunk):
            self._candidates.put(item, versions(item) if isinstance(item, events.ProjectMemory) else ())

    def _drop(self, kind: events.ItemKind, item_id: str) -> None:
        del self._place_of[kind, item_id]
        del self._items(kind)[item_id]
        if kind in ("memory", "episode"):
            self.graph.drop(item_id)
        if kind in ("memory", "episode", "chunk"):
            self._candidates.drop((kind, item_id))

    # --- what is found

    def _seen(self, known: datetime | None) -> Candidates:
        """Candidates of a search, as known at a time if one is given."""
        return self._candidates if known is None else self._candidates.known_by(known)

    def _graph(self, query: RetrievalQuery, seen: Candidates, hits: Sequence[tuple[Found, float]]) -> Graph:
        """Relationships; if a time is given, those around the hits as known then."""
        if query.known_at is None:
            return self.graph
        near = {item_id for (_, item_id), _ in hits}
        near |= {each.id for hit in near for each in neighbours(self.graph, hit, query.related_depth + 1)}
        items = map(seen.find, sorted(near))
        return Graph(item for item in items if isinstance(item, events.ProjectMemory | events.ProjectEpisode))
