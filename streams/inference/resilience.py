"""Calling a remote service that may be slow, failing or gone: time-outs, retries within a budget, a circuit breaker.

One `CallGuard` stands before each service. A try has a time-out; tries are repeated after waits that double and are
drawn at random from zero up ("full jitter": callers that failed together do not come back together). Repeats are paid
from a budget that all calls share and only successes refill, so a service that fails under load is not asked more and
more. After some failures in a row nothing is sent for a while; then one call goes first (Nygard's circuit breaker).

Own code rather than a library: those for retries (tenacity) know no budget across calls, and what is left is short.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from models.errors import ConfigurationError

_Result = TypeVar("_Result")


class Blame(StrEnum):
    """Kinds of failure, by what they say about the service."""

    PASSING = "passing"
    """It may work next time: time-outs, broken connections, 429, 5xx."""
    LASTING = "lasting"
    """It will not work until somebody mends something: 401, 404."""
    REQUEST = "request"
    """It works, and refuses this request: 400, 413, 422."""


class Failure(Struct, frozen=True):
    """A failed try, judged. `retry_after`: how long the service asks to be left alone."""

    blame: Blame
    retry_after: timedelta | None = None


Judge = Callable[[Exception], Failure | None]
"""What an error of a try means; None: nothing the service is to blame for, so it is raised as it is."""


class CallRetry(Struct, frozen=True, kw_only=True):
    """Limits of time and number for the tries of a call.

    Attributes:
        timeout: Of one try.
        tries: At the most, the first one among them.
        first_wait: Longest wait before the second try; it doubles with each further one …
        longest_wait: … up to this. A service that asks for more is not tried again.
        deadline: No try starts later than this after the first.
    """

    timeout: timedelta = timedelta(seconds=30)
    tries: int = 3
    first_wait: timedelta = timedelta(seconds=0.5)
    longest_wait: timedelta = timedelta(seconds=8)
    deadline: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        """Refuse what could never call.

        Raises:
            ConfigurationError: Fewer than one try, or no time for one.
        """
        if self.tries < 1 or self.timeout <= timedelta():
            raise ConfigurationError("a retry needs at least one try and a time-out above zero")


class RetryBudget:
    """Tokens for repeated tries, shared by all calls: each repeat costs one, each success gives a part of one back.

    While everything fails there are `most` repeats and then only first tries; while everything works, at most
    `refill` of all requests are repeats in the long run (as in gRPC's retry throttling).

    Args:
        most: Tokens it holds, and starts with.
        refill: Tokens a success gives back.
    """

    def __init__(self, most: float = 10.0, refill: float = 0.1) -> None:
        self._most = most
        self._refill = refill
        self._lock = threading.Lock()
        self.tokens = most

    def take(self) -> bool:
        """Pay for a repeat; False: there is none left."""
        with self._lock:
            if self.tokens < 1.0:
                return False
            self.tokens -= 1.0
            return True

    def refill(self) -> None:
        """A call has succeeded."""
        with self._lock:
            self.tokens = min(self._most, self.tokens + self._refill)


class Circuit(StrEnum):
    """States of a breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Stops sending after failures in a row, and after a pause lets one call try.

    Args:
        failures: In a row, of tries, that open it.
        pause: How long it stays open.
        clock: Seconds that only grow.
    """

    def __init__(
        self, failures: int = 5, pause: timedelta = timedelta(seconds=30), *, clock: Callable[[], float]
    ) -> None:
        self._most = failures
        self._pause_s = pause.total_seconds()
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_at: float | None = None
        self._trying = False

    @property
    def state(self) -> Circuit:
        """State at this moment."""
        if self._opened_at is None:
            return Circuit.CLOSED
        return Circuit.HALF_OPEN if self._clock() >= self._opened_at + self._pause_s else Circuit.OPEN

    def admit(self) -> bool:
        """Admit a try or refuse it; after the pause one is admitted, and its end must be reported."""
        with self._lock:
            state = self.state
            if state is Circuit.HALF_OPEN and not self._trying:
                self._trying = True
                return True
            return state is Circuit.CLOSED

    def succeeded(self) -> None:
        """An answer came."""
        with self._lock:
            self._failures, self._opened_at, self._trying = 0, None, False

    def failed(self) -> None:
        """None came: the try of a half-open breaker opens it for another pause."""
        with self._lock:
            self._failures += 1
            if self._trying or self._failures >= self._most:
                self._opened_at = self._clock()
            self._trying = False

    def abandoned(self) -> None:
        """The try ended without a word about the service: cancelled, or an error of our own."""
        with self._lock:
            self._trying = False


class CallFailed(Exception):  # noqa: N818 - says what happened to the call
    """A guarded call was given up. What it means is the caller's to say; the last error is its cause.

    Attributes:
        blame: What the last try said of the service; PASSING where the breaker let none through.
    """

    def __init__(self, said: str, blame: Blame = Blame.PASSING) -> None:
        super().__init__(said)
        self.blame = blame


class CallGuard:
    """Stands before one service; see the module.

    Args:
        service: Named in errors, without secrets.
        judge: What the errors of a try mean.
        retry: How long and how often.
        budget: Of repeats; none: its defaults.
        breaker: None: its defaults.
        clock: Seconds that only grow.
        chance: A number from 0 to below 1, for the waits.
        sleep: Waits so many seconds, for `call`.
        block: The same for `call_blocking`.
    """

    def __init__(
        self,
        service: str,
        judge: Judge,
        retry: CallRetry,
        *,
        budget: RetryBudget | None = None,
        breaker: Breaker | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        block: Callable[[float], object] = time.sleep,
    ) -> None:
        self._service = service
        self._judge = judge
        self._retry = retry
        self._clock = clock
        self._chance = chance
        self._sleep = sleep
        self._block = block
        self.budget = budget or RetryBudget()
        self.breaker = breaker or Breaker(clock=clock)

    async def call(self, request: Callable[[], Awaitable[_Result]]) -> _Result:
        """Send, again where that may help; a try that takes longer than the time-out is cancelled.

        Raises:
            CallFailed: Given up, or the breaker is open.
        """
        began, number = self._clock(), 0
        while True:
            self._admit()
            try:
                async with asyncio.timeout(self._retry.timeout.total_seconds()):
                    answer = await request()
            except BaseException as error:  # noqa: BLE001 - raised again where it says nothing of the service
                wait_s = self._failed(error, number, began)
            else:
                self._succeeded()
                return answer
            await self._sleep(wait_s)
            number += 1

    def call_blocking(self, request: Callable[[], _Result]) -> _Result:
        """Send like `call` without an event loop. The request keeps the time-out of a try by itself.

        Raises:
            CallFailed: Given up, or the breaker is open.
        """
        began, number = self._clock(), 0
        while True:
            self._admit()
            try:
                answer = request()
            except BaseException as error:  # noqa: BLE001 - as in `call`
                wait_s = self._failed(error, number, began)
            else:
                self._succeeded()
                return answer
            self._block(wait_s)
            number += 1

    def _admit(self) -> None:
        if not self.breaker.admit():
            raise CallFailed(f"{self._service} is left alone for a while after failures in a row")

    def _succeeded(self) -> None:
        self.breaker.succeeded()
        self.budget.refill()

    def _failed(self, error: BaseException, attempt: int, began: float) -> float:
        """Tell the breaker; seconds until the next try.

        Raises:
            CallFailed: There is none.
            BaseException: The error itself, if the service is not to blame.
        """
        failure = self._judge(error) if isinstance(error, Exception) else None
        if failure is None:
            self.breaker.abandoned()
            raise error
        if failure.blame is Blame.REQUEST:
            self.breaker.succeeded()
        else:
            self.breaker.failed()
        wait_s = self._wait_s(failure, attempt)
        again = (
            failure.blame is Blame.PASSING
            and attempt + 1 < self._retry.tries
            and wait_s <= self._retry.longest_wait.total_seconds()
            and self._clock() + wait_s - began <= self._retry.deadline.total_seconds()
            and self.budget.take()
        )
        if not again:
            said = f"{self._service}, try {attempt + 1}: {type(error).__name__}"
            raise CallFailed(said, failure.blame) from error
        return wait_s

    def _wait_s(self, failure: Failure, attempt: int) -> float:
        """Full jitter, or as long as the service asks for if that is longer."""
        doubled = self._retry.first_wait.total_seconds() * 2.0**attempt
        drawn = self._chance() * min(doubled, self._retry.longest_wait.total_seconds())
        asked = failure.retry_after or timedelta()
        return max(drawn, asked.total_seconds())
