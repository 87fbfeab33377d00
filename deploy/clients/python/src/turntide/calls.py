"""Calls without a network: each call yields requests and pauses, and is sent the responses.

So tries, waiting, splitting and parsing are written once; `Memory` and `AsyncMemory` only carry steps out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from turntide.answers import (
    Accepted,
    Added,
    Context,
    Episode,
    Erasure,
    Fact,
    FactChange,
    Found,
    Profile,
    Segments,
    Turn,
    read,
)
from turntide.errors import ApiError, FieldError, NotYet, TurntideError, Unreachable

Message: TypeAlias = Mapping[str, Any]
"""A chat message as OpenAI's API has it: `role`, `content`, tool calls; besides `message_id` and `timestamp`."""
Messages: TypeAlias = str | Message | Sequence[Message]
Wait: TypeAlias = Literal["accepted", "visible"]
MemoryMode: TypeAlias = Literal["active", "read_only", "off"]
Category: TypeAlias = Literal["identity", "preference", "constraint", "instruction"]

NO_ANSWER = 0
_DONE = range(200, 300)
_TRIED_AGAIN = {NO_ANSWER, 429, 502, 503}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 30.0
_VISIBLE_WITHIN_MS = 10_000
_PART_BYTES, _PART_MESSAGES = 512 * 1024, 200
"""Of one request: a longer history goes in several."""
_PROOF_EACH_S = 0.25


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `writes` goes to where turns are taken, `waits_s` is added to its time limit."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    writes: bool = False
    waits_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is to be done for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Response; `NO_ANSWER` and the reason if there was none."""

    status: int
    body: bytes
    retry_after: str = ""


_T = TypeVar("_T")
Steps: TypeAlias = Generator[Request | Pause, Answer, _T]
"""A call: is sent the answer to each request, and returns what it was made for. To a pause any answer will do."""


class Calls:
    """All calls to a memory.

    Args:
        app: Id of the app.
        retries: How often a request is repeated after no response, or 429, 502 or 503. Turns have ids that the
            server recognises, and the other calls are idempotent: a repeat changes nothing.
    """

    def __init__(self, app: str, retries: int) -> None:
        self._app = app
        self._retries = retries
        self._instance = uuid4()

    def add(
        self, messages: Messages, *, user_id: str, session_id: str | None = None, wait: Wait = "accepted"
    ) -> Steps[Added]:
        """Add messages to the memory; on return they are stored durably in the server's log.

        Args:
            messages: Text of the user, a chat message, or a list of them. With a `message_id` of your own, a message
                that you add again is ignored; else the client creates one.
            user_id: Id of the user in the conversation.
            session_id: Id of the session. Default: the session of this object with the user.
            wait: `visible` returns when reads find the turns.

        Raises:
            NotYet: They are in the log, but not visible in time.
        """
        session = session_id or self.session_of(user_id)
        accepted: list[Accepted] = []
        for part in _parts(_identified(messages)):
            body = {"app_id": self._app, "user_id": user_id, "session_id": session, "messages": part}
            answer = yield from self._asked(Request("POST", "/v1/turns", body=body, writes=True))
            accepted += read(list[Accepted], answer["accepted"])
        if wait == "visible":
            last = [each.message_id for each in accepted[-_PART_MESSAGES:]]
            waited = {"session_id": session, "message_ids": last, "timeout_ms": _VISIBLE_WITHIN_MS}
            numbers = {each["message_id"]: each["turn"] for each in (yield from self._posted("/v1/turns/wait", waited))}
            accepted = [replace(each, turn=numbers.get(each.message_id)) for each in accepted]
        return Added(session_id=session, turns=accepted)

    def end(self, session_id: str | None = None, *, user_id: str | None = None) -> Steps[None]:
        """End a session. Default: the session of this object with the user."""
        if session_id is None:
            if user_id is None:
                raise TypeError("end() needs a session_id, or the user_id whose session of this object it is")
            session_id = self.session_of(user_id)
        body = {"app_id": self._app}
        yield from self._asked(Request("POST", f"/v1/sessions/{_part(session_id)}/end", body=body, writes=True))

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        kind: Literal["turns", "episodes"] = "turns",
        limit: int = 10,
        since: date | None = None,
        until: date | None = None,
    ) -> Steps[Found]:
        """Search turns or episodes of a user, a session or the whole app, by words and similarity.

        `since` and `until` are days in UTC or times with a zone, inclusive; turns match by time or mentioned days.
        """
        body = {
            "query": query, "user_id": user_id, "session_id": session_id, "kind": kind, "top_k": limit,
            **_window(since, until),
        }  # fmt: skip
        return read(Found, (yield from self._posted("/v1/search", body)))

    def context(
        self,
        query: str,
        *,
        user_id: str,
        session_id: str | None = None,
        token_budget: int = 2_000,
        recent_turns: int = 10,
        since: date | None = None,
        until: date | None = None,
        after: Added | None = None,
    ) -> Steps[Context]:
        """Build a prompt for a question within a token budget: facts, episodes, related turns, and the last turns.

        Args:
            query: The question.
            user_id: Id of the user.
            session_id: Session of the last turns. Default: all sessions of the user.
            token_budget: Maximum length of the prompt in tokens.
            recent_turns: Maximum number of last turns.
            since: As of `search`, for episodes and for what was said of the question …
            until: … and likewise.
            after: Added turns that must be visible.

        Raises:
            NotYet: The added turns were not visible in time.
        """
        body = {
            "query": query, "user_id": user_id, "session_id": session_id, "token_budget": token_budget,
            "recent_turns": recent_turns, **_window(since, until), "after": _after(after),
        }  # fmt: skip
        return read(Context, (yield from self._posted("/v1/context", body)))

    def facts(self, user_id: str, *, category: Category | None = None, include_past: bool = False) -> Steps[list[Fact]]:
        """List the facts of a user, active facts first, most important first."""
        query = {"category": category, "include_past": "true" if include_past else None}
        return read(list[Fact], (yield from self._got(f"/v1/users/{_part(user_id)}/facts", query)))

    def episodes(self, user_id: str, *, limit: int = 20) -> Steps[list[Episode]]:
        """List the episodes of a user, latest first."""
        return read(list[Episode], (yield from self._got(f"/v1/users/{_part(user_id)}/episodes", {"limit": limit})))

    def recent(self, user_id: str, *, last: int = 10) -> Steps[list[Turn]]:
        """List the last turns of a user across sessions, oldest first."""
        return read(list[Turn], (yield from self._got(f"/v1/users/{_part(user_id)}/recent", {"last": last})))

    def turns(self, session_id: str, *, last: int = 100, after: Added | None = None) -> Steps[list[Turn]]:
        """List the last turns of a session, oldest first, once the turns in `after` are visible, else `NotYet`."""
        query: dict[str, Any] = {"last": last}
        if after and after.turns:
            query |= {"after_message": after.turns[-1].message_id, "timeout_ms": _VISIBLE_WITHIN_MS}
        return read(list[Turn], (yield from self._got(f"/v1/sessions/{_part(session_id)}/turns", query)))

    def segments(self, session_id: str, *, last: int = 20) -> Steps[Segments]:
        """Return summaries of a session's segments, about five turns each, and the turns since the last segment."""
        return read(Segments, (yield from self._got(f"/v1/sessions/{_part(session_id)}/segments", {"last": last})))

    def profile(self, session_id: str) -> Steps[Profile]:
        """Return the last risk profile of a session, written every five turns and at changes; `ApiError` 404 before."""
        return read(Profile, (yield from self._got(f"/v1/sessions/{_part(session_id)}/profile", {})))

    def app_of(self, session_id: str) -> Steps[str]:
        """Return the app of a session, of the token's apps; `ApiError` 404 for none, 422 if several have it."""
        found = yield from self._asked(Request("GET", f"/v1/sessions/{_part(session_id)}/app"))
        return read(str, found["app_id"])

    def set_fact(
        self, user_id: str, category: Category, key: str, value: str, *, importance: float | None = None
    ) -> Steps[FactChange]:
        """Set a fact of a user. An earlier value moves to its history.

        Args:
            user_id: Id of the user.
            category: Category of the fact.
            key: Key of the fact in snake case, e.g. `name`, `location`, `allergy_peanuts`.
            value: New value.
            importance: Importance, 0-1. Default: unchanged.
        """
        return self._changed("PUT", user_id, category, key, {"value": value, "importance": importance})

    def pin_fact(self, user_id: str, category: Category, key: str, *, pinned: bool = True) -> Steps[FactChange]:
        """Pin a fact, so that later messages cannot replace it, or unpin it."""
        return self._changed("PUT", user_id, category, key, {"pinned": pinned})

    def delete_fact(self, user_id: str, category: Category, key: str) -> Steps[FactChange]:
        """End a fact; its value moves to its history. Use `forget` to delete what was said."""
        return self._changed("DELETE", user_id, category, key, None)

    def set_memory_mode(self, user_id: str, mode: MemoryMode) -> Steps[bool]:
        """Set the mode of a user's memory: `active`, `read_only` or `off`. Returns whether the mode changed.

        Existing memory is kept. Use `forget` to delete it.
        """
        request = Request("PUT", f"/v1/users/{_part(user_id)}/mode", {"app_id": self._app}, {"mode": mode})
        return bool((yield from self._asked(request))["changed"])

    def forget(
        self,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        wait: bool = False,
        within_s: float = 120.0,
    ) -> Steps[Erasure]:
        """Permanently erase a user or a session from all stores. Needs an admin token if the server has tokens.

        Args:
            user_id: Id of the user; or …
            session_id: … one conversation.
            wait: Whether to return only when the erasure is proved.
            within_s: Longest wait for the proof, in seconds.

        Raises:
            NotYet: It is not proved in time; it will be carried out.
        """
        if (user_id is None) == (session_id is None):
            raise TypeError("forget() takes a user_id or a session_id; nothing else is erased from here")
        body = {"user_id": user_id, "session_id": session_id}
        request_id = (yield from self._posted("/v1/erase", body))["request_id"]
        waited_s = 0.0
        while wait:
            standing = read(Erasure, (yield from self._asked(Request("GET", f"/v1/erase/{_part(request_id)}"))))
            if standing.proved:
                return standing
            if waited_s >= within_s:
                raise NotYet(f"erasure {request_id} is not proved after {within_s:g} s: ask for it again later")
            yield Pause(_PROOF_EACH_S)
            waited_s += _PROOF_EACH_S
        return Erasure(request_id=request_id)

    def session_of(self, user_id: str) -> str:
        """The session of this object with a user, used by default."""
        return uuid5(self._instance, user_id).hex

    # --- parts

    def _changed(
        self, method: str, user_id: str, category: str, key: str, body: Mapping[str, Any] | None
    ) -> Steps[FactChange]:
        path = f"/v1/users/{_part(user_id)}/facts/{_part(category)}/{_part(key)}"
        given = None if body is None else {name: value for name, value in body.items() if value is not None}
        return read(FactChange, (yield from self._asked(Request(method, path, {"app_id": self._app}, given))))

    def _posted(self, path: str, body: Mapping[str, Any]) -> Steps[Any]:
        given = {name: value for name, value in body.items() if value is not None}
        waits_s = _VISIBLE_WITHIN_MS / 1_000 if {"after", "timeout_ms"} & given.keys() else 0.0
        return self._asked(Request("POST", path, body={"app_id": self._app, **given}, waits_s=waits_s))

    def _got(self, path: str, query: Mapping[str, Any]) -> Steps[Any]:
        given = {name: value for name, value in query.items() if value is not None}
        waits_s = _VISIBLE_WITHIN_MS / 1_000 if "timeout_ms" in given else 0.0
        return self._asked(Request("GET", path, query={"app_id": self._app, **given}, waits_s=waits_s))

    def _asked(self, request: Request) -> Steps[Any]:
        """The answer's JSON, after as many tries as it takes."""
        for tried in range(self._retries + 1):
            answer = yield request
            if answer.status in _DONE:
                try:
                    return json.loads(answer.body or b"null")
                except ValueError as error:
                    raise TurntideError("the answer is no JSON: is this the address of a Turntide?") from error
            pause_s = _pause_s(answer, tried)
            if answer.status not in _TRIED_AGAIN or tried == self._retries or pause_s > _LONGEST_PAUSE_S:
                break
            yield Pause(pause_s)
        raise _refusal(answer)


def new_session() -> str:
    """An id for a new conversation."""
    return uuid4().hex


def tool_call(call_id: str | None, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """A call of a tool as OpenAI's messages have it."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id or "", "type": "function", "function": {"name": name, "arguments": given}}


def derived_id(*parts: object) -> str:
    """A message's id that is the same whenever it is made of the same parts."""
    return uuid5(_IDS, "\x00".join(map(str, parts))).hex


_IDS: UUID = uuid5(NAMESPACE_OID, "turntide message")


def _identified(messages: Messages) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    listed = [messages] if isinstance(messages, Mapping) else messages
    return [{"message_id": uuid4().hex, **each} for each in listed]


def _parts(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Messages in their order, so many as one request takes; one that is too long stands alone, and is refused."""
    part: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        length = len(json.dumps(message, default=str))
        if part and (size + length > _PART_BYTES or len(part) == _PART_MESSAGES):
            yield part
            part, size = [], 0
        part.append(message)
        size += length
    if part:
        yield part


def _after(added: Added | None) -> dict[str, Any] | None:
    if added is None or not added.turns:
        return None
    last = added.turns[-1]
    return {"session_id": last.session_id, "message_id": last.message_id, "timeout_ms": _VISIBLE_WITHIN_MS}


def _window(since: date | None, until: date | None) -> dict[str, str | None]:
    return {name: None if day is None else day.isoformat() for name, day in (("from", since), ("to", until))}


def _part(name: str) -> str:
    """A name as one part of a path; some would take `.` and `..` for steps."""
    return quote(name, safe="").replace(".", "%2E")


def _pause_s(answer: Answer, tried: int) -> float:
    try:
        return max(0.0, float(answer.retry_after))
    except ValueError:
        return random.uniform(0.5, 1.0) * _FIRST_PAUSE_S * 2.0**tried  # noqa: S311 - so that not all come at once


def _refusal(answer: Answer) -> TurntideError:
    if answer.status == NO_ANSWER:
        return Unreachable(answer.body.decode())
    try:
        problem = json.loads(answer.body)
        code, detail = str(problem["code"]), str(problem["detail"])
        errors = tuple(FieldError(str(each["field"]), str(each["detail"])) for each in problem.get("errors", ()))
    except (ValueError, KeyError, TypeError):
        return ApiError(answer.status, "unknown", "the answer says no more: is this the address of a Turntide?")
    if code == "turn_not_visible":
        return NotYet(detail)
    return ApiError(answer.status, code, detail, errors)
