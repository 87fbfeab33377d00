"""Turns that a prompt is filled with: what a search finds of a user, and what stands beside it."""

from collections.abc import Iterable

from models.events import SessionName
from models.policy.retrieval import PromptPolicy
from models.retrieval.fusion import Place, beside
from streams.api.users.messages import AssembleContext, TurnAnswer
from streams.index.between import Between
from streams.index.collections import RememberedTurn
from streams.index.hybrid_search import FoundTurn, HybridSearch, Scope
from streams.index.session_memory import SessionVectorMemory


class PromptTurns:
    """Finds the turns; one search and one reading for each prompt.

    Args:
        search: Hybrid search.
        turns: Turns by session and number.
        policy: How many, and how many beside each.
    """

    def __init__(self, search: HybridSearch, turns: SessionVectorMemory, policy: PromptPolicy) -> None:
        self._search = search
        self._turns = turns
        self._policy = policy

    async def search(self, asked: AssembleContext, apps: tuple[str, ...] | None, window: Between) -> list[FoundTurn]:
        """Turns of the user that answer the question, best first: as many as the budget may hold, and the recent ones.

        `apps` are those that may be read, None for all.

        Raises:
            StoreUnavailable: The store does not answer.
        """
        most = self._most(asked)
        if not most:
            return []
        scope = Scope(apps, asked.user_id, between=window)
        found = await self._search.turns(asked.query, scope, most + asked.recent_turns)
        return [each for each in found if _is_of(each.turn, asked.user_id, apps)]

    async def beside(
        self,
        asked: AssembleContext,
        apps: tuple[str, ...] | None,
        window: Between,
        found: Iterable[FoundTurn],
        shown: Iterable[TurnAnswer],
    ) -> list[tuple[RememberedTurn, float, bool]]:
        """Found turns, each followed by its neighbours, without those that the prompt shows already.

        Each has its score, a neighbour that of its found turn, and whether it is a neighbour.

        Raises:
            StoreUnavailable: The store does not answer.
        """
        already = {_place(turn) for turn in shown}
        hits = {_place(each.turn): each for each in found if _place(each.turn) not in already}
        hits = dict(list(hits.items())[: self._most(asked)])
        brought = beside(hits, self._policy.neighbours)
        missing = [place for place in brought if place not in hits and place not in already]
        read = await self._turns.turns_at(asked.user_id, missing)
        mine = {
            place: turn
            for place, turn in read.items()
            if _is_of(turn, asked.user_id, apps) and window.meets(turn.timestamp, turn.timestamp)
        }
        mine |= {place: each.turn for place, each in hits.items()}
        return [
            (turn, hits[place if place in hits else hit].score, place not in hits)
            for place, hit in brought.items()
            if (turn := mine.get(place)) is not None and turn.content.strip()
        ]

    def _most(self, asked: AssembleContext) -> int:
        return min(self._policy.turns, asked.token_budget // self._policy.turn_tokens)


def _place(turn: RememberedTurn | TurnAnswer) -> Place:
    return SessionName(turn.app_id, turn.session_id), turn.turn


def _is_of(turn: RememberedTurn, user_id: str, apps: tuple[str, ...] | None) -> bool:
    """Whether a turn is the user's, of an app that is read: what comes back is looked through once more."""
    return turn.user_id == user_id and (apps is None or turn.app_id in apps)
