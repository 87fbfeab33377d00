"""State of one session: its parts, reading and writing.

| part | content | written |
|---|---|---|
| `head` | counters, windows, mode, alert, indexes of the other parts | with every input |
| `b0` … | exact content of the last turns, one each | by its turn |
| `s0` … | segments of the working memory, one each | by every fifth turn |
| `l0` … | lines of segments that left it, one each | by every fifth turn of a long session |
| `v0` … | int8 vectors of the last user turns, one each | by its turn |
| `e` | signals and judgement, if a model judges (`risk.escalation`) | by user turns, and refusals of the assistant |
| `t…` | topics (`session.topics.state`) | by their messages |
| `n` | notable sentences, for the app's memories (`language.notable`) | by every fifth turn that brings one |
| `m0` … | the last message ids (`session.messages`) | by turns that have one |

All parts of a batch are written together, so they are always consistent. A closed session keeps a small head, the
topics, the notable sentences and the message ids until its retention ends, so that a returning user continues the same
conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from models.events import Mode, NotableSentence
from models.language.notable import PART as NOTABLES_PART
from models.language.notable import Notables
from models.policy import Policy
from models.risk.alerts import OpenAlert
from models.risk.escalation import Escalating
from models.risk.signals import NO_PATTERN, Behaviour, PatternSignals
from models.risk.windows import Windows, WindowState
from models.session.messages import PREFIX as MESSAGE_PARTS
from models.session.segments import KeptSegment, PastSegments, SegmentRef, WorkingMemory
from models.session.topics.conversation_topics import ConversationTopics
from models.session.topics.state import PREFIX as TOPIC_PARTS
from models.state.buffer import BufferedTurn, ExactTurns, TurnBuffer
from models.state.entity import HEAD, StateLayout, encode
from models.state.parts import Parts
from models.state.vectors import VectorRing
from models.text.language import ENGLISH
from models.text.summary import Said

LAYOUT = StateLayout("session state", version=2, log="turns")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_LASTING_PARTS = (TOPIC_PARTS, NOTABLES_PART, MESSAGE_PARTS)
"""Parts of a closed session besides its head."""


class Prefix(Struct, array_like=True, gc=False):
    """First fields of every head, in every version."""

    version: int = LAYOUT.version
    closed: bool = False
    deadline: datetime | None = None
    offset: int = -1
    """Offset of the last folded input."""
    last_turn: int = -1
    """Highest turn number seen."""
    late_turns: int = 0
    windows: WindowState = msgspec.field(default_factory=WindowState)


class Closed(Prefix, array_like=True, gc=False):
    """Head of a closed session until its retention ends: enough to distinguish late turns from new ones."""

    closed_at: datetime = _NEVER
    messages: int = 0
    """Message ids that were noted."""
    counts_from: int = 0
    """Lowest number that may be given: above all that the session had before it was forgotten."""


class Open(Prefix, array_like=True):
    """Head of an open session. The policy bounds its size; nothing grows with the session."""

    user_id: str = ""
    app_id: str = ""
    started_at: datetime = _NEVER
    latest_at: datetime = _NEVER
    """Earliest and latest event time of a counted turn."""
    floor: int = -1
    """Last turn number before the session was reopened; turns up to it are late."""
    first_turn: int = -1
    seen: int = 0
    """Bit i: turn number `last_turn - i` was folded."""
    turn_count: int = 0
    duplicate_turns: int = 0
    scored_turns: int = 0
    risk_sum: float = 0.0
    peak_risk: float = 0.0
    risk_turns: list[int] = []
    """Turn numbers of the risk window, in order …"""
    risks: list[float] = []
    """… and their risks."""
    behaviour: Behaviour = msgspec.field(default_factory=Behaviour)
    repeated_topics: dict[str, int] = {}
    previous_topics: list[str] = []
    """Topics of the last user turn that had any."""
    last_user_turn: int = -1
    patterns: PatternSignals = NO_PATTERN
    mode: Mode = Mode.CALM
    turns_in_mode: int = 0
    mode_transitions: list[tuple[int, Mode]] = []
    alert: OpenAlert | None = None
    alerts_raised: int = 0
    risk_points: list[tuple[int, datetime, float, float, Mode, str]] = []
    """Risk points since the last profile, as tuples of `RiskPoint`, which do not repeat field names."""
    turns_since_profile: int = 0
    buffer_slots: dict[int, int] = {}
    segment_refs: list[SegmentRef] = []
    open_turns: list[int] = []
    """Turns of the incomplete segment."""
    other_user: bool = False
    """Whether turns of further users arrived."""
    projects: list[list[str]] = []
    """App and id of the first projects of its turns."""
    messages: int = 0
    """Message ids that were noted."""
    counts_from: int = 0
    """Lowest number that may be given: above all that the session had before it was forgotten."""
    language: str = ENGLISH
    """Of the last user turn that had one, ISO 639-1 …"""
    supported: bool = True
    """… and whether the last one's could be read."""
    unsupported: dict[str, int] = {}
    """Language to the user turns that have no risk, as the scorer does not read it."""
    harms: list[int] = []
    """Evidence of the kind of harm (`risk.harm`); empty without a conspicuous turn."""
    since: int = -1
    """Offset of its first turn since it opened: answers to earlier requests are ignored."""

    @property
    def mean_risk(self) -> float:
        """Mean over all scored turns of the session; 0 without any."""
        return self.risk_sum / self.scored_turns if self.scored_turns else 0.0


class _Kind(Struct, array_like=True, gc=False):
    version: int
    closed: bool
    deadline: datetime | None


_decode_kind = msgspec.msgpack.Decoder(_Kind).decode
_decode_open = msgspec.msgpack.Decoder(Open).decode
_up_to_alert = Open.__struct_fields__[: Open.__struct_fields__.index("alert") + 1]
_DUE: dict[str, Any] = {"mode": Mode, "alert": OpenAlert | None}
_UpToAlert: Any = msgspec.defstruct(
    "_UpToAlert", [(name, _DUE.get(name, msgspec.Raw)) for name in _up_to_alert], array_like=True, gc=False
)
"""Open head up to its alert; only the alert and the mode are decoded."""
_decode_up_to_alert = msgspec.msgpack.Decoder(_UpToAlert).decode
_decode_closed = msgspec.msgpack.Decoder(Closed).decode


class Due(NamedTuple):
    """Due work of a session, read without decoding it.

    Attributes:
        deadline: Deadline of the session; None: it has no state.
        closed: Whether it has only a marker, or no state.
        mode: Risk mode of an open session.
        snoozed_until: End of its alert's snooze, if any.
    """

    deadline: datetime | None
    closed: bool
    mode: Mode | None = None
    snoozed_until: datetime | None = None


def read_due(head: bytes) -> Due:
    """Due work of a session, from its part `head`; decodes little more than that.

    Raises:
        RecoveryFailed: Written by another state version, or damaged.
    """
    kind = LAYOUT.read_head({HEAD: head}, _decode_kind)
    if kind.closed:
        return Due(kind.deadline, kind.closed)
    opened = _decode_up_to_alert(head)
    return Due(kind.deadline, kind.closed, opened.mode, opened.alert and opened.alert.snoozed_until)


class SessionState:
    """Working copy of one session, between `load` and `changed_parts`. `models.session.fold.fold` consumes it.

    Attributes:
        head: Counters and indexes.
        last_point: Event time and risk of the turn the last fold counted; None when it counted none.
    """

    def __init__(self, parts: Mapping[str, bytes], head: Open | Closed) -> None:
        self.head = head
        self.parts = Parts(parts)
        self.last_point: tuple[datetime, float | None] | None = None
        self._windows: Windows | None = None
        self._vectors: VectorRing | None = None
        self._topics: ConversationTopics | None = None
        self._escalating: Escalating | None = None
        self._noted_bytes = self._noted_parts = 0

    @classmethod
    def blank(cls) -> SessionState:
        """An unknown session, without state."""
        return cls({}, Closed(closed=True))

    @classmethod
    def load(cls, parts: Mapping[str, bytes]) -> SessionState:
        """Working copy of stored parts; rings are decoded at first use, and `parts` is never changed.

        Raises:
            RecoveryFailed: The head is missing, damaged or of another state version.
        """
        closed = LAYOUT.read_head(parts, _decode_kind).closed
        return cls(parts, _decode_closed(parts[HEAD]) if closed else _decode_open(parts[HEAD]))

    def changed_parts(self) -> dict[str, bytes | None]:
        """Parts that differ from the loaded ones; None deletes. Complete at any time between two folds."""
        if self.head.deadline is None:
            self.parts.drop_all()
        else:
            self.parts.put(HEAD, encode(self.head))
            if self._escalating is not None:
                self._escalating.flush()
            if self._topics is not None:
                self._topics.flush()
        return self.parts.changes()

    @property
    def deadline(self) -> datetime | None:
        """Watermark at which the partition fold must send `SessionTimedOut`; None: no state, delete every part."""
        return self.head.deadline

    @property
    def closed(self) -> bool:
        """Whether only a marker is left, or nothing."""
        return self.head.closed

    @property
    def due(self) -> Due:
        """Due work as in `read_due`."""
        head = self.head
        if not isinstance(head, Open):
            return Due(head.deadline, head.closed)
        return Due(head.deadline, head.closed, head.mode, None if head.alert is None else head.alert.snoozed_until)

    @property
    def offset(self) -> int:
        """Offset of the last folded input; -1 before the first."""
        return self.head.offset

    @property
    def buffer(self) -> TurnBuffer:
        """Layer 1; empty for a closed session."""
        return TurnBuffer(self.head.buffer_slots if isinstance(self.head, Open) else {}, self.parts)

    @property
    def working_memory(self) -> WorkingMemory:
        """Layer 2; empty for a closed session."""
        return WorkingMemory(self.head.segment_refs if isinstance(self.head, Open) else [], self.parts)

    @property
    def past_segments(self) -> PastSegments:
        """Lines of segments that left layer 2; empty for a closed session."""
        return PastSegments(self.parts)

    def windows(self, policy: Policy, watermark: datetime) -> Windows:
        """The session's windows, taken over once."""
        if self._windows is None or self._windows.state is not self.head.windows:
            self._windows = Windows(policy.window, self.head.windows, watermark)
        return self._windows

    def vectors(self, capacity: int) -> VectorRing:
        """The recent vectors, decoded once."""
        if self._vectors is None:
            self._vectors = VectorRing(self.parts, capacity)
        return self._vectors

    def escalating(self, policy: Policy) -> Escalating | None:
        """The judgement of an open session, decoded once; None if no model judges."""
        if self._escalating is None and (model := policy.judging_model) is not None:
            self._escalating = Escalating(self.parts, model, policy.escalation)
        return self._escalating

    def judged(self, policy: Policy) -> Escalating | None:
        """As `escalating`, but None before the first observable user turn: then the source formulas apply."""
        escalating = self.escalating(policy)
        return escalating if escalating is not None and escalating.kept.begun else None

    def topics(self, policy: Policy) -> ConversationTopics:
        """The topics, decoded once; of a closed session too."""
        if self._topics is None:
            self._topics = ConversationTopics(self.parts, policy.topics, policy.risk.risky_topics)
        return self._topics

    def notables(self, policy: Policy) -> list[NotableSentence]:
        """Notable sentences of the conversation, in order of turns; also of a closed session."""
        return Notables(self.parts, policy.apps).all()

    def note(self, turns: Sequence[BufferedTurn], said: Sequence[Said], policy: Policy) -> None:
        """Add the notable sentences of a segment's turns, from their given sentences."""
        noted = Notables(self.parts, policy.apps).add(turns, said)
        self._noted_bytes, self._noted_parts = self._noted_bytes + noted, self._noted_parts + (noted > 0)

    def transcript(self, policy: Policy) -> ExactTurns:
        """The exact turns for a language model; empty for a closed session."""
        return ExactTurns(self.parts, policy.apps)

    def add_segment(self, segment: KeptSegment, turns: Sequence[BufferedTurn], policy: Policy) -> None:
        """Add a segment to layer 2; a displaced one leaves a line. Its exact turns stay if a model needs them."""
        left = self.working_memory.append(segment, policy.memory.segments)
        size, parts = self.parts.written_bytes, self.parts.written_parts
        if policy.apps.enabled and policy.apps.ask:
            self.transcript(policy).add(turns)
        for each in left:
            self.past_segments.add(each, policy)
        self._noted_bytes += self.parts.written_bytes - size
        self._noted_parts += self.parts.written_parts - parts

    def take_written(self) -> tuple[int, int]:
        """Bytes and parts that topics, notables, lines of segments and exact turns wrote since the last call."""
        size, parts = (0, 0) if self._topics is None else self._topics.store.take_written()
        size, parts = size + self._noted_bytes, parts + self._noted_parts
        self._noted_bytes = self._noted_parts = 0
        return size, parts

    @property
    def lasting_parts(self) -> int:
        """Parts besides the head that are deleted with the session."""
        return sum(self.parts.count(prefix) for prefix in _LASTING_PARTS)

    def become(self, head: Open | Closed) -> None:
        """Restart the session with an empty memory: deletes all parts but those of a closed session."""
        self.head = head
        self._vectors = None
        self._escalating = None
        forgotten = head.closed and head.deadline is None
        self.parts.drop_all(but=() if forgotten else _LASTING_PARTS)
        if forgotten:
            self._topics = None
