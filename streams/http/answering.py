"""Serving of declared routes: msgspec decodes requests and encodes responses, once.

Checks run in this order: the caller's role, the permission to read text, parameters, body. A wrong parameter or field
is refused with 422, which names the field and never its value.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPStatus
from math import isfinite
from time import perf_counter
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.http.audit import begin, note, note_given, note_ids
from streams.http.field_rules import require_printable_ids
from streams.http.problems import invalid_field, undecodable
from streams.http.route import NotSeenYet, Reach, Route, RouteAnswer, routes_of, template
from streams.http.security import require_role
from streams.observe.telemetry import metrics

_encode = msgspec.json.Encoder().encode
_BOOLEANS = dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True) | dict.fromkeys(
    ("0", "false", "f", "no", "n", "off"), False
)
"""Words for booleans in a query."""
_NUMBER = re.compile(r"[-+\d._eE]*")
"""Numbers, which msgspec would read as times in seconds; the contract does not allow them."""
_MATCHED = "turntide.matched"
_ALLOWED = "turntide.allowed"
_ENCODED_SLASH = re.compile("%2F", re.IGNORECASE)
_SLASH = "\ud800"
"""Placeholder of an encoded slash during the matching of paths; no decoded path contains it."""
OTHER = "other"
"""Label of requests without a route, or refused before matching."""
_FAILED = 500
_STREAM = b"text/event-stream"


class ServedRoute(StarletteRoute):
    """A route at one path: a declared one, or an ASGI app outside the contract.

    Attributes:
        reach: Access to it.
        lasting: Whether its responses are streams.
        reads: Whether it only reads.
        declared: Its declaration; None outside the contract.
        max_body_bytes: Its own limit of request bodies; None: the common one.
    """

    def __init__(
        self,
        path: str,
        answers: Callable[[Request], Awaitable[Response]] | ASGIApp,
        methods: Sequence[str],
        *,
        reach: Reach = "token",
        declared: Route | None = None,
        max_body_bytes: int | None = None,
    ) -> None:
        super().__init__(path, answers, methods=methods)
        self.methods = set(methods)  # a GET is no HEAD unless it says so
        self.path_format = template(path)
        # Ids with line breaks are read, so that what takes an id can refuse them.
        self.path_regex = re.compile(self.path_regex.pattern.removesuffix("$") + r"\Z", re.DOTALL)
        self.reach = reach
        self.declared = declared
        self.lasting = declared is not None and declared.lasting
        self.reads = declared is not None and (declared.method == "GET" or declared.audits == "text_read")
        self.max_body_bytes = max_body_bytes


def served_routes(*owners: object, max_body_bytes: int | None = None) -> list[ServedRoute]:
    """All routes that the classes of these objects declare, in order; the first match serves a request."""
    return [
        ServedRoute(
            path,
            _answering(route, getattr(owner, route.function.__name__)),
            [route.method],
            reach=route.reach,
            declared=route,
            max_body_bytes=max_body_bytes,
        )
        for owner in owners
        for route in routes_of(type(owner))
        for path in route.paths
    ]


class Matching:
    """Outermost ASGI middleware: finds the route once, for all other middleware.

    The first matching path counts, for every method. Encoded slashes (`%2F`) distinguish an id that ends like another
    path.

    Args:
        app: The next app; the innermost one is `answer`.
        routes: Routes in order of matching.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[StarletteRoute]) -> None:
        self._app = app
        self._routes = list(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its route."""
        if scope["type"] == "http":
            scope[_MATCHED] = self._match(scope)
        await self._app(scope, receive, send)

    def _match(self, scope: Scope) -> tuple[StarletteRoute | None, Scope]:
        asked = {**scope, "path": _path_of(scope)}
        found, child, allowed = None, {}, set[str]()
        for route in self._routes:
            if found is not None and route.path != found.path:
                continue
            match, fits = route.matches(asked)
            if match is Match.NONE:
                continue
            names = {name: value.replace(_SLASH, "/") for name, value in fits["path_params"].items()}
            found, child = route, {**fits, "path_params": names}
            if match is Match.FULL:
                return found, child
            allowed.update(route.methods or ())
        return found, {**child, _ALLOWED: allowed}


def _path_of(scope: Scope) -> str:
    """The path with `_SLASH` for encoded slashes, which are part of a name."""
    raw = scope.get("raw_path")
    if not raw or b"%2" not in raw:
        return str(scope["path"])
    return unquote(_ENCODED_SLASH.sub(_SLASH, raw.decode("latin-1")))


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Innermost ASGI app: call the matched route.

    Raises:
        HTTPException: 404 without a route; 405 without one for this method.
    """
    route, child = scope[_MATCHED]
    if route is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    scope.update(child, route=route)
    if scope["method"] not in route.methods:
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(sorted(child[_ALLOWED]))})
    await route.handle(scope, receive, send)


def asked_route(scope: Scope) -> ServedRoute | None:
    """The route of a request; None without a match."""
    route = scope[_MATCHED][0] if _MATCHED in scope else None
    return route if isinstance(route, ServedRoute) else None


def reach_of(scope: Scope) -> Reach:
    """Access to the route of a request; without a route, a token is needed to get the 404."""
    route = asked_route(scope)
    return "token" if route is None else route.reach


class RequestMeasures:
    """ASGI middleware around everything else: counts requests and measures their duration.

    The label is the template of the route, since paths contain ids.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it when its response has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, streamed, began_s = _FAILED, False, perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status, streamed
            if message["type"] == "http.response.start":
                status = message["status"]
                streamed = any(
                    name.lower() == b"content-type" and value.startswith(_STREAM)
                    for name, value in message.get("headers", ())
                )
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            route = route_of(scope)
            metrics.counter("http_requests_total", route=route, status=f"{status // 100}xx").inc()
            if not streamed:
                metrics.histogram("http_request_seconds", route=route).observe(perf_counter() - began_s)


def route_of(scope: Scope) -> str:
    """The template of the route that served a request, for example `/v1/sessions/{session_id}/turns`."""
    found = getattr(scope.get("route"), "path", None)
    return found if isinstance(found, str) else OTHER


def _answering(route: Route, method: Callable[..., Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    bind = None if route.takes is None else _Binding(route.takes)
    decoder = None if route.body is None else msgspec.json.Decoder(route.body)

    async def endpoint(request: Request) -> Response:
        if route.reach == "token":
            require_role(route.role)
            begin(template(request.scope["route"].path), anonymous=route.anonymous)
            note_ids(request.query_params.get)
            note_ids(request.path_params.get)
            if route.audits is not None:
                note(route.audits)
        asked = None if bind is None else bind(request)
        body = None if decoder is None else _decoded(await request.body(), decoder)
        given, named = route.arguments(asked, body)
        if route.wants_request:
            named["request"] = request
        try:
            answered = await method(*given, **named)
        except NotSeenYet as pending:
            answered = pending.answer
        if isinstance(answered, Response):
            return answered
        if not isinstance(answered, RouteAnswer):
            answered = RouteAnswer(answered)
        note_given(answered.body)
        return Response(_encode(answered.body), answered.status, answered.headers, media_type="application/json")

    return endpoint


def _decoded(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """The request's body.

    Raises:
        Problem: 422 with the field, without its value.
    """
    try:
        asked = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(error, decoder.type) from None
    require_printable_ids(asked)
    note_ids(lambda name: getattr(asked, name, None))
    return asked


class _Binding:
    """Parameters of path and query as a struct; of repeated ones the last counts, except for lists."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._kind = kind
        fields = msgspec.structs.fields(kind)
        info = {each.name: each for each in msgspec.inspect.type_info(kind).fields}  # type: ignore[attr-defined]
        self._names = {each.name: each.encode_name for each in fields}
        self._required = [each.encode_name for each in fields if each.required]
        self._lists = {name for name in self._names if _has(info[name].type, msgspec.inspect.ListType)}
        self._booleans = {name for name in self._names if _has(info[name].type, msgspec.inspect.BoolType)}
        self._times = {each.encode_name for each in fields if _has(info[each.name].type, msgspec.inspect.DateTimeType)}
        self._floats = {name for name in self._names if _has(info[name].type, msgspec.inspect.FloatType)}

    def __call__(self, request: Request) -> msgspec.Struct:
        """Decode the parameters of a request.

        Raises:
            Problem: 422 with the parameter, without its value.
        """
        given = self._given(request)
        try:
            asked = msgspec.convert(given, self._kind, strict=False)
        except msgspec.ValidationError as error:
            raise undecodable(error, self._kind) from None
        for name, shown in self._names.items():
            if shown in given and getattr(asked, name) is None:
                raise invalid_field(shown, "is not one of the allowed values")  # the text `null`
        for name in self._floats:
            if (number := getattr(asked, name)) is not None and not isfinite(number):
                raise invalid_field(name, "Expected a finite number")
        require_printable_ids(asked)
        return asked

    def _given(self, request: Request) -> dict[str, Any]:
        """Raw values of path and query by parameter.

        Raises:
            Problem: 422, a parameter is missing or not of its type.
        """
        query, given = request.query_params, dict[str, Any](request.path_params)
        for name, shown in self._names.items():
            if shown in query and shown not in given:
                value: Any = query.getlist(shown) if name in self._lists else query[shown]
                given[shown] = _BOOLEANS.get(value.lower(), value) if name in self._booleans else value
        for name in self._required:
            if name not in given:
                raise invalid_field(name, "is missing")
        for name in self._times & given.keys():
            if _NUMBER.fullmatch(given[name]):
                raise invalid_field(name, "Expected a time in the form of RFC 3339")
        return given


def _has(kind: msgspec.inspect.Type, wanted: type[msgspec.inspect.Type]) -> bool:
    match kind:
        case msgspec.inspect.Metadata():
            return _has(kind.type, wanted)
        case msgspec.inspect.UnionType():
            return any(_has(each, wanted) for each in kind.types)
    return isinstance(kind, wanted)
