"""`turntide lab bench memories`: the source's figures of app memory, each beside its limit; folds in this process."""

import gc
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from msgspec import Struct
from msgspec.structs import replace

from jobs.lab.bench.folds import BEGINS, CommandLog, InMemory, TurnTraffic, about, records_of, time_fold
from jobs.lab.bench.measuring import BenchFailed, Figures, asked_ms, say, times
from models.events import AppMemoriesCompacted, AppMemoryChanged, ConversationEnded, Position, Turn, UserTurnAdded
from models.events.topics import COMMANDS, TURNS
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.arrival import Command
from streams.api.apps.context import AppContext
from streams.index.app_memory import AppMemoryIndex
from streams.index.edge import EdgeStore
from streams.inference.intake import Intake
from streams.observe.telemetry import configure_logging
from streams.ports import Embedder
from streams.settings import load_settings
from streams.wiring import embedder_of, policy_of

ENDS = 100
"""Conversations that end on each app (app memory: remains stable with 100 and more)."""
_BUDGET_TOKENS = 2_000
_BATCH_POINTS = 500
_QUERIES = ("what the user prefers", "the deadline", "what was decided", "a refund", "the router is slow")
QUICK = {"turns": 2_000, "rounds": 1, "walked": 40, "apps": 200, "asked": 200}


async def measure(
    *, turns: int = 10_000, rounds: int = 5, walked: int = 100, apps: int = 1_000, asked: int = 2_000
) -> Figures:
    """Measure everything, without a broker and without a language model.

    Conversations of so many turns are folded in each round; a hundred end on each app that is walked; apps in the store
    have as many memories each as the policy keeps, and are asked so many questions of each kind.
    """
    settings = load_settings()
    configure_logging(level="warning")  # a line for each context would stand among the figures
    policy, embedder = policy_of(settings), embedder_of(settings)
    policy = replace(policy, apps=replace(policy.apps, ask=False, spaces=("app",)))
    say(f"folding {turns:,} turns of the demo's conversations, {rounds} times")
    arrivals = arrivals_of(turns, policy, embedder)
    share, ended = share_of_work(arrivals, policy, rounds=rounds)
    say(f"{ENDS} conversations end on each of {walked} apps")
    work = walk(ended, policy, apps=walked)
    if not work.compacted_ms:
        raise BenchFailed(f"nothing was compacted: {work.most} memories at the most of {ENDS} conversations")
    memories = walk(ended, policy, apps=apps, ends=policy.apps.most).memories
    say(f"indexing {len(memories):,} memories of {apps:,} apps")
    with TemporaryDirectory() as folder:
        began_s = perf_counter()
        store = AppMemoryIndex(EdgeStore(Path(folder), embedder=embedder.name), embedder)
        for first in range(0, len(memories), _BATCH_POINTS):
            await store.add_changes(list(zip(memories[first : first + _BATCH_POINTS], count(first), strict=False)))
        fill_s = perf_counter() - began_s
        say(f"asking {asked:,} times each")
        reading = await _read(store, policy, apps, asked)
    compacted_s = share["ended"] * mean(work.compacted_ms) / 1000
    others_s = share["sessions_s"] + share["memory_s"] - share["spaces_s"]
    return {
        "embedder": embedder.name,
        "apps": apps,
        "memories": len(memories),
        "work": [times("creation", work.created_ms), times("creation and compaction", work.compacted_ms)],
        "reading": reading,
        "ends": {
            "ended": ENDS,
            "left": work.left[1],
            "most": work.most,
            # Of one app, rounded down.
            "made": sum(change.cause == "created" for change in work.memories) // walked,
            "merged": sum(compaction.action == "edit" for compaction in work.compactions) // walked,
            "deleted": sum(compaction.action == "delete" for compaction in work.compactions) // walked,
        },
        "share": share,
        "own_words_percent": 100 * compacted_s / (others_s + compacted_s),
        "ratio_compaction": median(work.compacted_ms) / median(work.created_ms),
        "ratio_context": reading[1]["p99_ms"] / reading[0]["p99_ms"],
        "fill_s": fill_s,
    }


def arrivals_of(turns: int, policy: Policy, embedder: Embedder) -> list[DecodedArrival]:
    """The demo's conversations over and over, interleaved, each ended behind its last turn; scored and embedded."""
    events = TurnTraffic().events(turns, ends_at=BEGINS)
    return Intake(policy, embedder, RuleScorer()).take(records_of(events)).arrivals


def share_of_work(
    arrivals: Sequence[DecodedArrival], policy: Policy, *, rounds: int
) -> tuple[Figures, list[ConversationEnded]]:
    """Share of memories of apps in the CPU time of both folds over the same conversations; and those that ended.

    Raises:
        BenchFailed: None ended.
    """
    gc.collect()
    gc.freeze()  # as roles do once they are started: what was read beforehand is no garbage of the folds'
    measured = list[tuple[float, float, float]]()
    for _ in range(rounds + 1):  # the first one warms up
        sessions_s, outputs = time_fold(InMemory(policy), arrivals)
        forwarded = [event for event in outputs if isinstance(event, UserTurnAdded | ConversationEnded)]
        log = [Command(event, Position(COMMANDS.name, 0, n), event.timestamp) for n, event in enumerate(forwarded)]
        users = InMemory(policy, kind=partial(MemoryPartitionFold, seconds=process_time))
        measured.append((sessions_s, time_fold(users, log)[0], users.fold.take_spent()[0]))
    ended = [event for event in outputs if isinstance(event, ConversationEnded)]
    if not ended:
        raise BenchFailed("no conversation ended: the policy has `apps.enabled` off, or there are too few turns")
    percents = [100 * spaces / (sessions + memory) for sessions, memory, spaces in measured[1:]]
    middle = zip(("sessions_s", "memory_s", "spaces_s"), map(median, zip(*measured[1:], strict=True)), strict=True)
    share = {
        "turns": sum(isinstance(arrival.event, Turn) for arrival in arrivals),
        "ended": len(ended),
        "spaces_percent": median(percents),
        **dict(middle),
        "rounds_percent": percents,
    }
    return share, ended


class AppMemoryWork(Struct, frozen=True):
    """Conversations that ended on apps, one after the other.

    Attributes:
        created_ms: Milliseconds of CPU time for each that became a memory …
        compacted_ms: … and for each that also made one of eleven go, state read and written.
        most: Most memories that a reader saw of an app at any time.
        left: Memories of an app in the end, at the least and at the most.
        memories: Everything told of memories, in order.
        compactions: How each memory too many went.
    """

    created_ms: list[float]
    compacted_ms: list[float]
    most: int
    left: tuple[int, int]
    memories: list[AppMemoryChanged]
    compactions: list[AppMemoriesCompacted]


def walk(ended: Sequence[ConversationEnded], policy: Policy, *, apps: int, ends: int = ENDS) -> AppMemoryWork:
    """Let so many of these conversations end on each app, one command at a time as when little is to do.

    Apps take turns, and every conversation has words of its own: what the rules know of a sentence by heart is of
    little use, as with many apps.
    """
    log, created_ms, compacted_ms = CommandLog(policy), list[float](), list[float]()
    memories, compactions = list[AppMemoryChanged](), list[AppMemoriesCompacted]()
    held, most = dict[str, set[int]](), 0
    for n in range(apps * ends):
        app_id = app_of(n % apps)
        event = _as(ended[n // apps % len(ended)], app_id, n)
        taken_ms, outputs = log.put(event, event.timestamp)
        slots = held.setdefault(app_id, set())
        for change in (output for output in outputs if isinstance(output, AppMemoryChanged)):
            memories.append(change)
            (slots.add if change.active else slots.discard)(change.slot)
            most = max(most, len(slots))
        found = [output for output in outputs if isinstance(output, AppMemoriesCompacted)]
        (compacted_ms if found else created_ms).append(taken_ms)
        compactions += found
    left = [len(slots) for slots in held.values()]
    return AppMemoryWork(created_ms, compacted_ms, most, (min(left), max(left)), memories, compactions)


def _as(ended: ConversationEnded, app_id: str, n: int) -> ConversationEnded:
    """The conversation as another one, of another app and about something else."""
    return replace(
        ended,
        id=f"{app_id}/{n}",
        session_id=f"{app_id}-{n}",
        app_id=app_id,
        source=Position(TURNS.name, 0, n),
        notables=[replace(each, text=about(each.text, f"in case {n}")) for each in ended.notables],
        summary=about(ended.summary, f"in case {n}"),
    )


def app_of(number: int) -> str:
    """Id of the app of this number."""
    return f"bench-app-{number}"


async def _read(store: AppMemoryIndex, policy: Policy, apps: int, asked: int) -> list[Figures]:
    """Memories of a space, the source's context of it, and searching it; other apps every time."""
    context, rng = AppContext(store, policy.apps), random.Random(0)  # noqa: S311 - repeatable, not secret

    async def memories(app_id: str) -> bool:
        return len(await store.memories(app_id)) == policy.apps.most

    async def source_context(app_id: str) -> bool:
        preface = await context.preface(app_id, "", "", _BUDGET_TOKENS)
        return preface is not None and bool(preface.memories)

    async def found(app_id: str) -> bool:
        return bool(await store.find(app_id, "", rng.choice(_QUERIES), mode="hybrid", top_k=5))

    kinds: dict[str, Callable[[str], Awaitable[bool]]] = {
        "memories of a space": memories,
        "the source's context": source_context,
        "hybrid search of a space": found,
    }
    names = [app_of(rng.randrange(apps)) for _ in range(asked)]
    return [times(what, await asked_ms(what, ask, names)) for what, ask in kinds.items()]
