"""Reading users' memory: routes of retrieval, the whole prompt, search and look-ups, which the MCP tools call too.

A user id may hold slashes, so the routes that end in a fixed word come first; who has a user called like one of them
asks for its standing by `/standing`.

Everything is read for the caller of the request (`streams.http.security`): an app that is not the caller's is refused,
the stores below give only the caller's apps (`streams.api.assembly.ScopedStore`), and what comes back is looked through
once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

from msgspec import UNSET, Meta

from models.events import SessionName, UserMemoryChanged
from models.events.user import MemoryMode
from models.policy.retrieval import PromptPolicy
from models.retrieval.context import fit_prompt, format_for_injection
from models.retrieval.lexical import by_question
from streams.api.answers import answered
from streams.api.apps.context import AppContext
from streams.api.sessions.turns import Waiting, is_visible, session_of
from streams.api.users import messages
from streams.api.users.freshness import HEADERS, MemoryProgress, OfAnApp, Standing
from streams.api.users.prompt_turns import PromptTurns
from streams.http.limits import extend_deadline
from streams.http.problems import invalid_field
from streams.http.route import Group, RouteAnswer
from streams.http.security import Caller, caller
from streams.index.between import ALWAYS, Between
from streams.index.collections import RememberedTurn
from streams.index.hybrid_search import HybridSearch, Scope
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory, of_user

_USERS = Group("memory", "Memory of users: facts, episodes, turns and search.", prefix="/v1")
CONTEXT_MIN_IMPORTANCE = 0.5
"""Of facts that go into a prompt (user memory, stage 1)."""
CONTEXT_EPISODES = 3
"""Episodes that a prompt has at most (user memory, stage 2)."""
MOST_READING = 8
"""Retrievals that are worked on at once; further ones wait in order of arrival, and take no time of them."""


_Record = TypeVar("_Record", bound=OfAnApp)


def _mode(stands: UserMemoryChanged | None) -> MemoryMode:
    return MemoryMode.ACTIVE if stands is None else stands.memory_mode


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
        episode_distance: Cosine distance up to which an episode matters: the embedder's own.
        apps: Memories of apps for prompts.
        policy: What a prompt is filled with, and how near an episode must be where not the embedder says it.
        at_end: Whether the logs are read to their end; None: it cannot be told here.

    Attributes:
        waiting: Holds requests back until a turn is visible.
    """

    def __init__(
        self,
        users: UserMemory,
        turns: SessionVectorMemory,
        search: HybridSearch,
        *,
        episode_distance: float,
        apps: AppContext,
        policy: PromptPolicy | None = None,
        at_end: Callable[[], bool | None] = lambda: None,
    ) -> None:
        self._users = users
        self._turns = turns
        self._search = search
        self.waiting = Waiting(partial(is_visible, turns, users))
        self._places = asyncio.Semaphore(MOST_READING)
        self._policy = policy or PromptPolicy()
        by_policy = self._policy.episode_distance
        self._episode_distance = episode_distance if by_policy is None else by_policy
        self._apps = apps
        self._progress = MemoryProgress(turns, users, at_end)
        self._prompt_turns = PromptTurns(search, turns, self._policy)

    @_USERS.post("/retrieve", "retrieve_memory", audits="text_read")
    async def retrieve(self, body: messages.Retrieve) -> messages.Retrieved:
        """Return a user's facts and episodes relevant to a question, and both as text for a prompt."""
        whose = _Whose.asked(body.user_id, body.app_id)
        await self._wait(body.after, whose.app_id)
        async with self._places:
            distance = self._episode_distance if body.max_distance is None else body.max_distance
            standing = asyncio.ensure_future(self._progress.with_stats(whose.app_id, whose.user_id))
            apps = await self._searched(whose, standing)
            stands, facts, episodes = await asyncio.gather(
                standing,
                self._facts(whose, body.min_importance),
                self._near_episodes(whose, apps, body.query, distance, body.top_k_episodes),
            )
            facts, episodes = stands.told(facts), stands.told(episodes)
            injection = format_for_injection(facts, episodes) if body.format else None
            return messages.Retrieved(
                structured_facts=facts,
                episodic_context=episodes,
                injection=injection,
                memory_mode=_mode(stands.user),
                **stands.fresh._asdict(),
            )

    @_USERS.post("/context", "assemble_context", audits="text_read")
    async def context(self, body: messages.AssembleContext) -> messages.AssembledContext:
        """Build the prompt for a question within a token budget: facts first, then the last turns, then episodes.

        The rest of the budget is filled with other turns of the user that are relevant to the question and with their
        neighbours, each with its time, newest last. Memories of the app, if requested, come before everything else.

        Raises:
            Problem: 422 memories of no app in particular, or no such time.
        """
        whose, window = _Whose.asked(body.user_id, body.app_id), messages.between(body.since, body.until)
        wanted = await self._apps.wanted(body, whose.app_id)
        await self._wait(body.after, whose.app_id)
        async with self._places:
            standing = asyncio.ensure_future(self._progress.with_stats(whose.app_id, whose.user_id))
            apps = await self._searched(whose, standing)
            stands, remembered, facts, episodes, recent, hits = await asyncio.gather(
                standing,
                self._apps.preface(wanted, whose.user_id, body.query, body.token_budget),
                self._facts(whose, CONTEXT_MIN_IMPORTANCE),
                self._near_episodes(whose, apps, body.query, self._episode_distance, CONTEXT_EPISODES, between=window),
                self._conversation(whose, body.session_id, body.recent_turns, standing),
                self._prompt_turns.search(body, apps, window),
            )
            remembered = None if wanted in stands.off else remembered
            episodes = stands.told(episodes)
            recent = recent if body.session_id is not None else stands.told(recent)
            facts = by_question(body.query, stands.told(facts), lambda fact: f"{fact.key} {fact.value}")
            heard = [hit for hit in hits if hit.turn.app_id not in stands.off]
            found = await self._prompt_turns.beside(body, apps, window, heard, recent)
            text = "" if remembered is None else remembered.text
            fitted = fit_prompt(
                facts,
                episodes,
                recent,
                token_budget=body.token_budget,
                preface=text,
                found=[turn for turn, _, _ in found],
                found_chars=self._policy.turn_chars,
            )
            return messages.AssembledContext(
                prompt=fitted.prompt,
                tokens=fitted.tokens,
                facts=facts[: fitted.facts],
                episodes=episodes[: fitted.episodes],
                recent=recent[len(recent) - fitted.recent :],
                found=[
                    messages.ContextTurn(
                        score=score, turn=answered(messages.TurnAnswer, turn), is_neighbour=is_neighbour
                    )
                    for turn, score, is_neighbour in found[: fitted.found]
                ],
                left_out=messages.LeftOut(
                    facts=len(facts) - fitted.facts,
                    episodes=len(episodes) - fitted.episodes,
                    recent=len(recent) - fitted.recent,
                    found=len(found) - fitted.found,
                    last_turn_cut=fitted.last_turn_cut,
                    app_memories=UNSET if remembered is None else remembered.left_out,
                ),
                app_memories=UNSET if remembered is None else remembered.memories,
                app_memories_text=UNSET if remembered is None else text,
                injection_point=body.injection_point or UNSET,
                memory_mode=_mode(stands.user),
                **stands.fresh._asdict(),
            )

    @_USERS.post("/search", "search_memory", audits="text_read")
    async def search(self, body: messages.SearchMemory) -> messages.Found:
        """Search turns or episodes of a user, a session or an app by words and similarity, best match first.

        Does not count as an access: only project memory records accesses.

        Raises:
            Problem: 422 neither a user nor a session nor an app is named, or no such time.
        """
        asked_by = caller()
        if body.user_id is None and body.session_id is None and body.app_id is None:
            raise invalid_field("user_id", "is missing: give user_id, session_id or app_id to search in")
        if body.kind == "episodes" and body.session_id is not None:
            raise invalid_field("session_id", "does not select episodes, which span sessions: give user_id or app_id")
        apps = asked_by.apps_of(body.app_id)
        if body.session_id is not None:
            apps = ((await session_of(self._turns, body.session_id, body.app_id)).app_id,)
        async with self._places:
            scope = Scope(apps, body.user_id, body.session_id, messages.between(body.since, body.until))
            stands = await self._progress.of_scope(scope, asked_by.app_of(body.app_id))
            fresh = stands.fresh._asdict()
            if _mode(stands.user) is MemoryMode.OFF:
                return messages.Found(**fresh)
            scope = replace(scope, app_ids=stands.searched(apps))
            if body.kind == "episodes":
                ranked = await self._search.episodes(body.query, scope, body.top_k)
                return messages.Found(
                    episodes=[
                        messages.EpisodeHit(score=score, episode=messages.episode_answer(episode))
                        for episode, score in ranked
                        if asked_by.may_read(episode.app_id) and episode.app_id not in stands.off
                    ],
                    **fresh,
                )
            found = await self._search.turns(body.query, scope, body.top_k)
            hits = [
                messages.TurnHit(
                    score=each.score,
                    turn=answered(messages.TurnAnswer, each.turn),
                    signals={**each.signals} if body.explain and each.signals else None,
                )
                for each in found
                if asked_by.may_read(each.turn.app_id) and each.turn.app_id not in stands.off
            ]
            return messages.Found(turns=hits, **fresh)

    @_USERS.get("/users/{user_id:path}/facts", "list_user_facts", audits="text_read", headers=HEADERS)
    async def facts(self, asked: messages.UserFacts) -> RouteAnswer[list[messages.FactAnswer]]:
        """List the facts of a user, active facts first, most important first."""
        whose = _Whose.asked(asked.user_id, asked.app_id)
        stands = await self._progress.with_stats(whose.app_id, whose.user_id)
        found = await self._users.facts(
            whose.app_id, whose.user_id, category=asked.category, include_past=asked.include_past
        )
        return RouteAnswer(
            [answered(messages.FactAnswer, each) for each in whose.readable(found)], stands.fresh.headers
        )

    @_USERS.get("/users/{user_id:path}/episodes", "list_user_episodes", audits="text_read", headers=HEADERS)
    async def episodes(
        self,
        asked: messages.OfUser,
        *,
        limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of items.")] = 20,
    ) -> RouteAnswer[list[messages.EpisodeAnswer]]:
        """List the episodes of a user, latest first."""
        whose = _Whose.asked(asked.user_id, asked.app_id)
        stands = await self._progress.with_stats(whose.app_id, whose.user_id)
        found = await self._users.episodes(whose.app_id, whose.user_id, limit=limit)
        return RouteAnswer(list(map(messages.episode_answer, whose.readable(found))), stands.fresh.headers)

    @_USERS.get("/users/{user_id:path}/recent", "list_recent_turns", audits="text_read", headers=HEADERS)
    async def recent(
        self,
        asked: messages.OfUser,
        *,
        last: Annotated[int, Meta(ge=1, le=messages.MAX_RECENT, description="Maximum number of items.")] = 10,
    ) -> RouteAnswer[list[messages.TurnAnswer]]:
        """List the last turns of a user across sessions, in order of arrival: the short-term tier."""
        whose = _Whose.asked(asked.user_id, asked.app_id)
        stands = await self._progress.with_stats(whose.app_id, whose.user_id)
        return RouteAnswer(await self._last_said(whose, stands.user, last), stands.fresh.headers)

    @_USERS.get("/users/{user_id:path}/standing", "get_user_standing", "/users/{user_id:path}")
    async def stats(self, asked: messages.OfUser) -> messages.StandingAnswer:
        """Return counts of a user's turns, facts and episodes, and the short-term turns; zeros for an unknown user."""
        whose = _Whose.asked(asked.user_id, asked.app_id)
        fresh, found, *_ = await self._progress.with_stats(whose.app_id, whose.user_id)
        turns = await self._turns.count(of_user(whose.app_id if found is None else found.app_id, whose.user_id))
        if found is None:
            return messages.StandingAnswer(user_id=whose.user_id, app_id=whose.app_id, turns=turns, **fresh._asdict())
        said = messages.turn_refs(found.short_term)
        return answered(messages.StandingAnswer, found, turns=turns, short_term=said, **fresh._asdict())

    # --- parts

    async def _wait(self, after: messages.After | None, app_id: str | None) -> None:
        if after is not None:
            extend_deadline(after.timeout_ms / 1_000)  # what a caller waits for is none of the time an answer may take
            await self.waiting.until(after, app_id)

    async def _facts(self, whose: _Whose, min_importance: float) -> list[messages.FactAnswer]:
        found = await self._users.facts(whose.app_id, whose.user_id, min_importance=min_importance)
        return [answered(messages.FactAnswer, each) for each in whose.readable(found)]

    async def _searched(self, whose: _Whose, standing: Awaitable[Standing]) -> tuple[str, ...] | None:
        """Apps that are looked through for the best: of several, None for all, not those whose memory is off."""
        apps = whose.caller.apps_of(whose.app_id)
        return apps if apps is not None and len(apps) == 1 else (await standing).searched(apps)

    async def _near_episodes(
        self,
        whose: _Whose,
        apps: tuple[str, ...] | None,
        query: str,
        max_distance: float,
        top_k: int,
        *,
        between: Between = ALWAYS,
    ) -> list[messages.EpisodeAnswer]:
        found = await self._users.find_episodes(
            apps, whose.user_id, query, max_distance=max_distance, top_k=top_k, between=between
        )
        mine = [each for each in found if whose.caller.may_read(each[0].app_id)]
        return [messages.episode_answer(episode, distance) for episode, distance in mine]

    async def _conversation(
        self, whose: _Whose, session_id: str | None, last: int, standing: Awaitable[Standing]
    ) -> list[messages.TurnAnswer]:
        """The last turns of the session or, without one, of the user; never another user's."""
        if last == 0:
            return []
        if session_id is None:
            return await self._last_said(whose, (await standing).user, last)
        session = await session_of(self._turns, session_id, whose.app_id)
        return self._of_user(whose, await self._turns.last_turns(session, last))

    async def _last_said(self, whose: _Whose, stats: UserMemoryChanged | None, last: int) -> list[messages.TurnAnswer]:
        """The last turns of the user, without those not indexed (any more); `last` is 1 at least."""
        if stats is None:
            return []
        places = [(SessionName(stats.app_id, ref.session_id), ref.turn) for ref in messages.turn_refs(stats.short_term)]
        turns = await self._turns.turns_at(stats.user_id, places[-last:])
        return self._of_user(whose, [turns[place] for place in places if place in turns])

    @staticmethod
    def _of_user(whose: _Whose, said: Iterable[RememberedTurn]) -> list[messages.TurnAnswer]:
        mine = (turn for turn in said if turn.user_id == whose.user_id and whose.app_id in {None, turn.app_id})
        return [answered(messages.TurnAnswer, each) for each in whose.readable(mine)]
