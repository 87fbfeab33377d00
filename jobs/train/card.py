"""The model card: what a scorer's file was made of, how good it is on what it has not seen, and where it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.risk.turn_model import ModelCard, TurnModel

FAILURES = (
    "English only. Another language is scored by what little its words and vectors have in common with English: risks "
    "stay near the base, so it neither alerts nor clears; the session's signals of behaviour still count.",
    "Human red-teamers of a family left out are told from the same crowd's harmless talk with an ROC-AUC of about 0.74: "
    "short blunt requests without a row of questions look like small talk.",
    "Questions that gather on one dangerous matter weigh most. A persistent, curious and harmless one looks the same "
    "until the matter itself is known to be harmless: name such topics in `alerts.allow`.",
    "Security work that is phrased as orders (write, implement, exploit …) raises the level; about one in twelve such "
    "sessions alerts.",
    "Probabilities assume the base rate named here. Where escalation is rarer they are too high: set the threshold by "
    "`turntide calibrate`, not by the probability.",
    "Sessions of one or two user turns hold little; what is judged there is nearly the first turn alone.",
    "Labels of hh_harmless are weak (all of a red-teaming data set); own texts are by few hands.",
)
"""Found on families left out, and by reading what the signals rest on."""
_SOURCES = {
    "hh": "Anthropic hh-rlhf",
    "safemtdata": "SafeMTData / ActorAttack",
    "trylock": "scthornton/trylock (its terms: defensive use only)",
    "parapet": "Parapet-Tech/parapet",
    "mt_bench_101": "MT-Bench-101",
    "trec_cast": "TREC CAsT",
    "mitre_frr": "PurpleLlama MITRE-FRR",
    "mts_dialog": "MTS-Dialog",
    "xstest_safe": "XSTest, safe prompts",
    "mathdial": "MathDial",
    "sgd": "DSTC8 Schema-Guided Dialogue",
}


def measured_of(summary: Mapping[str, object], interval: tuple[float, float]) -> dict[str, float]:
    """The figures of a leave-one-family-out run, flat: `roc_auc`, `hh_harmless.roc_auc` …, to four digits."""
    found = {name: value for name, value in summary.items() if isinstance(value, int | float)}
    found |= {"roc_auc_low": interval[0], "roc_auc_high": interval[1]}
    for group in ("controls", "by_source"):
        table = summary[group]
        assert isinstance(table, dict)  # noqa: S101 - as `jobs.eval.escalation.summary` makes it
        for name, row in table.items():
            if isinstance(row, dict):
                found |= {f"{name}.{key}": value for key, value in row.items() if isinstance(value, int | float)}
            elif isinstance(row, int | float):
                found[f"control.{name}"] = row
    return {name: round(float(value), 4) for name, value in found.items()}


def card_page(model: TurnModel) -> str:
    """The card as Markdown."""
    card, file = model.file.card, model.file
    weights = sorted(file.weights.items(), key=lambda item: -item[1])
    parts = [
        f"# Model card: {model.name}",
        "What it does: scores single user turns (`models/risk/turn_model.py`), and weighs the sequence signals of a "
        "session into the calibrated probability that it escalates (`models/risk/combination.py`). For people on call "
        "to look at a conversation; not for blocking users, nor for judging them.",
        f"Trained on {card.trained_on}, seed {card.seed} (training has no randomness; the seed draws the bootstrap), "
        f"{len(model.data):,} bytes, base rate assumed {card.base_rate:.3f}. File: `streams/scorers/escalation.scorer`.",
        "## Learnt from",
        _table(
            ["source", "label", "licence", "dialogues", "user turns", "of"],
            [[s.name, s.label, s.licence, s.dialogues, s.turns, _origin(s.name)] for s in card.sources],
        ),
        "Besides these, the project's own pairs of messages that differ in their aim (`jobs/train/pairs.jsonl`). "
        "Share-alike sources served measuring alone. No word of any text is in the file: words are hashed.",
        "## On families not trained on",
        "Each dialogue judged by a model that saw nothing of its family (`turntide eval escalation`).",
        _measured(card),
        "## What weighs how much",
        _table(
            ["signal", "log-odds at 1"], [[name, f"{units / 10_000:+.2f}"] for name, units in weights if units >= 500]
        ),
        "## Known failures",
        "\n".join(f"- {failure}" for failure in card.failures),
    ]
    return "\n\n".join(parts) + "\n"


def _measured(card: ModelCard) -> str:
    if not card.measured:
        return "Not measured."
    names = sorted({name.partition(".")[0] for name in card.measured if "." in name} - {"control"})
    columns = (
        "dialogues",
        "roc_auc",
        "pr_auc",
        "recall_at_fpr_0.01",
        "recall_at_fpr_0.05",
        "recall",
        "fpr",
        "median_lead",
    )

    def row(title: str, prefix: str) -> list[object]:
        return [title, *(_cell(card.measured.get(prefix + column), column) for column in columns)]

    table = _table(["", *columns], [row("all", ""), *(row(name, f"{name}.") for name in names)])
    low, high = card.measured.get("roc_auc_low"), card.measured.get("roc_auc_high")
    beside = ", ".join(
        f"{name.removeprefix('control.')} {value:.3f}"
        for name, value in card.measured.items()
        if name.startswith("control.")
    )
    return (
        f"{table}\n\nROC-AUC over all, 95 % bootstrap: {low:.3f}-{high:.3f}; mean of the escalating sources "
        f"{card.measured['roc_auc_mean_of_attack_sources']:.3f}. Controls (ROC-AUC): {beside}; gain over the first turn "
        f"alone {card.measured['gain_over_first_turn']:+.3f}."
    )


def _origin(source: str) -> str:
    if source.startswith("own_"):
        return "the project"
    return next((origin for family, origin in _SOURCES.items() if source.startswith(family)), "")


def _cell(value: float | None, column: str) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if column == "dialogues" else f"{value:.3f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
