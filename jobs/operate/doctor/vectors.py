"""Check of the vector store: it answers, and holds vectors of the configured embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from streams.index.points import CollectionInfo
from streams.settings import Settings

_ADVICE = (
    "set TURNTIDE_VECTORS__EMBEDDER back, or embed the store anew with `turntide ops reindex` (it makes another "
    "generation beside it)"
)
_TIMEOUT_S = 5


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
    served = {name: info for name, info in found.items() if _is_served(name, settings.vectors.generation)}
    for name, info in served.items():
        if name.startswith("reindex-"):
            continue
        if info.embedder != embedder or dim not in (None, info.dim):
            offered = embedder if dim is None else f"{embedder} with {dim} dimensions"
            return fail(
                f"collection {name} in {place} holds vectors of {info.embedder or 'an unknown one'} with {info.dim} "
                f"dimensions; the settings name {offered}",
                _ADVICE,
            )
    without_words = [name for name, info in served.items() if not info.lexical and not name.startswith("reindex-")]
    if without_words:
        return warn(
            f"made before there was lexical search: {', '.join(without_words)}",
            "`turntide ops reindex` makes them anew from themselves",
        )
    return ok(f"{place}: {len(served)} collections of {embedder}")


def _configured(settings: Settings) -> tuple[str, int | None]:
    """Name and dimension of the embedder, without loading it."""
    vectors = settings.vectors
    if vectors.embedder == "openai":
        return f"openai:{vectors.embedding.model}", vectors.embedding.dim
    if vectors.embedder == "minilm":
        from streams.inference.minilm import MiniLmEmbedder

        return MiniLmEmbedder.name, MiniLmEmbedder.dim
    from streams.inference.wordllama import WordLlamaEmbedder

    return WordLlamaEmbedder.name, WordLlamaEmbedder.dim


def _is_served(name: str, generation: str) -> bool:
    return name.endswith(f"-{generation}") if generation else "-" not in name


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
                f"the Qdrant server refuses the API key ({error.status_code})",
                "set TURNTIDE_VECTORS__API_KEY to the key that the server was started with",
            )
        return fail(f"the Qdrant server answers {error.status_code}", "look at its log")
    except (ResponseHandlingException, OSError):
        return fail(
            "the Qdrant server does not answer",
            "start it, or set TURNTIDE_VECTORS__URL to where it is; without one Qdrant Edge serves from the data "
            "directory",
        )
    finally:
        await client.close()
    return {name: info for name, info in infos.items() if info.embedder}
