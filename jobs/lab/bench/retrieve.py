"""`turntide bench retrieve`: how long reading memory takes, inside the process and over HTTP at a steady rate."""

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
from msgspec.structs import replace

from jobs.lab.bench.measuring import BenchFailed, Figures, Say, spread_ms
from jobs.lab.bench.retrieve_corpus import MEMORIES_EACH, Corpus, CorpusQuestion, fill, users_for
from jobs.lab.bench.retrieve_end_to_end import question_to_context
from jobs.lab.bench.retrieve_http import RequestLoad, RouteTimes, Server, Within, serving, time_http

RETRIEVE_MS = 15.0
from jobs.shared.bytecode import with_bytecode
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

RETRIEVE, CONTEXT, SEARCH = "/v1/retrieve", "/v1/context", "/v1/search"
HTTP_ALONE = "/livez"
"""Touches no memory: what the server and the machine take for themselves."""
_LOWER = (0.75, 0.5, 0.25, 0.1)
"""Of the rate, tried one after the other where it does not hold."""
_SHORT_S = 5.0
_FOLDER = "vectors"
_QUESTIONS = 1_000
_WARM = 0.5
"""Questions asked inside the process beforehand, as a share of those that count."""

_ASKED: Mapping[str, tuple[Callable[[MemoryReader, CorpusQuestion], Awaitable[Any]], str]] = {
    RETRIEVE: (
        lambda reader, of: reader.retrieve(
            Retrieve(user_id=of.user_id, app_id=of.app_id, query=of.query, min_importance=0.5)
        ),
        "structured_facts",
    ),
    CONTEXT: (
        lambda reader, of: reader.context(AssembleContext(user_id=of.user_id, app_id=of.app_id, query=of.query)),
        "recent",
    ),
    SEARCH: (
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
    home, policy, embedder = settings.data_dir, policy_of(settings), embedder_of(settings)
    began_s = perf_counter()
    corpus, users = Corpus(policy), users_for(size.memories)
    say(f"{users * MEMORIES_EACH:,} memories of {users} users, indexed")
    await _filled(home / _FOLDER, embedder, corpus, users)
    fill_s = perf_counter() - began_s
    questions = list(islice(corpus.questions(users), _QUESTIONS))
    say("asking inside the process")
    inside = await _inside(home / _FOLDER, policy, embedder, questions, size.asked)
    async with serving(home / _FOLDER, _environment(), home / "server.log") as server:
        sending = _Sending(server, questions, say)
        await sending.warm()
        http_alone = await sending.route(HTTP_ALONE, size.rate, size.seconds)
        routes = list[RouteTimes]()
        for path, within in inside.items():
            route = await sending.route(path, size.rate, size.seconds)
            routes.append(replace(route, inside=within, ratio_p99=route.p99_ms / within.p99_ms))
        holds = await sending.rate_that_holds(routes[0], size)
    return {
        "memories": users * MEMORIES_EACH,
        "users": users,
        "embedder": embedder.name,
        "rate": size.rate,
        "seconds": size.seconds,
        "fill_s": fill_s,
        "http_alone": http_alone,
        "routes": routes,
        "rate_that_holds": holds,
        "end_to_end": await question_to_context(settings, size.seconds, say=say) if end_to_end else None,
        "load_average_at_end": os.getloadavg()[0],
    }


async def _filled(folder: Path, embedder: Embedder, corpus: Corpus, users: int) -> None:
    store = EdgeStore(folder, embedder=embedder.name)
    try:
        await fill(store, embedder, corpus, users)
    finally:
        await store.close()


async def _inside(
    folder: Path, policy: Policy, embedder: Embedder, questions: Sequence[CorpusQuestion], asked: int
) -> dict[str, Within]:
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


async def _asked(path: str, reader: MemoryReader, questions: Sequence[CorpusQuestion], asked: int) -> Within:
    (ask, wanted), times_ms = _ASKED[path], list[float]()
    for n in range(round(asked * (1 + _WARM))):
        began_s = perf_counter()
        found = await ask(reader, questions[n % len(questions)])
        times_ms.append((perf_counter() - began_s) * 1_000)
        if not getattr(found, wanted):
            raise BenchFailed(f"{path} gives no {wanted} of {questions[n % len(questions)].user_id}: was it filled?")
    return Within(*spread_ms(times_ms[-asked:]))


def _environment() -> Mapping[str, str]:
    """Of the children: this process's, without what would have them ask for tokens."""
    return {name: value for name, value in with_bytecode(os.environ).items() if not name.startswith("TURNTIDE_HTTP__")}


class _Sending:
    """Requests to one server.

    Args:
        server: That answers.
        questions: What is asked.
        say: Told what is going on.
    """

    def __init__(self, server: Server, questions: Sequence[CorpusQuestion], say: Say) -> None:
        self._server = server
        self._bodies = [json.encode(question).decode() for question in questions]
        self._say = say

    async def warm(self) -> None:
        """Ask each route once: the server opens its collections, and what cannot work is seen at once.

        Raises:
            BenchFailed: It does not answer 200.
        """
        async with httpx.AsyncClient(base_url=self._server.url, timeout=30.0) as client:
            for path in (RETRIEVE, CONTEXT, SEARCH):
                answer = await client.post(path, content=self._bodies[0])
                if answer.status_code != httpx.codes.OK:
                    raise BenchFailed(f"POST {path} answers {answer.status_code}: {answer.text[:500]}")

    async def route(self, path: str, rate: float, seconds: float) -> RouteTimes:
        """One route at a rate."""
        self._say(f"{path} at {rate:g} requests/s for {seconds:g} s")
        bodies = [] if path == HTTP_ALONE else self._bodies
        return await time_http(
            self._server, path, RequestLoad(self._server.url + path, bodies, rate, seconds), _environment()
        )

    async def rate_that_holds(self, retrieve: RouteTimes, size: RetrieveSize) -> float:
        """The measured rate if its limit holds, else the highest of some lower ones that does; 0 for none."""
        found, rate, lower = retrieve, size.rate, [size.rate * share for share in _LOWER]
        while not (found.p99_ms <= RETRIEVE_MS and found.keeps_up(rate)):
            if not lower:
                return 0.0
            rate = lower.pop(0)
            found = await self.route(RETRIEVE, rate, min(size.seconds, _SHORT_S))
        return rate
