"""Drives the topics of one session through the fold: messages about matters, each with its own direction."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import numpy as np

from models.events import DeadLetter, KeptTopic, Position, Role, TopicCause, TopicChanged, TopicsRecalled
from models.policy import Policy
from models.policy.topic import TopicPolicy
from models.session.topics.conversation_topics import ConversationTopics
from models.session.topics.matching import topic_vector
from models.session.topics.state import TopicState
from models.state.buffer import BufferedTurn
from tests.support.session_driver import NOON, Session, said

DIMS = 64


def matter(number: int) -> list[float]:
    """A direction of its own: a cosine of 0 to every other matter, 64 of them."""
    return [float(dimension == number) for dimension in range(DIMS)]


def between(first: int, second: int, share: float = 0.5) -> list[float]:
    """A direction between two matters: `share` of the second."""
    return [(1 - share) * a + share * b for a, b in zip(matter(first), matter(second), strict=True)]


def when(days: float) -> datetime:
    """Days after the first message."""
    return NOON + timedelta(days=days)


def recalled(topic_id: str, direction: Sequence[float] | None, messages: int, at: datetime) -> TopicsRecalled:
    """A user came back to session `s`, and with them one topic of another session."""
    vector = None if direction is None else topic_vector(np.array(direction, np.float32))
    topic = KeptTopic(
        topic_id=topic_id,
        created_at=at,
        last_active_at=at,
        importance=1.0,
        messages=messages,
        accesses=0,
        weight=0 if vector is None else 1,
        embedding=[] if vector is None else vector.astype(int).tolist(),
    )
    came = Position("turns", 0, 0)
    return TopicsRecalled(id=topic_id, session_id="s", timestamp=at, user_id="u", source=came, topics=[topic])


class Talk(Session):
    """One session about matters; messages take the next number and follow each other by a minute."""

    def __init__(self, **topics: object) -> None:
        super().__init__(Policy(topics=msgspec.convert(topics, TopicPolicy)))
        self.turn = 0

    def ask(self, vector: int | Sequence[float] | None, content: str = "", **more: object) -> list[TopicChanged]:
        """A user's message about a matter; gives what was told of topics."""
        direction = matter(vector) if isinstance(vector, int) else vector
        return self._message(Role.USER, direction, content, more)

    def answer(self, content: str = "", role: Role = Role.ASSISTANT, **more: object) -> list[TopicChanged]:
        """Anybody else's message."""
        return self._message(role, None, content, more)

    def _message(
        self, role: Role, vector: Sequence[float] | None, content: str, more: dict[str, object]
    ) -> list[TopicChanged]:
        already = len(self.outputs)
        fields = {"timestamp": self.watermark + timedelta(minutes=1)} | more
        number = int(str(fields.pop("turn", self.turn)))
        self.turn = max(self.turn, number + 1)
        self.put(said(number, content or f"Message {number} of it.", role=role, **fields), vector=vector)
        return [output for output in self.outputs[already:] if isinstance(output, TopicChanged)]

    def discuss(self, about: int, messages: int) -> list[TopicChanged]:
        """Several messages about a matter, by turns of the user and the assistant."""
        changes: list[TopicChanged] = []
        for n in range(messages):
            changes += self.answer() if n % 2 else self.ask(about)
        return changes

    @property
    def active(self) -> TopicState:
        """The active topic."""
        slot = self.topics.active
        assert slot is not None
        return self.topics.store.topic(slot)

    @property
    def titles(self) -> list[str]:
        """Titles of the topics that are kept, oldest first."""
        return [topic.title for _, topic in self.topics.store.topics()]

    def titled(self, title: str) -> tuple[int, TopicState]:
        """A topic and its slot, by title."""
        return next((slot, topic) for slot, topic in self.topics.store.topics() if topic.title == title)

    def at_hand(self, title: str) -> list[int]:
        """Turns at hand of a topic, in order of time."""
        return [message.turn for message in self.topics.store.active_messages(self.titled(title)[0])]

    def history(self, title: str) -> list[BufferedTurn]:
        """The packed messages of a topic, block by block."""
        slot, topic = self.titled(title)
        return [message for block in topic.packed for message in self.topics.store.read_block(slot, block)[0]]

    @property
    def changes(self) -> list[TopicChanged]:
        """Everything told of topics."""
        return [output for output in self.outputs if isinstance(output, TopicChanged)]

    def caused(self, cause: TopicCause) -> list[TopicChanged]:
        """Changes of one kind."""
        return [change for change in self.changes if change.cause == cause]

    @property
    def damages(self) -> list[DeadLetter]:
        """Dead letters that the fold wrote."""
        return [output for output in self.outputs if isinstance(output, DeadLetter)]


def messages_of(topics: ConversationTopics, slot: int, *, packed: bool = True) -> list[BufferedTurn]:
    """Messages of a topic in order of time, packed ones among them if wanted; of a damaged history what is whole."""
    said, blocks = topics.store.active_messages(slot), topics.store.topic(slot).packed if packed else ()
    said += [message for block in blocks for message in topics.store.read_block(slot, block)[0]]
    return sorted(said, key=lambda message: (message.timestamp, message.turn))


def causes(changes: Sequence[TopicChanged]) -> list[str]:
    """What happened, in order."""
    return [change.cause for change in changes]
