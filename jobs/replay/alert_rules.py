"""Rules by which a partition was folded, as workers kept them (`streams.state.policy_versions`), and folds by them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from models.errors import ConfigurationError
from models.events import AlertChanged
from models.policy.digest import policy_digest
from models.risk.scorer import RuleScorer
from streams.inference.trained_scorer import kept_scorer
from streams.oracle.replay import USERS, FoldRules, SessionReplay, UsersReplay
from streams.ports import Embedder, TurnScorer
from streams.settings import Settings
from streams.state import policy_versions as versions
from streams.state.policy_versions import Stretch, Version
from streams.wiring import policy_of, scorer_of

Origin = Literal["history", "alert", "file"]
"""Where rules are from: the history of the partition, the alert itself, or a file that was named."""


class FoldOrigin(NamedTuple):
    """What folded a partition.

    Attributes:
        origin: Where the rules are from.
        rules: The first from the partition's beginning on.
        assumed_below: Offset below which nothing says by which rules; the earliest that are known stand for them.
    """

    origin: Origin
    rules: list[FoldRules]
    assumed_below: int


def rules_of(
    settings: Settings,
    changes: Sequence[AlertChanged],
    embedder: Embedder,
    policy_file: Path | None,
    scorer: str | None = None,
) -> FoldOrigin:
    """What folded the partition up to the last of these changes.

    What the partition's history says counts, from where it begins, if it names what the alert names; else each change's
    own policy, from its offset on.

    Args:
        settings: Where versions are.
        changes: Of one alert, in the order of their causes; at least one.
        embedder: Of the process.
        policy_file: Fold by this one instead.
        scorer: `rules` or a scorer's file, beside the configured second reader: with a policy file, and where the
            history does not name one.

    Raises:
        ConfigurationError: A version is not kept here, or was not named, or the embedder is another one.
    """
    if policy_file is not None:
        named = settings.model_copy(update={"policy_file": policy_file})
        if scorer is not None:
            named = named.model_copy(update={"scorer": settings.scorer.named(scorer)})
        return FoldOrigin("file", [configured_rules(named, embedder)], 0)
    if not all(change.policy_digest for change in changes):
        raise ConfigurationError(
            f"alert {changes[0].alert_id} is of a release that did not record its policy: give the policy of that time "
            "with --policy FILE"
        )
    noted = versions.history(settings, changes[0].source.partition)
    origin: Origin = "history" if _agrees(noted, changes) else "alert"
    stretches = _completed(noted, changes) if origin == "history" else _named_by(changes)
    last = changes[-1].source.offset
    found = [stretch for stretch in stretches if stretch.first_offset <= last]
    return FoldOrigin(origin, _rules_of(settings, found, embedder, scorer), found[0].first_offset)


def configured_rules(settings: Settings, embedder: Embedder) -> FoldRules:
    """What the settings say."""
    return FoldRules(0, policy_of(settings), scorer_of(settings, embedder))


def rules_of_partition(
    settings: Settings, partition: int, embedder: Embedder, configured: FoldRules
) -> list[FoldRules]:
    """What folded a partition of sessions: as its history says, by the configured rules where there is none.

    Raises:
        ConfigurationError: A version is not kept here, or the embedder is another one.
    """
    stretches = versions.history(settings, partition)
    own = Version(policy_digest(configured.policy), configured.scorer.name, embedder.name)
    if all(each.version == own for each in stretches):
        return [configured]  # a scorer that is a plug-in is not kept
    return _rules_of(settings, stretches, embedder, None)


def rules_of_users(settings: Settings, partition: int) -> list[FoldRules]:
    """Likewise of users, spaces and projects, which take no scorer."""
    noted = versions.history(settings, partition, role=USERS.role)
    policies = [(each.first_offset, versions.kept_policy(settings, each.version.policy)) for each in noted]
    return [FoldRules(*each, RuleScorer()) for each in policies] or [FoldRules(0, policy_of(settings), RuleScorer())]


def ruled_sessions(settings: Settings, embedder: Embedder) -> SessionReplay:
    """Sessions by what the histories say, see `rules_of_partition`."""
    own = configured_rules(settings, embedder)
    rules_of = partial(rules_of_partition, settings, embedder=embedder, configured=own)
    return SessionReplay(own.policy, embedder, own.scorer, rules_of)


def ruled_users(settings: Settings) -> UsersReplay:
    """Users, spaces and projects, likewise."""
    return UsersReplay(policy_of(settings), partial(rules_of_users, settings))


def _rules_of(
    settings: Settings, stretches: Sequence[Stretch], embedder: Embedder, scorer: str | None
) -> list[FoldRules]:
    first, *later = [_rules(settings, stretch, embedder, scorer) for stretch in stretches]
    return [first._replace(first_offset=0), *later]


def _rules(settings: Settings, stretch: Stretch, embedder: Embedder, scorer: str | None) -> FoldRules:
    if stretch.version.embedder not in ("", embedder.name):
        raise ConfigurationError(
            f"partition {stretch.partition} was folded with the embedder {stretch.version.embedder}, but "
            f"{embedder.name} is the configured one: set TURNTIDE_VECTORS__EMBEDDER"
        )
    policy = versions.kept_policy(settings, stretch.version.policy)
    if stretch.version.scorer:
        return FoldRules(stretch.first_offset, policy, scorer_named(settings, stretch.version.scorer, embedder))
    if scorer is not None:
        named = settings.model_copy(update={"scorer": settings.scorer.named(scorer)})
        return FoldRules(stretch.first_offset, policy, scorer_of(named, embedder))
    model = policy.escalation.model if policy.escalation.enabled else None
    if model is None:
        raise ConfigurationError(
            f"policy {stretch.version.policy} judges with the source formulas, for any scorer, and the history has no "
            f"scorer from offset {stretch.first_offset} on: choose it with --scorer rules or --scorer FILE"
        )
    # The scorer whose file the policy's model came with.
    return FoldRules(stretch.first_offset, policy, scorer_named(settings, model.name, embedder))


def _agrees(stretches: Sequence[Stretch], changes: Sequence[AlertChanged]) -> bool:
    """Whether the history covers a change, and at each that it covers names the policy that the change names."""
    covered = [change for change in changes if stretches and change.source.offset >= stretches[0].first_offset]
    return bool(covered) and all(
        change.policy_digest
        == next(each for each in reversed(stretches) if each.first_offset <= change.source.offset).version.policy
        for change in covered
    )


def _completed(noted: Sequence[Stretch], changes: Sequence[AlertChanged]) -> list[Stretch]:
    """The history, and before its beginning what the alert says itself."""
    return [*_named_by([each for each in changes if each.source.offset < noted[0].first_offset]), *noted]


def _named_by(changes: Sequence[AlertChanged]) -> list[Stretch]:
    found: list[Stretch] = []
    for change in changes:
        version, source = Version(change.policy_digest, "", ""), change.source
        if not found or found[-1].version != version:
            found.append(Stretch(source.topic, source.partition, source.offset, version))
    return found


def scorer_named(settings: Settings, name: str, embedder: Embedder) -> TurnScorer:
    """The scorer of this name, from the file that is kept of it.

    Raises:
        ConfigurationError: It is not kept here, or another one by its name.
    """
    if name == RuleScorer.name:
        return RuleScorer()
    scorer = kept_scorer(versions.kept_scorer_file(settings, name), f"the kept scorer {name}", embedder)
    if scorer.name != name:
        raise ConfigurationError(
            f"{versions.scorer_path(settings, name)} has other content than its name says: the scorer {scorer.name}. "
            "Restore it from another worker or a backup"
        )
    return scorer
