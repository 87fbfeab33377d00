"""Settings in, a running role out: here stores, models, judges and sinks are constructed, and handed to who uses them.

Clients of Kafka are made where they are used, by the functions of `streams.kafka`. A role's own imports are made when
it is wanted, so that a sessions worker does not load a vector store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING

from msgspec import structs

from models.errors import ConfigurationError
from models.policy import Policy, load_policy
from models.risk.scorer import RuleScorer
from models.text.language import load_detector
from streams.encryption.keyring import sealer_of
from streams.index.generations import GenerationStore, require_finished
from streams.index.sealed import sealed_store
from streams.ports import Embedder, Judge, VectorStore
from streams.settings import LlmSettings, Settings

if TYPE_CHECKING:
    from streams.api.assembly import Beside
    from streams.inference.llm_answers import Llm
    from streams.inference.onnx_embedder import E5Embedder, MiniLmEmbedder
    from streams.inference.summaries import Summariser
    from streams.inference.trained_scorer import TrainedScorer
    from streams.inference.wordllama import WordLlamaEmbedder

    LocalEmbedder = type[WordLlamaEmbedder | MiniLmEmbedder | E5Embedder]

RunRole = Callable[[Settings, asyncio.Event], Awaitable[None]]


def policy_of(settings: Settings) -> Policy:
    """The policy file's, or the sources' defaults; where it names no threshold for topics, with the embedder's own.

    Sessions are judged by the model in the trained scorer's file, unless the policy has one or wants none. Facts,
    segments and memories of apps are asked of a language model where one is configured for it, and a judge of alerts
    likewise. No embedder is loaded.

    Raises:
        ConfigurationError: The policy's file or the scorer's cannot be read or is wrong, or a memory is waited for too
            shortly.
    """
    policy = written_policy(settings)
    if policy.topics.similarity_threshold is None:
        embedder = local_embedder(_folds_with(settings))
        topics = structs.replace(policy.topics, similarity_threshold=embedder.topic_similarity)
        policy = structs.replace(policy, topics=topics)
    if settings.scorer.kind == "trained" and policy.escalation.enabled and policy.escalation.model is None:
        from streams.inference.trained_scorer import combined, model_at, reader_file  # noqa: PLC0415

        model = combined(model_at(settings.scorer.file), reader_file(settings.scorer.reader))
        policy = structs.replace(policy, escalation=structs.replace(policy.escalation, model=model))
    if settings.judge.kind != "off":
        policy = structs.replace(policy, escalation=structs.replace(policy.escalation, ask_judge=True))
    if settings.statements.second_reader:
        long_term = structs.replace(policy.projects.long_term, ask=True)
        policy = structs.replace(policy, projects=structs.replace(policy.projects, long_term=long_term))
    return _asking(policy, settings.llm) if settings.llm.base_url else policy


def _asking(policy: Policy, llm: LlmSettings) -> Policy:
    if llm.extract_facts:
        facts = structs.replace(policy.users.facts, ask=True)
        policy = structs.replace(policy, users=structs.replace(policy.users, facts=facts))
    if llm.summarise_sessions:
        topics = structs.replace(policy.topics, ask=True)
        policy = structs.replace(policy, memory=structs.replace(policy.memory, ask=True), topics=topics)
    if llm.summarise_projects:
        policy = structs.replace(policy, projects=structs.replace(policy.projects, ask=True))
    if llm.make_memories:
        if policy.apps.answer_within <= llm.memory_timeout:
            raise ConfigurationError(
                f"the policy's apps.answer_within ({policy.apps.answer_within}) must exceed llm.memory_timeout "
                f"({llm.memory_timeout}): else every answer comes too late"
            )
        policy = structs.replace(policy, apps=structs.replace(policy.apps, ask=True))
    return policy


def written_policy(settings: Settings) -> Policy:
    """The policy file's rules alone, or the defaults: for what neither scores nor folds, and needs no scorer's file.

    Raises:
        ConfigurationError: The file cannot be read or is wrong.
    """
    path = settings.policy_file
    if path is None:
        return Policy()
    if path.suffix in {".yaml", ".yml"}:
        raise ConfigurationError(f"policy_file {path}: a policy must be TOML or JSON, not YAML")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"policy_file {path}: {error.strerror}. Set a readable TOML or JSON file.") from error
    return load_policy(data, "json" if path.suffix == ".json" else "toml")


def embedder_of(settings: Settings) -> Embedder:
    """The embedder that serves retrieval.

    Raises:
        ConfigurationError: A server is to embed, and it or its model is not named.
        EmbedderUnavailable: It is to say its model's dimension, and does not answer.
        JarError: e5's model is not in the cache and cannot be fetched.
    """
    server = settings.vectors.embedding
    if settings.vectors.embedder != "openai":
        return _loaded(settings.vectors.embedder)
    if not server.base_url or not server.model:
        raise ConfigurationError("vectors.embedder is openai: set vectors.embedding.base_url and …model")
    from streams.inference.openai_embedder import OpenAiEmbedder  # noqa: PLC0415 - extra `llm`

    return OpenAiEmbedder(
        server.base_url,
        server.model,
        server.api_key,
        dim=server.dim,
        timeout=server.timeout,
        episode_distance=server.episode_distance,
    )


def stream_embedder_of(settings: Settings) -> Embedder:
    """The embedder that folds sessions: always one in this process, which its roles share."""
    return _loaded(_folds_with(settings))


def _folds_with(settings: Settings) -> str:
    """The name of that one: rules of sessions compare cosines with constants, which all of e5's exceed."""
    return "minilm" if settings.vectors.embedder == "minilm" else "wordllama"


@cache
def _loaded(name: str) -> Embedder:
    return local_embedder(name)()


def local_embedder(name: str) -> LocalEmbedder:
    """Class of an embedder in this process; weights are loaded by making one."""
    if name in {"e5", "minilm"}:
        from streams.inference import onnx_embedder as onnx  # noqa: PLC0415 - extras `e5` and `minilm`

        return onnx.E5Embedder if name == "e5" else onnx.MiniLmEmbedder
    from streams.inference.wordllama import WordLlamaEmbedder  # noqa: PLC0415 - its libraries take a while to import

    return WordLlamaEmbedder


def scorer_of(settings: Settings, embedder: Embedder, *, alone: bool = False) -> TrainedScorer | RuleScorer:
    """What scores single turns; a trained one loads the embedder that it reads, and its second reader unless `alone`.

    Raises:
        ConfigurationError: The scorer's file is missing, damaged or of another format, or the extra `e5` is missing.
        JarError: A second reader is configured, and e5's model is not in the cache and cannot be fetched.
    """
    if settings.scorer.kind == "rules":
        return RuleScorer()
    from streams.inference.trained_scorer import model_at, reader_file, trained_scorer  # noqa: PLC0415

    reader = reader_file("off" if alone else settings.scorer.reader)
    return trained_scorer(model_at(settings.scorer.file), embedder, reader)


def summariser_of(settings: Settings, llm: Llm | None) -> Summariser:
    """The language model's summaries where there is one, else extractive ones."""
    from streams.inference.summaries import ExtractiveSummariser, LlmSummariser  # noqa: PLC0415

    policy = policy_of(settings)
    extractive = ExtractiveSummariser(policy)
    return extractive if llm is None else LlmSummariser(llm, extractive, policy)


def llm_of(settings: Settings) -> Llm | None:
    """The configured language model.

    Raises:
        ConfigurationError: A server is named without a model.
    """
    llm = settings.llm
    if not llm.base_url:
        return None
    if not llm.model:
        raise ConfigurationError("llm.base_url is set: also set llm.model, as the server names it")
    from streams.inference.llm_client import OpenAiLlm  # noqa: PLC0415 - extra `llm`

    return OpenAiLlm(llm.base_url, llm.model, llm.api_key, llm.timeout, json_mode=llm.json_mode)


def judge_of(settings: Settings) -> Judge | None:
    """The judge of alerts; None where it is off.

    Raises:
        ConfigurationError: What it needs is not named, is missing or does not fit.
    """
    judge = settings.judge
    if judge.kind == "off":
        return None
    if judge.kind == "openai":
        server = judge.openai
        if not server.base_url or not server.model:
            raise ConfigurationError("judge.kind is openai: set judge.openai.base_url and …model")
        from streams.inference.llm_client import OpenAiLlm  # noqa: PLC0415 - likewise
        from streams.inference.openai_judge import OpenAiJudge  # noqa: PLC0415 - extra `llm`

        key, within, json_mode = server.api_key, judge.timeout, server.json_mode
        llm = OpenAiLlm(server.base_url, server.model, key, within, json_mode=json_mode, section="judge.openai")
        return OpenAiJudge(llm, form=server.form, top_logprobs=server.top_logprobs, sure=server.sure)
    named = judge.onnx
    if named.model is None:
        raise ConfigurationError("judge.kind is onnx: set judge.onnx.model to an ONNX text classifier")
    from streams.inference.onnx_judge import OnnxJudge  # noqa: PLC0415 - loads weights

    return OnnxJudge(**dict(named))


def vector_store_of(settings: Settings, embedder: Embedder) -> VectorStore:
    """A Qdrant server if one is named, else Qdrant Edge under the data directory; the generation that serves."""
    store, generation = _whole_store(settings, embedder), settings.vectors.generation
    return GenerationStore(store, generation) if generation else store


async def finished_store_of(settings: Settings, embedder: Embedder) -> VectorStore:
    """As `vector_store_of`, once its generation is known to be complete.

    Raises:
        ConfigurationError: `turntide ops reindex` has not finished it.
        StoreUnavailable: The store does not answer.
    """
    store, generation = _whole_store(settings, embedder), settings.vectors.generation
    try:
        await require_finished(store, generation)
    except BaseException:
        await store.close()
        raise
    return GenerationStore(store, generation) if generation else store


def _whole_store(settings: Settings, embedder: Embedder) -> VectorStore:
    vectors, sealer = settings.vectors, sealer_of(settings)
    if not vectors.url:
        from streams.index.edge import EdgeStore  # noqa: PLC0415 - one store or the other

        return sealed_store(EdgeStore(settings.data_dir / "vectors", embedder=embedder.name), sealer)
    from streams.index.server import ServerStore  # noqa: PLC0415 - extra `vectors`

    server = ServerStore.connect(vectors.url, api_key=vectors.api_key, embedder=embedder.name)
    return sealed_store(server, sealer)


async def run_sessions(settings: Settings, stop: asyncio.Event) -> None:
    """Fold sessions."""
    from streams.roles.sessions import SessionsRole  # noqa: PLC0415

    embedder = stream_embedder_of(settings)
    load_detector()
    scorer = scorer_of(settings, embedder)
    file = None if isinstance(scorer, RuleScorer) else scorer.file
    role = SessionsRole(settings, policy_of(settings), embedder, scorer, scorer_file=file)
    await role.run(stop)


async def run_memory(settings: Settings, stop: asyncio.Event) -> None:
    """Fold users."""
    from streams.roles.memory import MemoryRole  # noqa: PLC0415

    await MemoryRole(settings, policy_of(settings)).run(stop)


async def run_enrich(settings: Settings, stop: asyncio.Event) -> None:
    """Answer what folds ask for."""
    from streams.inference.llm_facts import LlmFactExtractor  # noqa: PLC0415
    from streams.inference.llm_memories import MemoryWriter  # noqa: PLC0415
    from streams.inference.statement_reader import StatementReader  # noqa: PLC0415
    from streams.inference.summaries import answerers  # noqa: PLC0415
    from streams.roles.enrich import EnrichRole  # noqa: PLC0415

    llm = llm_of(settings)
    extractor = LlmFactExtractor(llm) if llm is not None and settings.llm.extract_facts else None
    reader = StatementReader(_loaded("e5").embed) if settings.statements.second_reader else None
    writer = MemoryWriter(llm, policy_of(settings).apps, within=settings.llm.memory_timeout)
    try:
        answering = answerers(summariser_of(settings, llm), extractor, writer, reader)
        await EnrichRole(settings, embedder_of(settings), answering).run(stop)
    finally:
        if llm is not None:
            await llm.close()


async def run_judge(settings: Settings, stop: asyncio.Event) -> None:
    """Have alerts read by a slower model.

    Raises:
        ConfigurationError: None is configured.
    """
    from streams.roles.judge import JudgeRole  # noqa: PLC0415

    judge = judge_of(settings)
    if judge is None:
        raise ConfigurationError("no judge is configured: set judge.kind to openai or onnx, and its section")
    try:
        await JudgeRole(settings, judge).run(stop)
    finally:
        await judge.close()


@asynccontextmanager
async def _serving(settings: Settings, role: str) -> AsyncIterator[tuple[Embedder, VectorStore, Beside]]:
    """What reading memory, taking turns, and what admins do, rests on; Kafka is let go at the end."""
    from streams.api.commands import KafkaCommands  # noqa: PLC0415
    from streams.api.live.service import LivePage  # noqa: PLC0415
    from streams.archive.history import ArchivedTurns  # noqa: PLC0415
    from streams.erase.record import KafkaEraseRequests  # noqa: PLC0415
    from streams.gateway.gateway import Gateway  # noqa: PLC0415
    from streams.http.audit import KafkaAudit  # noqa: PLC0415
    from streams.roles.gateway import taking_turns  # noqa: PLC0415

    embedder, commands = embedder_of(settings), KafkaCommands(settings)
    load_detector()
    store = await finished_store_of(settings, embedder)
    policy = policy_of(settings)
    live = LivePage(settings, commands, policy.notify) if settings.live.enabled else None
    erasures, gateway = KafkaEraseRequests(settings), Gateway(settings, policy)
    writes: Beside = {"commands": commands, "writer": commands, "erasures": erasures, "gateway": gateway}
    reads: Beside = {"audit": KafkaAudit(settings), "live": live, "archive": ArchivedTurns(settings)}
    try:
        async with taking_turns(settings, gateway, role) as taking:
            yield embedder, store, {**writes, **reads, "taking": taking}
    finally:
        await gateway.close()
        await commands.close()


async def run_index(settings: Settings, stop: asyncio.Event) -> None:
    """Index everything that is remembered, and serve reading, taking turns, and what admins do."""
    from streams.roles.index import IndexRole  # noqa: PLC0415

    async with _serving(settings, "index") as (embedder, store, beside):
        scorer = scorer_of(settings, embedder, alone=True)  # only a session's fold asks a second reader
        await IndexRole(settings, policy_of(settings), embedder, scorer, store, **beside).run(stop)


async def run_api(settings: Settings, stop: asyncio.Event) -> None:
    """Serve reading and what admins do, over a Qdrant server.

    Raises:
        ConfigurationError: The store is Qdrant Edge, which belongs to the index role.
    """
    from streams.roles.api import serve_memory  # noqa: PLC0415

    if not settings.vectors.url:
        raise ConfigurationError(
            "role api reads from a Qdrant server: set vectors.url. Without a server, the index role serves the same on "
            f"port {settings.http.index_port}"
        )
    async with _serving(settings, "api") as (embedder, store, beside):
        await serve_memory(settings, policy_of(settings), embedder, store, stop, **beside)


async def run_gateway(settings: Settings, stop: asyncio.Event) -> None:
    """Take turns over HTTP."""
    from streams.http.audit import KafkaAudit  # noqa: PLC0415
    from streams.roles.gateway import take_turns  # noqa: PLC0415

    await take_turns(settings, policy_of(settings), KafkaAudit(settings), stop)


async def run_archive(settings: Settings, stop: asyncio.Event) -> None:
    """Land every topic in Parquet."""
    from streams.roles import archive  # noqa: PLC0415

    await archive.run(settings, policy_of(settings), stop=stop)


async def run_notify(settings: Settings, stop: asyncio.Event) -> None:
    """Deliver alerts to the configured sinks."""
    from streams.notify import relay, sinks  # noqa: PLC0415

    await relay.run(settings, sinks.sinks_of(settings, written_policy(settings).notify), stop=stop)


ROLES: Mapping[str, RunRole] = {
    "sessions": run_sessions,
    "memory": run_memory,
    "enrich": run_enrich,
    "judge": run_judge,
    "index": run_index,
    "archive": run_archive,
    "notify": run_notify,
    "api": run_api,
    "gateway": run_gateway,
}
"""Every role a worker can have."""
