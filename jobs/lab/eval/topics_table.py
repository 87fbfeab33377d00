"""The report of `turntide lab eval topics` for people: tables, and the curve as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jobs.lab.eval.topics import MatchPoint, TopicScores
from jobs.shared.output import Printer


def show(printed: Printer, report: TopicScores) -> None:
    """Print the tables and what they say."""
    printed.message(
        f"{report.embedder}: {report.sessions} sessions of {report.dialogues_per_session} dialogues each, out of "
        f"{report.dialogues:,}; {report.user_turns:,} user turns of {report.turns:,}; seed {report.seed}"
    )
    merging = [
        {"merge_similarity": f"{point.merge_similarity:g}"}
        | _match_cells(point)
        | {"merges": f"{point.merges_per_session:.2f}"}
        for point in report.merging
    ]
    variants = [
        {
            "embedding": each.embedding,
            "dimensions": str(each.dims),
            "active_bonus": f"{each.active_bonus:g}",
            "threshold": f"{each.threshold:g}",
            "f1": f"{each.f1:.3f}",
        }
        for each in report.variants
    ]
    printed.rows("Threshold: pairs of user turns, without merging", curve_rows(report))
    printed.rows("Merging, at the best threshold", merging)
    printed.rows("Other embeddings of a topic, simulated, each at its best threshold", variants)
    for said in verdicts(report):
        printed.message(said)


def verdicts(report: TopicScores) -> list[str]:
    """The best thresholds, and what the source's gives, a sentence each."""
    youden = report.best_youden
    named = {"best": report.best, "shipped": report.at_shipped, "the source's": report.at_seed}
    said = [
        f"{name}: {point.threshold:g} with active bonus {point.active_bonus:g}: F1 {point.f1:.2f}, "
        f"{point.topics_per_session:.1f} topics for {report.dialogues_per_session} dialogues"
        for name, points in named.items()
        for point in points
    ]
    pairs = f"pairs alone: Youden's J is highest at {youden.threshold:g}, {youden.youden:.2f}"
    return [*said, f"{pairs} ({youden.true_join_rate:.0%} of one dialogue, {youden.false_join_rate:.0%} of two)"]


def curve_rows(report: TopicScores) -> Iterator[dict[str, str]]:
    """A row for each threshold: pairs alone, then the fold with each bonus."""
    for pair in report.pair_curve:
        row = {
            "threshold": f"{pair.threshold:.2f}",
            "pairs_true": f"{pair.true_join_rate:.3f}",
            "pairs_false": f"{pair.false_join_rate:.3f}",
            "youden": f"{pair.youden:.3f}",
        }
        for point in report.curve:
            if point.threshold == pair.threshold:
                row |= _match_cells(point, f"_bonus_{point.active_bonus:g}")
        yield row


def draw(file: Path, report: TopicScores) -> None:
    """Draw F1 by threshold, with each bonus, and Youden's J of pairs alone; needs the extra `report`."""
    from jobs.shared.charts import Curve, draw_curves

    bonuses = list(dict.fromkeys(point.active_bonus for point in report.curve))
    curves = [
        Curve(f"F1, bonus {bonus:g}", [(p.threshold, p.f1) for p in report.curve if p.active_bonus == bonus])
        for bonus in reversed(bonuses)
    ]
    curves.append(Curve("Youden, pairs", [(point.threshold, point.youden) for point in report.pair_curve]))
    draw_curves(
        file,
        title=f"Messages put into the right topic, {report.embedder}",
        x_label="cosine above which a message joins a topic",
        y_label="F1 of pairs",
        curves=curves,
        log_x=False,
        label_points=False,
    )


def _match_cells(point: MatchPoint, suffix: str = "") -> dict[str, str]:
    return {
        f"precision{suffix}": f"{point.precision:.3f}",
        f"recall{suffix}": f"{point.recall:.3f}",
        f"f1{suffix}": f"{point.f1:.3f}",
        f"topics{suffix}": f"{point.topics_per_session:.1f}",
    }
