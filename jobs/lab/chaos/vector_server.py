"""A vector store over HTTP to be harmed: the REST calls of `streams.index.server`, answered by Qdrant's own engine.

No Qdrant server runs from a wheel; its engine does (`streams.index.edge`). This process puts the part of the server's
interface in front of it that the index role uses, so that the role speaks to a real process over a real socket, which
can be killed, can hang, and can answer 503. What it has acknowledged is durable. For chaos only: it answers no other
call of Qdrant's, and no other filter than those that the store builds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from jobs.operate.worker import run_until_stopped
from models.retrieval.lexical import SparseVector
from streams.http.answering import ServedRoute
from streams.http.health import Api, serve
from streams.index.edge import EdgeStore
from streams.index.edge_shard import read_info
from streams.index.points import KEY_FIELD, LEXICAL, CollectionInfo, given_payload, point_id, stored_payload
from streams.ports import Condition, PayloadValue, Point, SearchHit

ERRORS_PATH = "/chaos/errors"
_UNAVAILABLE = 503
_NOT_FOUND = 404
_STOP_WITHIN_S = 10.0
_Json = dict[str, Any]
_Call = Callable[[str, _Json], Awaitable[_Json]]


def create_vector_api(folder: Path, *, embedder: str) -> tuple[Api, EdgeStore]:
    """The app and its store; close the store when the app has ended.

    Beside Qdrant's calls there is `POST /chaos/errors?seconds=S`: for so long, each of them is answered with 503.

    Args:
        folder: Where the points live.
        embedder: Name of the embedder whose vectors come in.
    """
    store = EdgeStore(folder, embedder=embedder)
    failing_until_s = 0.0

    async def ready(_request: Request) -> Response:
        return PlainTextResponse("ready")

    async def errors(request: Request) -> Response:
        nonlocal failing_until_s
        failing_until_s = monotonic() + float(request.query_params["seconds"])
        return JSONResponse(None)

    def failing(app: ASGIApp) -> ASGIApp:
        async def fail_if_asked(scope: Scope, receive: Receive, send: Send) -> None:
            answers = app
            if monotonic() < failing_until_s and scope.get("path", "").startswith("/collections"):
                answers = JSONResponse({"status": {"error": "told to fail"}}, _UNAVAILABLE)
            await answers(scope, receive, send)

        return fail_if_asked

    routes = [ServedRoute("/readyz", ready, ["GET"]), ServedRoute(ERRORS_PATH, errors, ["POST"])]
    routes += [*_collection_routes(store, folder), *_point_routes(store, _Keys(folder / "keys.txt"))]
    api = Api(routes, [Middleware(failing)])
    api.state.everybody_reads = True
    return api, store


def _route(method: str, end: str, call: _Call) -> ServedRoute:
    """A call about a collection."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        return JSONResponse(await call(request.path_params["name"], json.loads(body) if body else {}))

    return ServedRoute(f"/collections/{{name}}{end}", answer, [method])


def _collection_routes(store: EdgeStore, folder: Path) -> list[ServedRoute]:
    async def exists(name: str, _asked: _Json) -> _Json:
        return _result({"exists": read_info(folder / name) is not None})

    async def described(name: str, _asked: _Json) -> _Json:
        info = read_info(folder / name)
        if info is None:
            raise HTTPException(_NOT_FOUND)
        return _result(_description(info))

    async def create(name: str, asked: _Json) -> _Json:
        await store.ensure(name, asked["vectors"]["size"])
        return _result(True)

    async def index(_name: str, _asked: _Json) -> _Json:
        return _result(_COMPLETED)  # Edge has made its indexes with the collection

    return [
        _route("GET", "/exists", exists),
        _route("GET", "", described),
        _route("PUT", "", create),
        _route("PUT", "/index", index),
    ]


class _Keys:
    """The readable key of each id: who reads by id has made it of a key, which the engine's port wants.

    What was noted outlives the process, however it ends: the system has it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self._keys = {point_id(key): key for key in map(json.loads, lines)}

    def note(self, keys: Iterable[str]) -> None:
        """Remember keys."""
        new = {point_id(key): key for key in keys}.items() - self._keys.items()
        with self._file.open("a") as file:
            file.writelines(f"{json.dumps(key)}\n" for _, key in new)
        self._keys.update(new)

    def of(self, ids: Iterable[str]) -> list[str]:
        """Those that are known."""
        return [self._keys[each] for each in ids if each in self._keys]


def _point_routes(store: EdgeStore, keys: _Keys) -> list[ServedRoute]:
    async def upsert(name: str, asked: _Json) -> _Json:
        points = [_point(each) for each in asked["points"]]
        keys.note(point.key for point in points)
        await store.upsert(name, points)
        return _result(_COMPLETED)

    async def count(name: str, asked: _Json) -> _Json:
        where, _ = _where(asked)
        return _result({"count": await store.count(name, where=where)})

    async def delete(name: str, asked: _Json) -> _Json:
        where, below = _where(asked)
        await store.delete(name, where=where, below=below)
        return _result(_COMPLETED)

    async def scroll(name: str, asked: _Json) -> _Json:
        where, _ = _where(asked)
        if (ids := _ids(asked)) is not None:
            found = await store.read(name, keys.of(ids), where=where)
            return _result(
                {
                    "points": [_scored(SearchHit(key, 0.0, payload)) for key, payload in found.items()],
                    "next_page_offset": None,
                }
            )
        payloads = await store.latest(name, where=where, by=asked["order_by"]["key"], limit=asked["limit"])
        points = [{"id": point_id(f"{n}"), "payload": _with_key(payload)} for n, payload in enumerate(payloads)]
        return _result({"points": points, "next_page_offset": None})

    async def query(name: str, asked: _Json) -> _Json:
        where, _ = _where(asked)
        nearest, top_k = asked["query"]["nearest"], asked["limit"]
        if asked.get("using") == LEXICAL:
            hits = await store.search_lexical(name, _sparse(nearest), where=where, top_k=top_k)
        else:
            hits = await store.search(name, np.array(nearest, dtype=np.float32), where=where, top_k=top_k)
        return _result({"points": [_scored(hit) for hit in hits]})

    calls = {"count": count, "delete": delete, "scroll": scroll, "query": query}
    posts = [_route("POST", f"/points/{name}", call) for name, call in calls.items()]
    return [_route("PUT", "/points", upsert), *posts]


_COMPLETED = {"operation_id": 0, "status": "completed"}


def _result(value: object) -> _Json:
    return {"result": value, "status": "ok", "time": 0.0}


def _description(info: CollectionInfo) -> _Json:
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "payload_schema": {},
        "config": {
            "params": {
                "vectors": {"size": info.dim, "distance": "Cosine"},
                "sparse_vectors": {LEXICAL: {"modifier": "idf"}} if info.lexical else None,
            },
            "hnsw_config": {"m": 0, "ef_construct": 4, "full_scan_threshold": 0},
            "optimizer_config": {"default_segment_number": 1, "flush_interval_sec": 1},
            "metadata": {"embedder": info.embedder},
        },
    }


def _point(asked: Mapping[str, Any]) -> Point:
    payload, vectors = asked["payload"], asked["vector"]
    dense, lexical = (vectors[""], vectors[LEXICAL]) if isinstance(vectors, dict) else (vectors, None)
    return Point(
        payload[KEY_FIELD],
        np.array(dense, dtype=np.float32),
        given_payload(payload),
        None if lexical is None else _sparse(lexical),
    )


def _sparse(asked: Mapping[str, Any]) -> SparseVector:
    return SparseVector(np.array(asked["indices"], dtype=np.uint32), np.array(asked["values"], dtype=np.float32))


def _scored(hit: SearchHit) -> _Json:
    payload = stored_payload(Point(hit.key, np.zeros(0, dtype=np.float32), hit.payload))
    return {"id": point_id(hit.key), "version": 0, "score": hit.score, "payload": payload}


def _with_key(payload: Mapping[str, PayloadValue]) -> _Json:
    """The engine's port gives payloads without the key; who asks in order wants the payload alone."""
    return {**payload, KEY_FIELD: ""}


def _ids(asked: Mapping[str, Any]) -> list[str] | None:
    """Ids that a request names; None where it names none."""
    conditions = (asked.get("filter") or {}).get("must") or []
    return next((condition["has_id"] for condition in conditions if "has_id" in condition), None)


def _where(asked: Mapping[str, Any]) -> tuple[dict[str, Condition], tuple[str, int] | None]:
    """The conditions of a request, in the terms of `streams.ports`, and the `below` of a deletion."""
    where: dict[str, Condition] = {}
    below: tuple[str, int] | None = None
    for condition in (asked.get("filter") or {}).get("must") or []:
        if "has_id" in condition:
            continue
        if "is_null" in condition:
            where[condition["is_null"]["key"]] = None
        elif (match := condition.get("match")) is not None:
            where[condition["key"]] = tuple(match["any"]) if "any" in match else match["value"]
        elif (limits := condition["range"]).get("lt") is not None:
            below = (condition["key"], int(limits["lt"]))
        else:
            where[condition["key"]] = (int(limits["gte"]), int(limits["lte"]))
    return where, below


def main() -> None:
    """Serve until told to stop, or until standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--embedder", required=True)
    given = parser.parse_args()

    async def serving(stop: asyncio.Event) -> None:
        api, store = create_vector_api(given.folder, embedder=given.embedder)
        try:
            async with serve(api, port=given.port):
                await stop.wait()
        finally:
            await store.close()

    run_until_stopped(serving, exit_with_parent=True, within_s=_STOP_WITHIN_S)


if __name__ == "__main__":
    main()
