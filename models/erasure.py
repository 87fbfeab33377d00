"""Subjects of an erasure, and the rule for which records belong to them: the same for topics, state and archive.

A record belongs to the subject if it names a session, user or app of the subject, or if it is *tied* to a result of
them: a compaction lists texts of memories by number, an answer names its request, a fact its earlier values, an edit a
project's memory. `follow` collects the ties; the archive does the same in SQL (`streams.archive.erasing`), and a test
compares the two.

Session ids are unique only within an app, so records of another app's session with the same id do not belong to the
subject. Two kinds of records may have no app. Control events of earlier releases belong to the default app's session,
or else to the only session with their id (`sessions_of`); if several apps have one, they belong to no subject and stay.
Dead letters without an app belong to the default app.

A project item from several sessions belongs to the subject as long as it names one of the subject's sessions. After the
fold has removed the subject's part, it emits the item again, and that record belongs to the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec import Struct

from models import events
from models.entities import REGISTRY, entity_key
from models.events.base import DEFAULT_APP, SessionName, key_part, session_key
from models.events.erase import EraseScope
from models.events.fields import named_in
from models.project.mentions import mentions

TIED_FACTS = ("stored", "updated")
"""Causes with which a fact's value comes from its session; a session that confirms a fact is not its origin."""

APP_FIELD = b'"app_id"'
SESSION_PREFIX = b"session:"
"""Prefix of session keys that contain the app."""
_TO_ITS_VALUE = rb"[ \t\n\r]*:[ \t\n\r]*"


def digest(scope: EraseScope, app_id: str = "", user_id: str = "", session_id: str = "") -> str:
    r"""Pseudonym of a subject in the proof: SHA-256 of the four names, each after a zero byte.

    >>> digest("user", "shop", "anna") == sha256(b"\0user\0shop\0anna\0").hexdigest()
    True
    """
    return sha256("".join(f"\0{name}" for name in (scope, app_id, user_id, session_id)).encode()).hexdigest()


def sessions_of(sessions: Iterable[SessionName], namesakes: Iterable[SessionName] = ()) -> frozenset[SessionName]:
    """The sessions of a subject, with entries for records without an app: sessions of the app "".

    Args:
        sessions: Sessions of the subject.
        namesakes: Sessions of other apps, or of other subjects, with an id of one of these.

    >>> chat = SessionName("shop", "chat")
    >>> len(sessions_of([chat])), sessions_of([chat], [SessionName("bank", "chat")]) == {chat}
    (2, True)
    """
    named = frozenset(sessions)
    shared = {namesake.session_id for namesake in namesakes if namesake not in named}
    return named | {
        SessionName("", each.session_id)
        for each in named
        if each.app_id == DEFAULT_APP or each.session_id not in shared
    }


class AppNeedles(NamedTuple):
    """Byte strings that identify dead letters of the subject's sessions in one app.

    Attributes:
        app: The app's id as a JSON string, see `json_forms`.
        is_default: Whether records without an app belong to this app.
        key_prefix: Prefix of its session keys that contain the app.
        keys: Keys of the sessions, with and without the app.
        sessions: Ids of the sessions as JSON strings.
    """

    app: tuple[bytes, ...]
    is_default: bool
    key_prefix: bytes
    keys: tuple[bytes, ...]
    sessions: tuple[bytes, ...]


class ErasureSubject(Struct, frozen=True, dict=True):
    """Subject of an erasure.

    Attributes:
        scope: What is erased besides the sessions: nothing, a user, or an app with all its users.
        app_id: The app; empty for a user in all apps.
        user_id: The user.
        sessions: Sessions of the subject, as `sessions_of` returns them: the one, or all of the user or app.
        ties: Names of results of the subject, see `follow`.
    """

    scope: EraseScope
    app_id: str = ""
    user_id: str = ""
    sessions: frozenset[SessionName] = frozenset()
    ties: frozenset[str] = frozenset()

    def concerns(self, event: Struct) -> bool:
        """Whether an event of any topic belongs to the subject, directly or by a tie. A proof never does."""
        if isinstance(event, events.DeadLetter):
            return self._of_dead_letter(event)
        return self.names(event) or not self.ties.isdisjoint(_ties(event))

    def names(self, event: Struct) -> bool:
        """Whether the event itself names a session, user or app of the subject."""
        app_id = getattr(event, "app_id", "")
        if not self.sessions.isdisjoint(SessionName(app_id, session_id) for session_id in _sessions(event)):
            return True
        users = (getattr(event, "user_id", ""), *_users(event))
        return any(self.is_user(app_id, user_id) for user_id in users)

    def is_user(self, app_id: str, user_id: str) -> bool:
        """Whether all data of a user in an app belongs to the subject; an empty user means the app itself."""
        if self.scope == "app":
            return app_id == self.app_id
        return self.scope == "user" and user_id == self.user_id and self.app_id in ("", app_id)

    def owns(self, key: str) -> bool:
        """Whether a user, space or project belongs wholly to the subject, by its key or a longer key after a slash.

        These are keys of `commands.v1`, of the memory role's outputs and of its state.
        """
        kind, _, rest = key.partition(":")
        app, _, rest = rest.partition("/")
        user = rest.partition("/")[0]
        if kind not in _KEYED:
            return False
        if kind == "app" and _SLOT.fullmatch(rest):
            user = ""
        if self.scope == "app":
            return app == key_part(self.app_id)
        of_user = kind != "project" and self.scope == "user"
        return of_user and user == key_part(self.user_id) and key_part(self.app_id) in ("", app)

    def owns_session(self, key: str) -> bool:
        """Whether a key of session state belongs to the subject; in releases up to 0.2 the key is only the id."""
        name = SessionName.of_key(key) if key.startswith(SESSION_PREFIX.decode()) else SessionName("", key)
        return name in self.sessions

    def follow(self, found: Iterable[Struct]) -> ErasureSubject:
        """The subject with the ties of these events, in order of the log.

        Only events that name the subject add ties, and requests for a compaction that are tied to it. An event that
        only lists data of the subject beside that of others adds none; nor does a project item that also has other
        sources.
        """
        ties, shared = set(self.ties), set[str]()
        for event in found:
            listed = isinstance(event, events.CompactionRequested) and not ties.isdisjoint(_ties(event))
            if listed or self.names(event):
                (shared if self._shares(event) else ties).update(_spread(event))
        return msgspec.structs.replace(self, ties=frozenset(ties - shared))

    def _shares(self, event: Struct) -> bool:
        """Whether a project item also comes from sessions of others, or was added by hand."""
        return isinstance(event, events.ProjectItemChanged) and not self.sessions.issuperset(
            SessionName(event.app_id, session_id) for session_id in mentions(event).sessions
        )

    @cached_property
    def by_app(self) -> tuple[AppNeedles, ...]:
        """Byte strings of the subject's sessions in dead letters, by app."""
        ids: dict[str, list[str]] = {}
        for app_id, session_id in sorted(self.sessions):
            if app_id:
                ids.setdefault(app_id, []).append(session_id)
        return tuple(_of_app(app_id, session_ids) for app_id, session_ids in ids.items())

    @property
    def user_needles(self) -> tuple[bytes, ...]:
        """JSON strings that identify a dead letter of the user's app as the user's."""
        return json_forms(self.user_id) if self.scope == "user" else ()

    @property
    def app_needles(self) -> tuple[bytes, ...]:
        """JSON strings of the user's app, or of the erased app."""
        return json_forms(self.app_id) if self.scope != "session" and self.app_id else ()

    def _of_dead_letter(self, letter: events.DeadLetter) -> bool:
        key, value = letter.key or b"", letter.value or b""
        if self.owns(key.decode(errors="replace")) or any(_is_of(each, key, value) for each in self.by_app):
            return True
        if self.scope == "app":
            return _names_app(value, self.app_needles)
        unnamed = self.app_id == DEFAULT_APP and APP_FIELD not in value
        here = not self.app_id or unnamed or _names_app(value, self.app_needles)
        return here and any(needle in value for needle in self.user_needles)


def _of_app(app_id: str, session_ids: list[str]) -> AppNeedles:
    keys = (key.encode() for each in session_ids for key in (each, session_key(app_id, each)))
    forms = (form for each in session_ids for form in json_forms(each))
    prefix = session_key(app_id, "").encode()
    return AppNeedles(json_forms(app_id), app_id == DEFAULT_APP, prefix, tuple(keys), tuple(forms))


def _is_of(names: AppNeedles, key: bytes, value: bytes) -> bool:
    """Whether a dead letter names one of the sessions, and their app or none."""
    if APP_FIELD in value:
        here = _names_app(value, names.app)
    elif key.startswith(SESSION_PREFIX):
        here = key.startswith(names.key_prefix)
    else:
        here = names.is_default
    return here and (key in names.keys or any(form in value for form in names.sessions))


def _names_app(value: bytes, forms: Iterable[bytes]) -> bool:
    """Whether a field of a dead letter names an app; a record that names several belongs to each."""
    return any(re.search(APP_FIELD + _TO_ITS_VALUE + re.escape(form), value) for form in forms)


def json_forms(name: str) -> tuple[bytes, ...]:
    r"""A name as a JSON string, in UTF-8 and escaped.

    >>> json_forms("ü")
    (b'"\xc3\xbc"', b'"\\u00fc"')
    """
    return json.dumps(name, ensure_ascii=False).encode(errors="surrogatepass"), json.dumps(name).encode()


def _sessions(event: Struct) -> Iterator[str]:
    """Sessions that an event names, without empty names."""
    return iter(mentions(event).sessions) if isinstance(event, _OfProject) else named_in(event, "session")


def _users(event: Struct) -> tuple[str, ...]:
    """Further users that an event names."""
    return mentions(event).users if isinstance(event, _OfProject) else ()


def _ties(event: Struct) -> Iterator[str]:
    """Ties of what an event mentions without naming a session."""
    if isinstance(event, _OfProject):
        # Not an item's own id while it is there: it names whose it is, and may be others' by now.
        yield from (_tie(event, "item", item_id) for item_id in mentions(event).items)
        return
    yield from _spread(event)
    match event:
        case events.AppMemoriesCompacted():
            yield from (_tie(event, "memory", memory.memory_id) for memory in (*event.before, *event.after))
        case events.CompactionRequested():
            yield from (_tie(event, "memory", memory.memory_id) for memory in (*event.memories, event.new_memory))
        case events.CompactionDecided():
            yield from (_tie(event, "request", event.request), _tie(event, "memory", event.target_memory_id))
        case events.MemoryProposed():
            yield _tie(event, "request", event.request)
        case events.MemoryEdited() | events.MemoryDeleted():
            yield _tie(event, "memory", event.memory_id)
        case events.EpisodeSummarised():
            yield _tie(event, "episode", event.first_turn)
        case events.FactChanged():
            yield _value(event, event)
            yield from (_value(event, past) for past in event.history)
        case _:
            pass


def _spread(event: Struct) -> Iterator[str]:
    """Ties of results of the event's own sessions, which other events may mention."""
    match event:
        case events.AppMemoryChanged():
            yield _tie(event, "memory", event.memory_id)
        case events.MemoryRequested() | events.CompactionRequested():
            yield _tie(event, "request", event.request)
        case events.EpisodeCompressed() | events.EpisodeRequested():
            yield _tie(event, "episode", event.first_turn)
        case events.FactChanged() if event.cause in TIED_FACTS:
            yield _value(event, event)
        case events.ProjectItemChanged():
            yield _tie(event, "item", event.item_id)
        case _:
            pass


_KEYED = {kind.name for kind in REGISTRY.kinds if kind.folding}
"""Prefixes of the memory role's keys."""
_SLOT = re.compile(r"memory/\d+")
"""Suffix of the key of a memory in an app's own space; it is not a user."""
_OfProject = events.ProjectOutput | events.ProjectCommand


def _tie(event: Struct, what: str, name: object) -> str:
    """Tie to something of the event's entity."""
    return f"{entity_key(event)} {what} {name}"


def _value(event: events.FactChanged, said: events.FactChanged | events.PastFact) -> str:
    return _tie(event, f"{event.category}/{event.key} since", said.valid_from.isoformat())
