"""`turntide lab bench topics`: figures of topic memory, measured on real conversations, each beside its limit.

The source's codec is JSON → gzip → base64; beside it stands `zstd` with a trained dictionary, the default. A message
begins from stored parts and ends with changed ones, as in a batch that brings one turn of a session: the dearest case.
Times are CPU time of this thread: what else runs on the machine takes none of it.
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from itertools import groupby
from statistics import median
from time import thread_time
from timeit import timeit
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from jobs.demo.conversations import DemoConversation
from jobs.lab.bench.folds import BEGINS, InMemory, TurnTraffic, conversation_of, records_of, send_backlog, time_fold
from jobs.lab.bench.measuring import BenchEnvironment, BenchFailed, Figures, say
from jobs.lab.bench.roles import take_backlog
from jobs.lab.eval.dialogues import TopicDialogue
from models.events import Role, TopicCompaction, Turn
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.session.topics.conversation_topics import ConversationTopics, CountedMessage
from models.session.topics.matching import TopicVectors, topic_vector
from models.session.topics.packing import Codec, MessageEntry, json_bytes, pack, unpack
from models.session.topics.state import PREFIX, Damage, TopicChange
from models.state.buffer import BufferedTurn, encode_turn
from models.state.parts import Parts
from streams.inference.intake import Intake
from streams.ports import Embedder, Vectors
from streams.settings import load_settings
from streams.wiring import embedder_of, policy_of

SESSION_TURNS = 600
"""Dialogues are strung together up to so many turns: somebody's long conversation with an assistant."""
TWENTY = 20
"""Topics of which the source gives figures."""
_SIZED_EVERY = 10
_BETWEEN_TURNS = timedelta(seconds=5)
_T = TypeVar("_T")
_SLOT = re.compile(r"t[a-z]?(\d+)(?:\.\d+)?")


class LongSession(Struct, frozen=True):
    """Dialogues strung together, numbered and dated anew, with the vectors of their user turns, `(n_turns, dim)`."""

    turns: Sequence[Turn]
    vectors: Vectors


class TopicWork(Struct):
    """Cost and content of topic memory over some sessions.

    Milliseconds of each addition by what it did beside adding (`compacted`, `unpacked` or nothing); bytes of each topic
    and of the twenty largest, every tenth message; the most topics of a session at once; each compaction's lineage.
    """

    taken_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    topic_bytes: list[int] = field(default_factory=list)
    twenty_topics_bytes: list[int] = field(default_factory=list)
    most_topics: int = 0
    compactions: list[TopicCompaction] = field(default_factory=list)


class _TopicRecorder:
    """Takes down what topic memory tells."""

    def __init__(self) -> None:
        self.changes: list[TopicChange] = []

    def topic(self, change: TopicChange) -> None:
        self.changes.append(change)

    def damage(self, damage: Damage) -> None:
        raise AssertionError(damage.detail)  # nothing here damages what was packed


def long_sessions(dialogues: Sequence[TopicDialogue], embedder: Embedder, most: int) -> list[LongSession]:
    """String dialogues together, those of one user first of all; at most so many sessions, from all over the files."""
    strings: list[list[Turn]] = [[]]
    for _, of_source in groupby(dialogues, key=lambda dialogue: dialogue.source):
        strings.append([])
        for _, of_user in groupby(of_source, key=lambda dialogue: dialogue.user_id):
            said = [turn for dialogue in of_user for turn in dialogue.turns]
            if len(strings[-1]) + len(said) > SESSION_TURNS:
                strings.append([])
            strings[-1] += said
    whole = [string[:SESSION_TURNS] for string in strings if string]
    step = -(-len(whole) // most)
    sessions = list[LongSession]()
    for n, string in enumerate(whole[::step]):
        turns = list[Turn]()
        for number, turn in enumerate(string):
            at = turn.timestamp if not turns else max(turn.timestamp, turns[-1].timestamp + _BETWEEN_TURNS)
            turns.append(replace(turn, session_id=f"long-{n}", turn=number, timestamp=at, metadata=None))
        sessions.append(LongSession(turns, embedder.embed([turn.content for turn in turns])))
    return sessions


def messages_of(session: LongSession) -> list[CountedMessage]:
    """A session's turns as topic memory takes them."""
    messages = []
    for turn, vector in zip(session.turns, session.vectors, strict=True):
        said = BufferedTurn(turn.turn, turn.role, turn.content, turn.timestamp, turn.risk)
        matched = topic_vector(vector) if turn.role is Role.USER else None
        messages.append(CountedMessage(said, encode_turn(said), matched, None, turn.timestamp))
    return messages


def walk(sessions: Sequence[LongSession], policy: Policy) -> TopicWork:
    """Take every message of every session into topic memory."""
    walked = TopicWork()
    for session in sessions:
        stored: dict[str, bytes] = {}
        for place, message in enumerate(messages_of(session)):
            began_s = thread_time()
            changes, changed = _add(stored, message, policy)
            taken_ms = (thread_time() - began_s) * 1000
            causes = {change.cause for change in changes}
            walked.taken_ms[next((each for each in ("compacted", "unpacked") if each in causes), "")].append(taken_ms)
            walked.compactions += [change.compaction for change in changes if change.compaction]
            _store(stored, changed)
            if place % _SIZED_EVERY == _SIZED_EVERY - 1:
                sizes = sorted(bytes_by_topic(stored).values(), reverse=True)
                walked.most_topics = max(walked.most_topics, len(sizes))
                walked.topic_bytes += sizes
                if len(sizes) >= TWENTY:
                    walked.twenty_topics_bytes.append(sum(sizes[:TWENTY]))
    return walked


def _add(
    stored: dict[str, bytes], message: CountedMessage, policy: Policy
) -> tuple[list[TopicChange], dict[str, bytes | None]]:
    """Changes that topic memory emits for a message, and the parts that it changes."""
    emitted, parts = _TopicRecorder(), Parts(stored)
    topics = ConversationTopics(parts, policy.topics, policy.risk.risky_topics)
    topics.add(message, lambda: f"topic-{message.turn.turn}", emitted)
    topics.flush()
    return emitted.changes, parts.changes()


def _store(stored: dict[str, bytes], changed: dict[str, bytes | None]) -> None:
    stored |= {name: value for name, value in changed.items() if value is not None}
    for name in [name for name, value in changed.items() if value is None]:
        stored.pop(name, None)


def bytes_by_topic(stored: dict[str, bytes]) -> dict[int, int]:
    """Bytes of each topic's parts, by its slot.

    >>> bytes_by_topic({"head": b"1234", "ti": b"12", "t3": b"123", "tm3.0": b"1", "tp12.4": b"12345"})
    {3: 4, 12: 5}
    """
    sizes: dict[int, int] = {}
    for name, value in stored.items():
        if name.startswith(PREFIX) and (found := _SLOT.fullmatch(name)):
            slot = int(found[1])
            sizes[slot] = sizes.get(slot, 0) + len(value)
    return sizes


def match_ms(sessions: Sequence[LongSession], policy: Policy) -> list[float]:
    """CPU milliseconds to find the nearest of twenty topics, which are read from their parts each time.

    Raises:
        BenchFailed: There are not twenty-one user messages.
    """
    said = [message for session in sessions for message in messages_of(session) if message.vector is not None]
    if len(said) <= TWENTY:
        raise BenchFailed(f"{len(said)} user messages are too few to match against {TWENTY} topics: give more files")
    apart = replace(policy.topics, similarity_threshold=1.0, active_bonus=0.0)
    stored = dict[str, bytes]()
    for message in said[:TWENTY]:
        _store(stored, _add(stored, message, replace(policy, topics=apart))[1])

    def nearest(asked: tuple[ConversationTopics, CountedMessage]) -> int:
        topics, message = asked
        cosines = TopicVectors(topics.store).cosines(message.vector)  # type: ignore[arg-type]
        return max(cosines, key=cosines.__getitem__)

    return _cpu_ms(nearest, ((ConversationTopics(Parts(stored), policy.topics), each) for each in said[TWENTY:]))


def _cpu_ms(work: Callable[[_T], object], things: Iterable[_T]) -> list[float]:
    """CPU milliseconds of the work on each."""
    return [timeit(partial(work, thing), timer=thread_time, number=1) * 1000 for thing in things]


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
    """Measure everything on these conversations, strung to so many sessions at the most.

    Without an environment the sessions role is left out; `runs` are its rounds, of `role_turns` each.
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
    if not walked.twenty_topics_bytes:
        notes.append(f"no session had {TWENTY} topics at once, the most were {walked.most_topics}")
    conversations = [
        conversation_of(said.turns[0].app_id, [{turn.role: turn.content} for turn in said.turns]) for said in dialogues
    ]
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
        "unpack_zstd_ms": _times(unpack_ms(sessions, "zstd")),
        "pack_gzip_ms": _times(_cpu_ms(partial(pack, codec="gzip"), strings_of(sessions, TWENTY))),
        "pack_zstd_ms": _times(_cpu_ms(partial(pack, codec="zstd"), strings_of(sessions, TWENTY))),
        "add_with_compaction_ms": _times(walked.taken_ms["compacted"]),
        "add_with_unpacking_ms": _times(walked.taken_ms["unpacked"]),
        "packing": packing,
        "kb_per_topic": _kilobytes(walked.topic_bytes),
        "kb_for_20_topics": _kilobytes(walked.twenty_topics_bytes),
        "most_topics": walked.most_topics,
        "ratio_throughput": role,
        "ratio_fold": await fold_ratio(conversations, policy, embedder, turns=fold_turns),
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
        codecs: dict[str, Codec] = {"gzip_base64": "gzip", "zstd": "zstd"}
        sizes = {name: sum(len(pack(string, codec)) for string in strings) for name, codec in codecs.items()}
        raw_bytes = sum(len(json_bytes(string)) for string in strings)
        rows.append(
            {
                "messages": count,
                "strings": len(strings),
                "json_kb": raw_bytes / len(strings) / _KB,
                "seed_json_kb": SEED_JSON_KB[count],
                "seed_saves_percent": SEED_SAVES_PERCENT[count],
                **{f"{codec}_saves_percent": (1 - size / raw_bytes) * 100 for codec, size in sizes.items()},
            }
        )
    return rows


def unpack_ms(sessions: Sequence[LongSession], codec: Codec) -> list[float]:
    """CPU milliseconds for each string of fifty messages; shorter strings where the sessions have none."""
    strings = next((found for count in reversed(COUNTS) if (found := strings_of(sessions, count))), [])
    return _cpu_ms(partial(unpack, codec=codec), [pack(string, codec) for string in strings])


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

    return await _ratio(_FOLD_RUNS, folded_per_s)


async def role_ratio(
    environment: BenchEnvironment, conversations: Sequence[DemoConversation], policy: Policy, *, runs: int, turns: int
) -> Figures:
    """The sessions role on a backlog of these conversations, each time as a process of its own on fresh topics."""

    async def taken_per_s(number: int, with_topics: bool) -> float:
        named = "with topics" if with_topics else "without topics"
        file = environment.home / f"{named.replace(' ', '-')}.json"
        file.write_bytes(msgspec.json.encode(switched(policy, with_topics=with_topics)))
        settings = (await environment.fresh()).model_copy(update={"policy_file": file})
        await send_backlog(settings, number, turns, conversations)
        rate = (await take_backlog(settings, turns)).timing.turns_per_s
        say(f"  sessions role {named}: {rate:,.0f} turns/s")
        return rate

    return await _ratio(runs, taken_per_s)


async def _ratio(rounds: int, run: Callable[[int, bool], Awaitable[float]]) -> Figures:
    """Throughput with topic memory divided by that without, of the same turns: the median over rounds.

    In the other order every round. `run` is called with the number of the round, and whether topics are on.
    """
    rates = [{each: await run(n, each) for each in ((True, False) if n % 2 else (False, True))} for n in range(rounds)]
    ratios = [each[True] / each[False] for each in rates]
    return {
        "ratio": median(ratios),
        "with_topics_turns_per_s": median(each[True] for each in rates),
        "without_topics_turns_per_s": median(each[False] for each in rates),
        "rounds": ratios,
    }
