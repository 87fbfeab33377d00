"""By which rules an alert's partition was folded, from what the sessions workers kept (`streams.versions`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from models.errors import ConfigurationError
from models.events import AlertChanged
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.risk.turn_model import read_model
from streams import versions
from streams.ports import Embedder, TurnScorer
from streams.scorers.trained import trained_scorer
from streams.settings import Settings
from streams.versions import Stretch, Version
from streams.wiring import policy_of, scorer_of

Origin = Literal["history", "alert", "file"]
"""Where rules are from: the history of the partition, the alert itself, or a file that was named."""


class Rules(NamedTuple):
    """What folds a partition from an offset on."""

    first_offset: int
    policy: Policy
    scorer: TurnScorer


def rules_of(
    settings: Settings, changes: Sequence[AlertChanged], embedder: Embedder, policy_file: Path | None
) -> tuple[Origin, list[Rules]]:
    """What folded the partition up to the last of these changes, the first from its beginning on.

    What the partition's history says counts if it names what the alert names; else each change's own policy, from its
    offset on.

    Raises:
        ConfigurationError: A version is not kept here, or was not named, or the embedder is another one.
    """
    if policy_file is not None:
        policy = policy_of(settings.model_copy(update={"policy_file": policy_file}))
        return "file", [Rules(0, policy, scorer_of(settings, embedder))]
    if not all(change.policy_digest for change in changes):
        raise ConfigurationError(
            f"alert {changes[0].alert_id} is of a release that did not name its policy's content: give the policy of "
            "that time with --policy FILE"
        )
    noted = versions.history(settings, changes[0].source.partition)
    origin: Origin = "history" if _agrees(noted, changes) else "alert"
    stretches = noted if origin == "history" else _named_by(changes, settings.topic_prefix)
    last = changes[-1].source.offset
    found = [stretch for stretch in stretches if stretch.first_offset <= last]
    for stretch in found:
        if stretch.version.embedder not in ("", embedder.name):
            raise ConfigurationError(
                f"the alert was folded with the embedder {stretch.version.embedder}, configured is {embedder.name}: "
                "set TURNTIDE_VECTORS__EMBEDDER"
            )
    return origin, [_rules(settings, stretch, embedder) for stretch in found]


def _rules(settings: Settings, stretch: Stretch, embedder: Embedder) -> Rules:
    policy = versions.kept_policy(settings, stretch.version.policy)
    model = policy.escalation.model
    # Where no history says which scorer it was: the one whose file the policy's model came with.
    scorer = stretch.version.scorer or (RuleScorer.name if model is None else model.name)
    return Rules(stretch.first_offset, policy, scorer_named(settings, scorer, embedder))


def _agrees(stretches: Sequence[Stretch], changes: Sequence[AlertChanged]) -> bool:
    """Whether the history begins with the log, and at each change names the policy that the change names."""
    if not stretches or stretches[0].first_offset > 0:
        return False
    return all(
        change.policy_digest == next(s for s in reversed(stretches) if s.first_offset <= offset).version.policy
        for change in changes
        for offset in (change.source.offset,)
    )


def _named_by(changes: Sequence[AlertChanged], prefix: str) -> list[Stretch]:
    found: list[Stretch] = []
    for change in changes:
        version = Version(change.policy_digest, "", "")
        if not found or found[-1].version != version:
            found.append(Stretch(prefix, change.source.partition, change.source.offset if found else 0, version))
    return found


def scorer_named(settings: Settings, name: str, embedder: Embedder) -> TurnScorer:
    """The scorer of this name, from the file that is kept of it.

    Raises:
        ConfigurationError: It is not kept here.
    """
    if name == RuleScorer.name:
        return RuleScorer()
    data = versions.kept_scorer_file(settings, name)
    return trained_scorer(read_model(data, f"the kept scorer {name}"), embedder)
