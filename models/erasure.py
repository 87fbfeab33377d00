"""Subjects of an erasure, and which records are theirs: one rule for topics, state and archive.

A record is the subject's if it names a session, user or app of the subject, or if it is *tied* to what came of them: a
compaction lists the texts of memories by number, an answer its request, a fact the values before it, an edit a
project's memory. `follow` collects the ties; the archive does the same in SQL (`streams.archive.erasing`), and a
test holds one against the other.

What several sessions said in a project is the subject's as long as it names one of them. Once the fold has taken the
subject's out of it, it is told anew, and that is the others'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256

import msgspec
from msgspec import Struct

from models import events
from models.entities import REGISTRY, entity_key
from models.events.base import key_part
from models.events.erase import EraseScope
from models.events.fields import named_in
from models.project.mentions import mentions

TIED_FACTS = ("stored", "updated")
"""Causes with which a fact's value is that of its session; a session that confirms one did not bring it."""

APP_FIELD = b'"app_id"'


def digest(scope: EraseScope, app_id: str = "", user_id: str = "", session_id: str = "") -> str:
    r"""Name of a subject in the proof, which names nobody: SHA-256 of the four, each after a zero byte.

    >>> digest("user", "shop", "anna") == sha256(b"\0user\0shop\0anna\0").hexdigest()
    True
    """
    return sha256("".join(f"\0{name}" for name in (scope, app_id, user_id, session_id)).encode()).hexdigest()


class ErasureSubject(Struct, frozen=True, dict=True):
    """Somebody or something that is to be forgotten.

    Attributes:
        scope: What is forgotten besides the sessions: nothing, a user, or an app with all its users.
        app_id: The app; of a user empty for that user in all apps.
        user_id: The user.
        session_ids: Sessions of the subject: the one, or all of the user or app.
        ties: Names of what came of them, see `follow`.
    """

    scope: EraseScope
    app_id: str = ""
    user_id: str = ""
    session_ids: frozenset[str] = frozenset()
    ties: frozenset[str] = frozenset()

    def concerns(self, event: Struct) -> bool:
        """Whether an event of any topic is the subject's, or tells of it. A proof never does."""
        if isinstance(event, events.DeadLetter):
            return self._of_dead_letter(event)
        return self.names(event) or not self.ties.isdisjoint(_ties(event))

    def names(self, event: Struct) -> bool:
        """Whether the event itself names a session, user or app of the subject."""
        if not self.session_ids.isdisjoint(_sessions(event)):
            return True
        app_id, users = getattr(event, "app_id", ""), (getattr(event, "user_id", ""), *_users(event))
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
        return isinstance(event, events.ProjectItemChanged) and not self.session_ids.issuperset(
            mentions(event).sessions
        )

    @cached_property
    def session_needles(self) -> tuple[bytes, ...]:
        """JSON strings by which a refused record is known as of a session of the subject."""
        return tuple(form for session in sorted(self.session_ids) for form in json_forms(session))

    @property
    def name_needles(self) -> tuple[bytes, ...]:
        """Likewise as of the user or app itself."""
        name = {"app": self.app_id, "user": self.user_id}.get(self.scope, "")
        return json_forms(name) if name else ()

    @property
    def app_needles(self) -> tuple[bytes, ...]:
        """Likewise as of the user's one app: a user of the same name in another app is somebody else."""
        return json_forms(self.app_id) if self.scope == "user" and self.app_id else ()

    def _of_dead_letter(self, letter: events.DeadLetter) -> bool:
        key = (letter.key or b"").decode(errors="replace")
        if key in self.session_ids or self.owns(key):
            return True
        value = letter.value or b""
        if any(needle in value for needle in self.session_needles):
            return True
        elsewhere = bool(self.app_needles) and APP_FIELD in value and not any(app in value for app in self.app_needles)
        return not elsewhere and any(needle in value for needle in self.name_needles)


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
        yield from (_item(event, item_id) for item_id in mentions(event).items)
        return
    yield from _spread(event)
    match event:
        case events.AppMemoriesCompacted():
            yield from (_memory(event, memory.memory_id) for memory in (*event.before, *event.after))
        case events.CompactionRequested():
            yield from (_memory(event, memory.memory_id) for memory in (*event.memories, event.new_memory))
        case events.CompactionDecided():
            yield from (_request(event, event.request), _memory(event, event.target_memory_id))
        case events.MemoryProposed():
            yield _request(event, event.request)
        case events.MemoryEdited() | events.MemoryDeleted():
            yield _memory(event, event.memory_id)
        case events.EpisodeSummarised():
            yield _episode(event)
        case events.FactChanged():
            yield _value(event, event)
            yield from (_value(event, past) for past in event.history)
        case _:
            pass


def _spread(event: Struct) -> Iterator[str]:
    """Names of what came of the event's own sessions, by which others may tell of it."""
    match event:
        case events.AppMemoryChanged():
            yield _memory(event, event.memory_id)
        case events.MemoryRequested() | events.CompactionRequested():
            yield _request(event, event.request)
        case events.EpisodeCompressed() | events.EpisodeRequested():
            yield _episode(event)
        case events.FactChanged() if event.cause in TIED_FACTS:
            yield _value(event, event)
        case events.ProjectItemChanged():
            yield _item(event, event.item_id)
        case _:
            pass


_KEYED = {kind.name for kind in REGISTRY.kinds if kind.folding}
"""With what keys of the memory role begin."""
_SLOT = re.compile(r"memory/\d+")
"""Of an app's own space, what comes behind its key for a memory: no user of this name."""
_OfSpace = events.SpaceOutput | events.SpaceEvent
_OfProject = events.ProjectOutput | events.ProjectCommand
_OfEpisode = events.EpisodeCompressed | events.EpisodeRequested | events.EpisodeSummarised


def _memory(event: _OfSpace, memory_id: int) -> str:
    return f"{entity_key(event)} memory {memory_id}"


def _request(event: _OfSpace, request: int) -> str:
    return f"{entity_key(event)} request {request}"


def _episode(event: _OfEpisode) -> str:
    return f"{entity_key(event)} episode {event.first_turn}"


def _value(event: events.FactChanged, said: events.FactChanged | events.PastFact) -> str:
    return f"{entity_key(event)} {event.category}/{event.key} since {said.valid_from.isoformat()}"


def _item(event: _OfProject, item_id: str) -> str:
    return f"{entity_key(event)} item {item_id}"
