"""`turntide bench memories`: the source's figures of app memory, each beside its limit."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import mean
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace

from jobs.lab.bench.measuring import BenchFailed, Figures, Percentiles, Say, spread_ms, times
from jobs.lab.bench.memories_work import (
    ENDS,
    AppMemoryShare,
    AppMemoryWork,
    ended_in,
    log_of,
    sessions_folded,
    share_of_work,
    taken_in,
    walk,
)
from models.events import AppMemoryChanged, Position
from models.events.topics import COMMANDS
from models.policy import Policy
from streams.api.apps.context import AppContext
from streams.index.app_memory import AppMemoryIndex
from streams.index.edge import EdgeStore
from streams.ports import Embedder

_BUDGET_TOKENS = 2_000
_BATCH_POINTS = 500
_QUERIES = ("what the user prefers", "the deadline", "what was decided", "a refund", "the router is slow")


class AppMemorySize(Struct, frozen=True):
    """How much is measured.

    Attributes:
        turns: Of the conversations that are folded, each round …
        rounds: … and how often.
        walked: Apps on each of which a hundred conversations end.
        apps: Apps in the store, with as many memories each as the policy keeps.
        asked: Questions of each kind.
    """

    turns: int = 10_000
    rounds: int = 5
    walked: int = 100
    apps: int = 1_000
    asked: int = 2_000


QUICK = AppMemorySize(turns=2_000, rounds=1, walked=40, apps=200, asked=200)


async def measure(folder: Path, policy: Policy, embedder: Embedder, size: AppMemorySize, *, say: Say) -> Figures:
    """Measure everything, without a broker and without a language model.

    Raises:
        BenchFailed: No conversation became a memory.
    """
    policy = replace(policy, apps=replace(policy.apps, ask=False))
    say(f"folding {size.turns:,} turns of the demo's conversations, {size.rounds} times")
    log = log_of(size.turns)
    share = share_of_work(log, policy, embedder, rounds=size.rounds)
    ended = ended_in(sessions_folded(taken_in(log, policy, embedder)[1], policy)[1])
    say(f"{ENDS} conversations end on each of {size.walked} apps")
    walked = walk(ended, policy, apps=size.walked)
    memories = memories_for(walked, size.apps, policy.apps.most)
    say(f"indexing {len(memories):,} memories of {size.apps:,} apps")
    began_s = perf_counter()
    store = AppMemoryIndex(EdgeStore(folder / "vectors", embedder=embedder.name), embedder)
    for first in range(0, len(memories), _BATCH_POINTS):
        batch = memories[first : first + _BATCH_POINTS]
        await store.add_changes([(memory, first + n) for n, memory in enumerate(batch)])
    fill_s = perf_counter() - began_s
    say(f"asking {size.asked:,} times each")
    reading = await _read(store, policy, size)
    return {
        "embedder": embedder.name,
        "apps": size.apps,
        "memories": len(memories),
        "work": [times("creation", walked.created_ms), times("creation and compaction", walked.compacted_ms)],
        "reading": reading,
        "ends": {
            "ended": ENDS,
            "made": walked.made,
            "merged": walked.merged,
            "deleted": walked.deleted,
            "left": walked.left[1],
            "most": walked.most,
        },
        "share": share,
        "own_words_percent": own_words_percent(share, walked),
        "ratio_compaction": spread_ms(walked.compacted_ms).p50_ms / spread_ms(walked.created_ms).p50_ms,
        "ratio_context": reading[1].p99_ms / reading[0].p99_ms,
        "fill_s": fill_s,
    }


def memories_for(walked: AppMemoryWork, apps: int, each: int) -> list[AppMemoryChanged]:
    """Memories of many apps: what was made, over and over, under other names.

    Raises:
        BenchFailed: Nothing was made.
    """
    made = [change for change in walked.memories if change.active]
    if not made:
        raise BenchFailed("no conversation became a memory")
    return [
        replace(
            made[n % len(made)],
            id=f"stored-{n}",
            app_id=app_of(n // each),
            slot=n % each,
            memory_id=n % each + 1,
            created_at=made[n % len(made)].created_at + timedelta(days=n % each),
            updated_at=made[n % len(made)].updated_at + timedelta(days=n % each),
            source=Position(COMMANDS.name, 0, n),
        )
        for n in range(apps * each)
    ]


def own_words_percent(share: AppMemoryShare, walked: AppMemoryWork) -> float:
    """Spaces' part of both folds, if each end took as long as one that is compacted and has words of its own."""
    spaces_s = share.ended * mean(walked.compacted_ms) / 1000
    return 100 * spaces_s / (share.sessions_s + share.memory_s - share.spaces_s + spaces_s)


def app_of(number: int) -> str:
    """Id of the app of this number."""
    return f"stored-app-{number}"


async def _read(store: AppMemoryIndex, policy: Policy, size: AppMemorySize) -> list[Percentiles]:
    """Memories of a space, the source's context of it, and searching it; other apps every time.

    Raises:
        BenchFailed: An app's memories are not all there.
    """
    context, rng = AppContext(store, policy.apps), random.Random(0)  # noqa: S311 - repeatable, not secret

    async def memories(app_id: str) -> bool:
        return len(await store.memories(app_id)) == policy.apps.most

    async def source_context(app_id: str) -> bool:
        preface = await context.preface(app_id, "", _BUDGET_TOKENS)
        return preface is not None and bool(preface.memories)

    async def found(app_id: str) -> bool:
        return bool(await store.find(app_id, "", rng.choice(_QUERIES), mode="hybrid", top_k=5))

    kinds: dict[str, Callable[[str], Awaitable[bool]]] = {
        "memories of a space": memories,
        "the source's context": source_context,
        "hybrid search of a space": found,
    }
    apps = [app_of(rng.randrange(size.apps)) for _ in range(size.asked)]
    return [times(what, await _asked(ask, apps, what)) for what, ask in kinds.items()]


async def _asked(ask: Callable[[str], Awaitable[bool]], apps: Sequence[str], what: str) -> list[float]:
    """Milliseconds of each question; a fourth of them is asked before to warm up."""
    for app_id in apps[: len(apps) // 4]:
        await ask(app_id)
    taken_ms = []
    for app_id in apps:
        began_s = perf_counter()
        if not await ask(app_id):
            raise BenchFailed(f"{what}: {app_id} was not answered as it should")
        taken_ms.append((perf_counter() - began_s) * 1000)
    return taken_ms
