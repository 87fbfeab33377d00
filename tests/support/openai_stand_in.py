"""A server of our own that speaks OpenAI's API for tests: chat completions and embeddings, failing as told."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from streams.inference.llm_client import judge
from streams.inference.resilience import Breaker, CallGuard, CallRetry
from streams.ports import Vectors
from tests.support.http_server import Request, answering

SECRET = "sk-top-secret"  # noqa: S105 - made up
Say = Callable[[str, str], str]
"""System message, empty where there is none, and last message → what the model says."""
EmbedTexts = Callable[[list[str]], Vectors]


class Mode(StrEnum):
    """What is wrong with the server."""

    GOOD = "good"
    RUBBISH = "rubbish"
    """Words instead of JSON inside a sound answer; of embeddings, numbers that are none."""
    BROKEN_BODY = "broken body"
    """The server's own JSON ends early."""
    PAGE = "page"
    """A proxy's HTML with status 200."""
    ERROR = "500"
    RATE_LIMIT = "429"
    UNAUTHORISED = "401"
    REFUSED = "400"
    HANG = "hang"
    """No answer until the server closes."""
    TRICKLE = "trickle"
    """A space every few milliseconds, and never an answer."""
    WRONG_DIM = "wrong dim"
    TOO_FEW = "too few"
    """One embedding less than texts."""


class Asked(NamedTuple):
    """A request as the server saw it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


_STATUS = {Mode.ERROR: 500, Mode.RATE_LIMIT: 429, Mode.UNAUTHORISED: 401, Mode.REFUSED: 400}


class StandIn:
    """The server.

    Attributes:
        base_url: Where it answers, with the version.
        modes: What is wrong with each request in turn; then `mode` is.
        asked: Every request that came.
        say: The model.
        usage: What a completion says that it took; None: nothing.
        logprobs: What a completion says of its words; None: nothing.
        retry_after: Header of 429.
        refuses: Texts that an embedding request must not have; it gets 400.
        most_texts: Texts that an embedding request may have; more get 413.
    """

    def __init__(self, embed: EmbedTexts) -> None:
        self.mode = Mode.GOOD
        self.modes: list[Mode] = []
        self.asked: list[Asked] = []
        self.say: Say = lambda _system, _user: "{}"
        self.usage: object = None
        self.logprobs: object = None
        self.retry_after = "0"
        self.refuses: Callable[[str], bool] = lambda _text: False
        self.most_texts = 2_048
        self.closing = threading.Event()
        self._embed = embed
        self.base_url = ""

    def answer(self, request: Request) -> None:
        """Answer a request as told."""
        body: dict[str, Any] = json.loads(request.body())
        self.asked.append(Asked(request.path, request.names_and_values(), body))
        mode = self.modes.pop(0) if self.modes else self.mode
        if mode is Mode.HANG:
            self.closing.wait(30)
        elif mode is Mode.TRICKLE:
            self._trickle(request)
        elif mode in _STATUS:
            headers = {"retry-after": self.retry_after} if mode is Mode.RATE_LIMIT else {}
            _send(request, _STATUS[mode], json.dumps({"error": {"message": "as told"}}).encode(), headers)
        elif mode is Mode.PAGE:
            _send(request, 200, b"<html><body>Welcome</body></html>", {"content-type": "text/html"})
        else:
            status, document = self._document(request.path, body, mode)
            sent = json.dumps(document).encode()
            _send(request, status, sent[: len(sent) // 2] if mode is Mode.BROKEN_BODY else sent)

    def _document(self, path: str, body: dict[str, Any], mode: Mode) -> tuple[int, dict[str, Any]]:
        if path == "/v1/chat/completions":
            return 200, self._completion(body, mode)
        assert path == "/v1/embeddings"
        texts: list[str] = body["input"]
        if len(texts) > self.most_texts:
            return 413, {"error": {"message": "too many"}}
        if any(map(self.refuses, texts)):
            return 400, {"error": {"message": "too long"}}
        return 200, self._embeddings(texts, mode)

    def _completion(self, body: dict[str, Any], mode: Mode) -> dict[str, Any]:
        messages = body["messages"]
        system = next((message["content"] for message in messages if message["role"] == "system"), "")
        user = messages[-1]["content"]
        said = "I would rather talk about the weather." if mode is Mode.RUBBISH else self.say(system, user)
        message = {"role": "assistant", "content": said, "refusal": None}
        choice = {"index": 0, "finish_reason": "stop", "logprobs": self.logprobs, "message": message}
        head = {"id": "chat-1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        return head if self.usage is None else head | {"usage": self.usage}

    def _embeddings(self, texts: list[str], mode: Mode) -> dict[str, Any]:
        vectors = self._embed(texts) * 3.0  # not of unit length
        if mode is Mode.WRONG_DIM:
            vectors = vectors[:, : vectors.shape[1] // 2]
        if mode is Mode.RUBBISH:
            vectors = np.full_like(vectors, np.nan)
        rows = [{"object": "embedding", "index": at, "embedding": row.tolist()} for at, row in enumerate(vectors)]
        rows.reverse()  # the order is the index's to say
        return {"object": "list", "model": "any", "data": rows[1:] if mode is Mode.TOO_FEW else rows, "usage": {}}

    def _trickle(self, request: Request) -> None:
        request.send_response(200)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", "1000000")
        request.end_headers()
        while not self.closing.wait(0.01):
            try:
                request.wfile.write(b" ")
                request.wfile.flush()
            except OSError:
                return


def _send(request: Request, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    request.reply(status, body, {"content-type": "application/json", **(headers or {})})


@contextmanager
def standing_in(embed: EmbedTexts = lambda texts: np.ones((len(texts), 4), dtype=np.float32)) -> Iterator[StandIn]:
    """A server that works until told otherwise."""
    stand_in = StandIn(embed)
    with answering(stand_in.answer) as url:
        stand_in.base_url = f"{url}/v1"
        try:
            yield stand_in
        finally:
            stand_in.closing.set()


def guarding(*, tries: int = 2, timeout: float = 30.0, failures: int = 100) -> CallGuard:
    """A guard that does not wait between tries; the time-out of each in seconds."""

    async def at_once(_seconds: float) -> None:
        """No wait."""

    retry, breaker = CallRetry(timeout=timedelta(seconds=timeout), tries=tries), Breaker(failures, clock=time.monotonic)
    return CallGuard("model", judge, retry, breaker=breaker, sleep=at_once, block=lambda _seconds: None)
