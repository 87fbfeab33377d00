"""Arithmetic of the benchmark: medians over rounds, ratios within a round, percentiles, and the traffic it sends."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from jobs.lab.bench.folds import SESSIONS_AT_ONCE, TURNS_PER_ALARM, TurnTraffic, records_of
from jobs.lab.bench.measuring import SESSIONS_ROLE, BenchFailed, Stopwatch, Timing
from jobs.lab.bench.roles import Backlog, time_of
from jobs.lab.bench.stream import Round, order, summarise
from models.events import AlertChanged, Turn
from streams.oracle.replay import SessionReplay
from streams.settings import load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def measured(ours: float, faust: float, *, quix: float | None = None) -> Round:
    """A round with the given turns per second."""
    rates = {"sessions_role": ours, "plain_fold": 2 * ours, "per_event_faust": faust, "raw_read": 10 * ours}
    if quix is not None:
        rates["quix"] = quix
    return Round(
        timings={name: Timing(round(rate * 2), 2.0) for name, rate in rates.items()},
        latencies_ms=[0.0, 50.0, 100.0],
        backlog=Backlog(Timing(1, 1.0), 900.0, 25.0, {"fold": 50.0}),
        turn_bytes=300.0,
    )


def test_latency_is_the_median_of_each_rounds_percentiles() -> None:
    """One slow round is not everybody's p99; no alert is a failure, not a latency of nothing."""
    rounds = [
        msgspec.structs.replace(measured(1_000, 100), latencies_ms=[each * slow for each in (0.0, 50.0, 100.0)])
        for slow in (1, 10, 2)
    ]

    assert summarise(rounds, turns=50)["alert_latency_ms"] == {"p50": 100.0, "p99": 198.0, "alerts": 9}

    with pytest.raises(BenchFailed, match="single_turn_risk"):
        summarise([msgspec.structs.replace(measured(1_000, 100), latencies_ms=[])], turns=50)


@pytest.mark.parametrize("timing", [Timing(0, 1.0), Timing(10, 0.0), Timing(-5, 1.0)])
def test_too_few_turns_are_no_measurement(timing: Timing) -> None:
    """A rate of nothing, or in no time, is refused."""
    with pytest.raises(BenchFailed, match="run with more turns"):
        _ = timing.turns_per_s


def test_report_compares_the_role_with_each() -> None:
    """Ratios by name, medians with their rounds and ranges beside them; Quix is null only where it is not installed."""
    report = summarise([measured(1000, 100), measured(1200, 150), measured(900, 100)], turns=50)

    assert (report["turns_per_s"], report["runs"]) == (1000, 3)
    assert (report["ratio_plain_fold"], report["ratio_per_event_faust"], report["ratio_raw_read"]) == (0.5, 9.0, 0.1)
    assert (report["ratio_quix"], report["ratio_bytewax"]) == (None, None)
    assert report["absolute_turns_per_s"]["per_event_faust"] == 100
    assert report["alert_latency_ms"] == {"p50": 50.0, "p99": 99.0, "alerts": 9}
    assert [figures["ratio_per_event_faust"] for figures in report["rounds"]] == [10.0, 8.0, 9.0]
    assert report["spread"]["ratio_per_event_faust"] == [8.0, 10.0]
    assert report["spread"]["turns_per_s"] == report["spread"]["sessions_role_turns_per_s"] == [900.0, 1200.0]
    assert (report["mb_per_10000_sessions"], report["rounds"][0]["alert_latency_ms_p99"]) == (25.0, 99.0)
    assert report["spread"].keys() == report["rounds"][0].keys()
    assert summarise([measured(1000, 100, quix=500)], turns=50)["ratio_quix"] == 2.0


def test_each_round_begins_with_another_contender() -> None:
    """Nobody always runs on the warmest or the busiest machine, and nobody is left out."""
    first, second = order(0), order(1)

    assert first[0] == SESSIONS_ROLE
    assert second == [*first[1:], first[0]]
    assert order(len(first)) == first


def test_stopwatch_leaves_the_warm_up_out() -> None:
    """A quarter of a short run; done with its last turn and not before, and never where there is no end."""
    stopwatch = Stopwatch(100)
    ended = [stopwatch.took_one() for _ in range(100)]

    assert ended == [False] * 99 + [True]
    assert stopwatch.timing().turns == 75
    assert stopwatch.timing().seconds > 0

    stopwatch = Stopwatch(None)

    assert not any(stopwatch.took_one() for _ in range(1_000))


def test_time_begins_after_the_warm_up() -> None:
    """What is written with the poll that ends the warm-up was worked on before it; a partition's later writes count."""
    first_poll = [(1_000, 0, 399), (1_001, 1, 399), (1_003, 2, 399)]
    later = [(2_003, 0, 999), (2_003, 1, 999), (2_003, 2, 999)]

    assert time_of([*later, *first_poll], 3_000) == Timing(1_800, 1.0)


def test_backlog_is_many_conversations_at_once_each_in_order() -> None:
    """Every session counts from nought without a gap, and no turn brings a risk or a repeated event time."""
    turns = list(TurnTraffic(1).backlog(5_000, ends_at=NOW))
    by_session: dict[str, list[Turn]] = {}
    for turn in turns:
        by_session.setdefault(turn.session_id, []).append(turn)

    assert len(by_session) > SESSIONS_AT_ONCE
    assert all([t.turn for t in said] == list(range(len(said))) for said in by_session.values())
    assert {turn.risk for turn in turns} == {None}
    assert [t.timestamp for t in turns] == sorted({t.timestamp for t in turns})
    assert turns[-1].timestamp < NOW


def test_alarming_turns_alert_and_nothing_else_in_their_sessions() -> None:
    """By the shipped policy and scorer: a session with an alert before would not have another one on time."""
    settings, traffic = load_settings(), TurnTraffic()
    embedder = stream_embedder_of(settings)
    replay = SessionReplay(policy_of(settings), embedder, scorer_of(settings, embedder))
    turns = [traffic.alarming(n, NOW + n * timedelta(seconds=1)) for n in range(30 * TURNS_PER_ALARM)]
    replay.fold(0, records_of(turns))
    alerts = [event for event in replay.result().outputs.values() if isinstance(event, AlertChanged)]

    assert len(alerts) == 30
    assert sorted((alert.session_id, alert.turn, alert.cause) for alert in alerts) == sorted(
        (turn.session_id, turn.turn, "raised") for n, turn in enumerate(turns) if traffic.alarms(n)
    )
