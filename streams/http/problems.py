"""Errors as problem details (RFC 9457): what is wrong and what to do, never what the caller had sent."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from models.errors import AmbiguousApp, DeliveryFailed, StoreUnavailable

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
"""What a caller is told to wait while a store does not answer; the store's own retries take about as long."""

_TYPE = "urn:turntide:problem:"
_AT = re.compile(r" - at `\$\.?([^`]*)`$")


class FieldError(msgspec.Struct, frozen=True):
    """Error of one field."""

    field: str
    """Its path, dots between levels; empty for the request as a whole."""
    detail: str


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """Error response (RFC 9457, section 3)."""

    type: str
    """`urn:turntide:problem:` and the code."""
    title: str
    status: int
    code: str
    """Constant snake_case word, for programs."""
    detail: str
    """For people: what is wrong and what to do."""
    errors: list[FieldError] = []


class Problem(Exception):  # noqa: N818 - the RFC's word
    """Ends a request with an error.

    Args:
        status: Of the answer.
        code: Constant snake_case word, for programs.
        detail: For people, without any text of a conversation.
        headers: Further headers of the answer.
        errors: What is wrong with which field.
    """

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldError] = (),
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.document = ProblemDetails(_TYPE + code, status.phrase, status.value, code, detail, list(errors))

    def response(self) -> Response:
        """The answer."""
        return Response(msgspec.json.encode(self.document), self.status, self.headers, MEDIA_TYPE)


def invalid_request(errors: Sequence[FieldError]) -> Problem:
    """422: fields are missing or wrong."""
    detail = "; ".join(f"{error.field or 'request'}: {error.detail}" for error in errors)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", detail, errors=errors)


def invalid_field(field: str, detail: str) -> Problem:
    """422: one field is wrong."""
    return invalid_request([FieldError(field, detail)])


def not_found(detail: str) -> Problem:
    """404: there is no such thing, or the caller may not know of it."""
    return Problem(HTTPStatus.NOT_FOUND, "not_found", detail)


def forbidden(detail: str, code: str = "forbidden") -> Problem:
    """403: the caller's token does not reach so far."""
    return Problem(HTTPStatus.FORBIDDEN, code, detail)


def undecodable(error: Exception, asked: object) -> Problem:
    """422 for a body that msgspec refused.

    Only those of its messages are passed on that are made of our own schema: some quote the input.

    Args:
        error: What msgspec said.
        asked: The type that was asked for.
    """
    text = str(error)
    at = _AT.search(text)
    field, reason = (at[1], text[: at.start()]) if at else ("", text)
    if reason.startswith(("Expected ", "Object missing required field ")):
        return invalid_field(field, reason)
    if reason.startswith("Object contains unknown field"):
        return invalid_field(field, f"contains an unknown field; {_known_fields(asked, field)}")
    if isinstance(error, msgspec.ValidationError):
        return invalid_field(field, "is not one of the allowed values")
    return invalid_field("", "the body is not JSON in UTF-8")


def _known_fields(asked: object, field: str) -> str:
    if field or not isinstance(asked, type) or not issubclass(asked, msgspec.Struct):
        return "GET /openapi.json lists the known fields"
    return f"the known fields are {', '.join(each.encode_name for each in msgspec.structs.fields(asked))}"


def unavailable(detail: str, *, code: str = "unavailable", retry_after_s: int = RETRY_AFTER_S) -> Problem:
    """503: come again."""
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, code, detail, headers={"Retry-After": str(retry_after_s)})


def problem_of(error: Exception) -> Problem:
    """Any error as a problem; what nobody foresaw says nothing of itself."""
    match error:
        case Problem():
            return error
        case AmbiguousApp():
            named = [FieldError("app_id", "is missing")]
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "ambiguous_app", str(error), errors=named)
        case StoreUnavailable():
            return unavailable(str(error), code="store_unavailable")
        case DeliveryFailed():
            return unavailable(
                f"{error} The record may have been written; it is safe to repeat the request.", code="log_unavailable"
            )
        case HTTPException():
            status = HTTPStatus(error.status_code)
            return Problem(status, status.name.lower(), str(error.detail), headers=error.headers)
        case _:
            detail = "the server failed on this request; see its log"
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)


async def _answer(_request: Request, error: Exception) -> Response:
    return problem_of(error).response()


HANDLERS = dict.fromkeys((Problem, AmbiguousApp, StoreUnavailable, DeliveryFailed, HTTPException, Exception), _answer)
"""Answers every error of an app with problem details."""
