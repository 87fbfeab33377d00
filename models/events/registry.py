"""Registry of the kinds of entity: what changes one, what it emits, and what follows from an emitted event.

Whatever depends on which events there are is derived from here: what a topic carries, by which key a record is
written, which kind folds a command, what is counted, archived and indexed. `models.entities` has the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from models.events.topics import ERASURES, NUMBERED, TURNS, Topic

Event = type[Struct]


class Counted(NamedTuple):
    """What one event adds to a counter of `models.metrics`."""

    metric: str
    amount: float
    labels: dict[str, str]


Counting = Callable[[Any], Counted | None]


def count(
    metric: str, *labels: str, amount: str | Callable[[Any], float] = "", when: Callable[[Any], bool] | None = None
) -> Counting:
    """An event counts, by its fields of the labels' names.

    Args:
        metric: Name of the counter.
        labels: Names of labels, and of the fields that they are of.
        amount: How much an event adds: a field of it, or what is made of it; 1 if nothing is said.
        when: Which events count; None for all.
    """
    amount_of = attrgetter(amount) if isinstance(amount, str) and amount else amount or (lambda _: 1)

    def counting(event: Any) -> Counted | None:
        if when is not None and not when(event):
            return None
        return Counted(metric, amount_of(event), {label: str(getattr(event, label)) for label in labels})

    return counting


class Listed(Struct, frozen=True):
    """A question for events of the index by whose they are, over HTTP and MCP, latest first.

    Attributes:
        path: Of the route, with a parameter for each field by which it is asked: `/users/{user_id:path}/visits`.
        operation: Names the route and the tool: `list_user_visits`.
        about: What is answered, in a sentence.
    """

    path: str
    operation: str
    about: str


class Index(Struct, frozen=True):
    """How an event stands in the index.

    Attributes:
        collection: Whose point it is.
        erased_by: Fields that name one of its points. None: the collection says for itself how it is written, read
            and erased (`streams.index.collections`); else all of that follows from the event.
        listed: How it is asked for; None: by routes of its own.
    """

    collection: str
    erased_by: tuple[str, ...] | None = None
    listed: Listed | None = None


class View(Struct, frozen=True):
    """How readers of the archive see an event's rows.

    Attributes:
        by: Rows that agree in these are one.
        takes: Which stands for them, by log order.
        keyed: Whether there are few of these; else most rows stand, and few are repeats.
    """

    by: tuple[str, ...]
    takes: Literal["first", "newest"]
    keyed: bool = False


def once(*by: str) -> View:
    """Each row once, though the log repeats it after a crash."""
    return View(by, "first")


def newest(*by: str) -> View:
    """The newest of rows that seldom repeat."""
    return View(by, "newest")


def last(*by: str) -> View:
    """The last word on each of few keys."""
    return View(by, "newest", keyed=True)


def _whole(_event: Any) -> str:
    return ""


class Emits(Struct, frozen=True):
    """An event that a kind of entity emits, and what follows from it.

    Attributes:
        event: Its type.
        topic: Where it travels.
        slot: What comes behind the entity's key in the record key, where there is more than one record of it.
        table: Table of the archive; empty for what is not archived, or stands in a table with others.
        views: View of the archive → how it is made of the table.
        index: How it stands in the index; None for what is not indexed.
        counts: What it is counted in.
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
        """Whether readers take the last word on each key alone: one that another follows need not be written."""
        return bool(self.views) and all(view.keyed for view in self.views.values())


class EntityKind(Struct, frozen=True, kw_only=True):
    """A kind of entity that events are folded into.

    Attributes:
        name: Its name; keys of entities in the state of the memory role begin with it.
        key: Key of the entity that an event changes or tells of: the record key, and the key of its state.
        source: The topic of what changes it.
        accepts: What changes it.
        erased_by: What of this makes it forget.
        emits: What it emits.
        folding: Where its `models.state.entity.Folding` stands, `module:NAME`: what folds is loaded by those who fold.
            Empty for sessions, which a partition of their own folds.
    """

    name: str
    key: Callable[[Any], str]
    source: Topic
    accepts: tuple[Event, ...]
    erased_by: tuple[Event, ...]
    emits: tuple[Emits, ...]
    folding: str = ""


class Registry:
    """What follows from kinds of entity.

    Args:
        kinds: In the order in which the one's outputs are another's inputs.
        others: Events that no fold emits.
        topics: That there are besides those that the kinds name.

    Attributes:
        kinds: The kinds.
        topics: Every topic.
        emits: Event → what follows from it.
        topic_of: Event → the topic on which it travels, in the order of topics.
        kind_of: Event → the first kind that it changes, or else the one that emits it.
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
        """Take kinds in, before anything is made of what follows from them: tables, views, decoders."""
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
        """What the archive reads."""
        return tuple(topic for topic in self.topics if topic.public and topic.archived)

    @property
    def indexed_topics(self) -> tuple[Topic, ...]:
        """What the index reads: turns, erasures, and what is emitted for it."""
        wanted = {TURNS, NUMBERED, ERASURES, *(each.topic for each in self.emits.values() if each.index is not None)}
        return tuple(topic for topic in self.topics if topic in wanted)

    @property
    def erasures(self) -> tuple[Event, ...]:
        """What makes entities forget."""
        return tuple(event for kind in self.kinds for event in kind.erased_by)

    def carried_by(self, topic: Topic) -> tuple[Event, ...]:
        """Events that travel on a topic; none on a private one."""
        accepted = [event for kind in self.kinds if kind.source is topic for event in kind.accepts]
        emitted = [event for event, each in self.emits.items() if each.topic is topic]
        erasing = [event for kind in self.kinds if kind.source is topic for event in kind.erased_by]
        return tuple(dict.fromkeys((*accepted, *emitted, *erasing)))

    def counted(self, event: Struct) -> list[Counted]:
        """What an emitted event is counted in."""
        return [found for counting in self.emits[type(event)].counts if (found := counting(event)) is not None]
