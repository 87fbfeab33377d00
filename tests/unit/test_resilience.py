"""Retries, their budget and the circuit breaker, on a clock that only the tests move."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from streams.inference.resilience import Blame, Breaker, CallFailed, CallGuard, CallRetry, Circuit, Failure, RetryBudget

SECOND = timedelta(seconds=1)


class Trouble(Exception):  # noqa: N818
    """What the made-up service raises."""

    def __init__(self, blame: Blame = Blame.PASSING, retry_after: timedelta | None = None) -> None:
        super().__init__(blame)
        self.failure = Failure(blame, retry_after)


def judge(error: Exception) -> Failure | None:
    """Trouble and time-outs are the service's, nothing else."""
    if isinstance(error, TimeoutError):
        return Failure(Blame.PASSING)
    return error.failure if isinstance(error, Trouble) else None


class Time:
    """A clock that waits move."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def read(self) -> float:
        """Seconds."""
        return self.now

    def block(self, seconds: float) -> None:
        """Wait."""
        self.waits.append(seconds)
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        """Wait, on an event loop."""
        self.block(seconds)
        await asyncio.sleep(0)


class Service:
    """Fails as told, then answers."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.calls = 0

    def ask(self) -> str:
        """An answer."""
        self.calls += 1
        if self.troubles:
            raise self.troubles.pop(0)
        return "answer"

    async def ask_later(self) -> str:
        """The same, awaited."""
        return self.ask()


@pytest.fixture
def time() -> Time:
    """A clock."""
    return Time()


def guard(
    time: Time,
    *,
    retry: CallRetry | None = None,
    budget: RetryBudget | None = None,
    breaker: Breaker | None = None,
    chances: Sequence[float] = (),
) -> CallGuard:
    """A guard on that clock; its waits are the longest possible where nothing is said of chance."""
    drawn = iter(chances)
    return CallGuard(
        "service",
        judge,
        retry or CallRetry(tries=4),
        budget=budget,
        breaker=breaker or Breaker(failures=1_000, clock=time.read),
        clock=time.read,
        chance=lambda: next(drawn, 1.0),
        sleep=time.sleep,
        block=time.block,
    )


@pytest.fixture(params=["blocking", "awaited"])
def call(request: pytest.FixtureRequest) -> Callable[[CallGuard, Service], str]:
    """Both ways to call."""

    def blocking(guard: CallGuard, service: Service) -> str:
        return guard.call_blocking(service.ask)

    def awaited(guard: CallGuard, service: Service) -> str:
        return asyncio.run(guard.call(service.ask_later))

    return blocking if request.param == "blocking" else awaited


Call = Callable[[CallGuard, Service], str]


PATIENT = CallRetry(tries=6, first_wait=SECOND, longest_wait=4 * SECOND, deadline=100 * SECOND)
HASTY = CallRetry(tries=10, first_wait=4 * SECOND, longest_wait=4 * SECOND, deadline=9 * SECOND)


@pytest.mark.parametrize(
    ("troubles", "options", "waits"),
    [
        ([Trouble()] * 5, {"retry": PATIENT}, [1.0, 2.0, 4.0, 4.0, 4.0]),  # at full chance the bounds themselves
        ([Trouble()] * 2, {"chances": [0.25, 0.0]}, [0.125, 0.0]),  # full jitter: the drawn share, also none of it
        ([Trouble(retry_after=3 * SECOND)], {"chances": [0.0]}, [3.0]),  # as long as it is asked to, at least
    ],
)
def test_waits_double_up_to_the_longest(
    time: Time, call: Call, troubles: list[Exception], options: dict[str, Any], waits: list[float]
) -> None:
    """Drawn from zero up, and then there is an answer."""
    assert call(guard(time, **options), Service(*troubles)) == "answer"
    assert time.waits == waits


@pytest.mark.parametrize(
    ("trouble", "retry", "told"),
    [
        (Trouble(), None, (4, 3.5)),  # without waiting once more
        (Trouble(Blame.LASTING), None, (1, 0.0)),  # it will not pass
        (Trouble(Blame.REQUEST), None, (1, 0.0)),
        (Trouble(retry_after=60 * SECOND), None, (1, 0.0)),  # the default serves better than callers in a queue
        (Trouble(), HASTY, (3, 8.0)),  # no try starts beyond the deadline
    ],
)
def test_gives_up(time: Time, call: Call, trouble: Trouble, retry: CallRetry | None, told: tuple[int, float]) -> None:
    """After so many calls and seconds; the last error is the cause, and its blame is told."""
    service = Service(*[trouble] * 10)
    with pytest.raises(CallFailed, match=f"service, try {told[0]}: Trouble") as given_up:
        call(guard(time, retry=retry), service)

    assert (service.calls, time.now - 100) == told
    assert (given_up.value.blame, given_up.value.__cause__) == (trouble.failure.blame, trouble)


def test_errors_of_our_own_pass_through(time: Time, call: Call) -> None:
    """A bug is not the service's failure."""
    service = Service(KeyError("ours"))
    with pytest.raises(KeyError, match="ours"):
        call(guard(time), service)

    assert service.calls == 1


def fails(call: Call, guard: CallGuard, service: Service, times: int = 1) -> None:
    """So many calls fail."""
    for _ in range(times):
        with pytest.raises(CallFailed):
            call(guard, service)


def test_a_breaker_opens_after_failures_in_a_row_and_one_trial_decides(time: Time, call: Call) -> None:
    """Open, nothing is sent; after the pause one call tries: its failure opens it again, its success closes it."""
    breaker = Breaker(failures=3, pause=30 * SECOND, clock=time.read)
    once = guard(time, retry=CallRetry(tries=1), breaker=breaker)
    service = Service(Trouble(), Trouble())
    fails(call, once, service, 2)
    call(once, service)  # the count starts anew
    service.troubles = [Trouble()] * 4
    fails(call, once, service, 4)
    assert (breaker.state, service.calls) == (Circuit.OPEN, 6)
    time.now += 30
    fails(call, once, service)
    time.now += 29.9
    assert (breaker.state, breaker.admit(), service.calls) == (Circuit.OPEN, False, 7)
    time.now += 0.1

    assert (breaker.state, call(once, service)) == (Circuit.HALF_OPEN, "answer")
    assert breaker.state is Circuit.CLOSED


def test_only_one_trial_at_a_time(time: Time) -> None:
    """A service that comes back is not met by everybody at once; a trial that says nothing makes room."""
    breaker = Breaker(failures=1, pause=30 * SECOND, clock=time.read)
    breaker.failed()
    time.now += 30
    admitted = [breaker.admit(), breaker.admit()]
    breaker.abandoned()

    assert [*admitted, breaker.admit()] == [True, False, True]


async def test_a_try_has_a_time_out(time: Time) -> None:
    """A service that never answers is a failure, and the try is cancelled."""
    cancelled = []

    async def never() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return ""

    with pytest.raises(CallFailed, match="TimeoutError"):
        await guard(time, retry=CallRetry(timeout=timedelta(milliseconds=1), tries=2)).call(never)

    assert cancelled == [True, True]


async def test_a_cancelled_call_does_not_block_the_breaker(time: Time) -> None:
    """A role that stops in the middle of the trial leaves it to the next call."""
    breaker = Breaker(failures=1, pause=SECOND, clock=time.read)
    breaker.failed()
    time.now += 1
    waiting = asyncio.Event()

    async def never() -> str:
        waiting.set()
        await asyncio.Event().wait()
        return ""

    trial = asyncio.create_task(guard(time, breaker=breaker).call(never))
    await waiting.wait()
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial

    assert breaker.admit()
