"""The page's sections about users' memory: how fast it is read, what is found, and what is understood."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobs.lab.bench.page_parts import Held, Measured, Picture, Section, number, number_table
from jobs.shared.charts import Curve, draw_curves

_RETRIEVE_SAID = (
    "A hundred thousand memories of a hundred users in Qdrant Edge, read over HTTP at a steady rate from a process of "
    "its own, timed from when a request is due; beside it the same calls inside the process. Then, on a real broker "
    "under load: a turn is sent, and /v1/context asked with `after` that turn."
)
_RETRIEVAL_SAID = (
    "LoCoMo's conversations through the real path, every question asked of its user's memory. Recall is evidence found "
    "by evidence, the mean over questions; 1-4 leaves the adversarial ones out."
)
_TIERS_SAID = (
    "The same conversations folded by user, requests answered extractively. Of each question the distance to the "
    "nearest episode that holds some of its evidence, beside those to the user's other episodes and to other users': "
    "what an embedder's `episode_distance` divides."
)
_FACTS_SAID = (
    "Facts found by rules in labelled messages. Rules were mended by looking at `dev`; `test` was written out of sight "
    "of the rules, in rare wordings and in passing, so it says what rules miss at the worst."
)
_MS = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99", "max_ms": "max"}
_RECALLS = {"recall@5": "R@5", "recall@10": "R@10", "recall@20": "R@20"}
_FOUND = {"precision": "precision", "recall": "recall", "f1": "F1"}
_GOALS = {"wordllama": 0.70, "minilm": 0.73}
"""R@10 of turns, questions 1-4, that each embedder is held to; sessions are held to the same in both."""
_SESSIONS_GOAL = 0.93
_PRECISION_GOAL, _RECALL_GOAL = 0.9, 0.7


def retrieve_section(measured: Measured) -> Section:
    """Latency by route, over HTTP and inside, and from a turn to the context with it."""
    rows = [(row.text("path"), row) for row in measured.rows("routes")]
    inside = [(path, part) for path, row in rows if (part := row.part("inside")) is not None]
    asked = measured.part("end_to_end")
    return Section(
        title="Reading users' memory",
        said=[_RETRIEVE_SAID],
        held=[
            Held(row.text("figure"), value, limit, at_least=False, unit="ms")
            for row in measured.rows("held")
            if (value := row.number("measured_ms")) is not None and (limit := row.number("limit_ms")) is not None
        ],
        tables=[
            number_table(
                "over HTTP, ms", {**_MS, "rate": "requests/s", "errors": "errors", "server_cpus": "CPUs"}, rows
            ),
            number_table("inside the process, ms", _MS, inside),
            number_table("from a turn to the context with it, ms", _MS, [] if asked is None else [("", asked)]),
        ],
    )


def eval_retrieval_section(measured: Measured) -> Section:
    """Recall by category, of turns and of sessions."""
    embedder = measured.text("embedder")
    places = {
        kind: [(name, row) for name in ("1-4", "1-5", "1", "2", "3", "4", "5") if (row := measured.part(kind, name))]
        for kind in ("turns", "sessions")
    }
    held = [
        Held(f"recall@10 of {kind}, {embedder}, questions 1-4", value, goal, at_least=True, unit="")
        for kind, goal in (("turns", _GOALS.get(embedder, 0.0)), ("sessions", _SESSIONS_GOAL))
        if (value := measured.number(kind, "1-4", "recall@10")) is not None
    ]
    return Section(
        title=f"What search finds: {embedder}",
        said=[_RETRIEVAL_SAID],
        held=held,
        tables=[number_table(f"{kind}, questions", _RECALLS, rows) for kind, rows in places.items()],
    )


def eval_tiers_section(measured: Measured) -> Section:
    """What is kept, and distances."""
    kept, embedder = measured.part("kept"), measured.text("embedder")
    columns = {
        "turns": "turns",
        "episodes": "episodes",
        "facts": "facts",
        "most_at_hand": "at hand at most",
        "ratio": "turns by records kept",
        "tokens_before": "tokens before",
        "tokens_after": "tokens after",
    }
    rows = [(number(row.number("distance")), row) for row in measured.rows("shares")]
    shares = {"right": "right episode", "same_user": "others of the user", "foreign": "other users'"}
    return Section(
        title=f"Three tiers: {embedder}",
        said=[_TIERS_SAID],
        tables=[
            number_table("kept", columns, [] if kept is None else [("", kept)]),
            number_table("share nearer than", shares, rows),
        ],
        pictures=_distances(measured, embedder, shares),
    )


def _distances(measured: Measured, embedder: str, shares: dict[str, str]) -> list[Picture]:
    rows = measured.rows("shares")
    curves = [
        Curve(
            name,
            [
                (x, y)
                for row in rows
                if (x := row.number("distance")) is not None and (y := row.number(key)) is not None
            ],
        )
        for key, name in shares.items()
    ]
    if not any(curve.points for curve in curves):
        return []
    draw = partial(
        draw_curves,
        title=f"Episodes nearer to a question, {embedder}",
        x_label="cosine distance",
        y_label="share nearer",
        curves=curves,
        log_x=False,
        label_points=False,
    )
    return [Picture(f"eval-tiers-{embedder}.svg", "share of episodes by cosine distance to a question", draw)]


def _points(rows: Sequence[Measured], key: str) -> list[tuple[float, float]]:
    pairs = [(row.number("distance"), row.number(key)) for row in rows]
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def eval_facts_section(measured: Measured) -> Section:
    """Precision and recall, by split and category."""
    splits = [(name, row) for name in ("dev", "test") if (row := measured.part("by_split", name)) is not None]
    categories = [
        (name, row)
        for name in ("identity", "preference", "constraint", "instruction")
        if (row := measured.part("by_category", name)) is not None
    ]
    test = measured.part("by_split", "test")
    held = [] if test is None else [
        Held(f"facts: {key} on held-out messages", value, goal, at_least=True, unit="")
        for key, goal in (("precision", _PRECISION_GOAL), ("recall", _RECALL_GOAL))
        if (value := test.number(key)) is not None
    ]  # fmt: skip
    return Section(
        title="Facts understood",
        said=[_FACTS_SAID],
        held=held,
        tables=[
            number_table("messages", _FOUND, [("all", measured), *splits]),
            number_table("category", {**_FOUND, "gold": "labelled"}, categories),
        ],
    )
