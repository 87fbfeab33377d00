"""OTLP over HTTP: what traced applications send, made turns. Protobuf or JSON, also compressed.

A span that tells of no model call is taken and passed over. Nothing is kept: a request is answered when Kafka has its
turns, and one that is sent again brings the same turns with the same ids.
"""

import asyncio
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from types import ModuleType
from typing import Any

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from models.errors import DeliveryFailed, InvalidRecord
from models.messages import otlp
from models.messages.spans import TracedSpan, each_once, turns_by_call
from models.messages.turns import IncomingTurn
from models.wire.codec import UNDECODABLE
from streams.gateway.gateway import Gateway
from streams.http.problems import Problem, problem_of
from streams.http.route import Group
from streams.http.security import caller
from streams.kafka.producer import Record
from streams.observe.telemetry import metrics
from streams.settings.http import TokenRole

_JSON, _PROTOBUF = _FORMS = ("application/json", "application/x-protobuf")
_OTLP = Group("otlp", "Telemetry of traced applications (OpenTelemetry).", prefix="/v1", role=TokenRole.WRITER)
_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}
_WINDOW_BITS = {"gzip": 31, "deflate": 15}
_CLOCK_IS_WRONG = {"future_timestamp", "ancient_timestamp"}
_MOST_CHARACTERS = 4_000


class OtlpRoutes:
    """Routes over one gateway.

    Args:
        gateway: Takes the turns.
        max_bytes: Of a body when it is unpacked.
    """

    def __init__(self, gateway: Gateway, *, max_bytes: int) -> None:
        self._gateway = gateway
        self._max_bytes = max_bytes

    @_OTLP.post("/traces", "export_traces", audits="acted", bodies=_FORMS, also={_JSON: "{}"})
    async def traces(self, request: Request) -> Response:
        """Accept spans (`ExportTraceServiceRequest`); their model calls become turns.

        200 once Kafka has the turns. `partialSuccess` tells how many calls were refused, and why. Errors have the form
        of OTLP (`Status`): 400 it cannot be read, 413 too large, 415 another form; 429 and 503 are to be tried again.
        """
        return await self._answer(request, "traces")

    @_OTLP.post("/logs", "export_logs", audits="acted", bodies=_FORMS, also={_JSON: "{}"})
    async def logs(self, request: Request) -> Response:
        """Accept log records (`ExportLogsServiceRequest`); their model call events become turns."""
        return await self._answer(request, "logs")

    @_OTLP.post("/metrics", "export_metrics", bodies=_FORMS, also={_JSON: "{}"})
    async def metrics(self, request: Request) -> Response:
        """Accept and discard metrics, as an SDK with one endpoint sends them there too."""
        kind = _kind_of(request)
        return Response(b"{}" if kind == _JSON else b"", media_type=kind)

    async def _answer(self, request: Request, signal: str) -> Response:
        kind = _kind_of(request)
        try:
            protobuf = None if kind == _JSON else _protobuf()
            refused = await self._take(
                request, otlp.spans_in if protobuf is None else lambda body: protobuf.spans_in(body, signal)
            )
        except (Problem, DeliveryFailed) as error:
            return _status(problem_of(error), kind)
        said = ", ".join(f"{reason} ({count})" for reason, count in sorted(refused.items()))
        partial = {_REJECTED[signal]: str(refused.total()), "errorMessage": f"model calls refused: {said}"}
        told: dict[str, Any] = {"partialSuccess": partial} if said else {}
        return Response(
            msgspec.json.encode(told) if protobuf is None else protobuf.answer(told, signal), media_type=kind
        )

    async def _take(self, request: Request, decode: Callable[[bytes], Iterable[TracedSpan]]) -> Counter[str]:
        """Append the turns that the caller may write and the fold takes; how many calls have others, by the reason."""
        body = unpacked(await request.body(), request.headers.get("content-encoding", ""), self._max_bytes)
        calls = await asyncio.to_thread(_calls, decode, body)
        good, refused, now = list[Record](), dict[object, str](), datetime.now(UTC)
        for turn in each_once(calls):
            try:
                good.append(self._record_of(turn, now))
            except InvalidRecord as error:
                refused[_name(turn)] = error.reason
            except Problem as problem:
                refused[_name(turn)] = problem.document.code
        if good:
            await self._gateway.append(good)
        named = ([_name(turn) for turn in call] for call in calls)
        reasons = Counter(
            next(refused[name] for name in names if name in refused) for names in named if refused.keys() & set(names)
        )
        metrics.counter("otlp_calls_total", result="accepted").inc(len(calls) - reasons.total())
        metrics.counter("otlp_calls_total", result="refused").inc(reasons.total())
        return reasons

    def _record_of(self, turn: IncomingTurn, now: datetime) -> Record:
        """A turn that can be appended, in the caller's only app. If its sender's clock is wrong it was said now."""
        turn = self._gateway.completed(structs.replace(turn, app_id=caller().app_of(None) or turn.app_id))
        try:
            return self._gateway.record_of(turn, now)
        except InvalidRecord as error:
            if error.reason not in _CLOCK_IS_WRONG:
                raise
            return self._gateway.record_of(structs.replace(turn, timestamp=None), now)


def unpacked(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """A body without its compression.

    Raises:
        Problem: 400 it is damaged; 413 it is too large; 415 the compression is not known.
    """
    if encoding in {"", "identity"}:
        return body
    if encoding not in _WINDOW_BITS:
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", "compress with gzip or not at all")
    unpacking = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        whole = unpacking.decompress(body, max_bytes + 1)
    except zlib.error:
        whole = b""
    if len(whole) > max_bytes:
        raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", f"unpacked, it exceeds {max_bytes} bytes")
    if not unpacking.eof:
        raise Problem(HTTPStatus.BAD_REQUEST, "damaged", f"the body is truncated or not {encoding}")
    return whole


def _calls(decode: Callable[[bytes], Iterable[TracedSpan]], body: bytes) -> list[list[IncomingTurn]]:
    try:
        return turns_by_call(decode(body))
    except UNDECODABLE:
        raise Problem(HTTPStatus.BAD_REQUEST, "not_otlp", "the body is not OTLP as in its Content-Type") from None


def _name(turn: IncomingTurn) -> object:
    return turn.app_id, turn.session_id, turn.message_id


def _protobuf() -> ModuleType:
    from streams.gateway import otlp_protobuf  # noqa: PLC0415 - loads for 0.17 s

    return otlp_protobuf


def _status(problem: Problem, kind: str) -> Response:
    """An error in OTLP's form: google.rpc.Status, of which senders read the message, field 2."""
    said = problem.detail[:_MOST_CHARACTERS].encode()
    length = bytes([len(said) & 127 | 128, len(said) >> 7])
    body = msgspec.json.encode({"message": problem.detail}) if kind == _JSON else b"\x12" + length + said
    return Response(body, problem.status, problem.headers, media_type=kind)


def _kind_of(request: Request) -> str:
    return request.headers.get("content-type", _JSON).partition(";")[0].strip().lower()
