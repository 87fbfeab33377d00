"""The app as the index role serves it, without Kafka: it can go away and come back at the same address."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

from msgspec import structs

from models.events import AlertChanged, Mode, ModeTransition, ProfileUpdated, SessionName, Turn
from streams.api.live.hub import Hub
from streams.api.live.messages import Reading
from streams.http.health import Api, serve
from streams.settings.http import TokenRole
from tests.browser import made_up
from tests.support.live_made import segment
from tests.support.live_served import Holders, LiveServed

_WITHIN_S = 30
_HOLDERS: Holders = {
    "operator": (TokenRole.OPERATOR, [], True),
    "blind": (TokenRole.OPERATOR, [], False),
    "tutor": (TokenRole.OPERATOR, ["tutor"], True),
    "reader": (TokenRole.READER, [], True),
}


class _Ticking:
    """The live page while it is served, without what follows Kafka."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._hub.begin()
        ticking = asyncio.create_task(self._hub.run())
        try:
            yield
        finally:
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking

    def end(self) -> None:
        self._hub.end()


class LiveServer:
    """Routes, tokens, board and memories as they are served, on a thread of their own.

    Attributes:
        log: Where acknowledgements and labels go.
    """

    def __init__(self) -> None:
        self._served = LiveServed(_HOLDERS)
        self.log = self._served.log
        self._loop = asyncio.new_event_loop()
        self._page = self._served.page
        self._page.hub.set_roles(made_up.ROLES)
        self._serving: AsyncExitStack | None = None
        self._at_ms = 0
        self._port = 0

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self._port}/live/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._serving:
            self.stop()
        self._run(self._served.store.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def start(self, tokens: Collection[str] = tuple(_HOLDERS)) -> None:
        """Listen, at the address of before if there was one; only these tokens are known."""
        self._run(self._serve(self._served.app(tokens, [_Ticking(self._page.hub)])))

    def stop(self) -> None:
        """Close every stream and the address."""
        assert self._serving
        self._run(self._serving.aclose())
        self._serving = None

    def push(
        self,
        sessions: Iterable[ProfileUpdated] = (),
        alerts: Iterable[AlertChanged] = (),
        gone: Iterable[SessionName] = (),
    ) -> None:
        """What the log says of sessions and alerts; who watches is told."""

        async def take() -> None:
            board, self._at_ms = self._page.board, self._at_ms + 1
            for profile in sessions:
                board.take_profile(profile, self._at_ms)
            for alert in alerts:
                board.take_alert(alert, self._at_ms, f"{hash(alert.alert_id) % 2**64:032x}")
            for each in gone:
                board.erase_session(each, self._at_ms)

        self._run(take())

    def reads(self, reading: Reading) -> None:
        """How far what fills the board has come; who watches is told with the roles' health."""

        async def take() -> None:
            self._page.board.reading = reading
            self._page.hub.set_roles(made_up.ROLES)

        self._run(take())

    def remember(self, profile: ProfileUpdated) -> None:
        """A session with everything that can be remembered of it."""
        self._run(self._remember(profile, list(made_up.said(profile))))

    def forget(self) -> None:
        """Let go of all sessions and of what was written, for the next test."""

        async def prune() -> None:
            self._page.board.prune(self._at_ms + 1)

        self._run(prune())
        self.log.records.clear()
        self.log.answers = True

    # --- parts

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_WITHIN_S)

    async def _serve(self, app: Api) -> None:
        self._serving = AsyncExitStack()
        self._port = await self._serving.enter_async_context(serve(app, port=self._port))

    async def _remember(self, profile: ProfileUpdated, spoken: Sequence[Turn]) -> None:
        await self._served.remember(spoken, made_up.topic(profile), made_up.facts(profile), made_up.episode(profile))
        modes = [ModeTransition(len(spoken) * n // 10, mode) for n, mode in ((4, Mode.WATCH), (5, Mode.CRITICAL))]
        board = self._page.board
        board.take_profile(structs.replace(profile, mode_transitions=modes), self._at_ms)
        for first in range(0, len(spoken) // 2, 10):
            board.take_segment(segment(profile.session_id, first, first + 9, app=profile.app_id), self._at_ms)
