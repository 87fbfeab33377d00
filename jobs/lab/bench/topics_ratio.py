"""Share of topic memory in the throughput: the same turns with it and without it, in alternation.

`fold` is the pure fold and its table alone, where topic memory weighs most; `role` is the sessions role as a process on
a broker, which also decodes, embeds, scores, publishes and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from jobs.demo.conversations import Conversation
from jobs.lab.bench.environment import Ground
from jobs.lab.bench.event_fold import record_of
from jobs.lab.bench.prepared import BEGINS, InMemory
from jobs.lab.bench.sessions_role import take_backlog
from jobs.lab.bench.stream import stream_settings
from jobs.lab.bench.traffic import Traffic, send_all
from jobs.lab.eval.topics_dialogues import Dialogue
from jobs.operate.topics import apply_topics
from models.events import Turn
from models.events.topics import TURNS
from models.partition.sessions import Arrival
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from streams.inference.intake import Intake
from streams.ports import Embedder

_BATCH_TURNS = 500
Say = Callable[[str], None]


class Ratio(Struct, frozen=True):
    """Throughput with topic memory divided by that without, of the same turns.

    Attributes:
        ratio: Median over rounds.
        with_topics_turns_per_s: Median.
        without_topics_turns_per_s: Median.
        rounds: The ratio of each.
    """

    ratio: float
    with_topics_turns_per_s: float
    without_topics_turns_per_s: float
    rounds: list[float]


def conversations_of(dialogues: Sequence[Dialogue]) -> list[Conversation]:
    """Dialogues as the benchmarks' traffic has them."""
    return [
        Conversation(
            session_id=dialogue.turns[0].session_id,
            title="",
            app_id=dialogue.turns[0].app_id,
            user_id=dialogue.user_id,
            starts_minute=0,
            turns=[{turn.role: turn.content} for turn in dialogue.turns],
            expected_alert=False,
            ends=False,
        )
        for dialogue in dialogues
    ]


def fold_ratio(turns: Sequence[Turn], policy: Policy, embedder: Embedder, *, runs: int) -> Ratio:
    """The fold of one partition over turns that are decoded, scored and embedded beforehand; CPU time."""
    arrivals = _arrivals(turns, policy, embedder)
    rates = _alternating(runs, lambda with_topics: _folded_per_s(arrivals, switched(policy, with_topics=with_topics)))
    return _ratio(rates)


def switched(policy: Policy, *, with_topics: bool) -> Policy:
    """The policy with topic memory on or off."""
    return replace(policy, topics=replace(policy.topics, enabled=with_topics))


async def role_ratio(
    ground: Ground, conversations: Sequence[Conversation], policy: Policy, *, runs: int, turns: int, say: Say
) -> Ratio:
    """The sessions role on a backlog of these conversations, each time as a process of its own on fresh topics.

    Raises:
        BenchFailed: The role ended, or did not take the backlog in time.
    """
    rates: list[dict[bool, float]] = []
    for number in range(runs):
        backlog = list(Traffic(number, conversations).backlog(turns, ends_at=datetime.now(UTC)))
        rates.append({})
        for with_topics in _order(number):
            file = _policy_file(ground.home, policy, with_topics=with_topics)
            settings = stream_settings(ground.bootstrap, ground.home).model_copy(update={"policy_file": file})
            await apply_topics(settings)
            await send_all(settings, backlog)
            rates[-1][with_topics] = (await take_backlog(settings, turns)).timing.turns_per_s
            say(f"  sessions role {_named(with_topics)}: {rates[-1][with_topics]:,.0f} turns/s")
    return _ratio(rates)


def _policy_file(folder: Path, policy: Policy, *, with_topics: bool) -> Path:
    file = folder / f"{_named(with_topics).replace(' ', '-')}.json"
    file.write_bytes(msgspec.json.encode(switched(policy, with_topics=with_topics)))
    return file


def _named(with_topics: bool) -> str:
    return "with topics" if with_topics else "without topics"


def _order(number: int) -> tuple[bool, bool]:
    return (True, False) if number % 2 else (False, True)


def _alternating(runs: int, measure: Callable[[bool], float]) -> list[dict[bool, float]]:
    return [{with_topics: measure(with_topics) for with_topics in _order(number)} for number in range(runs)]


def _ratio(rates: Sequence[dict[bool, float]]) -> Ratio:
    ratios = [each[True] / each[False] for each in rates]
    return Ratio(median(ratios), median(each[True] for each in rates), median(each[False] for each in rates), ratios)


def _arrivals(turns: Sequence[Turn], policy: Policy, embedder: Embedder) -> list[Arrival]:
    records = (
        record_of(
            topic=TURNS.name,
            partition=0,
            offset=offset,
            timestamp_ms=round(turn.timestamp.timestamp() * 1000),
            key=turn.session_id.encode(),
            value=encode(turn),
        )
        for offset, turn in enumerate(turns)
    )
    return Intake(policy, embedder, RuleScorer()).take(records).arrivals


def _folded_per_s(arrivals: Sequence[Arrival], policy: Policy) -> float:
    memory = InMemory(policy)
    seconds = sum(memory.take(arrivals[n : n + _BATCH_TURNS]) for n in range(0, len(arrivals), _BATCH_TURNS))
    return len(arrivals) / seconds


def traffic_turns(conversations: Sequence[Conversation] | None, count: int) -> list[Turn]:
    """Turns of many interleaved sessions, as `turntide bench stream` sends them; of the demo's where none are given."""
    return list(Traffic(0, conversations).backlog(count, ends_at=BEGINS))
