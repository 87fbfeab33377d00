"""App memories at the begin of a prompt, in the source format (app memory, Context Integration)."""

import asyncio
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import structlog

from models.events.app import AppMemoryChanged
from models.policy.app import ANY_APP, AppPolicy
from models.retrieval.context import fit_app_memories, preface_room
from models.retrieval.lexical import by_question
from streams.api.answers import answered
from streams.api.users.messages import AppMemoryAnswer, AssembleContext
from streams.http.problems import invalid_field
from streams.index.app_memory import AppMemoryIndex
from streams.observe.telemetry import metrics

log = structlog.get_logger(__name__)


class Preface(NamedTuple):
    """Memories of an app, as text and one by one, and how many did not fit."""

    text: str
    memories: list[AppMemoryAnswer]
    left_out: int


class AppContext:
    """Chooses the memories that go into a prompt.

    Args:
        memories: As indexed.
        policy: How many, and how long they may be together.
    """

    def __init__(self, memories: AppMemoryIndex, policy: AppPolicy | None = None) -> None:
        self._memories = memories
        self._policy = policy or AppPolicy()

    async def wanted(self, request: AssembleContext, app_id: str | None) -> str | None:
        """The app whose memories a prompt is to begin with; None for no memories.

        They are wanted where the request says so, or names what the prompt is for, and in each prompt of an app that
        was switched so by command, or, where none was given, is of the policy's `inject`. Other prompts stay what they
        were before there were memories of apps.

        Raises:
            Problem: 422, no app is named.
            StoreUnavailable: The store does not answer.
        """
        asked = request.injection_point is not None if request.app_memories is None else request.app_memories
        if asked and app_id is None:
            raise invalid_field("app_id", "is missing: give the app whose memories are requested")
        if asked or app_id is None or request.app_memories is False:
            return app_id if asked else None
        standing = await self._memories.stats(app_id)
        switched = None if standing is None else standing.inject
        always = not {app_id, ANY_APP}.isdisjoint(self._policy.inject) if switched is None else switched
        return app_id if always else None

    async def preface(self, app_id: str | None, user_id: str, query: str, token_budget: int) -> Preface | None:
        """What a prompt begins with: the app's own memories, then those that other apps share with it.

        Where not all have room, those stay that share words with the question, then the most important.

        Args:
            app_id: Whose; None for no memories.
            user_id: Whose prompt it is: the user's own space in the app counts, where there are such.
            query: The question.
            token_budget: Of the whole prompt.

        Returns:
            None where no memories are wanted.

        Raises:
            StoreUnavailable: The store does not answer.
        """
        if app_id is None:
            return None
        found = await self._found(app_id, user_id)
        by_importance = sorted(found, key=lambda memory: -memory.importance)
        fitted = fit_app_memories(
            app_id,
            found,
            by_question(query, by_importance, lambda memory: memory.content),
            most=self._policy.most,
            contents_chars=self._policy.context_chars,
            text_chars=preface_room(token_budget),
        )
        metrics.counter("contexts_total", result="with_memories" if fitted.memories else "without").inc()
        log.debug("app_memories_retrieved", app_id=app_id, memories=len(fitted.memories))
        result = [answered(AppMemoryAnswer, memory) for memory in fitted.memories]
        return Preface(fitted.text, result, len(found) - len(result))

    async def _found(self, app_id: str, user_id: str) -> list[AppMemoryChanged]:
        users = [{"app": "", "user": user_id}[space] for space in self._policy.spaces]
        own, shared = await asyncio.gather(
            asyncio.gather(*[self._memories.memories(app_id, user) for user in users]),
            asyncio.gather(*[self._memories.shared_with(app_id, user) for user in users]),
        )
        # What comes back is looked through once more: no other app's memory that does not name this one.
        mine = [memory for memory in chain.from_iterable(own) if memory.app_id == app_id]
        theirs = [memory for memory in chain.from_iterable(shared) if app_id in memory.shared_with]
        updated = attrgetter("updated_at")
        return sorted(mine, key=updated, reverse=True) + sorted(theirs, key=updated, reverse=True)
