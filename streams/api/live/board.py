"""Live board of sessions and alerts: the latest state of each, from events. No I/O, no clock.

| case | rule |
|---|---|
| the same session id in two apps | two sessions |
| a repeated profile or risk point, after a crash | replaces the earlier one |
| a profile with another start | a new session of this id: its risk line, modes and segments are reset |
| more sessions than `max_sessions` | the longest inactive go first, those with an open alert last; see `gone` |
| an erasure | earlier records are removed at once, and ignored when they are read again |

Every change has a version, from 1; a reader that knows a version gets the later changes. So a slow reader needs one
number and no queue. The board keeps the names of removed sessions only for a time: a reader below `horizon` must start
again.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from models.errors import AmbiguousApp
from models.events import AlertChanged, ModeTransition, ProfileUpdated, SegmentCompacted, SessionName, app_meant
from models.events.erase import EraseRequested
from streams.api.live.known import MOST_ALERTS, MOST_NOTES, KnownAlert, KnownSession
from streams.api.live.messages import AlertNote, AlertRow, Reading, Row

_SPARE_RATIO = 0.05
"""Share of sessions that are removed together, since finding the longest inactive ones needs a sort."""
_SESSION, _ALERT, _GONE = "session", "alert", "gone"
_Change = tuple[str, SessionName | str]
"""Kind of the change, and the session or the alert's id."""

MayRead = Callable[[str], bool]
"""Whether records of an app may be shown."""


class Page(NamedTuple):
    """Changes between two versions.

    Attributes:
        gone: Removed sessions; none of them has a row or an alert in the page.
        upto: Version that a reader has after this page.
        more: Whether a further page exists.
    """

    sessions: list[Row]
    gone: list[SessionName]
    alerts: list[AlertRow]
    upto: int
    more: bool


class LiveBoard:
    """Current sessions and alerts.

    Args:
        max_sessions: Maximum number of sessions.

    Attributes:
        version: Version of the last change; 0 before the first.
        horizon: Readers below this version must start again.
        reading: Progress of the reader of the logs.
    """

    def __init__(self, *, max_sessions: int = 20_000) -> None:
        self.version = 0
        self.horizon = 0
        self.reading = Reading()
        self._most = max_sessions
        self._sessions: dict[SessionName, KnownSession] = {}
        self._alerts: dict[str, SessionName] = {}
        """Alert → session."""
        self._changed: dict[_Change, int] = {}
        """Changed object → version of its last change, in order of versions."""
        self._gone: dict[SessionName, None] = {}
        self._erased: dict[SessionName, int] = {}
        """Session → time in ms; earlier records of it are ignored."""

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self._sessions)

    # --- events; `at_ms` is the time of the record

    def take_profile(self, profile: ProfileUpdated, at_ms: int) -> None:
        """Apply a session's profile."""
        if (found := self._known(session := _session_of(profile), profile.user_id, at_ms)) is not None:
            found.take_profile(profile)
            self._touch(_SESSION, session)
            self._make_room()

    def take_alert(self, alert: AlertChanged, at_ms: int, trace_id: str | None = None) -> None:
        """Apply a change of an alert; the cause `erased` removes it, even if the erasure itself is not read yet."""
        if alert.cause == "erased":
            if (of := self._alerts.get(alert.alert_id)) is not None:
                self._drop_alert(self._sessions[of], alert.alert_id)
                self._touch(_SESSION, of)
            return
        if (found := self._known(session := _session_of(alert), alert.user_id, at_ms)) is None:
            return
        before = found.alerts.pop(alert.alert_id, None)
        found.alerts[alert.alert_id] = KnownAlert(
            alert, at_ms, trace_id, *((None,) if before is None else (before.label, before.notes))
        )
        self._alerts[alert.alert_id] = session
        for alert_id in list(found.alerts)[:-MOST_ALERTS]:
            self._drop_alert(found, alert_id)
        self._touch(_ALERT, alert.alert_id)
        self._touch(_SESSION, session)
        self._make_room()

    def take_segment(self, segment: SegmentCompacted, at_ms: int) -> None:
        """Apply a segment, of which only the turn range is kept; rows do not change."""
        if (found := self._known(_session_of(segment), segment.user_id, at_ms)) is not None:
            found.take_segment(segment)
            self._make_room()

    def take_label(self, alert_id: str, *, escalating: bool) -> None:
        """Apply a label of an alert; unknown alerts are ignored."""
        found = self.alert(alert_id)
        if found is not None:
            found.label = escalating
            self._touch(_ALERT, alert_id)

    def take_note(self, alert_id: str, note: AlertNote) -> None:
        """Apply a note to an alert; repeats are ignored."""
        found = self.alert(alert_id)
        if found is not None and note not in found.notes:
            found.notes = [*found.notes, note][-MOST_NOTES:]

    def erase_session(self, session: SessionName, at_ms: int) -> None:
        """Remove records of a session up to this time, also ones that are read later.

        Without an app, as in events of earlier releases, the sessions of all apps.
        """
        self._erased.pop(session, None)
        self._erased[session] = at_ms
        for name in list(self._erased)[: max(0, len(self._erased) - self._most)]:
            del self._erased[name]
        for each in [session] if session.app_id else self._of_any_app(session.session_id):
            if (found := self._sessions.get(each)) is not None:
                newer = [alert for alert in found.alerts.values() if alert.at_ms > at_ms]
                self._drop(each)
                for alert in newer:
                    self.take_alert(alert.event, alert.at_ms, alert.trace_id)

    def erase(self, request: EraseRequested, at_ms: int) -> None:
        """Remove the subject of a request before it is carried out; later events name each session."""
        if request.scope == "session":
            self.erase_session(SessionName(request.app_id, request.session_id), at_ms)
            return
        named = [
            session
            for session, each in self._sessions.items()
            if request.app_id in ("", session.app_id)
            and (request.scope == "app" or request.user_id == each.user_id)
            and each.at_ms <= at_ms
        ]
        for session in named:
            self.erase_session(session, at_ms)

    def prune(self, silent_before_ms: int) -> None:
        """Remove sessions without a record since that time."""
        for session in [each for each, known in self._sessions.items() if known.at_ms < silent_before_ms]:
            self._drop(session)

    def forget_gone(self, upto: int) -> None:
        """Drop the names of sessions removed up to a version, which becomes the horizon."""
        for session in [each for each in self._gone if self._changed[_GONE, each] <= upto]:
            self._forget(session)

    # --- reading

    def apps(self) -> set[str]:
        """Apps with a known session."""
        return {each.app_id for each in self._sessions}

    def named(self, session_id: str, may_read: MayRead) -> SessionName | None:
        """The session of an id without an app: the default app's, else the only one; None for none.

        Raises:
            AmbiguousApp: Several other apps have a session of this id.
        """
        apps = [each.app_id for each in self._of_any_app(session_id) if may_read(each.app_id)]
        if not apps:
            return None
        if (app_id := app_meant(apps)) is None:
            raise AmbiguousApp("several apps have a session of this id: give app_id")
        return SessionName(app_id, session_id)

    def row(self, session: SessionName) -> Row | None:
        """One session, if its profile is known."""
        found = self._sessions.get(session)
        return None if found is None else found.row()

    def modes(self, session: SessionName) -> list[ModeTransition]:
        """Mode changes of the session, with their turns."""
        found = self._sessions.get(session)
        return [] if found is None or found.profile is None else list(found.profile.mode_transitions)

    def segments(self, session: SessionName) -> list[SegmentCompacted]:
        """The session's segments, without their summaries, in order of turns."""
        found = self._sessions.get(session)
        return [] if found is None else sorted(found.segments.values(), key=lambda each: each.first_turn)

    def alerts(self, session: SessionName) -> list[KnownAlert]:
        """The session's alerts, latest change last."""
        found = self._sessions.get(session)
        return [] if found is None else list(found.alerts.values())

    def alert(self, alert_id: str) -> KnownAlert | None:
        """One alert."""
        session = self._alerts.get(alert_id)
        return None if session is None else self._sessions[session].alerts.get(alert_id)

    def since(self, version: int, may_read: MayRead, most: int, *, upto: int | None = None) -> Page:
        """Changes after a version in readable apps, oldest first.

        Args:
            version: Version that the reader has.
            may_read: Whether the reader may see an app.
            most: Maximum number of changes in a page, counting those of other apps.
            upto: Only objects whose last change is at or below this version; None: all.
        """
        end = self.version if upto is None else upto
        names = [entry for entry in self._after(version) if entry[1] <= end]
        sessions, gone, alerts, read = list[Row](), list[SessionName](), list[AlertRow](), version
        for (kind, name), changed in names[::-1][:most]:
            session = name if isinstance(name, SessionName) else self._alerts[name]
            if kind != _GONE and session in gone:
                break  # it came again: a page of its own, so that a reader may apply a page in any order
            read = changed
            if not may_read(session.app_id):
                continue
            if kind == _GONE:
                gone.append(session)
            elif isinstance(name, SessionName):
                sessions += filter(None, [self._sessions[name].row()])
            else:
                alerts.append(self._sessions[session].alerts[name].row())
        more = bool(names) and read < names[0][1]
        return Page(sessions, gone, alerts, read if more else end, more)

    def _after(self, version: int) -> Iterator[tuple[_Change, int]]:
        """Changes after a version, latest first."""
        for entry in reversed(self._changed.items()):
            if entry[1] <= version:
                return
            yield entry

    # --- parts

    def _known(self, session: SessionName, user_id: str, at_ms: int) -> KnownSession | None:
        """The session of an event; None if it was erased after the event was written."""
        if any(at_ms <= self._erased.get(each, -1) for each in (session, session._replace(app_id=""))):
            return None
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = KnownSession(user_id)
        found.at_ms = max(found.at_ms, at_ms)
        return found

    def _of_any_app(self, session_id: str) -> list[SessionName]:
        return [each for each in self._sessions if each.session_id == session_id]

    def _touch(self, kind: str, name: SessionName | str) -> None:
        self.version += 1
        self._changed.pop((kind, name), None)
        self._changed[kind, name] = self.version

    def _make_room(self) -> None:
        if len(self._sessions) <= self._most:
            return
        leaving = len(self._sessions) - self._most + int(self._most * _SPARE_RATIO)
        by_silence = sorted(self._sessions, key=lambda each: (self._sessions[each].firing, self._sessions[each].at_ms))
        for session in by_silence[:leaving]:
            self._drop(session)

    def _drop(self, session: SessionName) -> None:
        known = self._sessions.pop(session)
        for alert_id in list(known.alerts):
            self._drop_alert(known, alert_id)
        self._changed.pop((_SESSION, session), None)
        self._gone.pop(session, None)
        self._gone[session] = None
        self._touch(_GONE, session)
        for name in list(self._gone)[: max(0, len(self._gone) - self._most)]:
            self._forget(name)

    def _drop_alert(self, known: KnownSession, alert_id: str) -> None:
        del known.alerts[alert_id]
        self._alerts.pop(alert_id, None)
        self._changed.pop((_ALERT, alert_id), None)

    def _forget(self, session: SessionName) -> None:
        del self._gone[session]
        self.horizon = max(self.horizon, self._changed.pop((_GONE, session)))


def _session_of(event: ProfileUpdated | AlertChanged | SegmentCompacted) -> SessionName:
    return SessionName(event.app_id, event.session_id)
