"""Server-sent events of the live page: changes for everybody who watches, coalesced, 20 frames a second at most.

Nobody has a queue. A reader is a number, the version of the board that it knows; when it can take more, it is told what
changed since, the latest of each session. A reader that stops reading costs one piece of a frame and what the socket
holds; after `stall_timeout` it is let go. A frame is encoded once for all that know the same and may read
the same apps.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple, NoReturn

import msgspec

from streams.api.answers import answered
from streams.api.live.board import LiveBoard
from streams.api.live.messages import Changes, GoneSession, RoleRow, Roles, Snapshot
from streams.http.problems import unavailable
from streams.observe.telemetry import metrics
from streams.settings.live import LiveSettings

TICK_S = 0.05
PIECE_CHANGES = 250
"""Changes in one frame: about 150 kB."""
CACHED_BYTES = 8 * 1024 * 1024
"""Of frames that others may need within the tick."""
_RETRY_S = 5
_encode = msgspec.json.Encoder().encode

Apps = frozenset[str] | None
"""Whose rows are read; None for all."""


class Frame(NamedTuple):
    """What is sent, and the version that who got it knows; empty where nothing changed that may be read."""

    content: bytes
    upto: int
    more: bool


class ReaderPosition(NamedTuple):
    """Where one reader is.

    Attributes:
        knows: The board's version.
        began: The version up to which it is told in snapshots; nothing that went before matters to it.
        snapshot: Whether the last of these is still to come.
        roles: Version of the roles' health.
    """

    knows: int
    began: int
    snapshot: bool
    roles: int


class Hub:
    """Makes frames, and counts who gets them.

    Args:
        board: What is told.
        settings: How many may watch, and how long one may stall.
        clock: Seconds, never going back.

    Attributes:
        joined: Set while somebody watches.
        ticked: Set when there may be something that nobody has been told before now; another one then follows.
    """

    def __init__(self, board: LiveBoard, settings: LiveSettings, *, clock: Callable[[], float] = monotonic) -> None:
        self.stall_s = settings.stall_timeout.total_seconds()
        self.ended = False
        self._board = board
        self._settings = settings
        self._clock = clock
        self._streams = Counter[str]()
        self._sent_version = 0
        self._behind = False
        self._roles: tuple[RoleRow, ...] = ()
        self._roles_version = 0
        self.ticked = asyncio.Event()
        self.joined = asyncio.Event()
        self._frames: dict[tuple[Apps, int, bool], Frame] = {}
        self._frames_bytes = 0
        self._settled = (0, clock())

    @property
    def streams(self) -> int:
        """How many watch now."""
        return self._streams.total()

    # --- the ticks

    async def run(self) -> None:
        """Tick while somebody watches."""
        while True:
            await self.joined.wait()
            self.tick()
            await asyncio.sleep(TICK_S)

    def tick(self) -> None:
        """Let everybody know if there is something new."""
        self._forget_gone()
        if self._behind or self._board.version != self._sent_version:
            self._sent_version, self._behind = self._board.version, False
            self._wake()

    def set_roles(self, roles: Sequence[RoleRow]) -> None:
        """Note the roles' health; everybody is told."""
        self._roles = tuple(roles)
        self._roles_version += 1
        self._wake()

    def begin(self) -> None:
        """Let readers in (again)."""
        self.ended = False

    def end(self) -> None:
        """End all streams; nobody is let in any more."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._frames.clear()
        self._frames_bytes = 0
        woken, self.ticked = self.ticked, asyncio.Event()
        woken.set()

    def _forget_gone(self) -> None:
        """Forget names of sessions that went longer ago than anybody may stall."""
        version, since_s = self._settled
        if self._clock() - since_s > 2 * self.stall_s:
            self._board.forget_gone(version)
            self._settled = self._board.version, self._clock()

    # --- readers

    def require_room(self, token: str) -> None:
        """Refuse one reader too many.

        Args:
            token: Name of the reader's; empty where none are asked for.

        Raises:
            Problem: 503.
        """
        most = self._settings.max_streams
        of_token = self._settings.max_streams_per_token or max(1, most // 2)
        if self.ended or self.streams >= most:
            self._refuse(f"{most} pages are open already (live.max_streams)")
        if token and self._streams[token] >= of_token:
            self._refuse(f"{of_token} pages of this token are open already (live.max_streams_per_token)")

    def _refuse(self, detail: str) -> NoReturn:
        metrics.counter("live_stream_drops_total").inc()
        raise unavailable(detail, code="too_many_streams", retry_after_s=_RETRY_S)

    @contextmanager
    def watching(self, token: str) -> Iterator[ReaderPosition]:
        """Be counted while the context is open; yields where to begin."""
        self._count(token, +1)
        self.joined.set()
        try:
            yield ReaderPosition(knows=0, began=self._board.version, snapshot=True, roles=self._roles_version)
        finally:
            self._count(token, -1)
            if not self.streams:
                self.joined.clear()

    def _count(self, token: str, more: int) -> None:
        self._streams[token] += more
        metrics.gauge("live_streams").set(self.streams)

    def next(self, at: ReaderPosition, apps: Apps) -> tuple[ReaderPosition, bytes, bool] | None:
        """What the reader is to be sent now, where it is then, and whether to ask again at once.

        Returns:
            None if the reader is too far behind: it must connect again.
        """
        if self._board.horizon > max(at.knows, at.began):
            return None
        if not at.snapshot and at.roles < self._roles_version:
            content = _event("roles", Roles(roles=list(self._roles), reading=self._board.reading), at.knows)
            return at._replace(roles=self._roles_version), content, True
        frame = self._frame(at, apps)
        if at.snapshot:
            return at._replace(knows=frame.upto, snapshot=frame.more), frame.content, True
        self._behind = self._behind or frame.more
        return at._replace(knows=frame.upto), frame.content, False

    def _frame(self, at: ReaderPosition, apps: Apps) -> Frame:
        """The next piece; one that somebody else was given in this tick need not be made again."""
        key = apps, at.knows, at.snapshot
        made = self._frames.get(key)
        if made is not None and not (at.snapshot and (made.upto > at.began or not made.more)):
            return made
        may_read = (lambda _: True) if apps is None else apps.__contains__
        page = self._board.since(at.knows, may_read, PIECE_CHANGES, upto=at.began if at.snapshot else None)
        event: Snapshot | Changes
        if at.snapshot:
            roles = list(self._roles) if at.knows == 0 else []
            event = Snapshot(
                sessions=page.sessions, alerts=page.alerts, roles=roles, reading=self._board.reading, more=page.more
            )
        else:
            event = Changes(
                sessions=page.sessions,
                gone=[each.session_id for each in page.gone],
                gone_sessions=[answered(GoneSession, each) for each in page.gone],
                alerts=page.alerts,
            )
        empty = not (at.snapshot or page.sessions or page.gone or page.alerts)
        content = b"" if empty else _event("snapshot" if at.snapshot else "changes", event, page.upto)
        made = Frame(content, page.upto, page.more)
        if self._frames_bytes + len(content) <= CACHED_BYTES:
            self._frames[key] = made
            self._frames_bytes += len(content)
        return made


def _event(name: str, data: msgspec.Struct, number: int) -> bytes:
    """One server-sent event; JSON has no line breaks."""
    return b"event: %s\nid: %d\ndata: %s\n\n" % (name.encode(), number, _encode(data))
