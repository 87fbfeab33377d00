"""A vector store over HTTP to be harmed: the REST calls of `streams.index.server`, answered by Qdrant's own engine.

No Qdrant server runs from a wheel; its engine does (`streams.index.edge`). This process puts the part of the server's
interface in front of it that the index role uses, so that the role speaks to a real process over a real socket, which
can be killed, can hang, and can answer 503. What it has acknowledged is durable. For chaos only: it answers what the
role calls, so no searches, and no other filter than those that the store builds.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from jobs.operate.worker import run_until_stopped
from models.retrieval.lexical import SparseVector
from streams.http.answering import ServedRoute
from streams.http.health import Api, serve
from streams.index.edge import EdgeStore
from streams.index.edge_shard import read_info
from streams.index.points import KEY_FIELD, LEXICAL, CollectionInfo, given_payload, point_id
from streams.ports import Condition, Point

ERRORS_PATH = "/chaos/errors"
_UNAVAILABLE = 503
_NOT_FOUND = 404
_STOP_WITHIN_S = 10.0
_CALLS = (
    *("GET /exists", "GET ", "PUT ", "PUT /index", "PUT /points"),
    *("POST /points/count", "POST /points/delete", "POST /points/scroll"),
)
"""Method and end of the path behind a collection's name."""
_Json = dict[str, Any]


def create_vector_api(folder: Path, *, embedder: str) -> tuple[Api, EdgeStore]:
    """The app and its store; close the store when the app has ended.

    Beside Qdrant's calls there is `POST /chaos/errors?seconds=S`: for so long, each of them is answered with 503.
    """
    store = EdgeStore(folder, embedder=embedder)
    api = Api(_Collections(store, folder).routes(), [])
    api.state.everybody_reads = True
    return api, store


class _Collections:
    """The calls about a collection: each with name and body of the request → the result."""

    def __init__(self, store: EdgeStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._failing_until_s = 0.0

    def routes(self) -> list[ServedRoute]:
        """All of them."""
        routes = [ServedRoute("/readyz", self._ready, ["GET"]), ServedRoute(ERRORS_PATH, self._fail, ["POST"])]
        for call in _CALLS:
            method, _, end = call.partition(" ")
            answer = partial(self._answer, call)
            routes.append(ServedRoute(f"/collections/{{name}}{end}", answer, [method]))
        return routes

    async def _ready(self, _request: Request) -> Response:
        return PlainTextResponse("ready")

    async def _fail(self, request: Request) -> Response:
        self._failing_until_s = monotonic() + float(request.query_params["seconds"])
        return JSONResponse(None)

    async def _answer(self, call: str, request: Request) -> Response:
        if monotonic() < self._failing_until_s:
            return JSONResponse({"status": {"error": "told to fail"}}, _UNAVAILABLE)
        body = await request.body()
        found = await self._found(call, request.path_params["name"], json.loads(body) if body else {})
        return JSONResponse({"result": found, "status": "ok", "time": 0.0})

    async def _found(self, call: str, name: str, asked: _Json) -> object:
        store, within = self._store, _where(asked)
        match call:
            case "GET " | "GET /exists":
                info = read_info(self._folder / name)
                if call == "GET /exists":
                    return {"exists": info is not None}
                if info is None:
                    raise HTTPException(_NOT_FOUND)
                return _description(info)
            case "PUT ":
                await store.ensure(name, asked["vectors"]["size"])
                return True
            case "PUT /points":
                info = read_info(self._folder / name)
                await store.upsert(name, [_point(each, info.dim if info else 0) for each in asked["points"]])
                await store.flush()  # a server keeps what it has acknowledged, and is killed here
            case "POST /points/count":
                return {"count": await store.count(name, where=within.where)}
            case "POST /points/delete":
                await store.delete(name, where=within.where, below=within.below)
                await store.flush()
            case "POST /points/scroll":
                return await self._scroll(name, asked)
        return _COMPLETED  # indexes are made with the collection

    async def _scroll(self, name: str, asked: _Json) -> object:
        within = _where(asked)
        if within.ids is None and not asked.get("order_by"):
            page, after = await self._store.page(name, str(asked.get("offset") or ""), asked["limit"])
            points = [{"id": point_id(key), "payload": {**payload, KEY_FIELD: key}} for key, payload in page]
            return {"points": points, "next_page_offset": after or None}
        if within.ids is None:
            by, limit = asked["order_by"]["key"], asked["limit"]
            newest = await self._store.latest(name, where=within.where, by=by, limit=limit)
            # The engine's port gives them without their keys, and who asks in order wants the payloads alone.
            found = {f"{number}": payload for number, payload in enumerate(newest)}
        else:
            keys = [key for each in within.ids for key in await _keys_from(self._store, name, each)]
            found = await self._store.read(name, keys, where=within.where)
        points = [{"id": point_id(key), "payload": {**payload, KEY_FIELD: key}} for key, payload in found.items()]
        return {"points": points, "next_page_offset": None}


async def _keys_from(store: EdgeStore, collection: str, asked: str) -> list[str]:
    """The key whose id this is, which the engine's port wants; none where there is no such point."""
    page, _ = await store.page(collection, asked, 1)
    return [each.key for each in page if point_id(each.key) == asked]


_COMPLETED = {"operation_id": 0, "status": "completed"}


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


def _point(asked: Mapping[str, Any], dim: int) -> Point:
    payload, vectors = asked["payload"], asked["vector"]
    dense, lexical = (vectors.get(""), vectors.get(LEXICAL)) if isinstance(vectors, dict) else (vectors, None)
    return Point(
        payload[KEY_FIELD],
        np.zeros(dim, dtype=np.float32) if dense is None else np.array(dense, dtype=np.float32),
        given_payload(payload),
        None
        if lexical is None
        else SparseVector(np.array(lexical["indices"], np.uint32), np.array(lexical["values"], np.float32)),
        embedded=dense is not None,
    )


class _Within(NamedTuple):
    """The filter of a request, in the terms of `streams.ports`; `ids` is None where it names none."""

    where: dict[str, Condition]
    below: tuple[str, int] | None
    ids: list[str] | None


def _where(asked: Mapping[str, Any]) -> _Within:
    where: dict[str, Condition] = {}
    below, ids = None, None
    for condition in (asked.get("filter") or {}).get("must") or []:
        if "has_id" in condition:
            ids = condition["has_id"]
        elif "is_null" in condition:
            where[condition["is_null"]["key"]] = None
        elif (match := condition.get("match")) is not None:
            where[condition["key"]] = tuple(match["any"]) if "any" in match else match["value"]
        elif (limits := condition["range"]).get("lt") is not None:
            below = (condition["key"], int(limits["lt"]))
        else:
            where[condition["key"]] = (int(limits["gte"]), int(limits["lte"]))
    return _Within(where, below, ids)


def main() -> None:
    """Serve until told to stop, or until standard input closes."""
    folder, port, embedder = sys.argv[1:]

    async def serving(stop: asyncio.Event) -> None:
        api, store = create_vector_api(Path(folder), embedder=embedder)
        try:
            async with serve(api, port=int(port)):
                await stop.wait()
        finally:
            await store.close()

    run_until_stopped(serving, exit_with_parent=True, within_s=_STOP_WITHIN_S)


if __name__ == "__main__":
    main()
