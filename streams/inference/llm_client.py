"""A language model behind OpenAI's API (Ollama, vLLM, hosted), and the meaning of its client's errors. Extra `llm`."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Literal

import msgspec
import openai
from msgspec import Meta, Struct
from openai.types.chat import ChatCompletionAssistantMessageParam, ChatCompletionUserMessageParam
from openai.types.shared_params import ResponseFormatJSONObject, ResponseFormatJSONSchema, ResponseFormatText
from pydantic import SecretStr

from models.errors import LlmTimedOut, LlmUnavailable
from streams.inference.llm_answers import LlmReply, json_schema
from streams.inference.resilience import Blame, CallFailed, CallGuard, CallRetry, Failure
from streams.observe.telemetry import metrics

_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
_REQUEST = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})


class NotTheApi(Exception):  # noqa: N818
    """The server does not answer in the form of OpenAI's API."""


def judge(error: Exception) -> Failure | None:
    """Classify an error of the client or of decoding; None for any other."""
    if isinstance(error, openai.APIStatusError):
        return Failure(_blame(error.status_code), _retry_after(error))
    if isinstance(error, openai.APIConnectionError | TimeoutError):
        return Failure(Blame.PASSING)
    if isinstance(error, openai.OpenAIError | NotTheApi):
        return Failure(Blame.LASTING)
    return None


def key_of(api_key: SecretStr | None) -> str:
    """The key to send. Without one, the client would send `OPENAI_API_KEY`, which must not go to any address."""
    return api_key.get_secret_value() if api_key else "none"


def _blame(status: int) -> Blame:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
        return Blame.PASSING
    return Blame.REQUEST if status in _REQUEST else Blame.LASTING


def _retry_after(error: openai.APIStatusError) -> timedelta | None:
    """Seconds of the header `Retry-After`; a date is ignored, then our own waits apply."""
    with suppress(ValueError, OverflowError):
        return timedelta(seconds=max(0.0, float(error.response.headers.get("retry-after", ""))))
    return None


JsonMode = Literal["json_schema", "json_object", "text"]
"""How JSON is requested from the server: by a schema that constrains the output (OpenAI, Ollama, vLLM, llama.cpp), as
any object, or only in the prompt."""
Message = ChatCompletionUserMessageParam | ChatCompletionAssistantMessageParam
DEFAULT_TIMEOUT = timedelta(seconds=30)


class OpenAiLlm:
    """Client of a server with OpenAI's chat completions.

    Args:
        base_url: Address with the version, e.g. `http://127.0.0.1:11434/v1`.
        model: Name of the model on the server.
        api_key: Key; None if the server needs none.
        timeout: Time-out of one try.
        json_mode: How JSON is requested.
        guard: Guard of the calls, with `judge`; None: defaults with this time-out.
        section: Section of the settings, for errors.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: SecretStr | None = None,
        timeout: timedelta = DEFAULT_TIMEOUT,
        *,
        json_mode: JsonMode = "json_schema",
        guard: CallGuard | None = None,
        section: str = "llm",
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._json_mode: JsonMode = json_mode
        self._guard = guard or CallGuard(f"language model {model}", judge, CallRetry(timeout=timeout))
        self._section = section
        self._service = section.partition(".")[0]
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key_of(api_key),
            timeout=timeout.total_seconds(),
            max_retries=0,  # the guard's budget is the only one
        )

    async def complete(
        self, system: str, user: str, schema: type[Struct], *, within: timedelta | None = None
    ) -> LlmReply:
        """Send a prompt; the answer is not decoded.

        Raises:
            LlmUnavailable: No answer after all tries; `LlmTimedOut` if none came in time.
        """
        return await self._guarded(lambda: self._said(system, user, schema), within)

    async def classify(
        self, messages: Sequence[Message], *, top_logprobs: int, most_tokens: int, within: timedelta | None = None
    ) -> LlmReply:
        """Send a conversation to a guard model, whose template has the question.

        Args:
            messages: The conversation.
            top_logprobs: Number of most likely first tokens to request; 0 for none.
            most_tokens: Maximum number of tokens of the answer.
            within: Time limit of all tries together; None: as in the settings.

        Raises:
            LlmUnavailable: No answer after all tries; `LlmTimedOut` if none came in time.
        """
        return await self._guarded(lambda: self._classified(messages, top_logprobs, most_tokens), within)

    async def _guarded(self, request: Callable[[], Awaitable[LlmReply]], within: timedelta | None) -> LlmReply:
        began_s, result = monotonic(), "unavailable"
        try:
            said = await self._tried(request, within)
            result = "answered"
        except LlmTimedOut:
            result = "timeout"
            raise
        finally:
            metrics.counter("llm_calls_total", service=self._service, result=result).inc()
            metrics.histogram("llm_call_seconds", service=self._service).observe(monotonic() - began_s)
        return said

    async def _tried(self, request: Callable[[], Awaitable[LlmReply]], within: timedelta | None) -> LlmReply:
        try:
            async with asyncio.timeout(within.total_seconds() if within is not None else None):
                return await self._guard.call(request)
        except TimeoutError as error:
            self._guard.breaker.failed()  # for the guard the call was cancelled; the server let it come to that
            raise LlmTimedOut(f"language model {self._model}: no answer within {within}") from error
        except CallFailed as error:
            timed_out = isinstance(error.__cause__, TimeoutError | openai.APITimeoutError)
            kind = LlmTimedOut if timed_out else LlmUnavailable
            named = self._section
            raise kind(f"{error}: check {named}.base_url, {named}.model and {named}.api_key") from error

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _said(self, system: str, user: str, schema: type[Struct]) -> LlmReply:
        response = await self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            temperature=0.0,  # the likeliest answer
            response_format=_response_format(schema, self._json_mode),
        )
        return _read(response.content, self._service)

    async def _classified(self, messages: Sequence[Message], top_logprobs: int, most_tokens: int) -> LlmReply:
        response = await self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=messages,
            temperature=0.0,  # the likeliest answer
            max_tokens=most_tokens,
            logprobs=True if top_logprobs else openai.omit,
            top_logprobs=top_logprobs or openai.omit,
        )
        return _read(response.content, self._service)


def _read(body: bytes, service: str) -> LlmReply:
    """Text of the first choice with text.

    The body is decoded here, since the client builds its objects without validation.
    """
    try:
        completion = msgspec.json.decode(body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotTheApi from error
    count_usage(service, completion.usage)
    choice = next((choice for choice in completion.choices if choice.message.content), _Choice(_ChoiceMessage()))
    return LlmReply(choice.message.content or "", _tokens(completion.usage), _first_tokens(choice.logprobs))


def _response_format(
    schema: type[Struct], mode: JsonMode
) -> ResponseFormatJSONSchema | ResponseFormatJSONObject | ResponseFormatText:
    if mode == "json_schema":
        return {
            "type": "json_schema",
            "json_schema": {"name": schema.__name__.strip("_"), "schema": json_schema(schema)},
        }
    return {"type": "json_object"} if mode == "json_object" else {"type": "text"}


def _tokens(usage: msgspec.Raw) -> int | None:
    """The server's token count; an invalid count does not invalidate the answer."""
    try:
        return msgspec.json.decode(usage, type=_Usage).total_tokens
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _first_tokens(logprobs: msgspec.Raw) -> dict[str, float]:
    """Likely tokens at the first position that is not blank: guard models begin with empty lines."""
    try:
        places = (msgspec.json.decode(logprobs, type=_Logprobs | None) or _Logprobs()).content or []
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    first = next((place for place in places if place.token.strip()), None)
    return {each.token: math.exp(min(0.0, each.logprob)) for each in first.top_logprobs} if first else {}


class _Usage(Struct, frozen=True):
    total_tokens: Annotated[int, Meta(ge=1, le=2**31)]


class _ChoiceMessage(Struct, frozen=True):
    content: str | None = None


class _Likely(Struct, frozen=True):
    token: str
    logprob: float


class _TokenPlace(Struct, frozen=True):
    token: str
    top_logprobs: list[_Likely] = []


class _Logprobs(Struct, frozen=True):
    content: list[_TokenPlace] | None = None


class _Choice(Struct, frozen=True):
    message: _ChoiceMessage
    logprobs: msgspec.Raw = msgspec.Raw(b"null")


class _Completion(Struct, frozen=True):
    """The used fields of a chat completion."""

    choices: list[_Choice] = []
    usage: msgspec.Raw = msgspec.Raw(b"null")


_Tokens = Annotated[int, Meta(ge=0, le=2**31)]
_MILLION = 1e6


class _Billed(Struct, frozen=True):
    prompt_tokens: _Tokens = 0
    completion_tokens: _Tokens = 0


def count_usage(service: str, usage: msgspec.Raw) -> None:
    """Count the tokens of an answer and their price, if the server reported them."""
    try:
        used = msgspec.json.decode(usage, type=_Billed | None) or _Billed()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    prices = metrics.settings
    by_direction = {
        "in": (used.prompt_tokens, prices.price_in_per_million),
        "out": (used.completion_tokens, prices.price_out_per_million),
    }
    for direction, (tokens, price) in by_direction.items():
        metrics.counter("llm_tokens_total", service=service, direction=direction).inc(tokens)
        metrics.counter("llm_cost_total", service=service).inc(tokens * price / _MILLION)
