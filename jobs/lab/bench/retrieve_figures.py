"""Summary of a run of requests: percentiles, rates, and which limits hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from jobs.lab.bench.figures import BenchFailed
from jobs.lab.bench.retrieve_load import Loaded

_KEPT_UP = 0.98
"""Of the wanted rate: at the end of a run some requests are still due."""


class Spread(NamedTuple):
    """Milliseconds (`numpy.percentile`, linear)."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


class Within(Struct, frozen=True):
    """A route's work inside the process, one question after the other, milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


class Route(Struct, frozen=True):
    """A route over HTTP; times run from the moment a request was due.

    Attributes:
        requests: That were answered, the warm-up left out.
        rate: Answers a second.
        errors: Requests without an answer of status 200.
        error_kinds: Some of them.
        answer_p99_ms: From the moment a request was sent: the difference is what the sender was late.
        server_cpus: CPUs that the server used, on average, 1 for a whole one.
        client_cpus: The same of the sender.
        inside: The same work without HTTP.
    """

    path: str
    requests: int
    rate: float
    errors: int
    error_kinds: list[str]
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    answer_p99_ms: float
    server_cpus: float
    client_cpus: float
    inside: Within | None = None

    def keeps_up(self, rate: float) -> bool:
        """Whether every request was answered, as many a second as were wanted."""
        return not self.errors and self.rate >= _KEPT_UP * rate

    @property
    def ratio_p99(self) -> float | None:
        """Over HTTP divided by inside."""
        return None if self.inside is None else self.p99_ms / self.inside.p99_ms


class Figure(Struct, frozen=True):
    """A time and its limit."""

    figure: str
    measured_ms: float
    limit_ms: float
    reached: bool


def at_most(figure: str, measured_ms: float, limit_ms: float, *, answered: bool = True) -> Figure:
    """A time that has a limit; one of answers that did not all come has not reached it.

    >>> at_most("p99", 15.0, 15.0).reached, at_most("p99", 15.1, 15.0).reached
    (True, False)
    """
    return Figure(figure, measured_ms, limit_ms, answered and measured_ms <= limit_ms)


def spread(times_ms: Sequence[float]) -> Spread:
    """Median, and the slowest of twenty and of a hundred.

    >>> spread([1.0, 2.0, 3.0]).p50_ms
    2.0
    """
    return Spread(*np.percentile(times_ms, (50, 95, 99)).tolist())


def route_of(path: str, loaded: Loaded, *, server_cpus: float) -> Route:
    """What a run of requests amounts to.

    Raises:
        BenchFailed: Not one was answered.
    """
    if not loaded.latencies_ms:
        raise BenchFailed(f"no answer from {path}: {'; '.join(loaded.error_kinds) or 'nothing was sent'}")
    return Route(
        path,
        len(loaded.latencies_ms),
        loaded.rate,
        loaded.errors,
        loaded.error_kinds,
        *spread(loaded.latencies_ms),
        max_ms=max(loaded.latencies_ms),
        answer_p99_ms=spread(loaded.answer_ms).p99_ms,
        server_cpus=server_cpus,
        client_cpus=loaded.cpu_s / loaded.seconds,
    )
