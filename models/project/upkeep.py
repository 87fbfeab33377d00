"""The scheduled work on a project's memory: consolidation (seed 004, Memory Consolidation), by the log's clock.

One is due when `every` passed since the last ended, or since the project began; each event of the project does a step,
and the memory worker sends `ProjectWorkDue` where nothing else comes. One that somebody asked for is done with its
command as far as one write takes it, and is answered when it is done.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

import msgspec

from models.events import ConsolidationAsked, DeedResult
from models.events.project_items import ConsolidationFigures
from models.policy import Policy
from models.project.consolidation import Consolidation, step
from models.project.episodes import Episodes
from models.project.head import AskedRun
from models.project.learning import Learning
from models.project.outputs import Consolidated, Emission
from models.project.state import ProjectState

_ASKED: Final = "consolidation_asked"
_AT_ONCE: Final = 20


class Upkeep:
    """Consolidations of a project, while one event is folded.

    Args:
        state: The project.
        emission: Hears of what changes.
        learning: Its memories and pending facts.
        episodes: Its episodes.
        policy: The rules.
    """

    def __init__(
        self, state: ProjectState, emission: Emission, learning: Learning, episodes: Episodes, policy: Policy
    ) -> None:
        self._state = state
        self._head = state.head
        self._emission = emission
        self._learning = learning
        self._episodes = episodes
        self._policy = policy.projects

    def asked(self, command: ConsolidationAsked) -> None:
        """Somebody wants one now; one that is under way counts. Of too many that wait for it the latest is refused."""
        if self._head.run is None:
            self._begin("asked")
        if len(self._head.asked) < self._policy.long_term.results:
            self._head.asked.append(AskedRun(command.request_id, command.by))
        else:
            detail = f"{len(self._head.asked)} wait for the consolidation that is under way"
            self._emission.answered(
                _ASKED, command.by, DeedResult(request_id=command.request_id, outcome="too_many", detail=detail)
            )
        while self._head.run is not None and not self._state.is_full:
            self._step(self._head.run)

    def go_on(self) -> None:
        """A step of the one that is due or under way."""
        due = self._state.due
        if self._head.run is None and due is not None and due <= self._emission.now:
            self._begin("scheduled")
        if self._head.run is not None and not self._state.is_full:
            self._step(self._head.run)

    def _begin(self, cause: Literal["scheduled", "asked"]) -> None:
        self._head.runs += 1
        self._head.run = Consolidation(run=self._head.runs, started_at=self._emission.now, cause=cause)

    def _step(self, run: Consolidation) -> None:
        """Look at as many memories as one event may, in pieces, since each may be large."""
        until = run.looked_at + self._policy.consolidation.step_memories
        done = False
        while not done and run.looked_at < until and not self._state.is_full:
            most, now = min(_AT_ONCE, until - run.looked_at), self._emission.now
            done = step(self._state.memories, self._learning.long_term, run, self._policy, now, most)
        if done:
            self._end(run)

    def _end(self, run: Consolidation) -> None:
        """Merge episodes, drop what was pending for long, tell and answer."""
        merged, saved_tokens = self._episodes.merge()
        dropped = self._drop_pending()
        named = self._policy.consolidation.named
        told = Consolidated(
            run=run.run,
            cause=run.cause,
            started_at=run.started_at,
            memories_looked_at=run.looked_at,
            decay_updated=run.decay_updated,
            memories_archived=run.archived,
            archived_ids=run.archived_ids[:named],
            episodes_merged=sum(len(each) - 1 for each in merged),
            merged=merged,
            pending_dropped=dropped,
            tokens_reclaimed=run.tokens_reclaimed + saved_tokens,
        )
        self._emission.consolidated(told)
        self._emission.touch()
        self._head.run, self._head.consolidated_at = None, self._emission.now
        self._head.consolidated = msgspec.convert(told, ConsolidationFigures, from_attributes=True)
        asked, self._head.asked = self._head.asked, []
        count = told.decay_updated + told.memories_archived + told.episodes_merged + told.pending_dropped
        for each in asked:
            result = DeedResult(request_id=each.request_id, outcome="done", count=count)
            self._emission.answered(_ASKED, each.by, result)

    def _drop_pending(self) -> int:
        """Facts that waited too long go: those that came first."""
        oldest = self._emission.now - timedelta(days=self._policy.long_term.pending_days)
        dropped = 0
        for pending_id in self._state.pending.ids():
            kept = self._state.pending.get(pending_id)
            if kept is not None and kept.fact.extracted_at < oldest:
                self._learning.drop(pending_id, "displaced")
                dropped += 1
        return dropped
