"""Requests at every boundary of `/openapi.json`, and what routes refuse beyond it: never repeating what was sent."""

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import msgspec
import pytest
from msgspec.structs import replace
from pydantic import SecretStr

from models.errors import StoreUnavailable
from models.policy import Policy
from models.policy.app import MOST_LISTED
from streams.api import commands
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Served

PRIVATE = "something private"
_REFUSED = msgspec.yaml.decode(Path(__file__).with_name("data").joinpath("refused_requests.yaml").read_bytes())
BODIES: list[tuple[str, dict[str, Any] | None, str]] = [
    *_REFUSED,
    ("PUT /apps/a/memories/1", {"content": "x" * 401}, "content"),
]


async def test_wrong_input_is_refused_without_repeating_it(served: Served, client: httpx.AsyncClient) -> None:
    """422 problem details that name the field and hold nothing of what was sent; nothing is written."""
    told = []
    for asked, body, field in BODIES:
        method, path = asked.split(" ")
        answer = await client.request(method, path, json=body)
        named = answer.json().get("errors", [{}])[0].get("field")
        is_refused = (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        if not is_refused or named != field or PRIVATE in answer.text:
            told.append((asked, body, field, named, answer.status_code))

    assert told == []
    assert (served.apps.sent, served.projects.sent, served.erasures.asked) == ([], [], [])


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"user_id":"u","query":"\\ud800"}', b"[" * 60_000, b"null"],
    ids=range(8),
)
async def test_what_is_no_request_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    """Broken JSON, other JSON, other encodings and a tower of brackets are the caller's mistake, not a failure."""
    answer = await client.post("/v1/retrieve", content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreUnavailable("Qdrant did not answer"), (503, "store_unavailable", "2")),
        (RuntimeError(PRIVATE), (500, "internal_error", None)),
    ],
)
async def test_what_fails_behind_a_route(
    served: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, error: Exception, told: Any
) -> None:
    """503 says what is away and when to come again; of what nobody foresaw no word, which may be a conversation's."""
    monkeypatch.setattr(served.users, "facts", AsyncMock(side_effect=error))
    answer = await client.post("/v1/retrieve", json={"user_id": "u", "query": "x"})

    assert (answer.status_code, answer.json()["code"], answer.headers.get("retry-after")) == told
    assert (str(error) in answer.text) is (answer.status_code == 503)


APP = "support"
"""Of all examples."""
TOKEN, TOKEN_OF_APP = (
    ApiToken(token=SecretStr(f"a-token-of-an-admin-of-{name}"), role=TokenRole.ADMIN, apps=apps)
    for name, apps in (("all", []), ("one", [APP]))
)
# 504 is an answer, not a failure: the turn to wait for (`after`) did not come.
CHECKS = {"not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", 504]}}
SUMS = "POST /v1/projects/{project_id}/context"
"""The only operation with a rule that no schema can tell: its budget's total exceeds the sum of two reserves."""


def _headers(case: Any) -> dict[str, str]:
    """Of an admin of all apps; where no app is named, of an admin of one, as the contract asks for."""
    named = {**(case.query or {}), **(case.body if isinstance(case.body, dict) else {})}
    token = TOKEN if named.get("app_id") else TOKEN_OF_APP
    return {"Authorization": f"Bearer {token.token.get_secret_value()}"}


def _fit(case: Any) -> None:
    """What is not the service's: time spent waiting, and a default that the generator takes for an equal one (1.0)."""
    if not case.meta.generation.mode.is_positive:
        return
    if {"after_turn", "after_message"} & (case.query or {}).keys():
        case.query["timeout_ms"] = 0
    if isinstance(case.body, dict):
        if after := case.body.get("after"):
            after["timeout_ms"] = 0
        if case.body.get("message_ids"):
            case.body["timeout_ms"] = 0
        for memory in case.body.get("memories", ()):
            if memory.get("mentions") == 1:
                memory["mentions"] = 1


@pytest.mark.timeout(900)  # 20 s of processor time, of which a busy machine gives a tenth
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_answers_are_as_documented(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By status, media type, headers and schema; no route fails; wrong data (by day one in four) is refused."""
    monkeypatch.setattr(commands, "WAIT_S", 0.0)  # nobody carries them out here
    # It takes a second, for which not every test process should wait.
    from schemathesis import Config, GenerationMode, openapi  # noqa: PLC0415
    from schemathesis.core.failures import FailureGroup  # noqa: PLC0415

    settings = HttpSettings(
        tokens=[TOKEN, TOKEN_OF_APP], requests_per_second=10_000, burst=10_000, max_body_bytes=2**20
    )
    app = Served(settings=settings, apps=replace(Policy().apps, tags=MOST_LISTED)).app
    schema: Any = openapi.from_dict(app.openapi(), config=Config.from_dict({"checks": CHECKS}))
    schema.app = app
    found: dict[tuple[str, str, str], str] = {}
    asked: Counter[tuple[str, GenerationMode]] = Counter()
    seen = count()
    for operation in (each.ok() for each in schema.get_all_operations()):
        for case in schema.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=schema.config.generation_for(operation=operation),
            extra_data_source=None,
            error_feedback=None,
        ):
            mode = case.meta.generation.mode
            if mode.is_negative and next(seen) % every:
                continue
            _fit(case)
            headers = _headers(case)
            if operation.label == SUMS and mode.is_positive and set((case.body.get("budget") or {}).values()) - {None}:
                continue
            asked[operation.label, mode] += 1
            try:
                case.call_and_validate(headers=headers)
            except FailureGroup as failed:
                for each in failed.exceptions:
                    found[type(each).__name__, operation.label, case.meta.phase.data.description] = str(each)

    assert found == {}
    assert all(asked[operation, GenerationMode.POSITIVE] for operation, _ in asked)
    assert asked.total() > 4_000 / every
