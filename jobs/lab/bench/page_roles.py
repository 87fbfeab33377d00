"""The page's section about what each role costs per turn."""

from __future__ import annotations

from jobs.lab.bench.page_parts import Measured, Section, Table, number


def roles_section(measured: Measured) -> Section:
    """Processor time and memory by role, records and bytes by topic."""
    turns, size = number(measured.number("turns")), number(measured.number("turn_bytes"))
    return Section(
        title="Cost of a turn, role by role",
        said=[
            (
                f"All roles at work on one backlog of {turns} turns of {size} bytes. Processor time is that of the "
                "processes, without their start. Topics hold keys and values, before the broker compacts them; the "
                "archive as landed, before files are merged."
            ),
        ],
        tables=[_roles(measured), _topics(measured), _stores(measured)],
    )


def _roles(measured: Measured) -> Table:
    rows = [
        (row.text("role"), number(row.number("cpu_us_per_turn")), number(row.number("memory_mb")))
        for row in measured.rows("roles")
    ]
    return Table(("role", "processor, µs a turn", "memory, MB"), rows)


def _topics(measured: Measured) -> Table:
    rows = [
        (row.text("topic"), number(row.number("records_per_turn")), number(row.number("bytes_per_turn")))
        for row in measured.rows("topics")
        if row.number("records_per_turn")
    ]
    return Table(("topic", "records a turn", "bytes a turn"), rows)


def _stores(measured: Measured) -> Table:
    rows = [
        ("archive, Parquet as landed", number(measured.number("archive_bytes_per_turn"))),
        ("index, Qdrant Edge", number(measured.number("index_bytes_per_turn"))),
    ]
    return Table(("store", "bytes a turn"), rows)
