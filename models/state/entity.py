"""State of one entity of any kind: a head with a version, further parts, and the common fields of its outputs.

A user, a space of memories and a project are `EntityState`s. A session shares only `StateLayout`: its fold has another
clock and keeps the state decoded between writes. All parts of a batch are written together, so they are always
consistent. An unknown or erased entity has no parts.
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
"""Part that every entity has: counters and seen offsets. Stores list entities by it."""
Read = Callable[[str], Mapping[str, bytes] | None]
"""Returns the stored parts of an entity, None if it has none."""
_RECORD_BYTES: Final = 80
"""Overhead of a changelog record besides key and value: source offset, part name, lengths, tombstone's header."""
_DIGEST_BYTES: Final = 12
_IDS_BYTES: Final = 3 * 1024
"""Size of ids and counters of a new head."""
EVENT_HEAD_BYTES: Final = 2 * 1024
"""Maximum growth of a head by one event: the outcome of a command, or the seen offset of a partition."""
encode = msgspec.msgpack.Encoder().encode
_Part = TypeVar("_Part")
CountParts = Callable[[str], int]
"""Returns the number of an entity's parts with a name prefix."""


class DueEntity(NamedTuple):
    """An entity with work that is due; sorts by time."""

    at: datetime
    app_id: str
    name: str
    """Id of the user or project; empty for an app's own space."""
    step: tuple[int, ...] = ()
    """Progress of its work: after each step, the next one is due as another item."""
    awaits_answer: bool = False
    """Whether an answer is overdue, and not a time or amount of energy reached."""


class Head(Protocol):
    """Common fields of the head of a user, a space or a project."""

    app_id: str
    """Empty for an unknown entity."""
    since: int
    """Offset of the record that created it, or recreated it after its erasure; −1: unknown."""


_Head = TypeVar("_Head", bound=Head)
_Output = TypeVar("_Output", bound=Struct)
_Emitted = TypeVar("_Emitted", bound=Struct)


def record_bytes(key: str) -> int:
    """Size of a changelog record of an entity, without its part's name and value."""
    return utf8_bytes(key) + _RECORD_BYTES


class StateLayout(Struct, frozen=True):
    """Name and version of a kind's state, used in errors.

    Attributes:
        name: Name of the kind.
        version: Raised when the layout changes; an older release then refuses the state instead of misreading it.
        log: Log from which the state can be rebuilt.
    """

    name: str
    version: int
    log: str = "commands"

    def read(self, part: str, data: bytes, decode: Callable[[bytes], _Part]) -> _Part:
        """Decode a part of the state.

        Raises:
            RecoveryFailed: It is damaged.
        """
        try:
            return decode(data)
        except msgspec.MsgspecError as error:
            raise self._refusal(f"part {part} is unreadable ({error})") from error

    def part(self, parts: Parts, name: str, kind: type[_Part]) -> _Part | None:
        """A part of an entity, decoded; None if it does not exist.

        Raises:
            RecoveryFailed: It is damaged.
        """
        data = parts.get(name)
        return None if data is None else self.read(name, data, decoder(kind))  # type: ignore[arg-type] # hashable

    def read_head(self, parts: Mapping[str, bytes], decode: Callable[[bytes], _Part]) -> _Part:
        """Decode the head among stored parts, whole or in part; its first field is its version.

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
    """Working copy of one entity, between a read of the store and the next write. The kind's fold changes it.

    Args:
        key: The entity's key.
        read: Reads an entity of the partition's state; stored data is never changed in place.
        policy: The rules.

    Attributes:
        head: Counters.
        parts: All other parts.
        head_bytes: Size of the stored head.
        spent: Units of energy spent since the read, by kind of work.

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
        """Values of an entity for `gauges`, from its head and its numbers of parts."""
        return ()

    @staticmethod
    def next_due(head: _Head, count: CountParts, policy: Policy) -> DueEntity | None:  # noqa: ARG004 - likewise
        """The next work that is due without an event; None for none."""
        return None

    @property
    def known(self) -> bool:
        """Whether the entity has state."""
        return bool(self.head.app_id)

    @property
    def written_bytes(self) -> int:
        """Size of the changelog records of all writes so far, without the head."""
        return self.parts.written_bytes + self.parts.written_parts * record_bytes(self.key)

    @property
    def touched_bytes(self) -> int:
        """Size of the head's record, which is part of every write."""
        return self.head_bytes + _IDS_BYTES + record_bytes(self.key)

    def changed_parts(self) -> dict[str, bytes | None]:
        """Parts that differ from the stored ones; None deletes. Empty for an entity that stays unknown."""
        if self.known:
            self.parts.put(HEAD, encode(self.head))
        return self.parts.changes()

    def changed(self) -> dict[str, dict[str, bytes | None]]:
        """Entity → part → bytes, None to delete; without unchanged and unknown entities."""
        parts = self.changed_parts()
        return {self.key: parts} if parts else {}

    def erase(self) -> None:
        """Erase all parts and counters; the next event creates a new entity."""
        if self.known:
            # Written and deleted: another worker may have stored a head after this one loaded the entity.
            self.parts.put(HEAD, b"")
        for name in self.parts.names(""):
            self.parts.drop(name)
        self.head = self.head_type()


class Folding(NamedTuple):
    """How an entity kind is folded.

    Attributes:
        state: Type of its entities' state.
        fold: Applies a `models.wire.arrival.Command`, or one step of it; returns the outputs, and whether it is
            finished. If an event changes several kinds, only the first may need several steps.
        remind: Makes the command that continues due work at a time; None if the kind has no due work.
    """

    state: type[EntityState[Any]]
    fold: Callable[[Any, Any, Policy], tuple[Sequence[Any], bool]]
    remind: Callable[[DueEntity, datetime], Struct] | None = None

    def take(self, state: EntityState[Any], command: Any, policy: Policy) -> tuple[Sequence[Any], bool]:
        """Fold a command or a step of it; ignore answers to requests of an entity that was erased since."""
        known, offset = state.known, command.position.offset
        if is_late(command.event, state.head.since if known else offset):
            return [], True
        outputs, done = self.fold(state, command, policy)
        if state.known and not known:
            state.head.since = offset
        return outputs, done


def is_late(event: Struct, since: int) -> bool:
    """Whether an event answers a request from before a record; that request may quote data erased since.

    An event without a request, or answered by a release before 0.3, is not late.
    """
    asked: int = getattr(event, "asked_offset", NOT_ASKED)
    return NOT_ASKED < asked < since


@cache
def decoder(kind: type[_Part]) -> Callable[[bytes], _Part]:
    """Cached msgpack decoder of a type."""
    return msgspec.msgpack.Decoder(kind).decode


def write_part(parts: Parts, name: str, value: Sized) -> None:
    """Write a part of an entity; an empty list or mapping deletes the part."""
    if value:
        parts.put(name, encode(value))
    else:
        parts.drop(name)


def digest_of(name: str) -> str:
    """Digest of a name of any length, for names of parts and entities."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


class Emission(Generic[_Output]):
    """Outputs of an entity for one event, in order, with deterministic ids.

    Attributes:
        outputs: Outputs so far.
        timestamp: Time of the event.
        first_ordinal: Ordinal of the first output of a kind; part of its id.
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
        """Common fields of the next output of a kind."""
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
        """Emit an output of a kind; `fields` may override common fields."""
        common = self.common(str(kind.__struct_config__.tag), session_id, user_id)
        output = kind(**{**common, **fields})
        self.outputs.append(cast("_Output", output))
        return output

    def id_kind(self, kind: str) -> str:
        """Namespace of a kind's ids."""
        return kind


def same_fields(source: Struct, kind: type[Struct], *but: str) -> dict[str, Any]:
    """Fields that a struct shares with another type, as keyword arguments; sequences become lists."""
    named = [(name, getattr(source, name)) for name in _shared(type(source), kind, but)]
    return {name: list(value) if isinstance(value, _SEQUENCES) else value for name, value in named}


_SEQUENCES = (list, tuple)
"""Not `list | tuple`, which would be rebuilt for each field of each event."""


@cache
def _shared(source: type[Struct], kind: type[Struct], but: tuple[str, ...]) -> tuple[str, ...]:
    common = (*Output.__struct_fields__, *but)
    return tuple(name for name in kind.__struct_fields__ if name in source.__struct_fields__ and name not in common)
