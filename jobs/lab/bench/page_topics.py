"""The page's sections about topic memory: its figures, and each embedder's threshold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobs.lab.bench.page_parts import Held, Measured, Picture, Section, Table, number, number_table
from jobs.shared.charts import Curve, draw_curves

_SAID = (
    "Topic memory (seed 001) on long conversations, message by message from stored parts to changed ones, in CPU time; "
    "then the same turns with topic memory and without it. Packing is of JSON, beside what the seed says of its own."
)
_EVAL_SAID = (
    "Sessions of stretches of five dialogues each, cut in two and said in turn; two user messages belong together if "
    "they come from one dialogue. The project's own fold sorts them into topics for every threshold."
)
_PACKING = {
    "json_kb": "JSON, KB",
    "seed_json_kb": "the seed's, KB",
    "seed_saves_percent": "the seed says, %",
    "gzip_base64_saves_percent": "gzip and base64, %",
    "gzip_saves_percent": "without base64, %",
    "deflate_saves_percent": "deflate, %",
    "zstd_saves_percent": "zstd, trained, %",
}
_TIMES = {
    "add_ms": "add a message",
    "match_ms": "match at 20 topics",
    "unpack_ms": "unpack 50 messages",
    "unpack_deflate_ms": "unpack 50 messages, deflate",
    "add_with_compaction_ms": "add with a compaction",
    "add_with_unpacking_ms": "add with an unpacking",
}
_RATIOS = {
    "ratio_throughput": "sessions role",
    "ratio_fold": "the fold alone",
    "ratio_fold_traffic": "the fold alone, usual traffic",
}
_PROBES = {
    "compactions": "compactions",
    "loss": "share not found by the summary",
    "searched": "searched by first sentence",
    "found_ratio": "share found in the vector memory",
    "found_in_part_ratio": "of longer messages",
}
_MATCHED = {
    "threshold": "threshold",
    "active_bonus": "active bonus",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "topics_per_session": "topics for 5 dialogues",
}


def topics_section(measured: Measured) -> Section:
    """Time, packing, size, throughput, and what is still found."""
    packing = [(f"{number(row.number('messages'))} messages", row) for row in measured.rows("packing")]
    times = [(what, row) for key, what in _TIMES.items() if (row := measured.part(key)) is not None]
    ratios = [(what, row) for key, what in _RATIOS.items() if (row := measured.part(key)) is not None]
    probes = measured.part("probes")
    return Section(
        title="Topic memory",
        said=[_SAID, *measured.texts("notes")],
        held=[held for row in measured.rows("held") for held in _held(row)],
        tables=[
            number_table("CPU ms", {"median": "median", "p99": "p99", "count": "count"}, times),
            number_table("share saved", _PACKING, packing),
            number_table("with topics to without", {"ratio": "ratio"}, ratios),
            number_table("packed messages", _PROBES, [] if probes is None else [("", probes)]),
        ],
    )


def _held(row: Measured) -> list[Held]:
    value, limit = row.number("measured"), row.number("limit")
    if value is None or limit is None:
        return []
    return [Held(f"topics: {row.text('figure')}", value, limit, row.flag("at_least"), row.text("unit"))]


def eval_topics_section(measured: Measured) -> Section:
    """The thresholds of one embedder."""
    embedder = measured.text("embedder")
    kinds = {"best": "best", "at_shipped": "shipped", "at_seed": "the seed's"}
    rows = [(name, row) for key, name in kinds.items() for row in measured.rows(key)]
    merging = [(number(row.number("merge_similarity")), row) for row in measured.rows("merging")]
    columns = {"precision": "precision", "recall": "recall", "f1": "F1", "merges_per_session": "merges a session"}
    return Section(
        title=f"Topics by cosine: {embedder}",
        said=[_EVAL_SAID],
        tables=[
            number_table("which", _MATCHED, rows),
            number_table("merged from", columns, merging),
            *_variants(measured),
        ],
        pictures=_picture(measured, embedder),
    )


def _variants(measured: Measured) -> list[Table]:
    columns = {"dims": "dimensions", "active_bonus": "active bonus", "threshold": "best threshold", "f1": "F1"}
    rows = [(row.text("embedding"), row) for row in measured.rows("variants")]
    return [number_table("a topic's embedding, simulated", columns, rows)]


def _picture(measured: Measured, embedder: str) -> list[Picture]:
    rows = measured.rows("curve")
    bonuses = dict.fromkeys(bonus for row in rows if (bonus := row.number("active_bonus")) is not None)
    curves = [Curve(f"bonus {number(bonus) or 0}", _points(rows, bonus)) for bonus in bonuses]
    if not any(curve.points for curve in curves):
        return []
    draw = partial(
        draw_curves,
        title=f"Messages put into the right topic, {embedder}",
        x_label="cosine above which a message joins a topic",
        y_label="F1 of pairs",
        curves=curves,
        log_x=False,
        label_points=False,
    )
    return [Picture(f"eval-topics-{embedder}.svg", "F1 of pairs by cosine threshold", draw)]


def _points(rows: Sequence[Measured], bonus: float) -> list[tuple[float, float]]:
    pairs = [(row.number("threshold"), row.number("f1")) for row in rows if row.number("active_bonus") == bonus]
    return [(x, y) for x, y in pairs if x is not None and y is not None]
