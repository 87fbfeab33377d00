"""The page of measurements, from made-up files: verdicts are computed, what is missing is left out, nothing is lost."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.lab.bench.result import COMMANDS, PAGE, result_of, write_page
from jobs.lab.envelope import code_digest
from models.errors import ConfigurationError
from tests.support.command_line import printed
from tests.support.golden_text import assert_text

ALL: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "measurements.json").read_bytes())
"""Made-up measurements by the name of their file, and the envelope that any of them may have."""
ENVELOPE = ALL.pop("envelope")
SCALE, STREAM = ALL["scale"], ALL["stream"]


def page_of(folder: Path, **files: Any) -> str:
    """Put the files into the folder, write the page and read it."""
    folder.mkdir(exist_ok=True)
    for name, figures in files.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps(figures))
    write_page(folder)
    return (folder / PAGE).read_text()


def verdicts(page: str) -> dict[str, tuple[str, str, str]]:
    """Figure → bound, measured, verdict, by the first table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "reached" in line]
    return {row[0]: (row[1], row[2], row[3].strip("*")) for row in rows}


def test_every_file_becomes_a_section_with_pictures_that_exist(tmp_path: Path) -> None:
    """All six, the verdicts before them, on either side of each kind of bound; an unfinished run counts against all.

    Each picture is there and each drawn one is shown; what was not measured has no verdict.
    """
    page = page_of(tmp_path, **ALL)

    assert_text("bench-page", page)
    shown = re.findall(r"!\[[^\]]+\]\(([\w-]+\.svg)\)", page)
    assert sorted(shown) == sorted(path.name for path in tmp_path.glob("*.svg"))


def test_what_is_missing_is_left_out(tmp_path: Path) -> None:
    """A section without its file, a row without its key, a column in which nothing stands, a picture of nothing."""
    assert "| 4 | 150 |" in page_of(tmp_path / "one", chaos={"seed": 4, "kills": 150})  # as printed without --runs
    page = page_of(tmp_path, stream={"ratio_quix": 1.0, "alert_latency_ms": "broken"}, scale={}, memory={}, kills={})

    assert "Chaos" not in page
    assert list(verdicts(page)) == ["throughput to the same fold, Quix Streams, durable"]
    assert sorted(tmp_path.glob("*.svg")) == []
    assert "None" not in page


@pytest.mark.parametrize("name", COMMANDS)
def test_a_result_of_nothing_shows_nothing(name: str) -> None:
    """As of a command that was cut short, or of contenders of which nothing is known: no verdict, row or picture."""
    for measured in ({}, {"outcomes": [{"policy": "p"}]}):
        result = result_of(name, measured)
        rows = [row for table in result.rows for row in table.rows if any(str(cell).strip("– ") for cell in row[1:])]
        assert ([f for f in result.held_to if f.value is not None], rows, list(result.pictures)) == ([], [], [])


def test_machine_and_command_are_those_of_the_files(tmp_path: Path) -> None:
    """Who made a figure, when and where; a file that does not say is told by its usual command."""
    page = page_of(tmp_path, stream={**STREAM, **ENVELOPE}, scale={**SCALE, **ENVELOPE}, kills=ALL["kills"])

    assert "`turntide lab bench made-up`, 2001-02-03 04:05:06 UTC, load average 0.25 before" in page
    assert "`turntide lab bench kills --output json`" in page
    machine = page[page.index("## Machine") :]
    assert "|  | stream, scale |" in machine
    for row in ("CPUs | 3", "memory | 8 GiB", "Python | 3.99", "kafka | 9.9", "bytewax | 8.8", "CPU | Made-up CPU"):
        assert f"| {row} |" in machine


def test_figures_of_other_code_are_named(tmp_path: Path) -> None:
    """Each figure says which code it measured; the command names those that another code gave, or that do not say."""
    now = code_digest()
    page = page_of(tmp_path, stream={**STREAM, "code": now}, scale={**SCALE, "code": "0ther"}, kills=ALL["kills"])

    assert set(write_page(tmp_path)[1]) == {"scale", "kills"}
    assert (page.count(f"code {now}"), page.count("code 0ther")) == (1, 1)


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

    assert printed("bench", "page", str(tmp_path)) == [
        {"figure": "cost of a turn, turn 10,000 to turn 10", "value": 1.25, "bound": 1.3, "unit": "×", "reached": True}
    ]
    assert (tmp_path / PAGE).is_file()


FOUND = {"precision": 0.9, "recall": 0.7, "f1": 0.79, "gold": 10}
RECALLS = {"turns": {"1-4": {"recall@10": 0.83}}}
ROUTE = {"path": "/v1/retrieve", "p99_ms": 20.0, "rate": 200.0, "inside": {"p99_ms": 1.0}}


END_TO_END: dict[str, Any] = {"end_to_end": {"asked": 9, "p50_ms": 50.0, "p99_ms": 100.0, "without_turn": 0}}
ARCHIVE = {"turns": 500_000, "query_s": {"turns": 0.25}, "job_s": {"drift": 3.5}, "ratio_raw_write": 0.5}


@pytest.mark.parametrize(
    ("name", "measured", "verdicts", "rows"),
    [
        # Facts and statements: held to what the rules were not mended by, not to all messages together.
        ("eval-facts", FOUND | {"by_split": {"test": {"precision": 0.8, "recall": 0.75}}}, [False, True], "all, test"),
        ("eval-extraction", {"all": FOUND | {"f1": 0.95}, "held_out": FOUND}, [False], "all, held out"),
        ("eval-context-one-user", {"users": 1, "all": {"2000": {"context": 0.8}}}, [False], "2,000"),
        # Each embedder has its goal: e5 must find more than wordllama.
        ("eval-retrieval", {"embedder": "wordllama", **RECALLS}, [True], "1-4"),
        ("eval-retrieval", {"embedder": "e5", **RECALLS}, [False], "1-4"),
        # Latency is held to the limits that the bench names, over HTTP and inside the process …
        ("retrieve", {"rate": 200.0, "routes": [ROUTE]}, [False, True], "/v1/retrieve"),
        ("retrieve", {"rate": 200.0, "routes": [ROUTE | {"p99_ms": 15.0}]}, [True, True], "/v1/retrieve"),
        ("retrieve", {"rate": 200.0, "routes": [ROUTE | {"inside": {"p99_ms": 6.0}}]}, [False, False], "/v1/retrieve"),
        # … but a server that refuses or falls behind has reached nothing, nor has a prompt that lacks its turn.
        ("retrieve", {"rate": 200.0, "routes": [ROUTE | {"p99_ms": 1.0, "errors": 1}]}, [False, True], "/v1/retrieve"),
        ("retrieve", {"rate": 205.0, "routes": [ROUTE | {"p99_ms": 1.0}]}, [False, True], "/v1/retrieve"),
        ("retrieve", END_TO_END, [True], ""),
        ("retrieve", {"end_to_end": END_TO_END["end_to_end"] | {"without_turn": 1}}, [False], ""),
        # Of views and jobs the slowest one counts.
        ("archive", ARCHIVE, [False, True, True], "turns, by the raw write"),
    ],
)
def test_each_section_holds_the_right_part_to_its_limit(
    name: str, measured: dict[str, Any], verdicts: list[bool], rows: str
) -> None:
    """Of the right part of what was printed; its rows stand in the first table."""
    result = result_of(name, measured)

    assert [held.reached for held in result.held_to] == verdicts
    assert {row[0] for row in result.rows[0].rows} == {row for row in rows.split(", ") if row}
