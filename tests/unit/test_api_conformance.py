"""Requests at every boundary of `/openapi.json`: answers are as documented, and what the schema forbids is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import SecretStr

from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.api_doubles import Served

TOKEN = ApiToken(token=SecretStr("a-token-of-an-admin"), role=TokenRole.ADMIN)
HEADERS = {"Authorization": f"Bearer {TOKEN.token.get_secret_value()}"}
CHECKS = {
    # 504 is an answer, not a failure: the turn to wait for (`after`) did not come.
    "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", 504]},
    # The schema does not say which fields need each other, as a project's id its app, and that texts are not blank.
    "positive_data_acceptance": {"enabled": False},
    # `Allow` names the methods of the first route of a path only.
    "allow_header_conformance": {"enabled": False},
    # An id may be called like the end of another path, and hold slashes: that route answers the method.
    "unsupported_method": {"enabled": False},
}
KNOWN = {
    # The text `null` of an optional parameter is read as if it was left out.
    ("AcceptedNegativeData", "GET /apps/{app_id}/memories/stats"),
    ("AcceptedNegativeData", "GET /v1/apps/{app_id}/memories/stats"),
    ("AcceptedNegativeData", "GET /v1/users/{user_id}/facts"),
}


def test_answers_are_as_documented() -> None:
    """By status, media type, headers and schema; no route fails; wrong data and a missing token are refused."""
    # It takes a second, for which not every test process should wait.
    from schemathesis import Config, GenerationMode, openapi  # noqa: PLC0415
    from schemathesis.core.failures import FailureGroup  # noqa: PLC0415

    app = Served(settings=HttpSettings(tokens=[TOKEN], requests_per_second=10_000, burst=10_000)).app
    schema: Any = openapi.from_dict(app.openapi(), config=Config.from_dict({"checks": CHECKS}))
    schema.app = app
    found: dict[tuple[str, str], str] = {}
    asked: Counter[tuple[str, GenerationMode]] = Counter()
    for operation in (each.ok() for each in schema.get_all_operations()):
        for case in schema.iter_coverage_cases(
            operation,
            generation_modes=list(GenerationMode),
            generation_config=schema.config.generation_for(operation=operation),
            extra_data_source=None,
            error_feedback=None,
        ):
            mode = case.meta.generation.mode
            if mode.is_positive and isinstance(case.body, dict) and case.body.get("after"):
                case.body["after"]["timeout_ms"] = 0
            asked[operation.label, mode] += 1
            try:
                case.call_and_validate(headers=HEADERS)
            except FailureGroup as failed:
                found |= {(type(each).__name__, operation.label): str(each) for each in failed.exceptions}

    assert {place: text for place, text in found.items() if place not in KNOWN} == {}
    assert found.keys() == KNOWN
    assert all(asked[operation, GenerationMode.POSITIVE] for operation, _ in asked)
    assert asked.total() > 4_000
