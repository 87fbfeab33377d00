"""Registry of entity kinds: the events that change one, the events that it emits, and what is derived from these.

Everything that depends on the set of events is derived from here: events of a topic, record keys, the kind that folds a
command, counters, archive tables and index points. `models.entities` has the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from models.events.topics import ERASURES, NUMBERED, TURNS, Topic

Event = type[Struct]


class Counted(NamedTuple):
    """Increment of a counter of `models.metrics` by one event."""

    metric: str
    amount: float
    labels: dict[str, str]


Counting = Callable[[Any], Counted | None]


def count(
    metric: str, *labels: str, amount: str | Callable[[Any], float] = "", when: Callable[[Any], bool] | None = None
) -> Counting:
    """Count events; the labels' values are the event's fields of the same names.

    Args:
        metric: Name of the counter.
        labels: Names of labels, and of the fields with their values.
        amount: Increment: a field's name or a function of the event. Default: 1.
        when: Condition on the event; None: all events count.
    """
    amount_of = attrgetter(amount) if isinstance(amount, str) and amount else amount or (lambda _: 1)

    def counting(event: Any) -> Counted | None:
        if when is not None and not when(event):
            return None
        return Counted(metric, amount_of(event), {label: str(getattr(event, label)) for label in labels})

    return counting


class Listed(Struct, frozen=True):
    """A route and MCP tool that list indexed events of an owner, latest first.

    Attributes:
        path: Path of the route, with a parameter for each field of the filter: `/users/{user_id:path}/visits`.
        operation: Name of the route and the tool: `list_user_visits`.
        about: Description in one sentence.
    """

    path: str
    operation: str
    about: str


class Index(Struct, frozen=True):
    """How an event is indexed.

    Attributes:
        collection: Collection of its points.
        erased_by: Fields that identify one of its points. None: the collection defines how points are written, read
            and erased (`streams.index.collections`); else all of that follows from the event.
        listed: Route and tool that list it; None: it has routes of its own.
    """

    collection: str
    erased_by: tuple[str, ...] | None = None
    listed: Listed | None = None


class View(Struct, frozen=True):
    """How a view of the archive deduplicates an event's rows.

    Attributes:
        by: Key: of rows with equal values in these columns, one is kept.
        takes: Which row is kept, by log order.
        keyed: Whether there are few keys; else most keys have one row.
    """

    by: tuple[str, ...]
    takes: Literal["first", "newest"]
    keyed: bool = False


def once(*by: str) -> View:
    """Each row once, although the log may repeat it after a crash."""
    return View(by, "first")


def newest(*by: str) -> View:
    """The newest row of each key, for keys that rarely repeat."""
    return View(by, "newest")


def last(*by: str) -> View:
    """The newest row of each key, for few keys."""
    return View(by, "newest", keyed=True)


def _whole(_event: Any) -> str:
    return ""


class Emits(Struct, frozen=True):
    """An event that an entity kind emits, and what is derived from it.

    Attributes:
        event: Its type.
        topic: Its topic.
        slot: Suffix of the record key after the entity's key, if an entity has several records of it.
        table: Table of the archive; empty if it is not archived, or shares a table.
        views: View of the archive → how it deduplicates the table.
        index: How it is indexed; None if it is not.
        counts: Its counters.
    """

    event: Event
    topic: Topic
    slot: Callable[[Any], str] = _whole
    table: str = ""
    views: Mapping[str, View] = {}
    index: Index | None = None
    counts: tuple[Counting, ...] = ()

    @property
    def last_counts(self) -> bool:
        """Whether readers use only the last event of each key: an event need not be written if another follows."""
        return bool(self.views) and all(view.keyed for view in self.views.values())


class EntityKind(Struct, frozen=True, kw_only=True):
    """A kind of entity into which events are folded.

    Attributes:
        name: Its name; keys of entities in the state of the memory role begin with it.
        key: Key of the entity of an input or output: the record key, and the key of its state.
        source: Topic of its inputs.
        accepts: Its input events.
        erased_by: Input events that erase it.
        emits: Its output events.
        folding: Its `models.state.entity.Folding` as `module:NAME`; only processes that fold import it. Empty for
            sessions, which have their own partition fold.
    """

    name: str
    key: Callable[[Any], str]
    source: Topic
    accepts: tuple[Event, ...]
    erased_by: tuple[Event, ...]
    emits: tuple[Emits, ...]
    folding: str = ""


class Registry:
    """All entity kinds, and what is derived from them.

    Args:
        kinds: Kinds, in the order in which outputs of one are inputs of the next.
        others: Events that no fold emits.
        topics: Further topics.

    Attributes:
        kinds: All kinds.
        topics: All topics.
        emits: Event → its declaration.
        topic_of: Event → its topic, in the order of topics.
        kind_of: Event → the first kind that it changes, or else the kind that emits it.
        kinds_of: Event → all kinds that it changes.
    """

    def __init__(self, kinds: Iterable[EntityKind], others: Iterable[Emits], topics: Iterable[Topic]) -> None:
        self.kinds: list[EntityKind] = []
        self.emits = {each.event: each for each in others}
        self.kind_of: dict[Event, EntityKind] = {}
        self.kinds_of: dict[Event, tuple[EntityKind, ...]] = {}
        self.topic_of: dict[Event, Topic] = {}
        self.topics = tuple(topics)
        self.add(*kinds)

    def add(self, *kinds: EntityKind) -> None:
        """Register kinds, before anything is derived from the registry: tables, views, decoders."""
        self.kinds += kinds
        self.emits |= {each.event: each for kind in kinds for each in kind.emits}
        self.kind_of |= {each.event: kind for kind in kinds for each in kind.emits}
        for kind in kinds:
            for event in dict.fromkeys((*kind.accepts, *kind.erased_by)):
                self.kinds_of[event] = (*self.kinds_of.get(event, ()), kind)
        self.kind_of |= {event: changed[0] for event, changed in self.kinds_of.items()}
        self.topics = tuple(dict.fromkeys((*self.topics, *(each.topic for kind in kinds for each in kind.emits))))
        self.topic_of |= {event: topic for topic in self.topics for event in self.carried_by(topic)}

    @property
    def archived_topics(self) -> tuple[Topic, ...]:
        """Topics that the archive reads."""
        return tuple(topic for topic in self.topics if topic.public and topic.archived)

    @property
    def indexed_topics(self) -> tuple[Topic, ...]:
        """Topics that the index reads: turns, erasures, and topics of indexed events."""
        wanted = {TURNS, NUMBERED, ERASURES, *(each.topic for each in self.emits.values() if each.index is not None)}
        return tuple(topic for topic in self.topics if topic in wanted)

    @property
    def erasures(self) -> tuple[Event, ...]:
        """Events that erase entities."""
        return tuple(event for kind in self.kinds for event in kind.erased_by)

    def carried_by(self, topic: Topic) -> tuple[Event, ...]:
        """Events of a topic; none for a private one."""
        accepted = [event for kind in self.kinds if kind.source is topic for event in kind.accepts]
        emitted = [event for event, each in self.emits.items() if each.topic is topic]
        erasing = [event for kind in self.kinds if kind.source is topic for event in kind.erased_by]
        return tuple(dict.fromkeys((*accepted, *emitted, *erasing)))

    def counted(self, event: Struct) -> list[Counted]:
        """Increments of counters by an emitted event."""
        return [found for counting in self.emits[type(event)].counts if (found := counting(event)) is not None]
