"""The page's section about projects' memory: retrieval, turns, consolidation."""

from __future__ import annotations

from jobs.lab.bench.page_parts import Held, Measured, Section, number_table

_SAID = (
    "The demo's conversation of a project through the memory fold, and a reader's view of a project full of memories "
    "made of its sentences, in this process. Turns and consolidation are CPU time with state read and written; "
    "retrieval and context are time that passes. `After a change`: a memory gets other words before each question, so "
    "that the TF-IDF index has to follow. A conversation is flat if its last tenth costs what its first does, with "
    "words of its own throughout."
)
_MS = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99", "count": "count"}
_TALKS = {
    "p50_ms": "p50",
    "p99_ms": "p99",
    "ratio_last_tenth": "last tenth to first",
    "chunks": "chunks",
    "memories": "memories",
}
_CONSOLIDATION = {
    "looked_at": "memories",
    "archived": "archived",
    "events": "events",
    "ms_per_100": "ms per 100",
    "longest_ms": "longest event",
}
_RATIOS = {"ratio_full_project": "turn into a full project", "fill_ms": "adding a memory by hand, ms"}


def project_section(measured: Measured) -> Section:
    """Times, turns of conversations, and a consolidation."""
    consolidation = measured.part("consolidation")
    return Section(
        title="Memory of projects",
        said=[_SAID],
        held=[
            Held(row.text("figure"), value, limit, at_least=False, unit=row.text("unit"))
            for row in measured.rows("held")
            if (value := row.number("measured")) is not None and (limit := row.number("limit")) is not None
        ],
        tables=[
            number_table("read, ms", _MS, [(row.text("what"), row) for row in measured.rows("reading")]),
            number_table("a turn, CPU ms", _TALKS, [(row.text("what"), row) for row in measured.rows("talks")]),
            number_table(
                "consolidation, CPU ms", _CONSOLIDATION, [] if consolidation is None else [("", consolidation)]
            ),
            number_table("beside", _RATIOS, [("", measured)]),
        ],
    )
