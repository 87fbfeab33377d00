"""The page of measurements, from made-up files: verdicts are computed, what is missing is left out, nothing is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobs.cli import app
from jobs.lab.bench.result import COMMANDS, PAGE, result_of, write_page
from models.errors import ConfigurationError

ENVELOPE = {
    "command": "turntide lab bench made-up",
    "measured_at": "2001-02-03T04:05:06Z",
    "load_average_at_start": 0.25,
    "machine": {
        "cpus": 3,
        "cpu": "Made-up CPU",
        "memory_bytes": 8 * 2**30,
        "system": "Nowhere",
        "python": "3.99",
        "versions": {"kafka": "9.9", "bytewax": "8.8"},
    },
}
STREAM = {
    "absolute_turns_per_s": {"sessions_role": 4_000.0, "plain_fold": 10_000.0, "quix": 1_000.0, "novel": 7.0},
    "ratio_plain_fold": 0.4,
    "ratio_quix": 4.0,
    "ratio_per_event_faust": None,
    "alert_latency_ms": {"p50": 8.0, "p99": 90.0, "alerts": 123},
    "changelog_bytes_per_turn": 1_500.0,
    "turn_bytes": 300.0,
    "mb_per_10000_sessions": 33.0,
    "stage_us_per_turn": {"fold": 60.0, "embed": 40.0},
    "spread": {"sessions_role_turns_per_s": [3_900.0, 4_100.0]},
    "runs": 3,
    "turns": 5_000,
}
SCALE = {
    "ratio_long_session": 1.25,
    "session_length": [
        {"turn": 10, "us_per_turn": 80.0, "ratio": 1.0, "state_bytes": 1_600},
        {"turn": 10_000, "us_per_turn": 100.0, "ratio": 1.25, "state_bytes": 7_700},
    ],
    "sessions": [
        {"sessions": 1_000, "us_per_turn": 50.0, "ratio": 1.0, "memory_bytes": 2**21, "state_bytes": 2**20},
        {"sessions": 9_000, "us_per_turn": 55.0, "ratio": 1.1, "memory_bytes": 2**24, "state_bytes": 2**23},
    ],
    "workers": [{"workers": 1, "turns_per_s": 2_000.0, "ratio": 1.0}, {"workers": 2, "turns_per_s": 3_000.0}],
    "partitions": 8,
    "notes": ["1,000,000 sessions are left out: made up"],
    "cpus": 3,
    "runs": 1,
}
MEMORY = {
    "mb_per_10000_sessions": 41.0,
    "filled_turns": 12,
    "level_ratio": 1.2,
    "milestones": [
        {"seen": seen, "open": 10, "remembered": 20, "state_mb": 1.5, "rss_mb": 99.0} for seen in range(100, 2_100, 100)
    ],
}
KILLS = {
    "rows": [
        {"contender": "sessions_role", "kills": 5, "lost": 0, "doubled": 0, "alerts_missing": 0, "alerts_false": 0},
        {"contender": "per_event_faust", "kills": 5, "lost": 17, "doubled": 901, "alerts_missing": 1},
    ]
}
RUN = {"kills": 150, "turns": 900, "lost": 0, "doubled": 0, "alerts": 30, "alerts_missing": 0, "alerts_false": 0}
CHAOS = {
    "session_timeout_s": 6.0,
    "runs": [
        {
            "seed": 7,
            "minutes": 0.5,
            "turns_per_s": 99.0,
            "result": {"seed": 7, **RUN, "differences": 0, "worst_alert_delay_after_kill_s": 6.5},
        },
        {"seed": 8, "minutes": 0.5, "turns_per_s": 99.0, "result": None, "error": "RoleFailed: made up"},
        {
            "seed": 9,
            "minutes": 0.5,
            "turns_per_s": 99.0,
            "result": {"seed": 9, **RUN, "lost": 2, "differences": 2, "worst_alert_delay_after_kill_s": 8.25},
        },
    ],
}
RECOVERY = {
    "value_bytes": 64,
    "rows": [
        {"keys": 1_000, "records_per_s": 90_000.0, "stock_records_per_s": 10_000.0, "recovery_ratio": 9.0},
        {"keys": 9_000, "records_per_s": 80_000.0, "recovery_ratio": 11.0, "warm_seconds": 0.5},
    ],
}
ALL = {"stream": STREAM, "scale": SCALE, "memory": MEMORY, "kills": KILLS, "chaos": CHAOS, "recovery": RECOVERY}


def page_of(folder: Path, **files: Any) -> str:
    """Put the files into the folder, write the page and read it."""
    for name, figures in files.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps(figures))
    write_page(folder)
    return (folder / PAGE).read_text()


def verdicts(page: str) -> dict[str, tuple[str, str, str]]:
    """Figure → bound, measured, verdict, by the first table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "reached" in line]
    return {row[0]: (row[1], row[2], row[3].strip("*")) for row in rows}


def headings(page: str) -> list[str]:
    """Titles of the sections."""
    return re.findall(r"^## (.+)$", page, flags=re.MULTILINE)


def test_every_file_becomes_a_section_with_pictures_that_exist(tmp_path: Path) -> None:
    """All six, the verdicts before them and the machine after; each picture is there and each drawn one is shown."""
    page = page_of(tmp_path, **ALL)

    assert headings(page) == [
        "What is held to",
        "Throughput and latency",
        "Recovery",
        "Scale",
        "Memory",
        "Peers under the same kills",
        "Chaos",
    ]
    shown = re.findall(r"!\[[^\]]+\]\(([\w-]+\.svg)\)", page)
    assert sorted(shown) == sorted(path.name for path in tmp_path.glob("*.svg"))
    assert {"throughput.svg", "latency.svg", "stages.svg", "recovery.svg", "memory.svg"} < set(shown)


def test_reached_and_not_reached_are_computed(tmp_path: Path) -> None:
    """On either side of each kind of bound; what was not measured has no verdict."""
    found = verdicts(page_of(tmp_path, **ALL))

    assert found["throughput to the same fold, plain loop, no Kafka"] == ("≥ 0.5 ×", "0.4 ×", "not reached")
    assert found["throughput to the same fold, Quix Streams, durable"] == ("≥ 1.5 ×", "4 ×", "reached")
    assert found["turn to alert, p50, 500 turns/s"] == ("≤ 15 ms", "8 ms", "reached")
    assert found["turn to alert, p99, 500 turns/s"] == ("≤ 75 ms", "90 ms", "not reached")
    assert found["changelog per turn (2 × the turn + 1 KB)"] == ("≤ 1,600 bytes", "1,500 bytes", "reached")
    assert found["cost of a turn, turn 10,000 to turn 10"] == ("≤ 1.3 ×", "1.25 ×", "reached")
    assert found["recovery of 1,000 keys to stock Faust"] == ("≥ 10 ×", "9 ×", "not reached")
    assert found["recovery of 9,000 keys to stock Faust"] == ("≥ 10 ×", "11 ×", "reached")
    assert found["sessions role under kills: lost"] == ("0", "0", "reached")
    assert [what for what in found if "per event" in what] == []


def test_chaos_adds_the_seeds_up_and_does_not_hide_an_unfinished_one(tmp_path: Path) -> None:
    """Sums, the worst delay, and a run without a result counts against the whole."""
    page = page_of(tmp_path, chaos=CHAOS)
    found = verdicts(page)

    assert found["chaos: kills"] == ("≥ 200", "300", "reached")
    assert found["chaos: seeds"] == ("≥ 20", "3", "not reached")
    assert found["chaos: runs that did not finish"] == ("0", "1", "not reached")
    assert found["chaos: lost"] == ("0", "2", "not reached")
    assert found["chaos: doubled"] == ("0", "0", "reached")
    assert found["chaos: worst alert delay after a kill (session time-out + 1 s)"] == ("≤ 7 s", "8.25 s", "not reached")
    assert "| 8 (not finished) |" in page
    assert "| all 3 | 300 |" in page


def test_a_single_chaos_run_is_a_sweep_of_one(tmp_path: Path) -> None:
    """`turntide lab chaos` without --runs prints its result without a list."""
    page = page_of(tmp_path, chaos={"seed": 4, **RUN})

    assert "| 4 | 150 |" in page


def test_what_is_missing_is_left_out(tmp_path: Path) -> None:
    """A section without its file, a row without its key, a column in which nothing stands, a picture of nothing."""
    page = page_of(tmp_path, stream={"ratio_quix": 1.0, "alert_latency_ms": "broken"}, scale={}, memory={}, kills={})

    assert "Chaos" not in page
    assert list(verdicts(page)) == ["throughput to the same fold, Quix Streams, durable"]
    assert sorted(tmp_path.glob("*.svg")) == []
    assert "None" not in page


@pytest.mark.parametrize("name", COMMANDS)
def test_a_result_of_nothing_shows_nothing(name: str) -> None:
    """As of a command that was cut short, or of contenders of which nothing is known: no verdict, row or picture."""
    for printed in ({}, {"outcomes": [{"policy": "p"}]}):
        result = result_of(name, printed)
        rows = [row for table in result.rows for row in table.rows if any(str(cell).strip("– ") for cell in row[1:])]
        assert ([f for f in result.held_to if f.value is not None], rows, list(result.pictures)) == ([], [], [])


def test_stages_before_and_now_stand_side_by_side(tmp_path: Path) -> None:
    """An earlier stream.json gives the column before; the dearest stage of then stands first."""
    earlier = {"stage_us_per_turn": {"embed": 90.0, "fold": 70.0, "gone": 5.0}}
    page = page_of(tmp_path, stream=STREAM, stream_before=earlier)

    rows = [line for line in page.splitlines() if line.startswith(("| stage", "| embed", "| fold", "| gone", "| all"))]
    assert rows == [
        "| stage | before, µs a turn | µs a turn | share |",
        "| embed | 90 | 40 | 40% |",
        "| fold | 70 | 60 | 60% |",
        "| gone | 5 |  | 0% |",
        "| all | 165 | 100 |  |",
    ]
    assert "before" in (tmp_path / "stages.svg").read_text()


def test_machine_and_command_are_those_of_the_files(tmp_path: Path) -> None:
    """Who made a figure, when and where; a file that does not say is told by its usual command."""
    page = page_of(tmp_path, stream={**STREAM, **ENVELOPE}, scale={**SCALE, **ENVELOPE}, kills=KILLS)

    assert "`turntide lab bench made-up`, 2001-02-03 04:05:06 UTC, load average 0.25 before" in page
    assert "`turntide lab bench kills --output json`" in page
    machine = page[page.index("## Machine") :]
    assert "|  | stream, scale |" in machine
    for row in ("CPUs | 3", "memory | 8 GiB", "Python | 3.99", "kafka | 9.9", "bytewax | 8.8", "CPU | Made-up CPU"):
        assert f"| {row} |" in machine


def test_notes_and_unknown_contenders_are_shown(tmp_path: Path) -> None:
    """What a measurement left out is said; a contender without a name of ours keeps its own."""
    page = page_of(tmp_path, stream=STREAM, scale=SCALE)

    assert "1,000,000 sessions are left out: made up" in page
    assert "| novel | 7 |" in page
    assert "The machine has 3 CPUs" in page


def test_no_file_and_a_broken_file_say_what_to_do(tmp_path: Path) -> None:
    """An empty folder names a command, a file that is not JSON its name; no page is left behind."""
    with pytest.raises(ConfigurationError, match=r"holds none of stream\.json.*turntide lab bench"):
        write_page(tmp_path)
    (tmp_path / "kills.json").write_text("error: not JSON")
    with pytest.raises(ConfigurationError, match=r"kills\.json is not readable JSON"):
        write_page(tmp_path)

    assert not (tmp_path / PAGE).exists()


def test_command_prints_what_is_held_to_what(tmp_path: Path) -> None:
    """`turntide lab bench page FOLDER --output json`: a row for each figure, with numbers as numbers."""
    (tmp_path / "scale.json").write_text(json.dumps(SCALE))
    result = CliRunner().invoke(app, ["bench", "page", str(tmp_path), "--output", "json"])

    assert json.loads(result.stdout) == [
        {"figure": "cost of a turn, turn 10,000 to turn 10", "value": 1.25, "bound": 1.3, "unit": "×", "reached": True}
    ]
    assert (tmp_path / PAGE).is_file()


FOUND = {"precision": 0.9, "recall": 0.7, "f1": 0.79, "gold": 10}
RECALLS = {kind: {"1-4": {"recall@10": value}} for kind, value in (("turns", 0.71), ("sessions", 0.95))}
ROUTE = {"path": "/v1/retrieve", "p99_ms": 20.0, "rate": 200.0, "inside": {"p99_ms": 1.0}}


@pytest.mark.parametrize(
    ("name", "measured", "verdicts", "rows"),
    [
        # Facts and statements: held to what the rules were not mended by, not to all messages together.
        ("eval-facts", FOUND | {"by_split": {"test": {"precision": 0.8, "recall": 0.75}}}, [False, True], "all, test"),
        ("eval-extraction", {"all": FOUND | {"f1": 0.95}, "held_out": FOUND}, [False], "all, held out"),
        # Each embedder has its goal: MiniLM must find more than wordllama.
        ("eval-retrieval", {"embedder": "wordllama", **RECALLS}, [True, True], "1-4"),
        ("eval-retrieval", {"embedder": "minilm", **RECALLS}, [False, True], "1-4"),
        # Latency is held to the limits that the bench names.
        ("retrieve", {"rate": 200.0, "routes": [ROUTE]}, [False, True], "/v1/retrieve"),
    ],
)
def test_each_section_holds_the_right_part_to_its_limit(
    name: str, measured: dict[str, Any], verdicts: list[bool], rows: str
) -> None:
    """Of the right part of what was printed; its rows stand in the first table."""
    result = result_of(name, measured)

    assert [held.reached for held in result.held_to] == verdicts
    assert {row[0] for row in result.rows[0].rows} == set(rows.split(", "))
