"""Keeps account of every turn of a session by what is told of its topics, and holds the state against it."""

from models.events import TopicChanged
from models.session.topics.conversation_topics import ConversationTopics
from models.session.topics.state import in_time_order
from models.state.buffer import BufferedTurn

NO_ONES = ""


class Ledger:
    """Which turn belongs to which topic, from `TopicChanged` alone.

    Attributes:
        held: Topic → its turns that an event named.
        unnamed: Counted turns that no event named yet: they belong to the active topic.
        released: Turns that left a history for the archive.
        evicted: Last event of each topic that is no more.
        active: Id of the active topic.
    """

    def __init__(self) -> None:
        self.held: dict[str, set[int]] = {}
        self.unnamed: set[int] = set()
        self.released: set[int] = set()
        self.evicted: dict[str, TopicChanged] = {}
        self.active = NO_ONES
        self._released_messages: dict[str, int] = {}

    def take(self, change: TopicChanged) -> None:
        """An event, in the order they come."""
        topic = change.topic_id
        named = {*change.active_turns, *change.packed_turns}
        assert len(named) == len(change.active_turns) + len(change.packed_turns), "a turn twice in one topic"
        assert change.message_count == len(named) + change.released_messages
        before = self.held.get(topic, set()) | self.unnamed.intersection(named)
        if change.compaction is not None:
            self._compacted(change, before)
        if change.cause == "merged" and change.kept:
            gone = self.evicted.pop(change.detail.removeprefix("with "))
            before |= {*gone.active_turns, *gone.packed_turns}
            self._released_messages[topic] = self._released_messages.get(topic, 0) + gone.released_messages
        if change.cause == "restored" and topic not in self.evicted:  # it comes from other sessions
            self._released_messages[topic] = change.released_messages
        elif change.cause == "restored":
            gone = self.evicted.pop(topic)
            before, self._released_messages[topic] = {*gone.active_turns, *gone.packed_turns}, 0
        self._let_go(change, before - named)
        self.unnamed -= named
        if change.active:
            self.active = topic
        if change.kept:
            self.held[topic] = named
        else:
            assert change.cause != "evicted" or topic != self.active, "the active topic was evicted"
            self.held.pop(topic, None)
            self.evicted[topic] = change

    def _compacted(self, change: TopicChanged, before: set[int]) -> None:
        lineage = change.compaction
        assert lineage is not None
        taken = self.unnamed & {*lineage.turns, *lineage.released_turns}
        before |= taken
        self.unnamed -= taken
        assert set(lineage.turns) <= {*change.packed_turns, *lineage.released_turns}
        assert set(lineage.released_turns) == before - {*change.active_turns, *change.packed_turns}

    def _let_go(self, change: TopicChanged, gone: set[int]) -> None:
        """Turns that a topic does not name any more are counted as released, each once."""
        already = self._released_messages.get(change.topic_id, 0)
        assert len(gone) == change.released_messages - already
        self._released_messages[change.topic_id] = change.released_messages
        self.released |= gone

    def compare(self, topics: ConversationTopics, said: dict[int, BufferedTurn]) -> None:
        """Hold the state against it: every counted turn is in one place, whole, in order of time."""
        kept: dict[str, set[int]] = {}
        for slot, topic in topics.store.topics():
            at_hand = topics.store.active_messages(slot)
            packed = [topics.store.read_block(slot, block)[0] for block in topic.packed]
            assert at_hand == in_time_order(at_hand)
            assert all(messages == in_time_order(messages) for messages in packed)
            everything = [*at_hand, *(message for messages in packed for message in messages)]
            kept[topic.topic_id] = {message.turn for message in everything}
            assert len(kept[topic.topic_id]) == len(everything) == topic.message_count - topic.released
            for message in everything:
                was = said[message.turn]
                assert (was.role, was.content, was.timestamp) == (message.role, message.content, message.timestamp)
        told = {topic: set(turns) for topic, turns in self.held.items()}
        if self.unnamed:
            told[self.active] |= self.unnamed
        assert kept == told
        active = topics.active
        assert self.active == (NO_ONES if active is None else topics.store.topic(active).topic_id)
        places = [*kept.values(), self.released]
        places += [{*gone.active_turns, *gone.packed_turns} for gone in self.evicted.values()]
        assert sorted(said) == sorted(turn for place in places for turn in place)
