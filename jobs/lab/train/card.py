"""The model card: what a scorer's file was made of, how good it is on what it has not seen, and where it fails."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from models.risk.combination import UNITS
from models.risk.turn_model import TurnModel
from streams.http import pages


class _KnownFailure(Struct, frozen=True):
    text: str
    known_from: frozenset[str]


class _CardWording(Struct, frozen=True):
    columns: tuple[str, ...]
    failures: list[_KnownFailure]
    origins: dict[str, str]


_WORDING = msgspec.toml.decode(pages.source("jobs/lab/train/card.toml"), type=_CardWording)
COLUMNS = _WORDING.columns
FAILURES = {each.text: each.known_from for each in _WORDING.failures}
_LEARNT_FROM_OURS = frozenset[str]().union(*FAILURES.values())
_TELLING_UNITS = 500
"""Weight from which a signal is in the table: 0.05 log-odds."""


def failures_of(sources: Collection[str]) -> list[str]:
    """The failures that are known of a file trained on these sources."""
    return [failure for failure, known_from in FAILURES.items() if known_from.issubset(sources)]


def measured_of(found: Mapping[str, Any], interval: tuple[float, float] | None) -> dict[str, float]:
    """Figures (`summary`) of a leave-one-family-out run, flat: `roc_auc`, `hh_harmless.roc_auc` …, to four digits."""
    low, high = interval or (None, None)
    flat = {**found, "roc_auc_low": low, "roc_auc_high": high}
    flat |= {f"control.{name}": value for name, value in found["controls"].items()}
    for source, row in found["by_source"].items():
        flat |= {f"{source}.{name}": value for name, value in row.items()}
    return {name: round(float(value), 4) for name, value in flat.items() if isinstance(value, int | float)}


def card_page(model: TurnModel) -> str:
    """The card as Markdown."""
    card, weights = model.file.card, sorted(model.file.weights.items(), key=lambda item: -item[1])
    names = sorted({name.rpartition(".")[0] for name in card.measured if name.endswith(".dialogues")})
    return pages.render(
        "jobs/lab/train/card.md.j2",
        model=model,
        card=card,
        sources=[[s.name, s.label, s.licence, s.dialogues, s.turns, _origin(s.name)] for s in card.sources],
        columns=COLUMNS,
        measured=card.measured,
        figures=[("all", ""), *((name, f"{name}.") for name in names)],
        chosen=bool(card.measured) and _LEARNT_FROM_OURS.issubset(source.name for source in card.sources),
        weights=[[name, f"{units / UNITS:+.2f}"] for name, units in weights if units >= _TELLING_UNITS],
    )


def _origin(source: str) -> str:
    return next((origin for family, origin in _WORDING.origins.items() if source.startswith(family)), "")
