"""The page's section about statements: verdict and tables from what the command prints."""

from __future__ import annotations

from jobs.lab.bench.page import section_of


def test_statements_are_held_to_what_the_rules_were_not_mended_by() -> None:
    """Not to all messages together, and the source's patterns stand beside."""
    figures = {"precision": 0.9, "recall": 0.7, "f1": 0.79, "gold": 10}
    section = section_of(
        "eval-extraction",
        {"all": figures | {"f1": 0.95}, "held_out": figures, "seed_patterns": figures | {"f1": 0.3}},
    )

    assert [(0.79, False)] == [(held.value, held.reached) for held in section.held]
    assert ["all", "held out", "source patterns, all"] == [row[0] for row in section.tables[0].rows]
