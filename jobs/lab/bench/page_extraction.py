"""The page's section about statements that are read out of project talk."""

from __future__ import annotations

from jobs.lab.bench.page_parts import Held, Measured, Section, number_table

_SAID = (
    "Statements found by rules in labelled messages, beside the seed's bare patterns on the same "
    "messages. Rules were mended by `dev`; `test` was worded differently by the same hand, `rare` was written to be "
    "unlike all others, `foreign` is talk of teams, labelled before its writer had seen the rules; none of the three "
    "was looked at. Subjects say what rivals what: a wrong one counts "
    "against precision, an absent one against recall."
)
_FOUND = {"precision": "precision", "recall": "recall", "f1": "F1", "gold": "labelled"}
_F1_GOAL = 0.8


def eval_extraction_section(measured: Measured) -> Section:
    """Precision and recall by split, by type, and of the seed's patterns."""
    splits = [
        (name, row)
        for name in ("dev", "test", "rare", "foreign")
        if (row := measured.part("by_split", name)) is not None
    ]
    sets = [
        (name, row)
        for name, key in (
            ("all", "all"),
            ("held out", "held_out"),
            ("seed's patterns, all", "seed_patterns"),
            ("seed's patterns, held out", "seed_patterns_held_out"),
            ("subjects", "subjects"),
        )
        if (row := measured.part(key)) is not None
    ]
    types = [
        (name, row)
        for name in ("decision", "preference", "constraint", "goal", "entity", "procedure", "fact")
        if (row := measured.part("by_type", name)) is not None
    ]
    goals = (
        ("statements: F1 on held-out messages", measured.part("held_out")),
        ("statements: F1 on messages of teams (`foreign`)", measured.part("by_split", "foreign")),
    )
    held = [
        Held(goal, f1, _F1_GOAL, at_least=True, unit="")
        for goal, row in goals
        if row is not None and (f1 := row.number("f1")) is not None
    ]
    return Section(
        title="Statements extracted",
        said=[_SAID],
        held=held,
        tables=[number_table("messages", _FOUND, [*sets, *splits]), number_table("type", _FOUND, types)],
    )
