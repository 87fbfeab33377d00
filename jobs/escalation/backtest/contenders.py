"""Contenders of a back-test: a policy, and the scorer of turns by which it judges."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field, structs

from models.errors import ConfigurationError
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.risk.turn_model import ModelCard
from streams.inference.trained_scorer import TrainedScorer
from streams.ports import Embedder, TurnScorer
from streams.settings import Settings

SHIPPED, LEFT_OUT = "shipped", "left-out"
MOST_CONTENDERS = 2
_Named = TypeVar("_Named", Path, str)


class Contender(Struct, frozen=True):
    """One side of a comparison.

    Attributes:
        policy: With the scorer's combination of signals in it, or without one: then the source formulas judge.
        scorer: Of single turns.
        left_out: Each labelled dialogue is judged by a scorer trained without its family, as this one was with it.
    """

    policy: Policy
    scorer: TurnScorer = field(default_factory=RuleScorer)
    left_out: bool = False

    @property
    def scorer_name(self) -> str:
        """As it stands in tables.

        >>> Contender(Policy()).scorer_name
        'rules'
        """
        return "family left out" if self.left_out else self.scorer.name

    @property
    def card(self) -> ModelCard | None:
        """Of the trained scorer; None for rules."""
        return self.scorer.model.file.card if isinstance(self.scorer, TrainedScorer) else None

    @property
    def base_rate(self) -> float | None:
        """Share of escalating sessions that its probabilities assume; None where its scores are no probabilities."""
        card = self.card
        return None if card is None or self.policy.escalation.model is None else card.base_rate

    def learnt_from(self, sources: Sequence[str]) -> list[str]:
        """Those of the sources that its scorer was trained on: figures there say nothing of new traffic."""
        card = None if self.left_out else self.card
        return [] if card is None else sorted({source.name for source in card.sources}.intersection(sources))


def contenders_of(
    settings: Settings, policies: Sequence[Path], scorers: Sequence[str], embedder: Embedder
) -> list[Contender]:
    """Policies with their scorers, in the order named; one of either kind serves both of the other.

    Args:
        settings: With the policy and the scorer that stand where none is named.
        policies: Files.
        scorers: `rules`, `shipped`, `left-out`, or a file made by `turntide lab train scorer`.
        embedder: Of the process.

    Raises:
        ConfigurationError: Too many, or not as many of one kind as of the other, or a file cannot be used.
    """
    if max(len(policies), len(scorers)) > MOST_CONTENDERS:
        raise ConfigurationError("too many policies and scorers: give one pair, or two to compare")
    count = max(len(policies), len(scorers), 1)
    files, names = _for_each(policies, count), _for_each(scorers, count)
    return [_contender(settings, file, name, embedder) for file, name in zip(files, names, strict=True)]


def _for_each(named: Sequence[_Named], count: int) -> list[_Named | None]:
    if not named:
        return [None] * count
    return [named[min(n, len(named) - 1)] for n in range(count)]


def _contender(settings: Settings, file: Path | None, named: str | None, embedder: Embedder) -> Contender:
    from streams.wiring import policy_of, scorer_of

    changed: dict[str, object] = {} if file is None else {"policy_file": file}
    if named is not None:
        changed["scorer"] = settings.scorer.named(SHIPPED if named == LEFT_OUT else named)
    settings = settings.model_copy(update=changed)
    policy, scorer = policy_of(settings), scorer_of(settings, embedder)
    if named is not None:
        # A scorer that is asked for judges by its own combination, whatever the policy's file holds.
        model = scorer.combination if isinstance(scorer, TrainedScorer) else None
        policy = structs.replace(policy, escalation=structs.replace(policy.escalation, model=model))
    return Contender(policy, scorer, left_out=named == LEFT_OUT)
