"""Access recording: what readers retrieve of projects, written to `commands.v1` in batches (project memory).

An answer never waits for it. What cannot be written is counted, never lost in silence
(`project_accesses_total`): memory forgets a little sooner than it should, and nothing else happens.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import structlog

from models.errors import DeliveryFailed
from models.events import MemoriesAccessed
from models.events.project import MOST_NAMED
from streams.api.apps.messages import now_utc
from streams.api.commands import CommandSender
from streams.observe.telemetry import metrics

log = structlog.get_logger(__name__)

WRITE_AFTER_S = 1.0
"""Longest that an access waits for others of its project."""
MOST_WAITING = 100_000
"""Accesses that wait while the log does not answer; further ones are counted as `refused`."""
CLOSE_WITHIN_S = 5.0
"""What is not written by then is counted as `failed`."""
_TRIES = 2


class AccessRecorder:
    """Collects ids of memories and episodes by project, and sends one `MemoriesAccessed` for up to 1,000 of them.

    Args:
        sender: Writes to the log; None: this role takes no commands, and accesses are counted as `refused`.
        clock: Time of the events, aware UTC.
    """

    def __init__(self, sender: CommandSender | None, *, clock: Callable[[], datetime] = now_utc) -> None:
        self._sender = sender
        self._clock = clock
        self._waiting: dict[tuple[str, str], list[str]] = {}
        self._count = 0
        self._at_once = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def record(self, app_id: str, project_id: str, ids: Iterable[str]) -> None:
        """Note what was retrieved, as often as it is named; within `WRITE_AFTER_S` it is on its way."""
        named = list(ids)
        room = 0 if self._sender is None else MOST_WAITING - self._count
        if refused := len(named[room:]):
            _count("refused", refused)
        if not (taken := named[:room]):
            return
        waiting = self._waiting.setdefault((app_id, project_id), [])
        waiting += taken
        self._count += len(taken)
        if len(waiting) >= MOST_NAMED:
            self._at_once.set()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="project-accesses")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open while accesses are recorded; on leaving, what waits is written, for at most `CLOSE_WITHIN_S`."""
        try:
            yield
        finally:
            self._at_once.set()
            if self._writing is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._writing, CLOSE_WITHIN_S)
            self._at_once.clear()
            if self._count:
                _count("failed", self._count)
                self._waiting, self._count = {}, 0

    async def _write(self) -> None:
        while self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), WRITE_AFTER_S)
            self._at_once.clear()
            waiting, self._waiting, self._count = self._waiting, {}, 0
            unsent = deque(self._commands(waiting))
            try:
                while unsent:
                    await self._send(unsent[0])
                    unsent.popleft()
            except Exception:
                log.exception("project_accesses_not_recorded", accesses=sum(len(command.ids) for command in unsent))
            finally:
                if unsent:
                    _count("failed", sum(len(command.ids) for command in unsent))

    def _commands(self, waiting: Mapping[tuple[str, str], list[str]]) -> Iterator[MemoriesAccessed]:
        now = self._clock()
        for (app_id, project_id), ids in waiting.items():
            for start in range(0, len(ids), MOST_NAMED):
                named = ids[start : start + MOST_NAMED]
                yield MemoriesAccessed(app_id=app_id, project_id=project_id, timestamp=now, ids=named)

    async def _send(self, command: MemoriesAccessed) -> None:
        """Write one, a second time if the log did not confirm it: an access counted twice does less harm than none."""
        if self._sender is None:
            return
        for left in reversed(range(_TRIES)):
            try:
                await self._sender.send(command)
            except DeliveryFailed as error:
                if not left:
                    log.warning("project_accesses_not_recorded", accesses=len(command.ids), reason=str(error))
                    _count("failed", len(command.ids))
            else:
                _count("recorded", len(command.ids))
                return


def _count(result: str, accesses: int) -> None:
    metrics.counter("project_accesses_total", result=result).inc(accesses)
