"""`turntide lab bench retrieve`: how long reading memory takes, inside the process and over HTTP at a steady rate."""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
from msgspec import Struct, json

from jobs.lab.bench.measuring import BenchFailed, Figures, Say, spread_ms
from jobs.lab.bench.retrieve_corpus import MEMORIES_EACH, Corpus, CorpusQuestion, fill, users_for
from jobs.lab.bench.retrieve_end_to_end import question_to_context
from jobs.lab.bench.retrieve_http import RequestLoad, serving, time_http
from jobs.shared.role_process import with_bytecode
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.users.messages import AssembleContext, Retrieve, SearchMemory
from streams.api.users.reading import MemoryReader
from streams.http.security import Caller, reading_for
from streams.index.edge import EdgeStore
from streams.ports import Embedder
from streams.settings import Settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of

HTTP_ALONE = "/livez"
"""Touches no memory: what the server and the machine take for themselves."""
_QUESTIONS = 1_000
_WARM = 0.5
"""Questions asked inside the process beforehand, as a share of those that count."""
_ASKED: Mapping[str, tuple[Callable[[MemoryReader, CorpusQuestion], Awaitable[Any]], str]] = {
    "/v1/retrieve": (
        lambda reader, of: reader.retrieve(
            Retrieve(user_id=of.user_id, app_id=of.app_id, query=of.query, min_importance=0.5)
        ),
        "structured_facts",
    ),
    "/v1/context": (
        lambda reader, of: reader.context(AssembleContext(user_id=of.user_id, app_id=of.app_id, query=of.query)),
        "recent",
    ),
    "/v1/search": (
        lambda reader, of: reader.search(SearchMemory(user_id=of.user_id, app_id=of.app_id, query=of.query)),
        "turns",
    ),
}
"""Route → its work without HTTP, and what an answer must not lack."""


class RetrieveSize(Struct, frozen=True):
    """How much is measured.

    Attributes:
        memories: Facts, episodes and turns together.
        rate: Requests a second.
        seconds: For each route.
        asked: Questions inside the process, for each route.
    """

    memories: int = 100_000
    rate: float = 200.0
    seconds: float = 30.0
    asked: int = 1_000


QUICK = RetrieveSize(memories=5_000, rate=50.0, seconds=3.0, asked=100)


async def measure(settings: Settings, size: RetrieveSize, *, end_to_end: bool, say: Say) -> Figures:
    """Measure everything.

    Args:
        settings: Embedder and policy, and an empty data directory; the cluster that the roles of `end_to_end` use.
        size: How much.
        end_to_end: Whether roles are started too.
        say: Told what is going on.

    Raises:
        BenchFailed: A process failed, or memory gave no answers.
    """
    folder, policy, embedder = settings.data_dir / "vectors", policy_of(settings), embedder_of(settings)
    began_s, corpus, users = perf_counter(), Corpus(policy), users_for(size.memories)
    say(f"{users * MEMORIES_EACH:,} memories of {users} users, indexed")
    store = EdgeStore(folder, embedder=embedder.name)
    try:
        await fill(store, embedder, corpus, users)
    finally:
        await store.close()
    fill_s = perf_counter() - began_s
    questions = list(islice(corpus.questions(users), _QUESTIONS))
    say("asking inside the process")
    inside = await _inside(folder, policy, embedder, questions, size.asked)
    routes = await _over_http(folder, questions, size, say)
    http_alone = routes.pop(HTTP_ALONE)
    return {
        "memories": users * MEMORIES_EACH,
        "users": users,
        "embedder": embedder.name,
        "rate": size.rate,
        "seconds": size.seconds,
        "fill_s": fill_s,
        "http_alone": http_alone,
        "routes": [
            {**route, "inside": inside[path], "ratio_p99": route["p99_ms"] / inside[path]["p99_ms"]}
            for path, route in routes.items()
        ],
        "end_to_end": await question_to_context(settings, size.seconds, say=say) if end_to_end else None,
        "load_average_at_end": os.getloadavg()[0],
    }


async def _inside(
    folder: Path, policy: Policy, embedder: Embedder, questions: Sequence[CorpusQuestion], asked: int
) -> dict[str, Figures]:
    """Each route's work without HTTP, one question after the other, on the store opened anew.

    Raises:
        BenchFailed: Memory gives no facts, episodes or turns.
    """
    store = EdgeStore(folder, embedder=embedder.name)
    try:
        api = memory_api(store, embedder, policy, HttpSettings(mcp=False), topic_prefix="bench")
        gc.collect()
        gc.freeze()
        with reading_for(Caller()):
            return {path: await _asked(path, api.reader, questions, asked) for path in _ASKED}
    finally:
        gc.unfreeze()
        await store.close()


async def _asked(path: str, reader: MemoryReader, questions: Sequence[CorpusQuestion], asked: int) -> Figures:
    (ask, wanted), times_ms = _ASKED[path], list[float]()
    for n in range(round(asked * (1 + _WARM))):
        began_s = perf_counter()
        found = await ask(reader, questions[n % len(questions)])
        times_ms.append((perf_counter() - began_s) * 1_000)
        if not getattr(found, wanted):
            raise BenchFailed(f"{path} gives no {wanted} of {questions[n % len(questions)].user_id}: was it filled?")
    return spread_ms(times_ms[-asked:])._asdict()


async def _over_http(
    folder: Path, questions: Sequence[CorpusQuestion], size: RetrieveSize, say: Say
) -> dict[str, Figures]:
    """Each route, and one that touches no memory; the variables of children lack what would have them ask for tokens.

    Raises:
        BenchFailed: A route does not answer 200.
    """
    variables = with_bytecode(os.environ).items()
    environment = {name: value for name, value in variables if not name.startswith("TURNTIDE_HTTP__")}
    bodies, found = [json.encode(question).decode() for question in questions], dict[str, Figures]()
    async with serving(folder, environment, folder.parent / "server.log") as server:
        # The server opens its collections, and what cannot work is seen at once.
        async with httpx.AsyncClient(base_url=server.url, timeout=30.0) as client:
            for path in _ASKED:
                answer = await client.post(path, content=bodies[0])
                if answer.status_code != httpx.codes.OK:
                    raise BenchFailed(f"POST {path} answers {answer.status_code}: {answer.text[:500]}")
        for path in (HTTP_ALONE, *_ASKED):
            say(f"{path} at {size.rate:g} requests/s for {size.seconds:g} s")
            load = RequestLoad(server.url + path, [] if path == HTTP_ALONE else bodies, size.rate, size.seconds)
            found[path] = await time_http(server, path, load, environment)
    return found
