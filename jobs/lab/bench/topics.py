"""`turntide lab bench topics`: figures of topic memory, measured on real conversations, each beside its limit.

The source's codec is JSON → gzip → base64. Beside it: the same without base64, and the project's second codec
(`deflate` with a shared dictionary).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from contextlib import AbstractContextManager
from statistics import median
from time import thread_time

import msgspec
import numpy as np
from msgspec.structs import replace

from jobs.demo.conversations import DemoConversation
from jobs.lab.bench.folds import BEGINS, InMemory, records_of, time_fold
from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.measuring import BenchFailed, Figures, in_turns, say
from jobs.lab.bench.sessions_role import take_backlog
from jobs.lab.bench.topics_work import TWENTY, LongSession, long_sessions, match_ms, walk
from jobs.lab.bench.traffic import TurnTraffic, conversation_of, send_backlog
from jobs.lab.eval.dialogues import TopicDialogue
from models.events import Role, Turn
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.session.topics.packing import Codec, MessageEntry, json_bytes, pack, unpack
from streams.inference.intake import Intake
from streams.ports import Embedder
from streams.settings import load_settings
from streams.wiring import embedder_of, policy_of

COUNTS = (10, 20, 50)
"""Messages packed at once (topic memory, Compression ratio)."""
SEED_SAVES_PERCENT = {10: 86.6, 20: 86.1, 50: 85.9}
SEED_JSON_KB = {10: 8.2, 20: 16.5, 50: 41.2}
"""So the source's messages have about 820 bytes each; gzip saves more of longer ones."""
_FOLD_RUNS = 3
_KB = 1_000


QUICK = {"most_sessions": 3, "runs": 1, "fold_turns": 2_000, "role_turns": 3_000}


async def measure(
    *,
    dialogues: Sequence[TopicDialogue],
    environment: AbstractContextManager[BenchEnvironment] | None = None,
    most_sessions: int = 16,
    runs: int = 3,
    fold_turns: int = 10_000,
    role_turns: int = 20_000,
) -> Figures:
    """Measure everything.

    Args:
        dialogues: Conversations.
        environment: Where the sessions role runs; None: it is left out.
        most_sessions: Long sessions at the most.
        runs: Rounds of the sessions role.
        fold_turns: Turns of each round of the fold.
        role_turns: Turns of each round of the sessions role.
        BenchFailed: The conversations are too short, or the role failed.
    """
    settings = load_settings()
    policy, embedder = policy_of(settings), embedder_of(settings)
    sessions = long_sessions(dialogues, embedder, most_sessions)
    turns = sum(len(session.turns) for session in sessions)
    say(f"{len(sessions)} long sessions of {turns:,} turns, message by message")
    walked = walk(sessions, policy)
    if not walked.topic_bytes:
        raise BenchFailed(f"{turns} turns are too few to measure: give more files, or none for the demo's")
    say("packing and matching")
    packing, notes = packing_rows(sessions), list[str]()
    if packing:
        costs = median(row["base64_costs_percent"] for row in packing)
        notes.append(f"base64 costs {costs:.0f} % of what gzip leaves: four characters for three bytes")
    if not walked.twenty_topics_bytes:
        notes.append(f"no session had {TWENTY} topics at once, the most were {walked.most_topics}")
    conversations = [conversation_of(said.turns[0].app_id, _words(said.turns)) for said in dialogues]
    if environment is None:
        role = None
        notes.append("the sessions role was not run: ratio_fold is the fold alone, where topics weigh most")
    else:
        say("the sessions role with topics and without")
        with environment as place:
            role = await role_ratio(place, conversations, policy, runs=runs, turns=role_turns)
    probes = sum(lineage.probes for lineage in walked.compactions)
    found = sum(lineage.probes_found for lineage in walked.compactions)
    return {
        "embedder": embedder.name,
        "similarity_threshold": policy.topics.threshold,
        "dialogues": len(dialogues),
        "sessions": len(sessions),
        "turns": turns,
        "add_ms": _times(walked.taken_ms[""]),
        "match_ms": _times(match_ms(sessions, policy)),
        "unpack_ms": _times(unpack_ms(sessions, "gzip")),
        "unpack_deflate_ms": _times(unpack_ms(sessions, "deflate")),
        "add_with_compaction_ms": _times(walked.taken_ms["compacted"]),
        "add_with_unpacking_ms": _times(walked.taken_ms["unpacked"]),
        "packing": packing,
        "kb_per_topic": _kilobytes(walked.topic_bytes),
        "kb_for_20_topics": _kilobytes(walked.twenty_topics_bytes),
        "most_topics": walked.most_topics,
        "ratio_throughput": role,
        "ratio_fold": await fold_ratio(conversations, policy, embedder, turns=fold_turns),
        "ratio_fold_traffic": await fold_ratio((), policy, embedder, turns=fold_turns),
        "probes": {
            "compactions": len(walked.compactions),
            "probes": probes,
            "loss": 1 - found / probes if probes else 0.0,
        },
        "notes": notes,
        "runs": runs,
    }


def _times(values_ms: Sequence[float]) -> Figures | None:
    """Median and the slowest of a hundred (`numpy.percentile`, linear); None where nothing of the kind happened."""
    if not values_ms:
        return None
    return {"median": median(values_ms), "p99": float(np.percentile(values_ms, 99)), "count": len(values_ms)}


def _kilobytes(sizes_bytes: Sequence[int]) -> Figures | None:
    if not sizes_bytes:
        return None
    return {"median": median(sizes_bytes) / _KB, "largest": max(sizes_bytes) / _KB}


def strings_of(sessions: Sequence[LongSession], messages: int) -> list[list[MessageEntry]]:
    """The sessions cut into strings of so many messages one after the other; what is left over is dropped."""
    strings = []
    for session in sessions:
        said = [MessageEntry(turn.role, turn.content, turn.timestamp.timestamp()) for turn in session.turns]
        strings += [said[n : n + messages] for n in range(0, len(said) - messages + 1, messages)]
    return strings


def packing_rows(sessions: Sequence[LongSession]) -> list[Figures]:
    """A row for each count of which there is a string: what packing saves, by codec, beside the source's figure."""
    rows = []
    for count in COUNTS:
        if not (strings := strings_of(sessions, count)):
            continue
        packed = [pack(string, "gzip") for string in strings]
        sizes = {
            "gzip_base64": sum(map(len, packed)),
            "gzip": sum(len(b64decode(each)) for each in packed),
            "deflate": sum(len(pack(string, "deflate")) for string in strings),
        }
        raw_bytes = sum(len(json_bytes(string)) for string in strings)
        rows.append(
            {
                "messages": count,
                "strings": len(strings),
                "json_kb": raw_bytes / len(strings) / _KB,
                "seed_json_kb": SEED_JSON_KB[count],
                "gzip_base64_kb": sizes["gzip_base64"] / len(strings) / _KB,
                "seed_saves_percent": SEED_SAVES_PERCENT[count],
                "base64_costs_percent": (sizes["gzip_base64"] / sizes["gzip"] - 1) * 100,
                **{f"{codec}_saves_percent": (1 - size / raw_bytes) * 100 for codec, size in sizes.items()},
            }
        )
    return rows


def unpack_ms(sessions: Sequence[LongSession], codec: Codec) -> list[float]:
    """CPU milliseconds for each string of fifty messages; shorter strings where the sessions have none."""
    strings = next((found for count in reversed(COUNTS) if (found := strings_of(sessions, count))), [])
    taken_ms = []
    for packed in [pack(string, codec) for string in strings]:
        began_s = thread_time()
        unpack(packed, codec)
        taken_ms.append((thread_time() - began_s) * 1000)
    return taken_ms


def _words(turns: Sequence[Turn]) -> list[dict[Role, str]]:
    return [{turn.role: turn.content} for turn in turns]


def switched(policy: Policy, *, with_topics: bool) -> Policy:
    """The policy with topic memory on or off."""
    return replace(policy, topics=replace(policy.topics, enabled=with_topics))


async def fold_ratio(
    conversations: Sequence[DemoConversation], policy: Policy, embedder: Embedder, *, turns: int
) -> Figures:
    """The fold of one partition over turns that are decoded, scored and embedded beforehand; CPU time."""
    log = records_of(TurnTraffic(0, conversations).backlog(turns, ends_at=BEGINS))
    arrivals = Intake(policy, embedder, RuleScorer()).take(log).arrivals

    async def folded_per_s(_: int, with_topics: bool) -> float:
        return len(arrivals) / time_fold(InMemory(switched(policy, with_topics=with_topics)), arrivals)[0]

    return _ratio(await in_turns(_FOLD_RUNS, folded_per_s))


async def role_ratio(
    environment: BenchEnvironment,
    conversations: Sequence[DemoConversation],
    policy: Policy,
    *,
    runs: int,
    turns: int,
) -> Figures:
    """The sessions role on a backlog of these conversations, each time as a process of its own on fresh topics.

    Raises:
        BenchFailed: The role ended, or did not take the backlog in time.
    """

    async def taken_per_s(number: int, with_topics: bool) -> float:
        named = "with topics" if with_topics else "without topics"
        file = environment.home / f"{named.replace(' ', '-')}.json"
        file.write_bytes(msgspec.json.encode(switched(policy, with_topics=with_topics)))
        settings = (await environment.fresh()).model_copy(update={"policy_file": file})
        await send_backlog(settings, number, turns, conversations)
        rate = (await take_backlog(settings, turns)).timing.turns_per_s
        say(f"  sessions role {named}: {rate:,.0f} turns/s")
        return rate

    return _ratio(await in_turns(runs, taken_per_s))


def _ratio(rates: Sequence[dict[bool, float]]) -> Figures:
    """Throughput with topic memory divided by that without, of the same turns: the median over rounds."""
    ratios = [each[True] / each[False] for each in rates]
    return {
        "ratio": median(ratios),
        "with_topics_turns_per_s": median(each[True] for each in rates),
        "without_topics_turns_per_s": median(each[False] for each in rates),
        "rounds": ratios,
    }
