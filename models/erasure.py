"""Subjects of an erasure, and which records are theirs: one rule for topics, state and archive.

A record is the subject's if it names a session, user or app of the subject, or if it is *tied* to what came of them: a
compaction lists the texts of memories by number, an answer its request, a fact the values before it, an edit a
project's memory. `follow` collects the ties; the archive does the same in SQL (`streams.archive.erasing`), and a
test holds one against the other.

A session is one of an app: another app's session of the same id is somebody else's, and so is its every record. Two
kinds of records may name no app. Control events of earlier releases are those of the default app's session, or of the
only one of their id (`sessions_of`); while several apps have one, they are nobody's and stay. Refused records without
an app are the default app's.

What several sessions said in a project is the subject's as long as it names one of them. Once the fold has taken the
subject's out of it, it is told anew, and that is the others'.
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
"""Causes with which a fact's value is that of its session; a session that confirms one did not bring it."""

APP_FIELD = b'"app_id"'
SESSION_PREFIX = b"session:"
"""With what keys of sessions begin that name the app."""
_TO_ITS_VALUE = rb"[ \t\n\r]*:[ \t\n\r]*"


def digest(scope: EraseScope, app_id: str = "", user_id: str = "", session_id: str = "") -> str:
    r"""Name of a subject in the proof, which names nobody: SHA-256 of the four, each after a zero byte.

    >>> digest("user", "shop", "anna") == sha256(b"\0user\0shop\0anna\0").hexdigest()
    True
    """
    return sha256("".join(f"\0{name}" for name in (scope, app_id, user_id, session_id)).encode()).hexdigest()


def sessions_of(sessions: Iterable[SessionName], namesakes: Iterable[SessionName] = ()) -> frozenset[SessionName]:
    """The sessions of a subject, with names for records that do not say their app: a session of the app "".

    Args:
        sessions: Sessions of the subject.
        namesakes: Sessions of other apps, or of others, with an id that one of them has.

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
    """Names by which a refused record is known as of the subject's sessions of one app.

    Attributes:
        app: The app's id as a JSON string, see `json_forms`.
        is_default: Whether records that name no app are this app's.
        key_prefix: With what keys of its sessions begin, where the key names the app.
        keys: Keys of the sessions, with and without the app.
        sessions: Ids of the sessions as JSON strings.
    """

    app: tuple[bytes, ...]
    is_default: bool
    key_prefix: bytes
    keys: tuple[bytes, ...]
    sessions: tuple[bytes, ...]


class ErasureSubject(Struct, frozen=True, dict=True):
    """Somebody or something that is to be forgotten.

    Attributes:
        scope: What is forgotten besides the sessions: nothing, a user, or an app with all its users.
        app_id: The app; of a user empty for that user in all apps.
        user_id: The user.
        sessions: Sessions of the subject, as `sessions_of` gives them: the one, or all of the user or app.
        ties: Names of what came of them, see `follow`.
    """

    scope: EraseScope
    app_id: str = ""
    user_id: str = ""
    sessions: frozenset[SessionName] = frozenset()
    ties: frozenset[str] = frozenset()

    def concerns(self, event: Struct) -> bool:
        """Whether an event of any topic is the subject's, or tells of it. A proof never does."""
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
        """Whether everything of a user of an app, or with an empty user of the app itself, is the subject's."""
        if self.scope == "app":
            return app_id == self.app_id
        return self.scope == "user" and user_id == self.user_id and self.app_id in ("", app_id)

    def owns(self, key: str) -> bool:
        """Whether a user, space or project is wholly the subject's, by its key or one that goes on after a slash.

        Keys of `commands.v1`, of what the memory role writes and of its state; those of sessions are their ids.
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
        """Whether the state of a session under a key is the subject's; releases up to 0.2 kept it by its id alone."""
        name = SessionName.of_key(key) if key.startswith(SESSION_PREFIX.decode()) else SessionName("", key)
        return name in self.sessions

    def follow(self, found: Iterable[Struct]) -> ErasureSubject:
        """The subject with the ties of these events, in order of the log.

        Only events that name the subject add any, and requests for a compaction that are tied to it: what merely lists
        something of the subject beside others' does not make theirs the subject's. Nor does an item of a project that
        others said, too.
        """
        ties, shared = set(self.ties), set[str]()
        for event in found:
            listed = isinstance(event, events.CompactionRequested) and not ties.isdisjoint(_ties(event))
            if listed or self.names(event):
                (shared if self._shares(event) else ties).update(_spread(event))
        return msgspec.structs.replace(self, ties=frozenset(ties - shared))

    def _shares(self, event: Struct) -> bool:
        """Whether an item of a project is of sessions of others, too, or was added by hand."""
        return isinstance(event, events.ProjectItemChanged) and not self.sessions.issuperset(
            SessionName(event.app_id, session_id) for session_id in mentions(event).sessions
        )

    @cached_property
    def by_app(self) -> tuple[AppNeedles, ...]:
        """Names of the subject's sessions in refused records, by app."""
        ids: dict[str, list[str]] = {}
        for app_id, session_id in sorted(self.sessions):
            if app_id:
                ids.setdefault(app_id, []).append(session_id)
        return tuple(_of_app(app_id, session_ids) for app_id, session_ids in ids.items())

    @property
    def user_needles(self) -> tuple[bytes, ...]:
        """JSON strings by which a refused record is known as the user's, if it is of the user's app."""
        return json_forms(self.user_id) if self.scope == "user" else ()

    @property
    def app_needles(self) -> tuple[bytes, ...]:
        """JSON strings of the app of a user, or of the app that is forgotten."""
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
    """Whether a refused record names one of the sessions, and their app or none."""
    if APP_FIELD in value:
        here = _names_app(value, names.app)
    elif key.startswith(SESSION_PREFIX):
        here = key.startswith(names.key_prefix)
    else:
        here = names.is_default
    return here and (key in names.keys or any(form in value for form in names.sessions))


def _names_app(value: bytes, forms: Iterable[bytes]) -> bool:
    """Whether a field says that a refused record is of an app; one that names several is of each."""
    return any(re.search(APP_FIELD + _TO_ITS_VALUE + re.escape(form), value) for form in forms)


def json_forms(name: str) -> tuple[bytes, ...]:
    r"""A name as a JSON string, in UTF-8 and escaped.

    >>> json_forms("ü")
    (b'"\xc3\xbc"', b'"\\u00fc"')
    """
    return json.dumps(name, ensure_ascii=False).encode(errors="surrogatepass"), json.dumps(name).encode()


def _sessions(event: Struct) -> Iterator[str]:
    """Sessions that an event names; empty names are none."""
    return iter(mentions(event).sessions) if isinstance(event, _OfProject) else named_in(event, "session")


def _users(event: Struct) -> tuple[str, ...]:
    """Users that an event names beside its own."""
    return mentions(event).users if isinstance(event, _OfProject) else ()


def _ties(event: Struct) -> Iterator[str]:
    """Names of what an event tells of without naming a session."""
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
    """Names of what came of the event's own sessions, by which others may tell of it."""
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
"""With what keys of the memory role begin."""
_SLOT = re.compile(r"memory/\d+")
"""Of an app's own space, what comes behind its key for a memory: no user of this name."""
_OfProject = events.ProjectOutput | events.ProjectCommand


def _tie(event: Struct, what: str, name: object) -> str:
    """Name of something of the event's entity."""
    return f"{entity_key(event)} {what} {name}"


def _value(event: events.FactChanged, said: events.FactChanged | events.PastFact) -> str:
    return _tie(event, f"{event.category}/{event.key} since", said.valid_from.isoformat())
