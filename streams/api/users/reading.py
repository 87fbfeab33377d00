"""Reading a user's memory (seed 002, flow 3): what the HTTP routes and the MCP tools both call.

Everything is read for the caller of the request (`streams.http.security`): an app that is not the caller's is refused,
the stores below give only the caller's apps (`streams.http.tenancy`), and what comes back is looked through once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from msgspec import UNSET

from models.events.user import TurnRef
from models.retrieval.context import fit_prompt, format_for_injection
from streams.api.apps.context import AppContext, wanted_app
from streams.api.users.messages import (
    After,
    AssembleContext,
    AssembledContext,
    EpisodeAnswer,
    EpisodeHit,
    FactAnswer,
    Found,
    LeftOut,
    Retrieve,
    Retrieved,
    SearchMemory,
    StandingAnswer,
    TurnAnswer,
    UserFacts,
    episode_answer,
    fact_answer,
    turn_answer,
    turn_hit,
)
from streams.api.users.ports import Search, Turns, Users, Visibility
from streams.api.users.visibility import Waiting
from streams.http.problems import invalid_field
from streams.http.security import Caller, caller
from streams.index.scope import Scope
from streams.index.session_memory import RememberedTurn

CONTEXT_MIN_IMPORTANCE = 0.5
"""Of facts that go into a prompt (seed 002, stage 1)."""
CONTEXT_EPISODES = 3
"""Episodes that a prompt has at most (seed 002, stage 2)."""


class _OfAnApp(Protocol):
    @property
    def app_id(self) -> str:
        """Whose."""
        ...


_Record = TypeVar("_Record", bound=_OfAnApp)


class _Whose(NamedTuple):
    """Whose memory a request is about, and for whom it is read."""

    caller: Caller
    app_id: str | None
    user_id: str

    @classmethod
    def asked(cls, user_id: str, app_id: str | None) -> _Whose:
        """The user, of the app that the caller means.

        Raises:
            Problem: 403, another tenant's app.
        """
        asked_by = caller()
        return cls(asked_by, asked_by.app_of(app_id), user_id)

    def readable(self, records: Iterable[_Record]) -> Iterable[_Record]:
        """Those of the caller's apps."""
        return (record for record in records if self.caller.may_read(record.app_id))


class MemoryReader:
    """Retrieval, prompt assembly, search and look-ups over the memories of all users.

    Args:
        users: Facts, episodes and standing.
        turns: Turns by session and number.
        search: Hybrid search.
        visibility: Whether a turn is in memory yet.
        episode_distance: Cosine distance up to which an episode matters: the embedder's own.
        waiting: Holds requests with `after` back; None: one over `visibility`.
        apps: Memories of apps for prompts; None: there are none.
    """

    def __init__(
        self,
        users: Users,
        turns: Turns,
        search: Search,
        visibility: Visibility,
        *,
        episode_distance: float,
        waiting: Waiting | None = None,
        apps: AppContext | None = None,
    ) -> None:
        self._users = users
        self._turns = turns
        self._search = search
        self._waiting = waiting or Waiting(visibility)
        self._episode_distance = episode_distance
        self._apps = apps or AppContext()

    async def retrieve(self, request: Retrieve) -> Retrieved:
        """Facts by exact filter, episodes by vector search, and both as text: the seed's three stages.

        Raises:
            Problem: 403 another tenant's app; 504 the turn to wait for did not come.
            StoreUnavailable: The store does not answer.
        """
        whose = _Whose.asked(request.user_id, request.app_id)
        await self._wait(request.after)
        distance = self._episode_distance if request.max_distance is None else request.max_distance
        facts, episodes = await asyncio.gather(
            self._facts(whose, request.min_importance),
            self._near_episodes(whose, request.query, distance, request.top_k_episodes),
        )
        injection = format_for_injection(facts, episodes) if request.format else None
        return Retrieved(structured_facts=facts, episodic_context=episodes, injection=injection)

    async def context(self, request: AssembleContext) -> AssembledContext:
        """The seed's whole prompt within the budget, behind the memories of the app if they are wanted.

        Raises:
            Problem: 403 another tenant's app; 422 memories of no app in particular; 504 the turn to wait for did not
                come.
            StoreUnavailable: The store does not answer.
        """
        whose = _Whose.asked(request.user_id, request.app_id)
        wanted = wanted_app(request, whose.app_id)
        await self._wait(request.after)
        remembered, facts, episodes, recent = await asyncio.gather(
            self._apps.preface(wanted, whose.user_id, request.token_budget),
            self._facts(whose, CONTEXT_MIN_IMPORTANCE),
            self._near_episodes(whose, request.query, self._episode_distance, CONTEXT_EPISODES),
            self._conversation(whose, request.session_id, request.recent_turns),
        )
        text = "" if remembered is None else remembered.text
        fitted = fit_prompt(facts, episodes, recent, token_budget=request.token_budget, preface=text)
        return AssembledContext(
            prompt=fitted.prompt,
            tokens=fitted.tokens,
            facts=facts[: fitted.facts],
            episodes=episodes[: fitted.episodes],
            recent=recent[len(recent) - fitted.recent :],
            left_out=LeftOut(
                facts=len(facts) - fitted.facts,
                episodes=len(episodes) - fitted.episodes,
                recent=len(recent) - fitted.recent,
                last_turn_cut=fitted.last_turn_cut,
                app_memories=UNSET if remembered is None else remembered.left_out,
            ),
            app_memories=UNSET if remembered is None else remembered.memories,
            app_memories_text=UNSET if remembered is None else text,
            injection_point=request.injection_point or UNSET,
        )

    async def search(self, request: SearchMemory) -> Found:
        """Turns or episodes by words and likeness, best first.

        Raises:
            Problem: 403 another tenant's app; 422 neither a user nor a session nor an app is named.
            StoreUnavailable: The store does not answer.
        """
        asked_by = caller()
        if request.user_id is None and request.session_id is None and request.app_id is None:
            raise invalid_field("user_id", "name a user_id, a session_id or an app_id to search in")
        if request.kind == "episodes" and request.session_id is not None:
            raise invalid_field("session_id", "episodes are of a user, across sessions: name a user_id or an app_id")
        scope = Scope(asked_by.apps_of(request.app_id), request.user_id, request.session_id)
        if request.kind == "episodes":
            ranked = await self._search.episodes(request.query, scope, request.top_k)
            return Found(
                episodes=[
                    EpisodeHit(score=score, episode=episode_answer(episode))
                    for episode, score in ranked
                    if asked_by.may_read(episode.app_id)
                ]
            )
        found = await self._search.turns(request.query, scope, request.top_k)
        return Found(turns=[turn_hit(each) for each in found if asked_by.may_read(each.turn.app_id)])

    async def facts(self, request: UserFacts) -> list[FactAnswer]:
        """Facts of a user: active ones first, the most important first.

        Raises:
            Problem: 403 another tenant's app.
        """
        whose = _Whose.asked(request.user_id, request.app_id)
        found = await self._users.facts(
            whose.app_id,
            whose.user_id,
            min_importance=request.min_importance,
            category=request.category,
            include_past=request.include_past,
        )
        return list(map(fact_answer, whose.readable(found)))

    async def episodes(self, user_id: str, app_id: str | None, limit: int) -> list[EpisodeAnswer]:
        """Episodes of a user, the latest first.

        Raises:
            Problem: 403 another tenant's app.
        """
        whose = _Whose.asked(user_id, app_id)
        found = await self._users.episodes(whose.app_id, user_id, limit=limit)
        return list(map(episode_answer, whose.readable(found)))

    async def recent(self, user_id: str, app_id: str | None, last: int) -> list[TurnAnswer]:
        """The last turns of a user across sessions, in order of arrival: the short-term tier.

        Raises:
            Problem: 403 another tenant's app.
        """
        return await self._conversation(_Whose.asked(user_id, app_id), None, last)

    async def standing(self, user_id: str, app_id: str | None) -> StandingAnswer:
        """How far a user's memory is; zeros for one that nothing is known of.

        Raises:
            Problem: 403 another tenant's app.
        """
        whose = _Whose.asked(user_id, app_id)
        found = await self._users.standing(whose.app_id, user_id)
        if found is None or not whose.caller.may_read(found.app_id):
            return StandingAnswer(user_id=user_id, app_id=whose.app_id, known=False)
        return StandingAnswer(
            user_id=found.user_id,
            app_id=found.app_id,
            known=True,
            turn_count=found.turn_count,
            compressed_turns=found.compressed_turns,
            short_term=list(found.short_term),
            facts=found.facts,
            episodes=found.episodes,
        )

    # --- parts

    async def _wait(self, after: After | None) -> None:
        if after is not None:
            await self._waiting.until(after)

    async def _facts(self, whose: _Whose, min_importance: float) -> list[FactAnswer]:
        found = await self._users.facts(whose.app_id, whose.user_id, min_importance=min_importance)
        return list(map(fact_answer, whose.readable(found)))

    async def _near_episodes(self, whose: _Whose, query: str, max_distance: float, top_k: int) -> list[EpisodeAnswer]:
        found = await self._users.find_episodes(
            whose.app_id, whose.user_id, query, max_distance=max_distance, top_k=top_k
        )
        return list(map(episode_answer, whose.readable(found)))

    async def _conversation(self, whose: _Whose, session_id: str | None, last: int) -> list[TurnAnswer]:
        """The last turns of the session or, without one, of the user; never another user's."""
        if last == 0:
            return []
        if session_id is not None:
            said: Sequence[RememberedTurn] = await self._turns.last_turns(session_id, last)
        else:
            standing = await self._users.standing(whose.app_id, whose.user_id)
            said = [] if standing is None else await self._said(standing.short_term[-last:])
        mine = (turn for turn in said if turn.user_id == whose.user_id and whose.app_id in {None, turn.app_id})
        return list(map(turn_answer, whose.readable(mine)))

    async def _said(self, refs: Sequence[TurnRef]) -> list[RememberedTurn]:
        """These turns in their order; those that are not indexed (any more) are left out."""
        by_session = {
            session_id: [ref.turn for ref in group]
            for session_id, group in groupby(sorted(refs, key=_session_of), key=_session_of)
        }
        found = await asyncio.gather(*[self._turns.turns_numbered(*each) for each in by_session.items()])
        turns = {(turn.session_id, turn.turn): turn for each in found for turn in each}
        return [turns[place] for ref in refs if (place := (ref.session_id, ref.turn)) in turns]


def _session_of(ref: TurnRef) -> str:
    return ref.session_id
