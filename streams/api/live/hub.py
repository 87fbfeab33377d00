"""Server-sent events of the live page: changes for all readers, coalesced, at most 20 frames a second.

Readers have no queue. The hub keeps one number for each, its version of the board; when a reader can take more, it gets
the later changes, the latest of each session. A reader that stops reading costs one part of a frame and the socket's
buffer; after `stall_timeout` it is disconnected. A frame is encoded once for all readers with the same version and
apps.
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
"""Size of the cache of encoded frames, which is valid for one tick."""
_RETRY_S = 5
_encode = msgspec.json.Encoder().encode

Apps = frozenset[str] | None
"""Apps that a reader may read; None for all."""


class Frame(NamedTuple):
    """An encoded frame, and the version of the reader after it; empty if no readable app changed."""

    content: bytes
    upto: int
    more: bool


class ReaderPosition(NamedTuple):
    """Position of one reader.

    Attributes:
        knows: Its version of the board.
        began: Version up to which it gets snapshots; earlier removals do not concern it.
        snapshot: Whether it still needs the last snapshot.
        roles: Its version of the roles' health.
    """

    knows: int
    began: int
    snapshot: bool
    roles: int


class Hub:
    """Makes frames and counts readers.

    Args:
        board: Source of the changes.
        settings: Maximum number of readers, and their stall time-out.
        clock: Seconds, monotonic.

    Attributes:
        joined: Set while there are readers.
        ticked: Set if there may be new changes; replaced by a new event at each tick.
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
        """Number of readers."""
        return self._streams.total()

    # --- the ticks

    async def run(self) -> None:
        """Tick while there are readers."""
        while True:
            await self.joined.wait()
            self.tick()
            await asyncio.sleep(TICK_S)

    def tick(self) -> None:
        """Wake all readers if there are new changes."""
        self._forget_gone()
        if self._behind or self._board.version != self._sent_version:
            self._sent_version, self._behind = self._board.version, False
            self._wake()

    def set_roles(self, roles: Sequence[RoleRow]) -> None:
        """Set the roles' health, and send it to all readers."""
        self._roles = tuple(roles)
        self._roles_version += 1
        self._wake()

    def begin(self) -> None:
        """Accept readers (again)."""
        self.ended = False

    def end(self) -> None:
        """End all streams, and accept no more readers."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._frames.clear()
        self._frames_bytes = 0
        woken, self.ticked = self.ticked, asyncio.Event()
        woken.set()

    def _forget_gone(self) -> None:
        """Drop names of sessions removed longer ago than the stall time-out."""
        version, since_s = self._settled
        if self._clock() - since_s > 2 * self.stall_s:
            self._board.forget_gone(version)
            self._settled = self._board.version, self._clock()

    # --- readers

    def require_room(self, token: str) -> None:
        """Refuse a reader above the maximum.

        Args:
            token: Name of the reader's token; empty without tokens.

        Raises:
            Problem: 503.
        """
        most = self._settings.max_streams
        of_token = self._settings.max_streams_per_token or max(1, most // 2)
        if self.ended or self.streams >= most:
            self._refuse(f"{most} live streams are open (live.max_streams): close one")
        if token and self._streams[token] >= of_token:
            self._refuse(f"{of_token} live streams of this token are open (live.max_streams_per_token): close one")

    def _refuse(self, detail: str) -> NoReturn:
        metrics.counter("live_stream_drops_total").inc()
        raise unavailable(detail, code="too_many_streams", retry_after_s=_RETRY_S)

    @contextmanager
    def watching(self, token: str) -> Iterator[ReaderPosition]:
        """Count the reader while the context is open; yields its first position."""
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
        """The next frame of a reader, its position after it, and whether a further frame is ready.

        Returns:
            None if the reader is too far behind and must reconnect.
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
        """The next part, from the cache if another reader had the same in this tick."""
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
