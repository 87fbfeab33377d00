"""Live board of sessions and alerts: the latest of each, put together from events. No I/O, no clock.

| what | rule |
|---|---|
| a profile again, or a turn's point again after a crash | replaces what was there |
| a profile that began at another time | the session has a new life: its spark, modes and segments begin anew |
| more sessions than `max_sessions` | the longest silent go first, those with an unresolved alert last; `gone` is told |
| an erasure | what was written before it vanishes at once, and does not come back when it is read again |

Every change has a version of its own, from 1; who knows everything up to a version is told what came after it. So a
reader that is behind costs a number, not a queue. The names of sessions that are gone are not kept for ever: a reader
that is behind `horizon` must begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from models.events import AlertChanged, ModeTransition, ProfileUpdated, SegmentCompacted
from models.events.erase import EraseRequested
from streams.api.live.known import MOST_ALERTS, KnownAlert, KnownSession
from streams.api.live.messages import AlertRow, Row

_SPARE_RATIO = 0.05
"""Of the sessions, let go together: looking for the longest silent costs a sort."""
_SESSION, _ALERT, _GONE = "session", "alert", "gone"

MayRead = Callable[[str], bool]
"""Whether records of an app may be shown."""


class Page(NamedTuple):
    """What changed between two versions.

    Attributes:
        gone: Names no session that the page has a row or an alert of.
        upto: Whoever has read this knows everything up to this version.
        more: Whether there is more to read at once.
    """

    sessions: list[Row]
    gone: list[str]
    alerts: list[AlertRow]
    upto: int
    more: bool


class LiveBoard:
    """Sessions and alerts as they are now.

    Args:
        max_sessions: Kept at most.

    Attributes:
        version: Of the last change; 0 before the first.
        horizon: Readers that know less than this must begin anew.
    """

    def __init__(self, *, max_sessions: int = 20_000) -> None:
        self.version = 0
        self.horizon = 0
        self._most = max_sessions
        self._sessions: dict[str, KnownSession] = {}
        self._alerts: dict[str, str] = {}
        """Alert → session."""
        self._changed: dict[tuple[str, str], int] = {}
        """Kind and name → version of the last change, in order of versions."""
        self._gone: dict[str, frozenset[str]] = {}
        """Session → apps that were told of it."""
        self._erased: dict[str, int] = {}
        """Session → time of records, ms, up to which nothing counts."""

    def __len__(self) -> int:
        """Sessions that are kept."""
        return len(self._sessions)

    # --- events; `at_ms` is the time of the record

    def take_profile(self, profile: ProfileUpdated, at_ms: int) -> None:
        """A session's profile."""
        found = self._known(profile.session_id, profile.app_id, profile.user_id, at_ms)
        if found is None:
            return
        if found.profile is not None and found.app_id != profile.app_id:
            self._hand_over(profile.session_id, found)
        found.take_profile(profile)
        self._touch(_SESSION, profile.session_id)
        self._make_room()

    def take_alert(self, alert: AlertChanged, at_ms: int, trace_id: str | None = None) -> None:
        """A change of an alert."""
        found = self._known(alert.session_id, alert.app_id, alert.user_id, at_ms)
        if found is None:
            return
        before = found.alerts.pop(alert.alert_id, None)
        found.alerts[alert.alert_id] = KnownAlert(alert, at_ms, trace_id, None if before is None else before.label)
        self._alerts[alert.alert_id] = alert.session_id
        for alert_id in list(found.alerts)[:-MOST_ALERTS]:
            self._drop_alert(found, alert_id)
        self._touch(_ALERT, alert.alert_id)
        self._touch(_SESSION, alert.session_id)
        self._make_room()

    def take_segment(self, segment: SegmentCompacted, at_ms: int) -> None:
        """Turns became a summary, of which only the place is kept; rows do not change by it."""
        found = self._known(segment.session_id, segment.app_id, segment.user_id, at_ms)
        if found is not None:
            found.take_segment(segment)
            self._make_room()

    def take_label(self, alert_id: str, *, escalating: bool) -> None:
        """Somebody says whether an alert was right; one that is not known changes nothing."""
        found = self.alert(alert_id)
        if found is not None:
            found.label = escalating
            self._touch(_ALERT, alert_id)

    def erase_session(self, session_id: str, at_ms: int) -> None:
        """Forget what was written of a session up to this time, also what is read later."""
        self._erased.pop(session_id, None)
        self._erased[session_id] = at_ms
        for name in list(self._erased)[: max(0, len(self._erased) - self._most)]:
            del self._erased[name]
        found = self._sessions.get(session_id)
        if found is None:
            return
        newer = [each for each in found.alerts.values() if each.at_ms > at_ms]
        self._drop(session_id)
        for each in newer:
            self.take_alert(each.event, each.at_ms, each.trace_id)

    def erase(self, request: EraseRequested, at_ms: int) -> None:
        """Forget whom a request names, before it is carried out; that is told session by session."""
        if request.scope == "session":
            self.erase_session(request.session_id, at_ms)
            return
        named = [
            session_id
            for session_id, each in self._sessions.items()
            if request.app_id in ("", each.app_id)
            and (request.scope == "app" or request.user_id == each.user_id)
            and each.at_ms <= at_ms
        ]
        for session_id in named:
            self.erase_session(session_id, at_ms)

    def prune(self, silent_before_ms: int) -> None:
        """Let go of sessions of which no record has told since that time."""
        for session_id in [each for each, known in self._sessions.items() if known.at_ms < silent_before_ms]:
            self._drop(session_id)

    def forget_gone(self, upto: int) -> None:
        """Forget the names of sessions that went up to a version; it becomes the horizon."""
        for name in [each for each in self._gone if self._changed[_GONE, each] <= upto]:
            self._forget(name)

    # --- reading

    def apps(self) -> set[str]:
        """Apps of which a session is known."""
        return {each.app_id for each in self._sessions.values()}

    def row(self, session_id: str) -> Row | None:
        """One session, if its profile is known."""
        found = self._sessions.get(session_id)
        return None if found is None else found.row()

    def modes(self, session_id: str) -> list[ModeTransition]:
        """At which turns the session's mode became what."""
        found = self._sessions.get(session_id)
        return [] if found is None or found.profile is None else list(found.profile.mode_transitions)

    def segments(self, session_id: str) -> list[SegmentCompacted]:
        """The session's segments, without their summaries, in order of turns; none of an app that had it before."""
        found = self._sessions.get(session_id)
        mine = [] if found is None else [each for each in found.segments.values() if each.app_id == found.app_id]
        return sorted(mine, key=lambda each: each.first_turn)

    def alerts(self, session_id: str) -> list[KnownAlert]:
        """The session's alerts, the last that changed last; likewise."""
        found = self._sessions.get(session_id)
        return [] if found is None else found.alerts_of_app()

    def alert(self, alert_id: str) -> KnownAlert | None:
        """One alert."""
        found = self._sessions.get(self._alerts.get(alert_id, ""))
        return None if found is None else found.alerts.get(alert_id)

    def since(self, version: int, may_read: MayRead, most: int, *, upto: int | None = None) -> Page:
        """What changed after a version, the oldest change first, of the apps that may be read.

        Args:
            version: What the reader knows.
            may_read: Whether it is shown an app.
            most: Changes in one page; those of other apps count.
            upto: Nothing that changed last after this version; None: everything.
        """
        end = self.version if upto is None else upto
        names = [entry for entry in self._after(version) if entry[1] <= end]
        sessions, gone, alerts, read = list[Row](), list[str](), list[AlertRow](), version
        for (kind, name), changed in names[::-1][:most]:
            if kind == _GONE:
                if any(map(may_read, self._gone[name])):
                    gone.append(name)
            else:
                alert = self.alert(name) if kind == _ALERT else None
                session_id = name if alert is None else alert.event.session_id
                if session_id in gone:
                    break  # it came again: a page of its own, so that a reader may apply a page in any order
                row = self._sessions[name].row() if kind == _SESSION else None
                if row is not None and may_read(row.app_id):
                    sessions.append(row)
                if alert is not None and may_read(alert.event.app_id):
                    alerts.append(alert.row())
            read = changed
        more = bool(names) and read < names[0][1]
        return Page(sessions, gone, alerts, read if more else end, more)

    def _after(self, version: int) -> Iterator[tuple[tuple[str, str], int]]:
        """Changes after a version, the latest first."""
        for entry in reversed(self._changed.items()):
            if entry[1] <= version:
                return
            yield entry

    # --- parts

    def _known(self, session_id: str, app_id: str, user_id: str, at_ms: int) -> KnownSession | None:
        """The session that an event is of; None if it was erased after the event was written."""
        if at_ms <= self._erased.get(session_id, -1):
            return None
        found = self._sessions.get(session_id)
        if found is None:
            found = self._sessions[session_id] = KnownSession(app_id, user_id)
        found.at_ms = max(found.at_ms, at_ms)
        return found

    def _touch(self, kind: str, name: str) -> None:
        self.version += 1
        self._changed.pop((kind, name), None)
        self._changed[kind, name] = self.version

    def _make_room(self) -> None:
        if len(self._sessions) <= self._most:
            return
        leaving = len(self._sessions) - self._most + int(self._most * _SPARE_RATIO)
        by_silence = sorted(self._sessions, key=lambda each: (self._sessions[each].firing, self._sessions[each].at_ms))
        for session_id in by_silence[:leaving]:
            self._drop(session_id)

    def _drop(self, session_id: str) -> None:
        known = self._sessions.pop(session_id)
        apps = known.apps()
        for alert_id in list(known.alerts):
            self._drop_alert(known, alert_id)
        self._changed.pop((_SESSION, session_id), None)
        self._note_gone(session_id, apps)

    def _hand_over(self, session_id: str, known: KnownSession) -> None:
        """The session is another app's from now on: for who reads the one before it is gone, but for its alerts."""
        self._note_gone(session_id, known.apps())
        for alert_id in known.alerts:
            self._touch(_ALERT, alert_id)

    def _note_gone(self, session_id: str, apps: frozenset[str]) -> None:
        before = self._gone.pop(session_id, frozenset())
        self._gone[session_id] = apps | before
        self._touch(_GONE, session_id)
        for name in list(self._gone)[: max(0, len(self._gone) - self._most)]:
            self._forget(name)

    def _drop_alert(self, known: KnownSession, alert_id: str) -> None:
        del known.alerts[alert_id]
        self._alerts.pop(alert_id, None)
        self._changed.pop((_ALERT, alert_id), None)

    def _forget(self, session_id: str) -> None:
        del self._gone[session_id]
        self.horizon = max(self.horizon, self._changed.pop((_GONE, session_id)))
