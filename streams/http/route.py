"""Declared HTTP routes: method, path, parameters, body, response and errors, each declared once at its method.

    class MemoryReader:
        @USERS.get("/users/{user_id:path}/facts", "list_user_facts", audits="text_read")
        async def facts(self, asked: UserFacts) -> list[FactAnswer]: ...

The first argument is a `msgspec.Struct`; path and query fill its fields and the keyword arguments. The argument `body`
is the request body. The return type is the response: a struct or a list of structs with 200, `Accepted` with 202.
OpenAPI (`streams.http.openapi`), serving (`streams.http.answering`), MCP tools and the command line's clients read the
same declaration (`route_of`).

Every route may raise the following: `Problem` 403 for an app that the caller may not read, 422 for wrong fields, 504 if
it waits for a turn in vain; `AmbiguousApp` if several apps have the requested session; `StoreUnavailable` if the index
or the archive does not answer. Routes that write may also raise `Problem` 503, if the process takes no commands, and
`DeliveryFailed`, if the log did not confirm the command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from inspect import Parameter, signature
from types import UnionType
from typing import Any, ClassVar, Generic, Literal, TypedDict, TypeVar, Union, Unpack, get_args, get_origin
from typing import get_type_hints as hints_of
from urllib.parse import quote

import msgspec
from msgspec import NODEFAULT, Struct, defstruct
from starlette.responses import Response

from streams.settings.http import TokenRole

Audited = Literal["text_read", "acted"]
"""Kind of the audit record: the response has text of conversations, or the request changes something."""
Reach = Literal["token", "open", "probe", "metrics"]
"""Access: with a token; open; open without rate limit (probes); only for readers of all tenants' metrics."""

_Answer = TypeVar("_Answer")
_Method = TypeVar("_Method", bound=Callable[..., Any])
_DECLARED = "__route__"
_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
_SECTIONS = re.compile(r"\n\s*(?:Args|Returns|Raises):\n")


@dataclass(frozen=True, slots=True)
class RouteAnswer(Generic[_Answer]):
    """A response with its own headers."""

    body: _Answer
    headers: Mapping[str, str] = field(default_factory=dict)
    status: ClassVar = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Accepted(RouteAnswer[_Answer]):
    """Response 202: the log has the command, its result is not visible yet."""

    status: ClassVar = HTTPStatus.ACCEPTED


class NotSeenYet(Exception):  # noqa: N818 - a signal, no failure
    """Ends a request with 202 from any depth: the log has the command, but its result was not visible in time."""

    def __init__(self, answer: Accepted[Any]) -> None:
        super().__init__("accepted")
        self.answer = answer


class RouteRules(TypedDict, total=False):
    """Further declarations of a route; see `Route`."""

    role: TokenRole
    audits: Audited
    anonymous: bool
    reach: Reach
    lasting: bool
    errors: tuple[HTTPStatus, ...]
    kept: bool
    also: Mapping[str, str]
    headers: Mapping[str, str]
    bodies: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route.

    Attributes:
        group: Its group.
        method: HTTP method.
        paths: Paths in Starlette's form; `{name:path}` may contain slashes. Clients use the first.
        operation: Operation id, `snake_case`: verb and object.
        function: The declared method, as a function of its class.
        takes: Path and query parameters; None for none.
        named: Names of the parameters that are keyword arguments of the function.
        body: Type of the body; None for none.
        wants_request: Whether the function takes the request itself.
        answers: Response types by status; empty if it has only other media types.
        role: Lowest role of a token that may call it.
        audits: Kind of the audit record; None: no record.
        anonymous: Whether the audit record omits the subject of the request, since it would outlive its erasure.
        reach: Access to the route.
        lasting: Whether its responses are streams, which are exempt from the limits of time and number.
        errors: Problem statuses besides those of every route (`streams.http.openapi`).
        kept: Whether its path for older clients is not deprecated.
        also: Other media types of its response, each with an example.
        headers: Response headers with flags, and their meanings, by name.
        bodies: Media types of a body that the function parses itself; none: `body` as JSON, if it has one.
    """

    group: Group
    method: str
    paths: tuple[str, ...]
    operation: str
    function: Callable[..., Any]
    takes: type[Struct] | None
    named: tuple[str, ...]
    body: type[Struct] | None
    wants_request: bool
    answers: Mapping[HTTPStatus, Any]
    role: TokenRole = TokenRole.READER
    audits: Audited | None = None
    anonymous: bool = False
    reach: Reach = "token"
    lasting: bool = False
    errors: tuple[HTTPStatus, ...] = ()
    kept: bool = False
    also: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    bodies: tuple[str, ...] = ()

    def arguments(self, asked: Struct | None, body: Struct | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of the function."""
        by_place = [asked] if self.takes is not None and len(self.named) < len(self.takes.__struct_fields__) else []
        by_name = {name: getattr(asked, name) for name in self.named}
        return by_place, by_name if body is None else {**by_name, "body": body}

    @property
    def description(self) -> str:
        """Description of the operation: the docstring without its sections."""
        text = _SECTIONS.split(self.function.__doc__ or "")[0]
        return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n")).strip()

    def target(self, asked: Struct | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """Path and query of a request; parameters that are None or empty are omitted.

        Raises:
            TypeError: It has no such parameter.
        """
        given = msgspec.to_builtins(asked or {})
        if unknown := given.keys() - {*(() if self.takes is None else self.takes.__struct_encode_fields__)}:
            raise TypeError(f"{self.operation} takes no {', '.join(sorted(unknown))}")
        path = _PARAMETER.sub(lambda found: path_part(str(given.pop(found[1]))), self.paths[0])
        return path, {name: value for name, value in given.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Group:
    """A group of routes.

    Attributes:
        tag: Name of the group in the OpenAPI document.
        about: Description of the group.
        prefix: Prefix of all paths.
        formerly: Prefix of the paths of older clients that are still served; empty: none.
        role: Lowest role of a token that may call its routes; a route may declare another.
    """

    tag: str
    about: str
    prefix: str = ""
    formerly: str = ""
    role: TokenRole = TokenRole.READER

    def get(self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]) -> Callable[[_Method], _Method]:
        """Declare a route that reads; `others` are further paths of it."""
        return self._declared("GET", path, operation, others, rules)

    def post(
        self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]
    ) -> Callable[[_Method], _Method]:
        """Declare a route that queries with a body, or performs an action."""
        return self._declared("POST", path, operation, others, rules)

    def put(self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]) -> Callable[[_Method], _Method]:
        """Declare a route that replaces something."""
        return self._declared("PUT", path, operation, others, rules)

    def delete(
        self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]
    ) -> Callable[[_Method], _Method]:
        """Declare a route that deletes something."""
        return self._declared("DELETE", path, operation, others, rules)

    def _declared(
        self, method: str, path: str, operation: str, others: tuple[str, ...], rules: RouteRules
    ) -> Callable[[_Method], _Method]:
        def declare(function: _Method) -> _Method:
            declared: RouteRules = {"role": self.role, **rules}
            paths = [f"{self.prefix}{each}" for each in (path, *others)]
            old = (f"{self.formerly}{path}",) if self.formerly else ()
            hints = hints_of(function, include_extras=True)
            answers, body = dict(_answers(hints.pop("return"))), hints.pop("body", None)
            wants_request = hints.pop("request", None) is not None
            takes, named = _taken(function, hints)
            route = Route(
                group=self,
                method=method,
                paths=(*paths, *old),
                operation=operation,
                function=function,
                answers=answers,
                body=body,
                wants_request=wants_request,
                takes=takes,
                named=named,
                **declared,
            )
            setattr(function, _DECLARED, route)
            return function

        return declare


def route_of(method: Callable[..., Any]) -> Route:
    """The route that a method declares.

    Raises:
        AttributeError: The method declares none.
    """
    route: Route = getattr(method, _DECLARED)
    return route


def routes_of(kind: type) -> Iterator[Route]:
    """The routes that a class declares, in the order of its methods."""
    for member in vars(kind).values():
        if (route := getattr(member, _DECLARED, None)) is not None:
            yield route


def path_part(name: str) -> str:
    """Encode any name as one segment of a path; also `.`, since clients resolve `.` and `..`.

    >>> path_part("shop/eu ü"), path_part("..")
    ('shop%2Feu%20%C3%BC', '%2E%2E')
    """
    return quote(name, safe="").replace(".", "%2E")


def template(path: str) -> str:
    """A path for documentation: `{name:path}` becomes `{name}`."""
    return _PARAMETER.sub(r"{\1}", path)


def path_names(path: str) -> list[str]:
    """Names of a path's parameters."""
    return _PARAMETER.findall(path)


def _taken(function: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[type[Struct] | None, tuple[str, ...]]:
    """All parameters as one struct, and the names of the function's keyword arguments."""
    given = signature(function).parameters
    named = [name for name in hints if given[name].kind is Parameter.KEYWORD_ONLY]
    bases = tuple(kind for name, kind in hints.items() if name not in named)
    if not named:
        return next(iter(bases), None), ()
    fields = [
        (name, hints[name], NODEFAULT if given[name].default is Parameter.empty else given[name].default)
        for name in named
    ]
    return defstruct(function.__name__, fields, bases=bases, frozen=True, kw_only=True), tuple(named)


def _answers(returned: Any) -> Iterator[tuple[HTTPStatus, Any]]:
    origin = get_origin(returned)
    if origin in {Union, UnionType}:
        for each in get_args(returned):
            yield from _answers(each)
    elif origin is Accepted:
        yield HTTPStatus.ACCEPTED, get_args(returned)[0]
    elif origin is RouteAnswer:
        yield HTTPStatus.OK, get_args(returned)[0]
    elif not (isinstance(returned, type) and issubclass(returned, Response)):
        yield HTTPStatus.OK, returned
