"""Meaning of the errors of OpenAI's client; shared by the language model and the embedder. Extra `llm`."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus

import openai
from pydantic import SecretStr

from streams.inference.resilience import Blame, Failure

_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
_REQUEST = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})


class NotTheApi(Exception):  # noqa: N818
    """Something answers at the address, in another form than OpenAI's API."""


def judge(error: Exception) -> Failure | None:
    """Blame of an error of the client, or of who reads its answers; None for any other."""
    if isinstance(error, openai.APIStatusError):
        return Failure(_blame(error.status_code), _retry_after(error))
    if isinstance(error, openai.APIConnectionError | TimeoutError):
        return Failure(Blame.PASSING)
    if isinstance(error, openai.OpenAIError | NotTheApi):
        return Failure(Blame.LASTING)
    return None


def key_of(api_key: SecretStr | None) -> str:
    """The key to send. The client takes `OPENAI_API_KEY` for none, which must not go to just any address."""
    return api_key.get_secret_value() if api_key else "none"


def _blame(status: int) -> Blame:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
        return Blame.PASSING
    return Blame.REQUEST if status in _REQUEST else Blame.LASTING


def _retry_after(error: openai.APIStatusError) -> timedelta | None:
    """Seconds of the header `Retry-After`; a date there is not read, our own waits serve."""
    with suppress(ValueError, OverflowError):
        return timedelta(seconds=max(0.0, float(error.response.headers.get("retry-after", ""))))
    return None
