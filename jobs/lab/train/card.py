"""The model card: what a scorer's file was made of, how good it is on what it has not seen, and where it fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from models.risk.combination import UNITS
from models.risk.turn_model import TurnModel
from streams.http import pages

if TYPE_CHECKING:
    from jobs.lab.eval.escalation_scoring import EscalationScores, Row

FAILURES: Mapping[str, frozenset[str]] = {
    (
        "English only. Another language is scored by what little its words and vectors have in common with English: "
        "risks stay near the base, so it neither alerts nor clears; the session's signals of behaviour still count."
    ): frozenset(),
    (
        "Human red-teamers of a family left out are told from the same crowd's harmless talk with an ROC-AUC of about"
        " 0.75: short blunt requests without a row of questions look like small talk."
    ): frozenset({"hh_harmless", "hh_helpful"}),
    (
        "Questions that gather on one dangerous matter weigh most. A persistent, curious and harmless one looks the "
        "same until the matter itself is known to be harmless: name such topics in `alerts.allow`."
    ): frozenset(),
    (
        "Security work that is phrased as orders (write, implement, exploit …) raises the level; about one in six "
        "such sessions alerts."
    ): frozenset({"mitre_frr"}),
    (
        "Probabilities assume the base rate named here. Where escalation is rarer they are too high: set the "
        "threshold by `turntide calibrate`, not by the probability."
    ): frozenset(),
    (
        "Crescendos written by the project (own_crescendo) are told from its own hard negatives (fiction, role-play, "
        "security work, look-alikes, society) no better than chance, ROC-AUC 0.51, though a quarter of them alerts: "
        "what only the course of a long, careful talk gives away is mostly missed."
    ): frozenset({"hh_harmless", "safemtdata"}),
    "Sessions of one or two user turns hold little; what is judged there is nearly the first turn alone.": frozenset(),
    "Labels of hh_harmless are weak (all of a red-teaming data set); own texts are by few hands.": frozenset(
        {"hh_harmless"}
    ),
}
"""Of the shipped file, found on families left out and by reading what the signals rest on → the sources without which
a failure is not known: it quotes a figure measured on them, or says what they are."""
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
COLUMNS = (
    "dialogues",
    "roc_auc",
    "pr_auc",
    "recall_at_fpr_0.01",
    "recall_at_fpr_0.05",
    "recall",
    "fpr",
    "median_lead",
)
"""Figures of a run, of all sources together and of each."""
_LEARNT_FROM_OURS = frozenset[str]().union(*FAILURES.values())
_TELLING_UNITS = 500
"""Weight from which a signal is in the table: 0.05 log-odds."""


def failures_of(sources: Collection[str]) -> list[str]:
    """The failures that are known of a file trained on these sources."""
    return [failure for failure, known_from in FAILURES.items() if known_from.issubset(sources)]


def measured_of(found: EscalationScores, interval: tuple[float, float] | None) -> dict[str, float]:
    """The figures of a leave-one-family-out run, flat: `roc_auc`, `hh_harmless.roc_auc` …, to four digits."""
    low, high = interval or (None, None)
    flat: Row = {**found.overall, "roc_auc_low": low, "roc_auc_high": high}
    flat |= {f"control.{name}": value for name, value in found.controls.items()}
    for source, row in found.by_source.items():
        flat |= {f"{source}.{name}": value for name, value in row.items()}
    return {name: round(float(value), 4) for name, value in flat.items() if isinstance(value, int | float)}


def card_page(model: TurnModel) -> str:
    """The card as Markdown."""
    card, weights = model.file.card, sorted(model.file.weights.items(), key=lambda item: -item[1])
    measured = card.measured
    names = sorted({name.rpartition(".")[0] for name in measured if name.endswith(".dialogues")})
    figures = [("all", ""), *((name, f"{name}.") for name in names)]
    return pages.render(
        "jobs/lab/train/card.md.j2",
        model=model,
        card=card,
        sources=[[s.name, s.label, s.licence, s.dialogues, s.turns, _origin(s.name)] for s in card.sources],
        columns=COLUMNS,
        measured=measured,
        rows=[
            [title, *(_cell(measured.get(prefix + column), column) for column in COLUMNS)] for title, prefix in figures
        ],
        beside=[f"{name}: {said}" for name, said in _beside(measured).items() if said],
        chosen=bool(measured) and _LEARNT_FROM_OURS.issubset(source.name for source in card.sources),
        weights=[[name, f"{units / UNITS:+.2f}"] for name, units in weights if units >= _TELLING_UNITS],
    )


def _beside(measured: Mapping[str, float]) -> dict[str, str]:
    """Figures beside the table, by what they are."""
    interval = [_number(measured.get(name), ".3f") for name in ("roc_auc_low", "roc_auc_high")]
    controls = {name.removeprefix("control."): each for name, each in measured.items() if name.startswith("control.")}
    return {
        "ROC-AUC over all, 95 % bootstrap": "-".join(filter(None, interval)),
        "mean of the escalating sources": _number(measured.get("roc_auc_mean_of_attack_sources"), ".3f"),
        "controls (ROC-AUC)": ", ".join(f"{name} {each:.3f}" for name, each in controls.items()),
        "gain over the first turn alone": _number(measured.get("gain_over_first_turn"), "+.3f"),
    }


def _origin(source: str) -> str:
    if source.startswith("own_"):
        return "the project"
    return next((origin for family, origin in _SOURCES.items() if source.startswith(family)), "")


def _cell(value: float | None, column: str) -> str:
    return _number(value, ".0f" if column == "dialogues" else ".3f")


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
