"""Calls of a remote service that may be slow, failing or down: time-outs, retries within a budget, a circuit breaker.

Each service has one `CallGuard`. A try has a time-out; retries follow after random waits whose maximum doubles ("full
jitter": callers that failed together do not retry together). Retries are paid from a budget that all calls share and
only successes refill, so a service that fails under load does not get more requests. After some consecutive failures
nothing is sent for a while; then a single call is tried first (Nygard's circuit breaker).

This is not a library, because libraries for retries (tenacity) have no budget across calls, and the rest is short.
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
    """Kinds of failure, by their cause."""

    PASSING = "passing"
    """A retry may work: time-outs, broken connections, 429, 5xx."""
    LASTING = "lasting"
    """A retry does not help until the configuration is corrected: 401, 404."""
    REQUEST = "request"
    """The service works but refuses this request: 400, 413, 422."""


class Failure(Struct, frozen=True):
    """A classified failure. `retry_after`: wait that the service requests."""

    blame: Blame
    retry_after: timedelta | None = None


Judge = Callable[[Exception], Failure | None]
"""Classifies an error of a try; None: not a failure of the service, so the error is raised unchanged."""


class CallRetry(Struct, frozen=True, kw_only=True):
    """Limits of time and number for the tries of a call.

    Attributes:
        timeout: Time-out of one try.
        tries: Maximum number of tries, including the first.
        first_wait: Longest wait before the second try; it doubles for each further one …
        longest_wait: … up to this. If the service requests a longer wait, there is no further try.
        deadline: No try starts later than this after the first.
    """

    timeout: timedelta = timedelta(seconds=30)
    tries: int = 3
    first_wait: timedelta = timedelta(seconds=0.5)
    longest_wait: timedelta = timedelta(seconds=8)
    deadline: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        """Refuse limits that allow no call.

        Raises:
            ConfigurationError: Fewer than one try, or no time for one.
        """
        if self.tries < 1 or self.timeout <= timedelta():
            raise ConfigurationError("a retry needs at least one try and a time-out above zero")


class RetryBudget:
    """Tokens for retries, shared by all calls: a retry costs one, a success returns a part of one.

    If all calls fail, there are `most` retries and then only first tries; in the long run at most the share `refill` of
    all requests are retries (as in gRPC's retry throttling).

    Args:
        most: Capacity, and tokens at the start.
        refill: Tokens that a success returns.
    """

    def __init__(self, most: float = 10.0, refill: float = 0.1) -> None:
        self._most = most
        self._refill = refill
        self._lock = threading.Lock()
        self.tokens = most

    def take(self) -> bool:
        """Take a token for a retry; False if none is left."""
        with self._lock:
            if self.tokens < 1.0:
                return False
            self.tokens -= 1.0
            return True

    def refill(self) -> None:
        """Record a success."""
        with self._lock:
            self.tokens = min(self._most, self.tokens + self._refill)


class Circuit(StrEnum):
    """States of a breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Opens after consecutive failures, and admits one call after a pause.

    Args:
        failures: Consecutive failed tries that open it.
        pause: How long it stays open.
        clock: Seconds, monotonic.
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
        """Current state."""
        if self._opened_at is None:
            return Circuit.CLOSED
        return Circuit.HALF_OPEN if self._clock() >= self._opened_at + self._pause_s else Circuit.OPEN

    def admit(self) -> bool:
        """Whether a try may start; after the pause one may, and its result must be reported."""
        with self._lock:
            state = self.state
            if state is Circuit.HALF_OPEN and not self._trying:
                self._trying = True
                return True
            return state is Circuit.CLOSED

    def succeeded(self) -> None:
        """Report a successful try."""
        with self._lock:
            self._failures, self._opened_at, self._trying = 0, None, False

    def failed(self) -> None:
        """Report a failed try; in state half-open it opens the breaker for another pause."""
        with self._lock:
            self._failures += 1
            if self._trying or self._failures >= self._most:
                self._opened_at = self._clock()
            self._trying = False

    def abandoned(self) -> None:
        """Report a try without a result of the service: cancelled, or an error of this program."""
        with self._lock:
            self._trying = False


class CallFailed(Exception):  # noqa: N818 - says what happened to the call
    """A guarded call failed finally. The caller decides what follows; the last error is its cause.

    Attributes:
        blame: Kind of the last failure; PASSING if the breaker admitted no try.
    """

    def __init__(self, said: str, blame: Blame = Blame.PASSING) -> None:
        super().__init__(said)
        self.blame = blame


class CallGuard:
    """Guards the calls of one service; see the module.

    Args:
        service: Name in errors, without secrets.
        judge: Classifies errors of a try.
        retry: Limits of the tries.
        budget: Budget of retries; None: defaults.
        breaker: Circuit breaker; None: defaults.
        clock: Seconds, monotonic.
        chance: Random number, 0 to below 1, for the waits.
        sleep: Waits seconds, for `call`.
        block: Waits seconds, for `call_blocking`.
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
        """Send a request with retries; a try that exceeds its time-out is cancelled.

        Raises:
            CallFailed: All tries failed, or the breaker is open.
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
        """As `call`, without an event loop. The request must enforce the time-out of a try itself.

        Raises:
            CallFailed: All tries failed, or the breaker is open.
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
            raise CallFailed(f"{self._service} is not called for a while after repeated failures")

    def _succeeded(self) -> None:
        self.breaker.succeeded()
        self.budget.refill()

    def _failed(self, error: BaseException, attempt: int, began: float) -> float:
        """Report a failure to the breaker; returns the seconds until the next try.

        Raises:
            CallFailed: There is no further try.
            BaseException: The error itself, if it is not a failure of the service.
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
        """Wait with full jitter, or the wait that the service requests if that is longer."""
        doubled = self._retry.first_wait.total_seconds() * 2.0**attempt
        drawn = self._chance() * min(doubled, self._retry.longest_wait.total_seconds())
        asked = failure.retry_after or timedelta()
        return max(drawn, asked.total_seconds())
