"""Declared HTTP routes: method, path, parameters, body, answer and errors, each said once at the method that answers.

    class MemoryReader:
        @USERS.get("/users/{user_id:path}/facts", "list_user_facts", audits="text_read")
        async def facts(self, asked: UserFacts) -> list[FactAnswer]: ...

The first argument is a `msgspec.Struct` whose fields are taken from the path and the query, as are further arguments by
name; one that is called `body` is the body. What the method returns is the answer: a struct or a list of them with 200,
`Accepted` with 202. OpenAPI (`streams.http.openapi`), serving (`streams.http.answering`), MCP tools and the clients of
the command line read the same declaration (`route_of`).

What every route may raise is said here alone: `Problem` 403 for an app that the caller does not read, 422 for wrong
fields, 504 where it waits for a turn that does not come; `AmbiguousApp` where several apps have the session that it
names; `StoreUnavailable` where the index or the archive does not answer. One that changes something: 503 where the
process takes no commands, and `DeliveryFailed` where the log did not confirm one.
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
"""What is noted of a request: its answer holds what was said, or it changes something."""
Reach = Literal["token", "open", "probe", "metrics"]
"""Who is let in: holders of a token; everybody; orchestrators, however often; who may read counts of all tenants."""

_Answer = TypeVar("_Answer")
_Method = TypeVar("_Method", bound=Callable[..., Any])
_DECLARED = "__route__"
_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
_SECTIONS = re.compile(r"\n\s*(?:Args|Returns|Raises):\n")


@dataclass(frozen=True, slots=True)
class RouteAnswer(Generic[_Answer]):
    """An answer with headers of its own."""

    body: _Answer
    headers: Mapping[str, str] = field(default_factory=dict)
    status: ClassVar = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Accepted(RouteAnswer[_Answer]):
    """It is in the log and will be carried out; what comes of it is not seen yet."""

    status: ClassVar = HTTPStatus.ACCEPTED


class NotSeenYet(Exception):  # noqa: N818 - a signal, no failure
    """Ends a request with 202, from however deep: it is in the log, and what comes of it is not seen in time."""

    def __init__(self, answer: Accepted[Any]) -> None:
        super().__init__("accepted")
        self.answer = answer


class RouteRules(TypedDict, total=False):
    """What else a route declares; see `Route`."""

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
        group: What it belongs to.
        method: Of HTTP.
        paths: As Starlette has them; `{name:path}` may hold slashes. The first is told to clients.
        operation: Its id, `snake_case`: what it does to what.
        function: What answers it, as the class has it.
        takes: Parameters of its path and query; None for none.
        named: Those of them that the function takes by name.
        body: Its body; None for none.
        wants_request: Whether the function takes the request itself.
        answers: Types of its answers by status; none where only other forms are given.
        role: Least role of a token that may ask it.
        audits: What is noted of each request; None: nothing.
        anonymous: Whether the note does not say whom the request is about: it would outlive an erasure.
        reach: Who is let in at all.
        lasting: Whether its answers last; neither time nor number of these are limited as of others.
        errors: Statuses of problems besides those of every route (`streams.http.openapi`).
        kept: Whether its path for older clients is no less right than the others.
        also: Other forms of its answer: an example by media type.
        headers: Flags that its answer says in headers: what each means, by its name.
        bodies: Media types of a body that the function reads itself; none: `body` in JSON, if it has one.
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
        """What the function is called with, by place and by name."""
        by_place = [asked] if self.takes is not None and len(self.named) < len(self.takes.__struct_fields__) else []
        by_name = {name: getattr(asked, name) for name in self.named}
        return by_place, by_name if body is None else {**by_name, "body": body}

    @property
    def description(self) -> str:
        """What it does, in sentences."""
        text = _SECTIONS.split(self.function.__doc__ or "")[0]
        return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n")).strip()

    def target(self, asked: Struct | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """Path and query with which a client asks it; parameters that are None or empty are left out.

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
    """Routes that belong together.

    Attributes:
        tag: Their name in the contract.
        about: What they are.
        prefix: With what their paths begin.
        formerly: With what paths of older clients begin that are still served; empty: there are none.
        role: Least role of a token that may ask them; a route may ask for another.
    """

    tag: str
    about: str
    prefix: str = ""
    formerly: str = ""
    role: TokenRole = TokenRole.READER

    def get(self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]) -> Callable[[_Method], _Method]:
        """Declare a route that reads; `others` are further paths to it."""
        return self._declared("GET", path, operation, others, rules)

    def post(
        self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]
    ) -> Callable[[_Method], _Method]:
        """Declare a route that asks with a body, or does something."""
        return self._declared("POST", path, operation, others, rules)

    def put(self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]) -> Callable[[_Method], _Method]:
        """Declare a route that replaces something."""
        return self._declared("PUT", path, operation, others, rules)

    def delete(
        self, path: str, operation: str, *others: str, **rules: Unpack[RouteRules]
    ) -> Callable[[_Method], _Method]:
        """Declare a route that takes something away."""
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
    """What a method declares.

    Raises:
        AttributeError: It is no route.
    """
    route: Route = getattr(method, _DECLARED)
    return route


def routes_of(kind: type) -> Iterator[Route]:
    """What a class declares, in the order of its methods."""
    for member in vars(kind).values():
        if (route := getattr(member, _DECLARED, None)) is not None:
            yield route


def path_part(name: str) -> str:
    """A name as one part of a path, whatever it holds; clients would take `.` and `..` for steps.

    >>> path_part("shop/eu ü"), path_part("..")
    ('shop%2Feu%20%C3%BC', '%2E%2E')
    """
    return quote(name, safe="").replace(".", "%2E")


def template(path: str) -> str:
    """A path as it is written down: `{name:path}` says nothing to who reads it."""
    return _PARAMETER.sub(r"{\1}", path)


def path_names(path: str) -> list[str]:
    """Names of a path's parameters."""
    return _PARAMETER.findall(path)


def _taken(function: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[type[Struct] | None, tuple[str, ...]]:
    """Parameters as one struct, and those that the function takes by name."""
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
