"""The page's section about the archive: landing, size, queries and mining, each beside what it is held to."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.lab.bench.page_parts import Held, Measured, Section, Table, number

_SAID = (
    "Made-up sessions of realistic lengths and words, with profiles, windows, compactions, topics, facts, episodes and "
    "alerts. Landing goes from records to committed Parquet; the limit beside it reads the same JSON and writes the "
    "same sorted, partitioned Parquet without decoding, checks, offsets or commits. Speeds are those of one core, by "
    "CPU time. Queries are warm medians; each mining job looks at the last seven days."
)
_FIGURES = {
    "turns": "turns",
    "landing_turns_per_s": "landing, turns/s",
    "landing_mb_per_s": "landing, MB of JSON/s",
    "landing_peak_mb": "landing, peak MB",
    "ratio_raw_write": "by the raw write",
    "ratio_json_size": "JSON by Parquet, bytes",
    "ratio_json_size_turns": "the same of turns alone",
    "bytes_per_turn": "Parquet bytes/turn",
    "files": "files",
    "merge_mb_per_s": "merge, MB/s",
    "files_read": "files read for one day",
    "files_looked_into": "files looked into for repeats",
    "files_of_turns": "files of turns",
    "query_peak_mb": "queries, peak MB",
    "report_day_s": "report on one day, s",
}


def archive_section(measured: Measured) -> Section:
    """All figures of one run."""
    figures = [(said, number(value)) for key, said in _FIGURES.items() if (value := measured.number(key)) is not None]
    jobs, peaks = measured.numbers("job_s"), measured.numbers("job_peak_mb")
    return Section(
        title="Archive",
        said=[_SAID],
        held=_held(measured),
        tables=[
            Table(("", "measured"), figures),
            _numbers(("raw write", "turns/s"), measured.numbers("raw_turns_per_s")),
            _numbers(("view", "s"), measured.numbers("query_s")),
            Table(
                ("mining job", "s", "peak MB"),
                [(name, number(seconds), number(peaks.get(name))) for name, seconds in jobs.items()],
            ),
            _numbers(("table", "bytes"), measured.numbers("table_bytes")),
        ],
    )


def _numbers(columns: tuple[str, str], values: Mapping[str, float]) -> Table:
    return Table(columns, [(name, number(value)) for name, value in values.items()])


def _held(measured: Measured) -> list[Held]:
    return [
        Held(f"archive: {row.text('what')}", value, bound, at_least=row.flag("at_least"), unit=row.text("unit"))
        for row in measured.rows("held")
        if (value := row.number("value")) is not None and (bound := row.number("bound")) is not None
    ]
