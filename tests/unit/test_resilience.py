"""Retries, their budget and the circuit breaker, on a clock that only the tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from models.errors import ConfigurationError
from streams.inference.resilience import Blame, Breaker, CallFailed, Circuit, Failure, Guard, Retry, RetryBudget

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
    retry: Retry | None = None,
    budget: RetryBudget | None = None,
    breaker: Breaker | None = None,
    chance: Callable[[], float] = lambda: 1.0,
) -> Guard:
    """A guard on that clock; its waits are the longest possible unless told otherwise."""
    return Guard(
        "service",
        judge,
        retry or Retry(tries=4),
        budget=budget,
        breaker=breaker or Breaker(failures=1_000, clock=time.read),
        clock=time.read,
        chance=chance,
        sleep=time.sleep,
        block=time.block,
    )


@pytest.fixture(params=["blocking", "awaited"])
def call(request: pytest.FixtureRequest) -> Callable[[Guard, Service], str]:
    """Both ways to call."""

    def blocking(guard: Guard, service: Service) -> str:
        return guard.call_blocking(service.ask)

    def awaited(guard: Guard, service: Service) -> str:
        return asyncio.run(guard.call(service.ask_later))

    return blocking if request.param == "blocking" else awaited


Call = Callable[[Guard, Service], str]


def test_waits_double_up_to_the_longest(time: Time, call: Call) -> None:
    """At full chance the waits are the bounds themselves."""
    service = Service(*[Trouble()] * 5)
    patient = Retry(tries=6, first_wait=SECOND, longest_wait=4 * SECOND, deadline=100 * SECOND)

    assert call(guard(time, retry=patient), service) == "answer"
    assert time.waits == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_waits_are_drawn_from_zero_up(time: Time, call: Call) -> None:
    """Full jitter: the drawn share of the bound, also none of it."""
    drawn = iter([0.25, 0.0])
    call(guard(time, chance=lambda: next(drawn)), Service(Trouble(), Trouble()))

    assert time.waits == [0.125, 0.0]


def test_gives_up_after_the_last_try(time: Time, call: Call) -> None:
    """Without waiting once more; the last error is the cause."""
    service = Service(*[Trouble()] * 10)
    with pytest.raises(CallFailed, match="service, try 4: Trouble") as given_up:
        call(guard(time), service)

    assert (service.calls, len(time.waits)) == (4, 3)
    assert isinstance(given_up.value.__cause__, Trouble)


@pytest.mark.parametrize("blame", [Blame.LASTING, Blame.REQUEST])
def test_what_will_not_pass_is_not_repeated(time: Time, call: Call, blame: Blame) -> None:
    """One try, and its blame is told."""
    service = Service(Trouble(blame))
    with pytest.raises(CallFailed) as given_up:
        call(guard(time), service)

    assert (service.calls, given_up.value.blame) == (1, blame)


def test_errors_of_our_own_pass_through(time: Time, call: Call) -> None:
    """A bug is not the service's failure."""
    service = Service(KeyError("ours"))
    with pytest.raises(KeyError, match="ours"):
        call(guard(time), service)

    assert service.calls == 1


def test_waits_as_long_as_it_is_asked_to(time: Time, call: Call) -> None:
    """`retry_after` is a lower bound of the wait."""
    call(guard(time, chance=lambda: 0.0), Service(Trouble(retry_after=3 * SECOND)))

    assert time.waits == [3.0]


def test_gives_up_where_it_is_asked_to_wait_too_long(time: Time, call: Call) -> None:
    """The default serves better than a queue of callers that wait a minute."""
    service = Service(Trouble(retry_after=60 * SECOND))
    with pytest.raises(CallFailed):
        call(guard(time), service)

    assert (service.calls, time.waits) == (1, [])


def test_no_try_starts_beyond_the_deadline(time: Time, call: Call) -> None:
    """Slow failures use up the time of repeats."""
    service = Service(*[Trouble()] * 10)
    hasty = Retry(tries=10, first_wait=4 * SECOND, longest_wait=4 * SECOND, deadline=9 * SECOND)
    with pytest.raises(CallFailed):
        call(guard(time, retry=hasty), service)

    assert (service.calls, time.now) == (3, 108.0)


def test_a_retry_storm_ends(time: Time, call: Call) -> None:
    """While everything fails, a hundred calls have ten repeats among them."""
    service = Service(*[Trouble()] * 1_000)
    shared = guard(time, budget=RetryBudget(most=10, refill=0.1))
    for _ in range(100):
        with pytest.raises(CallFailed):
            call(shared, service)

    assert service.calls == 110


def test_successes_pay_for_repeats(time: Time, call: Call) -> None:
    """An empty budget has a repeat again after as many successes as it takes."""
    budget = RetryBudget(most=1, refill=0.5)
    tired = guard(time, budget=budget)
    call(tired, Service(Trouble()))
    with pytest.raises(CallFailed):
        call(tired, Service(Trouble()))
    call(tired, Service())

    assert call(tired, Service(Trouble())) == "answer"


def test_the_budget_never_holds_more_than_its_most() -> None:
    """A quiet week must not save up a storm."""
    budget = RetryBudget(most=2, refill=0.5)
    for _ in range(100):
        budget.refill()

    assert [budget.take() for _ in range(3)] == [True, True, False]


def test_failures_in_a_row_open_the_breaker(time: Time, call: Call) -> None:
    """Then nothing is sent; a success in between starts the count anew."""
    breaker = Breaker(failures=3, pause=30 * SECOND, clock=time.read)
    once = guard(time, retry=Retry(tries=1), breaker=breaker)
    service = Service(Trouble(), Trouble())
    for _ in range(2):
        with pytest.raises(CallFailed):
            call(once, service)
    call(once, service)
    service.troubles = [Trouble()] * 3
    for _ in range(4):
        with pytest.raises(CallFailed):
            call(once, service)

    assert (breaker.state, service.calls) == (Circuit.OPEN, 6)


def test_an_open_breaker_stops_the_repeats_of_a_call(time: Time, call: Call) -> None:
    """The try that opens it is the last one."""
    service = Service(*[Trouble()] * 10)
    with pytest.raises(CallFailed, match="left alone"):
        call(guard(time, breaker=Breaker(failures=2, clock=time.read)), service)

    assert service.calls == 2


def test_after_the_pause_one_call_tries(time: Time, call: Call) -> None:
    """Its success closes the breaker."""
    breaker = Breaker(failures=1, pause=30 * SECOND, clock=time.read)
    once = guard(time, retry=Retry(tries=1), breaker=breaker)
    with pytest.raises(CallFailed):
        call(once, Service(Trouble()))
    time.now += 29.9
    closed_for_all = breaker.admit()
    time.now += 0.1

    assert (closed_for_all, breaker.state) == (False, Circuit.HALF_OPEN)
    assert call(once, Service()) == "answer"
    assert breaker.state is Circuit.CLOSED


def test_a_failed_trial_opens_it_for_another_pause(time: Time, call: Call) -> None:
    """One failure is enough then."""
    breaker = Breaker(failures=3, pause=30 * SECOND, clock=time.read)
    for _ in range(3):
        breaker.failed()
    time.now += 30
    with pytest.raises(CallFailed):
        call(guard(time, retry=Retry(tries=1), breaker=breaker), Service(Trouble()))
    time.now += 29

    assert (breaker.state, breaker.admit()) == (Circuit.OPEN, False)


def test_only_one_trial_at_a_time(time: Time) -> None:
    """A service that comes back is not met by everybody at once; a trial that says nothing makes room."""
    breaker = Breaker(failures=1, pause=30 * SECOND, clock=time.read)
    breaker.failed()
    time.now += 30
    admitted = [breaker.admit(), breaker.admit()]
    breaker.abandoned()

    assert [*admitted, breaker.admit()] == [True, False, True]


def test_a_refused_request_closes_the_breaker(time: Time, call: Call) -> None:
    """The service answers: it is well."""
    breaker = Breaker(failures=1, pause=SECOND, clock=time.read)
    breaker.failed()
    time.now += 1
    with pytest.raises(CallFailed):
        call(guard(time, breaker=breaker), Service(Trouble(Blame.REQUEST)))

    assert breaker.state is Circuit.CLOSED


def test_lasting_failures_open_the_breaker(time: Time, call: Call) -> None:
    """A wrong key must not be tried with every message."""
    breaker = Breaker(failures=2, clock=time.read)
    for _ in range(2):
        with pytest.raises(CallFailed):
            call(guard(time, breaker=breaker), Service(Trouble(Blame.LASTING)))

    assert breaker.state is Circuit.OPEN


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
        await guard(time, retry=Retry(timeout=timedelta(milliseconds=1), tries=2)).call(never)

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


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"timeout": timedelta()}])
def test_a_retry_that_never_tries_is_refused(wrong: dict[str, object]) -> None:
    """It would return nothing at all."""
    with pytest.raises(ConfigurationError):
        Retry(**wrong)  # type: ignore[arg-type]
