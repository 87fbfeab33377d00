"""What a number of turns a day takes."""

import json
from pathlib import Path

import msgspec
import pytest

from jobs.operate.sizing import shipped_cost, table_of, turns_of
from jobs.operate.sizing.plan import Cost, ExpectedLoad, Prices, plan
from tests.support.command_line import turntide

DEPLOY = Path(__file__).parents[2] / "deploy"
COST = Cost(
    turn_bytes=300.0,
    cpu_us={"sessions": 250.0, "archive": 100.0, "kafka": 50.0},
    topic_bytes={"turns.v1": 300.0, "profiles.v1": 200.0},
    text_copies=2.0,
    archive_bytes=100.0,
    index_bytes=2_000.0,
    state_bytes=10_000.0,
    base_mb=200.0,
)


def test_a_plan_is_the_arithmetic_of_what_was_measured() -> None:
    """864 M turns a day are 10,000 a second, at the peak 30,000: each figure by hand."""
    found = plan(ExpectedLoad(turns_per_day=864e6, peak=3.0, used=0.6, replication=3), COST, Prices())

    assert (found.turns_per_s, found.peak_turns_per_s) == (10_000.0, 30_000.0)
    assert found.workers == {"sessions": 13, "archive": 5}  # 30,000 × 250 µs / 0.6 = 12.5 cores
    assert found.partitions == 48  # two for each of thirteen workers, of 12 and its doubles
    assert (found.brokers, found.broker_cores) == (3, 8)  # 2.5 cores, three copies
    assert found.open_sessions == 864e6 / 20 * 45 / 1440 * 3
    assert found.state_gb == pytest.approx(40.5)
    assert found.kafka_disk_gb == pytest.approx(864e6 * (300 * 30 + 200 * 7) * 3 / 1e9)
    assert found.archive_gb_per_day == pytest.approx(86.4)
    assert found.index_gb == pytest.approx(864e6 * 30 * 2_000 / 1e9)


def test_what_breaks_first_is_said() -> None:
    """Where one process or one machine is not enough, the plan names what carries it."""
    said = " ".join(plan(ExpectedLoad(turns_per_day=1e9), COST, Prices()).limits)
    busy = msgspec.structs.replace(COST, cpu_us={"index": 500.0}, index_bytes=1.0)

    assert plan(ExpectedLoad(turns_per_day=1e9), busy, Prices()).limits[0].startswith("index:"), (
        "small, and too busy for one"
    )

    assert all(word in said for word in ("Qdrant server", "Postgres", "cluster"))


def test_shipped_costs_are_those_measured() -> None:
    """What the plans rest on is what the measurement printed, to three digits."""
    measured = json.loads((DEPLOY / "measurements" / "roles.json").read_bytes())
    cost = shipped_cost()

    assert cost.cpu_us == pytest.approx({each["role"]: each["cpu_us_per_turn"] for each in measured["roles"]}, rel=5e-3)
    bytes_of = {each["topic"]: each["bytes_per_turn"] for each in measured["topics"] if each["bytes_per_turn"]}
    assert cost.topic_bytes == pytest.approx(bytes_of, rel=5e-3)
    assert cost.archive_bytes == pytest.approx(measured["archive_bytes_per_turn"], rel=5e-3)


def test_the_page_shows_what_the_command_prints() -> None:
    """The table of deploy/sizing.md is that of the three steps, row by row."""
    plans = [
        plan(ExpectedLoad(turns_per_day=turns_of(step)), shipped_cost(), Prices()) for step in ("1M", "100M", "10G")
    ]
    columns, rows = table_of(plans)
    page = (DEPLOY / "sizing.md").read_text()

    missing = [row[0] for row in [tuple(columns), *rows] if f"| {' | '.join(row)} |" not in page]
    assert missing == []


def test_own_measurements_take_the_place_of_the_shipped(tmp_path: Path) -> None:
    """A machine twice as slow needs twice the cores; a file that is none is refused."""
    own = tmp_path / "roles.json"
    measured = json.loads((DEPLOY / "measurements" / "roles.json").read_bytes())
    for each in measured["roles"]:
        each["cpu_us_per_turn"] *= 2
    own.write_text(json.dumps(measured))
    arguments = ["sizing", "10G", "--output", "json"]
    answers = [turntide(*arguments, *more) for more in ((), ("--measured", str(own)))]
    shipped, slower = (msgspec.json.decode(answer.stdout)["plans"][0]["workers"] for answer in answers)

    assert slower["sessions"] == pytest.approx(2 * shipped["sessions"], abs=1)
    own.write_text("{}")
    refused = turntide(*arguments, "--measured", str(own))
    assert "bench roles" in str(refused.exception)
