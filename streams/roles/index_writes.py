"""Writes of the index role, for events that are the last word on their key, as a table.

Of each step the store makes everything durable at once; a standing comes after what it says is in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from aiokafka.structs import ConsumerRecord

from models import events
from models.entities import TOPIC_OF
from models.events.topics import COMPACTIONS, FACTS, MEMORIES, PROJECTS, USER_EPISODES, Topic
from models.policy import Policy
from streams.index.app_memory import AppMemoryIndex
from streams.index.collections import OF_EVENTS, SEGMENTS, latest_of
from streams.index.project_memory import ProjectMemories
from streams.index.user_memory import UserMemory
from streams.ports import Embedder, VectorStore

RESTED_ON, RESTING, LAST = range(3)
"""Steps in which a poll is written."""
Ask = Callable[[], Awaitable[None]]


class Write(NamedTuple):
    """What becomes of events that are the last word on their key.

    Attributes:
        to: Takes them with the offsets of their records, and is called with none as well.
    """

    step: int
    topic: Topic
    kinds: tuple[type[Any], ...]
    to: Callable[[list[tuple[Any, int]]], Awaitable[None]]
    key: Callable[[Any], str] | None = None
    """By which the last word is told; None: the record's."""


def writes_of(store: VectorStore, embedder: Embedder, policy: Policy) -> tuple[Write, ...]:
    """What is written of memories of users, apps and projects."""
    users, apps = UserMemory(store, embedder), AppMemoryIndex(store, embedder)
    projects = ProjectMemories(store, embedder, policy.projects)
    return (
        Write(
            RESTED_ON,
            COMPACTIONS,
            (events.SegmentCompacted,),
            partial(SEGMENTS.note, store, embedder.dim),
            SEGMENTS.key,
        ),
        Write(RESTED_ON, USER_EPISODES, (events.EpisodeCompressed,), users.add_episodes),
        Write(RESTED_ON, FACTS, (events.FactChanged,), users.add_facts),
        Write(RESTED_ON, MEMORIES, (events.AppMemoryChanged,), apps.add_changes),
        Write(RESTED_ON, PROJECTS, (events.ProjectItemChanged,), projects.add_items),
        Write(RESTING, FACTS, (events.UserMemoryChanged,), users.add_stats),
        Write(RESTING, MEMORIES, (events.AppMemoriesChanged,), apps.add_stats),
        Write(RESTING, PROJECTS, (events.ProjectChanged,), projects.add_stats),
        *(
            Write(RESTED_ON, TOPIC_OF[event], (event,), partial(points.note, store, embedder.dim))
            for event, points in OF_EVENTS.items()
        ),
    )


def asks_of(
    writes: Sequence[Write], records_of: Callable[[Topic], Iterable[ConsumerRecord]]
) -> Iterable[tuple[int, Ask]]:
    """What a table asks for of a poll, each with its step; a topic is decoded once."""
    by_topic: dict[str, list[Write]] = {}
    for write in writes:
        by_topic.setdefault(write.topic.name, []).append(write)
    for of_topic in by_topic.values():
        topic = of_topic[0].topic
        wanted = chain.from_iterable(write.kinds for write in of_topic)
        known = latest_of(topic, records_of(topic), *wanted, key=of_topic[0].key)
        for write in of_topic:
            yield write.step, partial(write.to, [each for each in known if isinstance(each[0], write.kinds)])
