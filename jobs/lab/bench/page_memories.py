"""The page's section about memories of apps: what they cost, and how fast they are read."""

from __future__ import annotations

from jobs.lab.bench.page_parts import Held, Measured, Section, number_table

_SAID = (
    "The demo's conversations, each of which ends, through both folds in this process, without a language model. "
    "Making a memory is CPU time of a fold that reads and writes its space's state; reading is time that passes, from "
    "Qdrant Edge inside the process. Ratios: a conversation that also compacts to one that does not, the seed's "
    "context to the memories alone (p99), and the sessions' fold with memories of apps to that without."
)
_MS = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99", "count": "count"}
_ENDS = {
    "ended": "ended",
    "made": "made",
    "merged": "merged",
    "deleted": "deleted",
    "left": "left",
    "most": "most at any time",
}
_RATIOS = {
    "ratio_compaction": "with compaction",
    "ratio_context": "context",
    "own_words_percent": "spaces, % of both folds, words of their own",
}
_SHARE = {
    "spaces_percent": "spaces, % of both folds",
    "whole_percent": "with decoding, scoring, embedding",
    "ratio_sessions_fold": "sessions' fold",
    "turns": "turns",
}


def memories_section(measured: Measured) -> Section:
    """Times, a hundred conversations on one app, and what share of the work it is."""
    ends, share = measured.part("ends"), measured.part("share")
    return Section(
        title="Memories of apps",
        said=[_SAID],
        held=[
            Held(row.text("figure"), value, limit, at_least=False, unit=row.text("unit"))
            for row in measured.rows("held")
            if (value := row.number("measured")) is not None and (limit := row.number("limit")) is not None
        ],
        tables=[
            number_table("made, CPU ms", _MS, [(row.text("what"), row) for row in measured.rows("work")]),
            number_table("read, ms", _MS, [(row.text("what"), row) for row in measured.rows("reading")]),
            number_table("conversations that end on one app", _ENDS, [] if ends is None else [("", ends)]),
            number_table("ratios", _RATIOS, [("", measured)]),
            number_table("share of the work", _SHARE, [] if share is None else [("", share)]),
        ],
    )
