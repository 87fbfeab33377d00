"""Drives one user through the fold, with places in both logs and a clock that follows the messages."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from models.entities import USER
from models.events import (
    CommandResult,
    EpisodeCompressed,
    EpisodeRequested,
    EpisodeSummarised,
    ExtractedFact,
    FactCategory,
    FactChanged,
    FactCommand,
    FactDeleted,
    FactEdited,
    FactsExtracted,
    FactsRequested,
    Position,
    Retraction,
    Role,
    UserErased,
    UserMemoryChanged,
    UserOutput,
    UserSessionErased,
    UserTurnAdded,
    UserTurnCorrected,
)
from models.events.user import SessionTurns
from models.policy import Policy, UserPolicy
from tests.support.entity_driver import MemoryDriver

Command = TypeVar("Command", bound=FactCommand)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class User(MemoryDriver):
    """One user of one app: commands get the next offset, turns the next place of their partition and a minute each."""

    def __init__(self, policy: Policy | None = None, **users: object) -> None:
        policy = policy or Policy(users=msgspec.convert(users, UserPolicy))
        super().__init__(USER, UserMemoryChanged, policy, "user:a/u", app_id="a", user_id="u")
        self._offsets: dict[int, int] = {}
        self._numbers: dict[str, int] = {}

    def say(self, content: str = "The boat needs sails.", **more: Any) -> list[UserOutput]:
        """One message, by default of the user in session `s`; gives its outputs."""
        return self.put(self.turn(content, **more))

    def turn(self, content: str = "The boat needs sails.", **more: Any) -> UserTurnAdded:
        """The next turn of a session, as the sessions role forwards it."""
        session, partition = more.pop("session", "s"), more.pop("partition", 0)
        number, offset = self._numbers.get(session, 0), self._offsets.get(partition, 0)
        self._numbers[session], self._offsets[partition] = number + 1, offset + 1
        self.now += timedelta(minutes=1)
        return added(content, session, number, Position("turns", partition, offset), self.now, **more)

    def chat(self, turns: int, **more: Any) -> None:
        """User and assistant by turns."""
        for n in range(turns):
            self.say(f"What of boat {n}?", role=Role.ASSISTANT if n % 2 else Role.USER, **more)

    def answer(self, first: int, last: int, summary: str = "They spoke of boats.", **more: Any) -> list[UserOutput]:
        """A slower stage answers a request."""
        return self.put(summarised(first, last, summary, **more))

    def learn(self, *facts: ExtractedFact, **more: Any) -> list[FactChanged]:
        """A slower extractor found facts, by default in what was said last; gives what changed."""
        fields: dict[str, object] = {"timestamp": self.now, "extracted_by": "llm", "facts": list(facts)}
        outputs = self.put(FactsExtracted(app_id="a", user_id="u", **(fields | more)))  # type: ignore[arg-type]
        return [output for output in outputs if isinstance(output, FactChanged)]

    def forget(self, *retractions: Retraction, **more: Any) -> list[FactChanged]:
        """A slower extractor found that the user takes something back; gives what changed."""
        return self.learn(retractions=list(retractions), **more)

    def edit(self, key: str, *, at: datetime | None = None, **more: Any) -> CommandResult:
        """Somebody writes or pins a fact of the user's identity, by default now; gives what came of it."""
        self.put(by_hand(FactEdited, FactCategory.IDENTITY, key, at or self.now, **more))
        result: CommandResult = self.stats.results[-1]
        return result

    def delete(self, key: str) -> CommandResult:
        """Somebody ends a fact; likewise."""
        self.put(by_hand(FactDeleted, FactCategory.IDENTITY, key, self.now))
        result: CommandResult = self.stats.results[-1]
        return result

    def erase(self, session: str = "", first: int = -10_000, last: int = 10_000) -> list[UserOutput]:
        """A session is erased, by default whenever it was (minutes from noon), or without one the user."""
        return self.put(session_erased(session, first, last) if session else user_erased())

    @property
    def requests(self) -> list[tuple[int, int]]:
        """First and last turn of every episode that was asked for."""
        return [(o.first_turn, o.last_turn) for o in self.of(EpisodeRequested)]

    @property
    def asked(self) -> list[FactsRequested]:
        """Every message that a slower extractor was asked to look at."""
        return self.of(FactsRequested)

    @property
    def episodes(self) -> list[EpisodeCompressed]:
        """Every episode."""
        return self.of(EpisodeCompressed)

    @property
    def changes(self) -> list[FactChanged]:
        """Everything told of facts."""
        return self.of(FactChanged)

    @property
    def at_hand(self) -> list[tuple[str, int]]:
        """Session and number of the turns at hand, as last told."""
        return flat(self.stats.short_term)

    @property
    def profile(self) -> dict[str, str]:
        """Key → value of every active fact in the state."""
        return {key: fact.value for _, key, fact in self.state.facts.all() if fact.active}


def added(content: str, session: str, number: int, source: Position, at: datetime, **more: Any) -> UserTurnAdded:
    """A turn as the sessions role forwards it."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "role": Role.USER} | more
    return UserTurnAdded(
        id=f"{session}-{number}",
        session_id=session,
        turn=number,
        content=content,
        timestamp=at,
        source=source,
        **fields,
    )


def summarised(first: int, last: int, summary: str = "They spoke of boats.", **more: Any) -> EpisodeSummarised:
    """An answer to a request for an episode."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "timestamp": NOON, "summarised_by": "llm"} | more
    return EpisodeSummarised(first_turn=first, last_turn=last, summary=summary, **fields)


def by_hand(kind: type[Command], category: FactCategory, key: str, at: datetime = NOON, **more: Any) -> Command:
    """What somebody does to a fact."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "request_id": "r", "by": "ops"} | more
    return kind(category=category, key=key, timestamp=at, **fields)


def corrected(turn: UserTurnAdded, content: str, at: datetime = NOON) -> UserTurnCorrected:
    """The correction of a turn, as the sessions role forwards it."""
    named = {"app_id": turn.app_id, "user_id": turn.user_id, "session_id": turn.session_id, "turn": turn.turn}
    return UserTurnCorrected(id="c", content=content, timestamp=at, source=turn.source, **named)  # type: ignore[arg-type]


def session_erased(session: str, first: int = -10_000, last: int = 10_000, **more: Any) -> UserSessionErased:
    """The erasure of a session that lasted from one minute to another, counted from noon."""
    times = {"started_at": NOON + timedelta(minutes=first), "ended_at": NOON + timedelta(minutes=last)}
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "timestamp": NOON, "request_id": "r"} | times | more
    return UserSessionErased(session_id=session, **fields)


def user_erased(**more: Any) -> UserErased:
    """The erasure of a user."""
    fields: dict[str, Any] = {"app_id": "a", "user_id": "u", "timestamp": NOON, "request_id": "r"} | more
    return UserErased(**fields)


def fact(key: str, value: str, confidence: float = 1.0, **more: Any) -> ExtractedFact:
    """A fact as an extractor finds it, by default of the user's identity."""
    more.setdefault("category", FactCategory.IDENTITY)
    return ExtractedFact(key=key, value=value, confidence=confidence, **more)


def flat(runs: Sequence[SessionTurns]) -> list[tuple[str, int]]:
    """Session and number of each turn."""
    return [(run.session_id, turn) for run in runs for turn in run.turns]


def causes(changes: Sequence[FactChanged]) -> list[tuple[str, str, str]]:
    """What became of which fact, in order."""
    return [(change.key, change.value, change.cause) for change in changes]
