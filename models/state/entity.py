"""State of one entity, whichever kind: a head with its version, the other parts, and what every output begins with.

A user, a space of memories and a project are `EntityState`s; a session, which is folded by another clock and kept
decoded between writes, shares `StateLayout` alone. All parts of one batch are written together, so they always fit each
other. An entity that was erased, or never was, has none.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import datetime
from functools import cache
from hashlib import blake2b
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from models.errors import RecoveryFailed
from models.events.base import NOT_ASKED, Output, OutputFields, Position
from models.events.ids import event_id
from models.policy import Policy
from models.state.parts import Parts
from models.text.words import utf8_bytes

HEAD: Final = "head"
"""Part that every entity has: counters, and what was seen. Stores list entities by it."""
Read = Callable[[str], Mapping[str, bytes] | None]
"""Gives the stored parts of an entity, None where there are none."""
_RECORD_BYTES: Final = 80
"""A changelog record beside its key and value: source offset, part name, lengths, tombstone's header."""
_DIGEST_BYTES: Final = 12
_IDS_BYTES: Final = 3 * 1024
"""Ids and counters of a head that is new."""
EVENT_HEAD_BYTES: Final = 2 * 1024
"""What one event adds to a head at the most: an outcome of a command, or what was seen of a partition."""
encode = msgspec.msgpack.Encoder().encode
_Part = TypeVar("_Part")
CountParts = Callable[[str], int]
"""Gives how many parts of an entity have names that begin so."""


class DueEntity(NamedTuple):
    """An entity in which something is due. They sort by time."""

    at: datetime
    app_id: str
    name: str
    """Id of the user or project; empty for an app's own space."""
    step: tuple[int, ...] = ()
    """How far its work is: after a step of it it is another one that is due."""
    awaits_answer: bool = False
    """Whether it is an answer that is overdue, rather than time or energy that came."""


class Head(Protocol):
    """What the head of a user, a space or a project begins with."""

    app_id: str
    """Empty while nothing is known."""
    since: int
    """Offset of the record with which it began, or began anew after its erasure; −1: not known."""


_Head = TypeVar("_Head", bound=Head)
_Output = TypeVar("_Output", bound=Struct)
_Emitted = TypeVar("_Emitted", bound=Struct)


def record_bytes(key: str) -> int:
    """What one changelog record of an entity takes beside its part's name and value."""
    return utf8_bytes(key) + _RECORD_BYTES


class StateLayout(Struct, frozen=True):
    """Name and version of a kind's state, for what is refused.

    Attributes:
        name: What it is the state of.
        version: Raised when the layout changes; an older release then refuses the state instead of misreading it.
        log: What it can be made again from.
    """

    name: str
    version: int
    log: str = "commands"

    def read(self, part: str, data: bytes, decode: Callable[[bytes], _Part]) -> _Part:
        """A part of the state.

        Raises:
            RecoveryFailed: It is damaged.
        """
        try:
            return decode(data)
        except msgspec.MsgspecError as error:
            raise self._refusal(f"part {part} is unreadable ({error})") from error

    def part(self, parts: Parts, name: str, kind: type[_Part]) -> _Part | None:
        """A part of an entity as its type, None if it is not there.

        Raises:
            RecoveryFailed: It is damaged.
        """
        data = parts.get(name)
        return None if data is None else self.read(name, data, decoder(kind))  # type: ignore[arg-type] # hashable

    def read_head(self, parts: Mapping[str, bytes], decode: Callable[[bytes], _Part]) -> _Part:
        """The head among stored parts, whole or as much of it as `decode` wants; it begins with its version.

        Raises:
            RecoveryFailed: It is missing, damaged or of another state version.
        """
        if HEAD not in parts:
            raise self._refusal(f"part {HEAD} is missing among {sorted(parts)}")
        head = self.read(HEAD, parts[HEAD], decode)
        version: int = head.version  # type: ignore[attr-defined]
        if version != self.version:
            raise self._refusal(f"part {HEAD} has version {version}, this release reads {self.version}")
        return head

    def _refusal(self, what: str) -> RecoveryFailed:
        rebuild = f"Run the release that wrote it, or drop the state topic and replay the {self.log}."
        return RecoveryFailed(f"{self.name}: {what}. {rebuild}")


class EntityState(Generic[_Head]):
    """Working copy of one entity, between a read of the store and the next write. Its kind's fold changes it.

    Args:
        key: The entity's key.
        read: Reads an entity of the partition's state; nothing stored is ever changed.
        policy: The rules.

    Attributes:
        head: Counters.
        parts: Everything else.
        head_bytes: Size of the head as it was stored.
        spent: Units of energy that work cost since it was read, by kind of work.

    Raises:
        RecoveryFailed: The head is missing, damaged or of another state version.
    """

    layout: ClassVar[StateLayout]
    gauges: ClassVar[tuple[str, ...]] = ()
    """Metrics that show the sums of `figures` over a partition."""
    head_type: type[_Head]

    def __init__(self, key: str, read: Read, policy: Policy) -> None:  # noqa: ARG002 - of those that derive
        stored = read(key) or {}
        self.key = key
        self.parts = Parts(stored)
        self.head_bytes = len(stored.get(HEAD, b""))
        self.head: _Head = self.read_head(stored) if stored else self.head_type()
        self.spent: dict[str, float] = {}

    @classmethod
    def read_head(cls, parts: Mapping[str, bytes]) -> _Head:
        """Counters of stored parts.

        Raises:
            RecoveryFailed: The head is missing, damaged or of another state version.
        """
        head: _Head = cls.layout.read_head(parts, decoder(cls.head_type))
        return head

    @staticmethod
    def figures(head: _Head, count: CountParts) -> tuple[int, ...]:  # noqa: ARG004 - of those that derive
        """What an entity with such a head, and so many parts, counts for in each of `gauges`."""
        return ()

    @staticmethod
    def next_due(head: _Head, count: CountParts, policy: Policy) -> DueEntity | None:  # noqa: ARG004 - likewise
        """When something is due in it though nothing arrives."""
        return None

    @property
    def known(self) -> bool:
        """Whether anything is kept of the entity."""
        return bool(self.head.app_id)

    @property
    def written_bytes(self) -> int:
        """Of records of the changelog, for all that was written so far, without the head."""
        return self.parts.written_bytes + self.parts.written_parts * record_bytes(self.key)

    @property
    def touched_bytes(self) -> int:
        """Of the head, which goes along with a write as soon as anything changes."""
        return self.head_bytes + _IDS_BYTES + record_bytes(self.key)

    def changed_parts(self) -> dict[str, bytes | None]:
        """Parts that differ from what was read; None deletes. Nothing of an entity that never was."""
        if self.known:
            self.parts.put(HEAD, encode(self.head))
        return self.parts.changes()

    def changed(self) -> dict[str, dict[str, bytes | None]]:
        """Entity → part → bytes, None to delete; without entities that nothing became of."""
        parts = self.changed_parts()
        return {self.key: parts} if parts else {}

    def erase(self) -> None:
        """Let go of everything, with all that was counted: what comes next begins a new entity."""
        if self.known:
            # Written and deleted: another worker may have stored a head of what came since this one loaded.
            self.parts.put(HEAD, b"")
        for name in self.parts.names(""):
            self.parts.drop(name)
        self.head = self.head_type()


class Folding(NamedTuple):
    """How a kind of entity is folded.

    Attributes:
        state: Working copies of its entities.
        fold: Changes one by a `models.wire.arrival.Command`, or by a step of it; gives what is to be emitted and
            whether that was all. Of kinds that the same event changes only the first may take more steps than one.
        remind: Command that goes on with what is due in one, of a time; None where nothing ever is.
    """

    state: type[EntityState[Any]]
    fold: Callable[[Any, Any, Policy], tuple[Sequence[Any], bool]]
    remind: Callable[[DueEntity, datetime], Struct] | None = None

    def take(self, state: EntityState[Any], command: Any, policy: Policy) -> tuple[Sequence[Any], bool]:
        """Fold a command, or a step of it, but for an answer to what an entity asked that is no more."""
        known, offset = state.known, command.position.offset
        if is_late(command.event, state.head.since if known else offset):
            return [], True
        outputs, done = self.fold(state, command, policy)
        if state.known and not known:
            state.head.since = offset
        return outputs, done


def is_late(event: Struct, since: int) -> bool:
    """Whether it answers what was asked before a record: the question may tell of what is erased by now.

    What nobody asked for, and what a release before 0.3 answered, is not late.
    """
    asked: int = getattr(event, "asked_offset", NOT_ASKED)
    return NOT_ASKED < asked < since


@cache
def decoder(kind: type[_Part]) -> Callable[[bytes], _Part]:
    """Reads a msgpack value of a type; made once."""
    return msgspec.msgpack.Decoder(kind).decode


def write_part(parts: Parts, name: str, value: Sized) -> None:
    """Write a part of an entity; an empty list or mapping leaves none."""
    if value:
        parts.put(name, encode(value))
    else:
        parts.drop(name)


def digest_of(name: str) -> str:
    """Digest of a name of any length, for names of parts and entities."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


class Emission(Generic[_Output]):
    """What one event makes an entity emit, in order, with deterministic ids.

    Attributes:
        outputs: What was emitted so far.
        timestamp: The event's time.
        first_ordinal: Number of the first output of a kind, of which its id is made.
    """

    first_ordinal = 0

    def __init__(self, key: str, app_id: str, user_id: str, position: Position, timestamp: datetime) -> None:
        self.outputs: list[_Output] = []
        self.timestamp = timestamp
        self._key = key
        self._app_id = app_id
        self._user_id = user_id
        self._position = position
        self._ordinals: dict[str, int] = {}

    def common(self, kind: str, session_id: str = "", user_id: str = "") -> OutputFields:
        """What the next output of a kind begins with."""
        ordinal = self._ordinals[kind] = self._ordinals.get(kind, self.first_ordinal - 1) + 1
        return {
            "id": event_id(self.id_kind(kind), self._key, self._position, ordinal),
            "session_id": session_id,
            "user_id": self._user_id or user_id,
            "app_id": self._app_id,
            "timestamp": self.timestamp,
            "source": self._position,
        }

    def emit(self, kind: type[_Emitted], session_id: str = "", user_id: str = "", **fields: Any) -> _Emitted:
        """Emit an output of a kind; a field that every output has may be given, too."""
        common = self.common(str(kind.__struct_config__.tag), session_id, user_id)
        output = kind(**{**common, **fields})
        self.outputs.append(cast("_Output", output))
        return output

    def id_kind(self, kind: str) -> str:
        """By what ids of a kind are told from those of other kinds."""
        return kind


def same_fields(source: Struct, kind: type[Struct], *but: str) -> dict[str, Any]:
    """Fields of a struct that another kind has under the same name, as keyword arguments; sequences become lists."""
    named = [(name, getattr(source, name)) for name in _shared(type(source), kind, but)]
    return {name: list(value) if isinstance(value, _SEQUENCES) else value for name, value in named}


_SEQUENCES = (list, tuple)
"""Not `list | tuple`, which is made anew with each field of each event."""


@cache
def _shared(source: type[Struct], kind: type[Struct], but: tuple[str, ...]) -> tuple[str, ...]:
    common = (*Output.__struct_fields__, *but)
    return tuple(name for name in kind.__struct_fields__ if name in source.__struct_fields__ and name not in common)
