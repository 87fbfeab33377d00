"""Role enrich: who answers what, and that no answer waits for another that takes its time."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
import pytest

from models import events
from models.entities import carried_by
from models.events.topics import REQUESTS
from models.events.user import ExtractedFact, FactCategory
from models.policy import Policy
from models.wire.codec import encode
from streams.inference.llm_answers import PROMPTS, LlmReply
from streams.inference.llm_facts import ExtractedFacts
from streams.inference.llm_memories import MemoryWriter
from streams.inference.statement_reader import StatementReader
from streams.inference.summaries import Answerers, ExtractiveSummariser, LlmSummariser, Reply, Request, answerers
from streams.observe.telemetry import metrics
from streams.roles import answering
from streams.roles.enrich import EnrichRole
from streams.settings import load_settings
from tests.support.answering_log import AnsweringLog, poll
from tests.support.zero_embedder import NoEmbedder

NOW = datetime(2025, 10, 11, 9, tzinfo=UTC)
HEAD: dict[str, Any] = {
    "id": "i",
    "session_id": "s",
    "app_id": "a",
    "timestamp": NOW,
    "source": events.Position("commands.v1", 0, 0),
}
TURNS = [events.RequestedTurn(events.Role.USER, "I would like to hire a boat in May.")]
NEW = events.MemoryToKeep(memory_id=3, content="c", importance=0.5, pinned=False, created_at=NOW, updated_at=NOW)


def facts(user: str = "u", turn: int = 1) -> events.FactsRequested:
    """A question about a message."""
    return events.FactsRequested(**HEAD, user_id=user, turn=turn, content="My name is Mira")


EPISODE = events.EpisodeRequested(**HEAD, user_id="u", first_turn=1, last_turn=20, turns=TURNS)
MEMORY = events.MemoryRequested(**HEAD, user_id="u", space="app", request=1, summary="s", notables=[], turns=TURNS)
SEGMENT = events.SegmentRequested(**HEAD, user_id="u", first_turn=5, last_turn=9, turns=TURNS, ended_at=NOW)
TOPIC = events.TopicSummaryRequested(**HEAD, user_id="u", topic_id="t", packed=8, summary="Of boats.", turns=TURNS)
STATEMENTS = events.StatementsRequested(**HEAD, user_id="u", project_id="p", turn=4, sentences=["Mel is sound."])
CHUNK = events.ProjectSummaryRequested(
    **HEAD, user_id="u", project_id="p", kind="chunk", item_id="a-b", first_turn=0, last_turn=9, summary="", turns=TURNS
)
COMPACTION = events.CompactionRequested(**HEAD, user_id="u", space="user", request=2, memories=[], new_memory=NEW)


class Extractor:
    """Finds a name."""

    name = "double"

    async def extract(self, content: str) -> ExtractedFacts | None:
        """The last word."""
        value = content.rsplit(maxsplit=1)[-1]
        fact = ExtractedFact(category=FactCategory.IDENTITY, key="name", value=value, confidence=1.0)
        return ExtractedFacts(facts=[fact], retractions=[])


class Reader(StatementReader):
    """Takes each sentence for an entity."""

    def __init__(self) -> None:
        """No weights."""

    def read(self, sentences: Sequence[str]) -> list[events.ReadStatement]:
        """At once."""
        entity = events.MemoryType.ENTITY
        return [events.ReadStatement(content=each, memory_type=entity, confidence=0.8) for each in sentences]


class Model:
    """A language model that says this, or fails so."""

    name = "double"

    def __init__(self, said: str) -> None:
        self.said = said
        self.within: list[timedelta | None] = []
        self.asked: list[tuple[str, str]] = []

    async def complete(
        self, system: str, user: str, schema: type[msgspec.Struct], *, within: timedelta | None = None
    ) -> LlmReply:
        """At once."""
        _ = schema
        self.asked.append((system, user))
        self.within.append(within)
        return LlmReply(self.said, 7)

    async def close(self) -> None:
        """Nothing to release."""


SAID = '{"content": "User hires a boat.", "summary": "User hires a boat.", "action": "delete", "targetMemoryId": 3}'


def table(said: str = SAID) -> Answerers:
    """All answerers, with a model that says this."""
    model, policy = Model(said), Policy()
    writer = MemoryWriter(model, policy.apps, within=timedelta(seconds=30))
    return answerers(LlmSummariser(model, ExtractiveSummariser(policy), policy), Extractor(), writer, Reader())


def test_every_kind_of_request_has_its_answerer() -> None:
    """What a topic carries and nobody answers would be waited for in vain."""
    assert set(table()) == set(get_args(Request)) == set(carried_by(REQUESTS))


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (EPISODE, events.EpisodeSummarised),
        (facts(), events.FactsExtracted),
        (MEMORY, events.MemoryProposed),
        (COMPACTION, events.CompactionDecided),
        (SEGMENT, events.SegmentSummarised),
        (STATEMENTS, events.StatementsRead),
        (TOPIC, events.TopicSummarised),
        (CHUNK, events.ProjectSummarised),
    ],
)
async def test_each_answers_in_its_kind(request_: Request, kind: type[Reply]) -> None:
    """With what it took, where that is asked for."""
    reply = await table()[type(request_)](request_)

    assert type(reply) is kind
    assert getattr(reply, "tokens", 7) == 7


@pytest.mark.parametrize("kind", ["chunk", "episode"])
async def test_a_project_s_chunks_and_episodes_have_prompts_of_their_own(kind: Any) -> None:
    """An episode's begins with what it is of, by the rules."""
    model, policy = Model(SAID), Policy()
    summariser = LlmSummariser(model, ExtractiveSummariser(policy), policy)
    asked = msgspec.structs.replace(CHUNK, kind=kind, summary="Of boats." if kind == "episode" else "")
    writer = MemoryWriter(model, policy.apps, within=timedelta(seconds=30))
    reply = await answerers(summariser, None, writer)[events.ProjectSummaryRequested](asked)
    (system, user), turns = model.asked[0], [turn.content for turn in TURNS]

    assert system == PROMPTS[f"project_{kind}"]
    assert ["Summary so far: Of boats."] * (kind == "episode") + turns == [
        turn["content"] for turn in msgspec.json.decode(user)["turns"]
    ]
    assert (kind, "a-b", 0, 9, "User hires a boat.", "double") == tuple(
        getattr(reply, name) for name in ("kind", "item_id", "first_turn", "last_turn", "summary", "summarised_by")
    )


@pytest.mark.behaviour("app-19")
async def test_memories_and_decisions_have_a_limit_of_all_tries() -> None:
    """App memory: 30 seconds, whatever a single try may take."""
    model = Model("{}")
    writer = MemoryWriter(model, Policy().apps, within=load_settings().llm.memory_timeout)
    await writer.propose(MEMORY)
    await writer.decide(COMPACTION)

    assert model.within == [timedelta(seconds=30)] * 2


@pytest.mark.parametrize("request_", [MEMORY, COMPACTION])
@pytest.mark.parametrize(("said", "result"), [('{"content": "x", "action": "edit", "targetMemoryId": 1}', "answered"),
                                              ("I'd rather not", "failed")])  # fmt: skip
async def test_failures_are_counted(request_: Request, said: str, result: str) -> None:
    """An operator sees that a model says nothing useful."""
    counter = metrics.counter("requests_answered_total", result=result)
    before = counter._value.get()
    await table(said)[type(request_)](request_)

    assert counter._value.get() == before + 1


@pytest.fixture
def log() -> AnsweringLog:
    """What the role writes."""
    return AnsweringLog()


@pytest.fixture
def role(log: AnsweringLog, monkeypatch: pytest.MonkeyPatch) -> Callable[[Answerers], EnrichRole]:
    """Makes a role without a broker, which looks for answers all the time."""
    monkeypatch.setattr(answering, "WRITE_EVERY_S", 0.001)
    log.stand_in(EnrichRole, monkeypatch)
    return lambda asked: EnrichRole(load_settings(), NoEmbedder(), asked)


async def written(log: AnsweringLog, count: int) -> None:
    """Wait until so many records are."""
    async with asyncio.timeout(10):
        while sum(map(len, log.writes)) < count:  # noqa: ASYNC110 - a list says nothing when it grows
            await asyncio.sleep(0)


async def test_every_answer_names_the_record_that_asked(role: Callable[[Answerers], EnrichRole]) -> None:
    """By it a fold knows an answer to a question from before an erasure."""
    for request in (EPISODE, facts(), MEMORY, COMPACTION, SEGMENT, STATEMENTS, TOPIC, CHUNK):
        asked = msgspec.structs.replace(request, source=events.Position("commands.v1", 0, 9))
        record: Any = None
        reply = await role(table()).answer(answering.ReceivedRequest(asked, record))

        assert reply is not None
        assert reply.asked_offset == 9


@pytest.mark.behaviour("user-06")
async def test_a_slow_answer_holds_up_its_own_user_only(
    log: AnsweringLog, role: Callable[[Answerers], EnrichRole]
) -> None:
    """Others are written meanwhile; what the same user was asked later waits, so that their order stays."""
    slow = asyncio.Event()

    async def answer(request: events.FactsRequested) -> events.FactsExtracted:
        if (request.user_id, request.turn) == ("u", 1):
            await slow.wait()
        return events.FactsExtracted(app_id="a", user_id=request.user_id, timestamp=NOW, turn=request.turn)

    enriching = asyncio.ensure_future(
        role({events.FactsRequested: answer}).on_records(
            poll(*map(encode, (facts("u", 1), facts("u", 2), facts("v", 1))))
        )
    )
    await written(log, 1)
    first = [record.key for records in log.writes for record in records]
    slow.set()
    await enriching
    (last,) = log.writes[1:]

    assert first == [b"user:a/v"]
    assert [msgspec.json.decode(record.value or b"")["turn"] for record in last] == [1, 2]
