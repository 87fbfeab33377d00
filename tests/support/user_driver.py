"""Drives one user through the fold, with places in both logs and a clock that follows the messages."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from models import events
from models.entities import USER
from models.events.user import SessionTurns
from models.policy import Policy, UserPolicy
from tests.support.entity_driver import MemoryDriver

Command = TypeVar("Command", bound=events.FactCommand)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class User(MemoryDriver):
    """One user of one app: commands get the next offset, turns the next place of their partition and a minute each."""

    def __init__(self, policy: Policy | None = None, **users: object) -> None:
        policy = policy or Policy(users=msgspec.convert(users, UserPolicy))
        super().__init__(USER, events.UserMemoryChanged, policy, "user:a/u", app_id="a", user_id="u")
        self._offsets: dict[int, int] = {}
        self._numbers: dict[str, int] = {}

    def say(self, content: str = "The boat needs sails.", **more: Any) -> list[events.UserOutput]:
        """One message, by default of the user in session `s`; gives its outputs."""
        return self.put(self.turn(content, **more))

    def turn(self, content: str = "The boat needs sails.", **more: Any) -> events.UserTurnAdded:
        """The next turn of a session, as the sessions role forwards it."""
        session, partition = more.pop("session", "s"), more.pop("partition", 0)
        number, offset = self._numbers.get(session, 0), self._offsets.get(partition, 0)
        self._numbers[session], self._offsets[partition] = number + 1, offset + 1
        self.now += timedelta(minutes=1)
        return added(content, session, number, events.Position("turns", partition, offset), self.now, **more)

    def chat(self, turns: int, **more: Any) -> None:
        """User and assistant by turns."""
        for n in range(turns):
            self.say(f"What of boat {n}?", role=events.Role.ASSISTANT if n % 2 else events.Role.USER, **more)

    def answer(
        self, first: int, last: int, summary: str = "They spoke of boats.", **more: Any
    ) -> list[events.UserOutput]:
        """A slower stage answers a request."""
        return self.put(summarised(first, last, summary, **more))

    def learn(self, *facts: events.ExtractedFact, **more: Any) -> list[events.FactChanged]:
        """A slower extractor found facts, by default in what was said last; gives what changed."""
        fields: dict[str, object] = {"timestamp": self.now, "extracted_by": "llm", "facts": list(facts)}
        outputs = self.put(events.FactsExtracted(app_id="a", user_id="u", **(fields | more)))  # type: ignore[arg-type]
        return [output for output in outputs if isinstance(output, events.FactChanged)]

    def forget(self, *retractions: events.Retraction, **more: Any) -> list[events.FactChanged]:
        """A slower extractor found that the user takes something back; gives what changed."""
        return self.learn(retractions=list(retractions), **more)

    def edit(self, key: str, *, at: datetime | None = None, **more: Any) -> events.CommandResult:
        """Somebody writes or pins a fact of the user's identity, by default now; gives what came of it."""
        self.put(by_hand(events.FactEdited, events.FactCategory.IDENTITY, key, at or self.now, **more))
        result: events.CommandResult = self.stats.results[-1]
        return result

    def delete(self, key: str) -> events.CommandResult:
        """Somebody ends a fact; likewise."""
        self.put(by_hand(events.FactDeleted, events.FactCategory.IDENTITY, key, self.now))
        result: events.CommandResult = self.stats.results[-1]
        return result

    def erase(self, session: str = "", first: int = -10_000, last: int = 10_000) -> list[events.UserOutput]:
        """A session is erased, by default whenever it was (minutes from noon), or without one the user."""
        return self.put(session_erased(session, first, last) if session else user_erased())

    @property
    def requests(self) -> list[tuple[int, int]]:
        """First and last turn of every episode that was asked for."""
        return [(o.first_turn, o.last_turn) for o in self.of(events.EpisodeRequested)]

    @property
    def asked(self) -> list[events.FactsRequested]:
        """Every message that a slower extractor was asked to look at."""
        return self.of(events.FactsRequested)

    @property
    def episodes(self) -> list[events.EpisodeCompressed]:
        """Every episode."""
        return self.of(events.EpisodeCompressed)

    @property
    def changes(self) -> list[events.FactChanged]:
        """Everything told of facts."""
        return self.of(events.FactChanged)

    @property
    def at_hand(self) -> list[tuple[str, int]]:
        """Session and number of the turns at hand, as last told."""
        return flat(self.stats.short_term)

    @property
    def profile(self) -> dict[str, str]:
        """Key → value of every active fact in the state."""
        return {key: fact.value for _, key, fact in self.state.facts.all() if fact.active}


def added(
    content: str, session: str, number: int, source: events.Position, at: datetime, **more: Any
) -> events.UserTurnAdded:
    """A turn as the sessions role forwards it."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "role": events.Role.USER} | more
    return events.UserTurnAdded(
        id=f"{session}-{number}",
        session_id=session,
        turn=number,
        content=content,
        timestamp=at,
        source=source,
        **fields,
    )


def summarised(first: int, last: int, summary: str = "They spoke of boats.", **more: Any) -> events.EpisodeSummarised:
    """An answer to a request for an episode."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "timestamp": NOON, "summarised_by": "llm"} | more
    return events.EpisodeSummarised(first_turn=first, last_turn=last, summary=summary, **fields)


def by_hand(kind: type[Command], category: events.FactCategory, key: str, at: datetime = NOON, **more: Any) -> Command:
    """What somebody does to a fact."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "request_id": "r", "by": "ops"} | more
    return kind(category=category, key=key, timestamp=at, **fields)


def corrected(turn: events.UserTurnAdded, content: str, at: datetime = NOON) -> events.UserTurnCorrected:
    """The correction of a turn, as the sessions role forwards it."""
    named = {"app_id": turn.app_id, "user_id": turn.user_id, "session_id": turn.session_id, "turn": turn.turn}
    return events.UserTurnCorrected(id="c", content=content, timestamp=at, source=turn.source, **named)  # type: ignore[arg-type]


def session_erased(session: str, first: int = -10_000, last: int = 10_000, **more: Any) -> events.UserSessionErased:
    """The erasure of a session that lasted from one minute to another, counted from noon."""
    times = {"started_at": NOON + timedelta(minutes=first), "ended_at": NOON + timedelta(minutes=last)}
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "timestamp": NOON, "request_id": "r"} | times | more
    return events.UserSessionErased(session_id=session, **fields)


def user_erased(**more: Any) -> events.UserErased:
    """The erasure of a user."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "timestamp": NOON, "request_id": "r"} | more
    return events.UserErased(**fields)


def fact(key: str, value: str, confidence: float = 1.0, **more: Any) -> events.ExtractedFact:
    """A fact as an extractor finds it, by default of the user's identity."""
    more.setdefault("category", events.FactCategory.IDENTITY)
    return events.ExtractedFact(key=key, value=value, confidence=confidence, **more)


def flat(runs: Sequence[SessionTurns]) -> list[tuple[str, int]]:
    """Session and number of each turn."""
    return [(run.session_id, turn) for run in runs for turn in run.turns]


def causes(changes: Sequence[events.FactChanged]) -> list[tuple[str, str, str]]:
    """What became of which fact, in order."""
    return [(change.key, change.value, change.cause) for change in changes]
