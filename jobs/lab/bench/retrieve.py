"""`turntide lab bench retrieve`: how long reading memory takes, inside the process, over HTTP, and from a turn on.

End to end, a turn is sent to `turns.v1` on a real broker under load, and `POST /v1/context` asks with `after` for it:
the answer comes once the sessions, memory and index roles have done their work on the turn.
"""

import asyncio
import gc
import os
import random
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, TypeVar

import httpx
import msgspec
from aiokafka import AIOKafkaProducer
from msgspec import Struct, json
from msgspec.structs import asdict, replace

from jobs.demo.conversations import load_conversations
from jobs.lab.bench.folds import TurnTraffic, paced, producing, send
from jobs.lab.bench.http_load import StoreServer, time_http
from jobs.lab.bench.measuring import BenchFailed, Figures, asked_ms, cpu_s, own_environment, say, spread_ms
from jobs.lab.bench.roles import running
from jobs.lab.eval.user_index import folded_user, index_user, open_store
from jobs.operate.topics import apply_topics
from models.events import Role, Turn
from models.events.user import UserOutput
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.users.messages import AssembleContext, Retrieve, SearchMemory
from streams.api.users.reading import MemoryReader
from streams.http.security import Caller, reading_for
from streams.index.collections import TURNS
from streams.index.hybrid_search import HybridSearch, Ranking, Scope
from streams.ports import Embedder, VectorStore
from streams.settings import Settings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of

TURNS_EACH = 930
MEMORIES_EACH = 1_000
"""Of a user, about: the turns, and the facts and episodes that they leave."""

_APPS = ("shop", "travel", "writing", "support")
_SESSION_TURNS = 30
_BEGINS = datetime(2026, 1, 5, 8, tzinfo=UTC)
_SENTENCE = re.compile(r"[^.!?]+[.!?]+")
_LEAST_WORDS = 4
SAID = msgspec.toml.decode((Path(__file__).parent / "said.toml").read_bytes(), type=dict[str, list[str]])
"""`facts` that users tell of themselves, in turn; `places` and `things` in them; turns `asking` end to end."""
_SAYS_EVERY = 10


class CorpusQuestion(Struct, frozen=True):
    """A question to a user's memory about something that was said."""

    app_id: str
    user_id: str
    query: str


class Corpus:
    """Makes users and questions, folded by the policy; the same seed makes the same ones."""

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self._policy = policy
        self._seed = seed
        said = [(role, text) for each in load_conversations() for turn in each.turns for role, text in turn.items()]
        parts = [(role, found.strip()) for role, text in said for found in _SENTENCE.findall(text)]
        self._sentences = {
            role: [part for of, part in parts if of is role and len(part.split()) >= _LEAST_WORDS]
            for role in (Role.USER, Role.ASSISTANT)
        }

    def user(self, number: int) -> tuple[list[Turn], list[UserOutput]]:
        """Turns of the user of this number, and the fold's outputs; requests are answered at once, extractively."""
        turns, first = self.turns(number), number * TURNS_EACH
        return turns, list(folded_user(turns, self._policy, first_turn=first, first_offset=2 * first + 1))

    def turns(self, number: int, count: int = TURNS_EACH) -> list[Turn]:
        """So many turns of the user of this number."""
        rng = random.Random(f"{self._seed}/{number}")  # noqa: S311 - repeatable, not secret
        return [self._turn(rng, number, n) for n in range(count)]

    def questions(self, users: int) -> Iterator[CorpusQuestion]:
        """Questions without end, to users chosen at random; each of words like those of a turn."""
        rng = random.Random(f"{self._seed}/questions")  # noqa: S311 - repeatable, not secret
        while True:
            number = rng.randrange(users)
            about = rng.choice(self._sentences[Role.USER])
            yield CorpusQuestion(app_of(number), user_of(number), f"What did we say about this: {about}")

    def _turn(self, rng: random.Random, number: int, n: int) -> Turn:
        role = Role.ASSISTANT if n % 2 else Role.USER
        session, turn = divmod(n, _SESSION_TURNS)
        said = rng.sample(self._sentences[role], 2)
        if n % _SAYS_EVERY == 0:
            (thing, other), facts = rng.sample(SAID["things"], 2), SAID["facts"]
            fact = facts[n // _SAYS_EVERY % len(facts)]
            said[0] = fact.format(place=rng.choice(SAID["places"]), thing=thing, other=other)
        return Turn(
            session_id=f"{user_of(number)}-{session}",
            user_id=user_of(number),
            app_id=app_of(number),
            turn=turn,
            role=role,
            content=" ".join(said),
            timestamp=_BEGINS + timedelta(days=session, minutes=turn),
        )


async def fill(store: VectorStore, embedder: Embedder, corpus: Corpus, users: int) -> None:
    """Index users through the memories that the index role writes by, a user at a time."""
    for number in range(users):
        await index_user(store, embedder, *corpus.user(number), number * TURNS_EACH)


def user_of(number: int) -> str:
    """Id of the user of this number."""
    return f"user-{number}"


def app_of(number: int) -> str:
    """App of the user of this number."""
    return _APPS[number % len(_APPS)]


HTTP_ALONE = "/livez"
"""Touches no memory: the time that the server and the machine take for themselves."""
TURNS_PER_S = 200
"""Of other sessions, beside the questions end to end."""
_QUESTIONS = 1_000
_ROLES = ("sessions", "memory", "enrich", "index")
_APART_S = 0.25
"""Between an answer and the next question."""
_WARM_UP_S = 10.0
_WAIT_MS = 10_000
_SPARE_S = 5.0
_TICK_S = 0.002
_SAID = SAID["asking"]
_ASKED: Mapping[str, tuple[Callable[..., Awaitable[Any]], Callable[..., Any], str]] = {
    "/v1/retrieve": (MemoryReader.retrieve, partial(Retrieve, min_importance=0.5), "structured_facts"),
    "/v1/context": (MemoryReader.context, AssembleContext, "recent"),
    "/v1/search": (MemoryReader.search, SearchMemory, "turns"),
}
"""Route → its work without HTTP, the request, and the part that an answer must not lack."""
ONE_USER_TURNS = 10_000
_TOP = 10
_Question = TypeVar("_Question")
QUICK = {"memories": 5_000, "rate": 50.0, "seconds": 3.0, "asked": 100, "searched": ("wordllama",)}


async def measure(
    *,
    memories: int = 100_000,
    rate: float = 200.0,
    seconds: float = 30.0,
    asked: int = 1_000,
    end_to_end: bool = False,
    searched: Sequence[str] = ("wordllama", "e5"),
) -> Figures:
    """Measure everything: each route at so many requests a second, and so many questions inside the process.

    End to end, roles are started too, on a Kafka of their own. Embedders that are `searched` by look for turns of a
    user who said `ONE_USER_TURNS`.
    """
    with own_environment() if end_to_end else nullcontext() as environment, TemporaryDirectory() as folder:
        kafka = {"bootstrap": environment.bootstrap} if environment else {}
        settings = load_settings(kafka=kafka, data_dir=Path(folder))
        embedder, corpus, users = (
            embedder_of(settings),
            Corpus(policy_of(settings)),
            max(1, round(memories / MEMORIES_EACH)),
        )
        say(f"{users * MEMORIES_EACH:,} memories of {users} users, indexed")
        began_s = perf_counter()
        async with open_store(embedder, settings.data_dir / "vectors") as store:
            await fill(store, embedder, corpus, users)
        fill_s = perf_counter() - began_s
        questions = list(islice(corpus.questions(users), _QUESTIONS))
        say(f"asking one user's {ONE_USER_TURNS:,} turns")
        of_one_user = {name: await _of_one_user(settings, name, corpus, questions[:asked]) for name in searched}
        say("asking inside the process")
        inside, searches = await _inside(settings, questions, asked)
        routes = await _over_http(settings, questions, rate=rate, seconds=seconds)
        last = await question_to_context(settings, seconds) if end_to_end else None
    return {
        "memories": users * MEMORIES_EACH,
        "users": users,
        "embedder": embedder.name,
        "rate": rate,
        "seconds": seconds,
        "fill_s": fill_s,
        "http_alone": routes.pop(HTTP_ALONE),
        "routes": [
            {**route, "inside": inside[path], "ratio_p99": route["p99_ms"] / inside[path]["p99_ms"]}
            for path, route in routes.items()
        ],
        "one_user": of_one_user,
        "searches": searches,
        "end_to_end": last,
        "load_average_at_end": os.getloadavg()[0],
    }


async def _of_one_user(
    settings: Settings, embedder: str, corpus: Corpus, questions: Sequence[CorpusQuestion]
) -> Figures:
    """Milliseconds of hybrid search over a user's turns, of BM25 alone beside it, each question asked of both in turn.

    The store is opened anew, so that the engine has nothing of its own to do. `cpu_ms` is of all threads; `times_bm25`
    says how many times as long the median takes.
    """
    changed = settings.vectors.model_copy(update={"embedder": embedder})
    embeds, turns = embedder_of(settings.model_copy(update={"vectors": changed})), corpus.turns(0, ONE_USER_TURNS)
    folder = settings.data_dir / f"user-{embedder}"
    async with open_store(embeds, folder) as store:
        await index_user(store, embeds, turns)
    async with open_store(embeds, folder) as store:
        search, scope = HybridSearch(store, embeds), Scope((app_of(0),), user_of(0))
        ways: Mapping[str, Callable[[str], Awaitable[object]]] = {
            "bm25": lambda query: search.events(TURNS, query, scope.turns(), _TOP, by=Ranking.KEYWORD),
            "hybrid": lambda query: search.turns(query, scope, _TOP),
        }
        queries = [each.query for each in questions]
        with _started():
            found = await _in_turn(ways, [*queries[: len(queries) // 2], *queries], len(queries) // 2)
    bm25 = {f"bm25_{name}": each for name, each in found["bm25"].items()}
    return {**found["hybrid"], **bm25, "times_bm25": found["hybrid"]["p50_ms"] / bm25["bm25_p50_ms"]}


async def _in_turn(
    ways: Mapping[str, Callable[[_Question], Awaitable[object]]], questions: Sequence[_Question], warm_up: int
) -> dict[str, Figures]:
    """Milliseconds and CPU of each way to ask, each question asked of all of them; but for the first ones."""
    times_ms, cpus_s = defaultdict[str, list[float]](list), defaultdict[str, float](float)
    for n, each in enumerate(questions):
        for name, way in ways.items():
            cpu_began_s, began_s = process_time(), perf_counter()
            await way(each)
            if n >= warm_up:
                times_ms[name].append((perf_counter() - began_s) * 1_000)
                cpus_s[name] += process_time() - cpu_began_s
    return {name: {**spread_ms(of), "cpu_ms": cpus_s[name] * 1_000 / len(of)} for name, of in times_ms.items()}


async def _inside(
    settings: Settings, questions: Sequence[CorpusQuestion], asked: int
) -> tuple[dict[str, Figures], Figures]:
    """Each route's work without HTTP, one question after the other, on the store opened anew; and hybrid search alone.

    `per_core_s` says how many of these a core does in a second.
    """
    embedder = embedder_of(settings)
    async with open_store(embedder, settings.data_dir / "vectors") as store:
        api = memory_api(store, embedder, policy_of(settings), HttpSettings(mcp=False), topic_prefix="bench")
        search, wanted = HybridSearch(store, embedder), list(islice(cycle(questions), asked + asked // 2))

        async def answer(path: str, question: CorpusQuestion) -> object:
            ask, request, part = _ASKED[path]
            return getattr(await ask(api.reader, request(**asdict(question))), part)

        with _started(), reading_for(Caller()):
            routes = {path: spread_ms(await asked_ms(path, partial(answer, path), wanted[:asked])) for path in _ASKED}
            found = await _in_turn(
                {"hybrid": lambda each: search.turns(each.query, Scope((each.app_id,), each.user_id), _TOP)},
                wanted,
                asked // 2,
            )
        return routes, {**found["hybrid"], "per_core_s": 1_000 / found["hybrid"]["cpu_ms"]}


@contextmanager
def _started() -> Iterator[None]:
    """As in a role that has started: what was made before is not looked through for garbage."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _over_http(
    settings: Settings, questions: Sequence[CorpusQuestion], *, rate: float, seconds: float
) -> dict[str, Figures]:
    """Each route, and one that touches no memory."""
    bodies, found = [json.encode(question).decode() for question in questions], dict[str, Figures]()
    async with running(settings, "api", kind=StoreServer) as (server,):
        # The server opens its collections, and failures are seen at once.
        async with httpx.AsyncClient(base_url=server.url, timeout=30.0) as client:
            for path in _ASKED:
                answer = await client.post(path, content=bodies[0], headers={"Content-Type": "application/json"})
                if answer.status_code != httpx.codes.OK:
                    raise BenchFailed(f"POST {path} answers {answer.status_code}: {answer.text[:500]}")
        for path in (HTTP_ALONE, *_ASKED):
            say(f"{path} at {rate:g} requests/s for {seconds:g} s")
            corpus = [] if path == HTTP_ALONE else bodies
            found[path] = time_http(server, path, corpus, rate=rate, seconds=seconds)
    return found


async def question_to_context(settings: Settings, seconds: float) -> Figures:
    """Start the roles and ask, one question after the other, for so long after a warm-up.

    The index role opens the store that is in the data directory.
    """
    await apply_topics(settings)
    say(f"sessions, memory, enrich and index roles, {TURNS_PER_S} turns/s")
    times_ms, used_s, sent, without_turn, late = list[float](), dict[str, float](), list[float](), 0, 0
    async with running(settings, *_ROLES) as roles, producing(settings) as producer:
        background = asyncio.create_task(_background(settings, producer, sent))
        index, counts_from_s = roles[_ROLES.index("index")], perf_counter() + _WARM_UP_S
        try:
            async with httpx.AsyncClient(base_url=index.url, timeout=_WAIT_MS / 1_000 + _SPARE_S) as client:
                for n in count():
                    if (began_s := perf_counter()) >= counts_from_s + seconds:
                        break
                    turn = _question(n)
                    await send(producer, settings, turn)
                    prompt = await context_with(client, turn)
                    if began_s >= counts_from_s:
                        used_s = used_s or {role.role: cpu_s(role.pid) for role in roles}
                        times_ms.append((perf_counter() - began_s) * 1_000)
                        late += prompt is None
                        without_turn += prompt is not None and turn.content not in prompt
                    await asyncio.sleep(_APART_S)
        finally:
            background.cancel()
            await asyncio.wait({background})
        if not times_ms:
            raise BenchFailed("no question was asked after the warm-up: give more --seconds")
        return {
            "asked": len(times_ms),
            "turns_per_s": sum(at_s >= counts_from_s for at_s in sent) / seconds,
            **spread_ms(times_ms),
            "max_ms": max(times_ms),
            "role_cpus": {role.role: (cpu_s(role.pid) - used_s[role.role]) / seconds for role in roles},
            "without_turn": without_turn,
            "late": late,
            "load_average": os.getloadavg()[0],
        }


async def _background(settings: Settings, producer: AIOKafkaProducer, sent: list[float]) -> None:
    """Turns of other sessions until it is cancelled, each when it is due; `sent` gets the time of each."""
    began_s, began = perf_counter(), datetime.now(UTC)
    async for due_s, turn in paced(TurnTraffic().backlog(10**9, ends_at=began), TURNS_PER_S, tick_s=_TICK_S):
        await send(producer, settings, replace(turn, timestamp=began + timedelta(seconds=due_s - began_s)))
        sent.append(perf_counter())


def _question(n: int) -> Turn:
    """Turn `n` of a session; each says which it is."""
    return Turn(
        session_id="asking",
        user_id="asks",
        app_id="bench",
        turn=n,
        role=Role.USER,
        content=f"{_SAID[n % len(_SAID)]} That is what I said in message {n}.",
        timestamp=datetime.now(UTC),
    )


async def context_with(client: httpx.AsyncClient, turn: Turn) -> str | None:
    """The prompt with the turn in it; None: the turn is not visible in time, as on a machine with much else to do."""
    after = {"session_id": turn.session_id, "turn": turn.turn, "timeout_ms": _WAIT_MS}
    wanted = {"user_id": turn.user_id, "app_id": turn.app_id, "query": turn.content, "after": after}
    answer = await client.post("/v1/context", json=wanted)
    if answer.status_code == httpx.codes.GATEWAY_TIMEOUT:
        return None
    if answer.status_code != httpx.codes.OK:
        raise BenchFailed(f"POST /v1/context answers {answer.status_code}: {answer.text[:500]}")
    return str(answer.json()["prompt"])
