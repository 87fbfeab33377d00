"""Share that packing saves on real conversations, by codec, beside the source's figure; and the time of unpacking.

The source's codec is JSON → gzip → base64. Beside it: the same without base64, the project's second codec (`deflate`
with a shared dictionary) and, if the package `zstandard` is installed, zstd with a dictionary trained on the other half
of the messages, to show what training would give.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import thread_time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from jobs.demo.conversations import DemoConversation
from jobs.lab.bench.folds import BEGINS, InMemory, records_of, time_fold
from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import Figures, Say
from jobs.lab.bench.sessions_role import take_backlog
from jobs.lab.bench.topics_work import LongSession
from jobs.lab.bench.traffic import TurnTraffic, send_all
from jobs.lab.eval.topics_dialogues import TopicDialogue
from jobs.operate.topics import apply_topics
from models.events import Turn
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.session.topics.packing import Codec, MessageEntry, json_bytes, pack, unpack
from streams.inference.intake import Intake
from streams.ports import Embedder

COUNTS = (10, 20, 50)
"""Messages packed at once (topic memory, Compression ratio)."""
SEED_SAVES_PERCENT = {10: 86.6, 20: 86.1, 50: 85.9}
SEED_JSON_KB = {10: 8.2, 20: 16.5, 50: 41.2}
"""So the source's messages have about 820 bytes each; gzip saves more of longer ones."""
_KB = 1_000
_DICTIONARY_BYTES = 32_768
_ZSTD_LEVEL = 19
_ZSTD_LEAST_STRINGS = 16


def strings_of(sessions: Sequence[LongSession], messages: int) -> list[list[MessageEntry]]:
    """The sessions cut into strings of so many messages one after the other; what is left over is dropped."""
    strings = []
    for session in sessions:
        said = [MessageEntry(turn.role, turn.content, turn.timestamp.timestamp()) for turn in session.turns]
        strings += [said[n : n + messages] for n in range(0, len(said) - messages + 1, messages)]
    return strings


def packing_rows(sessions: Sequence[LongSession]) -> list[Figures]:
    """A row for each count of which there is a string."""
    by_count = {count: strings_of(sessions, count) for count in COUNTS}
    return [_row(count, strings) for count, strings in by_count.items() if strings]


def _row(count: int, strings: Sequence[Sequence[MessageEntry]]) -> Figures:
    raw = [json_bytes(string) for string in strings]
    raw_bytes = sum(map(len, raw))
    seeds = [pack(string, "gzip") for string in strings]
    seeds_bytes = sum(map(len, seeds))
    binary_bytes = sum(len(b64decode(packed)) for packed in seeds)
    deflated_bytes = sum(len(pack(string, "deflate")) for string in strings)
    zstd_bytes = zstd_trained_bytes(raw)
    return {
        "messages": count,
        "strings": len(strings),
        "json_kb": raw_bytes / len(strings) / _KB,
        "seed_json_kb": SEED_JSON_KB[count],
        "gzip_base64_kb": seeds_bytes / len(strings) / _KB,
        "seed_saves_percent": SEED_SAVES_PERCENT[count],
        "gzip_base64_saves_percent": saved_percent(raw_bytes, seeds_bytes),
        "gzip_saves_percent": saved_percent(raw_bytes, binary_bytes),
        "base64_costs_percent": (seeds_bytes / binary_bytes - 1) * 100,
        "deflate_saves_percent": saved_percent(raw_bytes, deflated_bytes),
        "zstd_saves_percent": None if zstd_bytes is None else saved_percent(raw_bytes, zstd_bytes),
    }


def saved_percent(before: int, after: int) -> float:
    """How much smaller.

    >>> saved_percent(200, 50)
    75.0
    """
    return (1 - after / before) * 100


def zstd_trained_bytes(raw: Sequence[bytes]) -> int | None:
    """All texts packed, each half with a dictionary of the other half; None without the package or with few texts."""
    if find_spec("zstandard") is None or len(raw) < _ZSTD_LEAST_STRINGS:
        return None
    zstandard = import_module("zstandard")
    middle = len(raw) // 2
    packed_bytes = 0
    for trained, packed in ((raw[:middle], raw[middle:]), (raw[middle:], raw[:middle])):
        size = min(_DICTIONARY_BYTES, sum(map(len, trained)) // 8)
        dictionary = zstandard.train_dictionary(size, list(trained))
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, dict_data=dictionary)
        packed_bytes += sum(len(compressor.compress(text)) for text in packed)
    return packed_bytes


def unpack_ms(sessions: Sequence[LongSession], codec: Codec) -> list[float]:
    """CPU milliseconds for each string of fifty messages; shorter strings where the sessions have none."""
    strings = next((found for count in reversed(COUNTS) if (found := strings_of(sessions, count))), [])
    return [_timed_ms(pack(string, codec), lambda packed: unpack(packed, codec)) for string in strings]


def _timed_ms(packed: bytes, work: Callable[[bytes], object]) -> float:
    began = thread_time()
    work(packed)
    return (thread_time() - began) * 1000


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


def conversations_of(dialogues: Sequence[TopicDialogue]) -> list[DemoConversation]:
    """Dialogues as the benchmarks' traffic has them."""
    return [
        DemoConversation(
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
    environment: BenchEnvironment,
    conversations: Sequence[DemoConversation],
    policy: Policy,
    *,
    runs: int,
    turns: int,
    say: Say,
) -> Ratio:
    """The sessions role on a backlog of these conversations, each time as a process of its own on fresh topics.

    Raises:
        BenchFailed: The role ended, or did not take the backlog in time.
    """
    rates: list[dict[bool, float]] = []
    for number in range(runs):
        backlog = list(TurnTraffic(number, conversations).backlog(turns, ends_at=datetime.now(UTC)))
        rates.append({})
        for with_topics in _order(number):
            file = _policy_file(environment.home, policy, with_topics=with_topics)
            settings = environment.settings().model_copy(update={"policy_file": file})
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


def _arrivals(turns: Sequence[Turn], policy: Policy, embedder: Embedder) -> list[DecodedArrival]:
    return Intake(policy, embedder, RuleScorer()).take(records_of(turns)).arrivals


def _folded_per_s(arrivals: Sequence[DecodedArrival], policy: Policy) -> float:
    return len(arrivals) / time_fold(InMemory(policy), arrivals)[0]


def traffic_turns(conversations: Sequence[DemoConversation] | None, count: int) -> list[Turn]:
    """Turns of many interleaved sessions, as `turntide bench stream` sends them; of the demo's where none are given."""
    return list(TurnTraffic(0, conversations).backlog(count, ends_at=BEGINS))
