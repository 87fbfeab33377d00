"""Requests at every boundary of `/openapi.json`: answers are as documented, and what the schema forbids is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace
from pydantic import SecretStr

from models.policy import Policy
from models.policy.app import MOST_LISTED
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Served

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
    if case.meta.generation.mode.is_positive and isinstance(case.body, dict):
        if case.body.get("after"):
            case.body["after"]["timeout_ms"] = 0
        for memory in case.body.get("memories", ()):
            if memory.get("mentions") == 1:
                memory["mentions"] = 1


def test_answers_are_as_documented() -> None:
    """By status, media type, headers and schema; no route fails; wrong data, methods and tokens are refused."""
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
    for operation in (each.ok() for each in schema.get_all_operations()):
        for case in schema.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=schema.config.generation_for(operation=operation),
            extra_data_source=None,
            error_feedback=None,
        ):
            _fit(case)
            mode, headers = case.meta.generation.mode, _headers(case)
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
    assert asked.total() > 4_000
