"""The language model client against a server that speaks OpenAI's API, well and badly."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec import Struct

from models.errors import LlmRubbish, LlmTimedOut, LlmUnavailable
from streams.inference.llm_answers import LlmReply, decode_answer, json_schema
from streams.inference.llm_client import OpenAiLlm
from tests.support.openai_stand_in import SECRET, Mode, StandIn, guarding


class Weather(Struct, frozen=True):
    """An answer."""

    city: str
    degrees: int


GOOD = '{"city": "Oslo", "degrees": -3}'


async def weather(llm: OpenAiLlm, system: str = "", user: str = "") -> Weather:
    """The decoded answer of a model."""
    return decode_answer((await llm.complete(system, user, Weather)).text, Weather)


@pytest.fixture
def server(server: StandIn) -> StandIn:
    """A server whose model gives a good answer."""
    server.say = lambda _system, _user: GOOD
    return server


async def test_asks_as_the_api_says(server: StandIn, llm: OpenAiLlm) -> None:
    """Path, key, model, both messages apart, no sampling, and the schema of the answer."""
    answer = await weather(llm, "Do this.", "with that")
    (asked,) = server.asked

    assert answer == Weather("Oslo", -3)
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {SECRET}")
    assert asked.body == {
        "model": "small",
        "messages": [{"role": "system", "content": "Do this."}, {"role": "user", "content": "with that"}],
        "temperature": 0.0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "Weather", "schema": json_schema(Weather)}},
    }


async def test_the_environment_s_key_is_not_sent_elsewhere(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would take it where none is configured, for whatever address."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    client = OpenAiLlm(server.base_url, "small")
    await weather(client)
    await client.close()
    (asked,) = server.asked

    assert SECRET not in str(asked.headers)


@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{GOOD}\n```",
        f"Here you are:\n{GOOD}\nAnything else?",
        f'<think>Maybe {{"city": "Rome", "degrees": 1}}?</think>{GOOD}',
        '{"city": "Oslo", "degrees": -3, "unasked": [1]}',
    ],
)
async def test_finds_the_object_among_other_words(server: StandIn, llm: OpenAiLlm, said: str) -> None:
    """Small models chat; fields nobody asked for are dropped."""
    server.say = lambda _system, _user: said

    assert await weather(llm) == Weather("Oslo", -3)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no",
        "{}",
        "[]",
        GOOD[: len(GOOD) // 2],
        "I would rather talk about the weather.",
        '{"city": "Oslo", "degrees": "cold"}',
        '{"city": null, "degrees": 1}',
        '{"city": "\\ud800", "degrees": 1}',
        '{"city":' * 5_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        GOOD + GOOD,
    ],
    ids=lambda said: said[:12],
)
async def test_rubbish_is_refused_without_another_try(server: StandIn, llm: OpenAiLlm, said: str) -> None:
    """The same question gets the same rubbish; the error does not repeat what was said."""
    server.say = lambda _system, _user: said
    with pytest.raises(LlmRubbish, match="no Weather") as refusal:
        await weather(llm)

    assert len(server.asked) == 1
    assert "Oslo" not in str(refusal.value)


@pytest.mark.parametrize("mode", [Mode.ERROR, Mode.RATE_LIMIT])
async def test_tries_again(server: StandIn, llm: OpenAiLlm, mode: Mode) -> None:
    """What may pass is tried once more, by our guard and nobody else."""
    server.modes = [mode]

    assert await weather(llm) == Weather("Oslo", -3)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("mode", "tries"),
    [
        (Mode.ERROR, 2),
        (Mode.RATE_LIMIT, 2),
        (Mode.UNAUTHORISED, 1),
        (Mode.REFUSED, 1),
        (Mode.BROKEN_BODY, 1),
        (Mode.PAGE, 1),
    ],
)
async def test_trouble_is_told_without_secrets(server: StandIn, llm: OpenAiLlm, mode: Mode, tries: int) -> None:
    """What lasts is unavailable, after as many tries as can help."""
    server.mode = mode
    with pytest.raises(LlmUnavailable, match=r"llm\.base_url") as trouble:
        await weather(llm, "the prompt", "somebody's words")

    assert len(server.asked) == tries
    assert not any(word in str(trouble.value) for word in (SECRET, "prompt", "words"))


async def test_a_server_that_asks_for_too_long_a_wait_is_left(server: StandIn, llm: OpenAiLlm) -> None:
    """`Retry-After` of an hour: the default serves now."""
    server.mode, server.retry_after = Mode.RATE_LIMIT, "3600"
    with pytest.raises(LlmUnavailable):
        await weather(llm)

    assert len(server.asked) == 1


@pytest.mark.parametrize("mode", [Mode.HANG, Mode.TRICKLE])
async def test_a_server_that_never_ends_is_left(server: StandIn, llm_of: Callable[..., OpenAiLlm], mode: Mode) -> None:
    """Also one that keeps the connection alive with a byte now and then."""
    client = llm_of(guarding(timeout=0.5))
    server.mode = mode
    async with asyncio.timeout(5):
        with pytest.raises(LlmTimedOut, match="TimeoutError"):
            await weather(client)

    assert len(server.asked) == 2


async def test_all_tries_together_end_within_a_limit(server: StandIn, llm_of: Callable[..., OpenAiLlm]) -> None:
    """Also while the first one still may go on; such a server is left alone like one that answers 500."""
    client = llm_of(guarding(timeout=5.0, failures=2))
    await client.complete("", "", Weather)  # connected: what follows is the server's time
    server.mode = Mode.HANG
    for _ in range(2):
        with pytest.raises(LlmTimedOut, match="within 0:00:01"):
            await client.complete("", "", Weather, within=timedelta(seconds=1))
    with pytest.raises(LlmUnavailable, match="not called for a while") as refusal:
        await client.complete("", "", Weather, within=timedelta(seconds=1))

    assert not isinstance(refusal.value, LlmTimedOut)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}, 34),
        (None, None),
        ({}, None),
        ({"total_tokens": 0}, None),
        ({"total_tokens": -1}, None),
        ({"total_tokens": "many"}, None),
        ("none", None),
        ({"total_tokens": 10**30}, None),
    ],
    ids=str,
)
async def test_what_it_took_is_taken_from_the_server(
    server: StandIn, llm: OpenAiLlm, usage: object, tokens: int | None
) -> None:
    """A count that is none costs the answer nothing."""
    server.usage = usage

    assert await llm.complete("", "", Weather) == LlmReply(GOOD, tokens)
