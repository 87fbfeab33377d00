"""Which rules an alert is made again by: what the history says, what the alert says, and what must be named."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from jobs.replay.alert_rules import rules_of, scorer_named
from models.errors import ConfigurationError
from models.policy import Policy
from models.policy.digest import policy_digest
from models.wire.codec import encode
from streams.inference.trained_scorer import SHIPPED, combined, model_at, shipped_reader
from streams.settings import Settings
from streams.state import policy_versions as versions
from streams.state.policy_versions import Version
from tests.support.alert_log import EARLIER, LEARNT, LOG, POLICY, again, alerts_of, kept
from tests.support.zero_embedder import NoEmbedder


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Own data directory, and a policy that is kept there."""
    return kept(tmp_path, monkeypatch)


def test_a_policy_that_changed_on_the_way_is_followed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The role was started anew with another policy before the alert: its history tells from where on."""
    versions.keep(settings, EARLIER, None, "rules")
    alerts = alerts_of(LOG, (0, EARLIER), (12, POLICY))
    unaware = again(monkeypatch, settings, alerts)
    for first, policy in ((0, EARLIER), (12, POLICY)):
        versions.note(settings, {0: first}, Version(policy_digest(policy), "rules", "none"))
    found = again(monkeypatch, settings, alerts)

    assert (False, "alert") == (unaware.equal, unaware.rules)
    assert (True, "history") == (found.equal, found.rules)
    assert [policy_digest(EARLIER), policy_digest(POLICY)] == found.policies


def test_a_history_that_contradicts_the_alert_is_not_followed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker folded the partition meanwhile: the alert's own word counts."""
    versions.note(settings, {0: 0}, Version("abcdefabcdef", "rules", "none"))
    found = again(monkeypatch, settings, alerts_of(LOG, (0, POLICY)))

    assert (True, "alert") == (found.equal, found.rules)


def test_a_history_counts_from_where_it_begins(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older release noted none: of what was folded before, the earliest known rules stand, and it is told."""
    versions.keep(settings, EARLIER, None, "rules")
    alerts = alerts_of(LOG, (0, EARLIER), (12, POLICY))
    assert alerts[0].source.offset > 12
    versions.note(settings, {0: 3}, Version(policy_digest(EARLIER), "rules", "none"))
    versions.note(settings, {0: 12}, Version(policy_digest(POLICY), "rules", "none"))
    found = again(monkeypatch, settings, alerts, scorer=None)

    assert (True, "history", 3) == (found.equal, found.rules, found.assumed_below)
    assert [policy_digest(EARLIER), policy_digest(POLICY)] == found.policies


@pytest.mark.parametrize("policy", [POLICY, replace(LEARNT, escalation=replace(LEARNT.escalation, enabled=False))])
def test_a_scorer_that_nothing_names_is_not_guessed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    """The source formulas take any scorer's risks: it must be named. A history that names it needs no word."""
    digest = versions.keep(settings, policy, None, "rules")
    alerts = alerts_of(LOG, (0, policy))

    with pytest.raises(ConfigurationError, match="choose it with --scorer rules or --scorer FILE"):
        again(monkeypatch, settings, alerts, scorer=None)
    assert again(monkeypatch, settings, alerts, scorer="rules").equal
    versions.note(settings, {0: 0}, Version(digest, "rules", "none"))
    assert again(monkeypatch, settings, alerts, scorer=None).equal


def test_a_scorer_is_named_by_its_file_too(settings: Settings, tmp_path: Path) -> None:
    """Beside what stands in the history, and with another policy, whose model it then brings."""
    alerts = alerts_of(LOG, (0, POLICY))
    (file := tmp_path / "p.toml").write_text('version = "p"\n')
    model = combined(model_at(None), shipped_reader("distilled"))
    rules = [
        rules_of(settings, alerts, NoEmbedder(), policy_file, scorer).rules[0]
        for policy_file, scorer in ((None, str(SHIPPED)), (file, str(SHIPPED)), (file, "rules"))
    ]

    assert [0, 0, 0] == [each.first_offset for each in rules]
    assert [model.name, model.name, "rules"] == [each.scorer.name for each in rules]
    assert [None, model, None] == [each.policy.escalation.model for each in rules]


def test_a_named_scorer_has_the_configured_second_reader(settings: Settings, tmp_path: Path) -> None:
    """A policy with that scorer brings its weight too."""
    (file := tmp_path / "p.toml").write_text('version = "p"\n')
    alone, beside = (
        rules_of(settings, alerts_of(LOG, (0, POLICY)), NoEmbedder(), policy_file, str(SHIPPED)).rules[0]
        for policy_file in (None, file)
    )

    readers = [each.scorer.reader for each in (alone, beside)]

    assert [each and each.data for each in readers] == [shipped_reader("distilled")] * 2
    assert beside.policy.judging_model is not None
    assert beside.policy.judging_model.name == beside.scorer.name != model_at(None).name


def test_a_kept_scorer_of_another_name_is_refused(settings: Settings) -> None:
    """Its file was replaced: alerts would be made again by another one, and nobody would know why."""
    model = model_at(None)
    versions.keep(settings, POLICY, model.data, "0@abcdefabcdef")

    with pytest.raises(ConfigurationError, match=f"other content than its name says: the scorer {model.name}"):
        scorer_named(settings, "0@abcdefabcdef", NoEmbedder())


def test_an_unknown_version_says_which_file_is_wanted(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what to do; so does one that was damaged, an alert of a release that named none, and another embedder."""
    alerts = alerts_of(LOG, (0, EARLIER))
    path = versions.policy_path(settings, alerts[0].policy_digest)

    with pytest.raises(ConfigurationError, match=rf"{path.name} is missing.*copy the file"):
        again(monkeypatch, settings, alerts)
    path.write_bytes(encode(POLICY) + b" ")
    with pytest.raises(ConfigurationError, match=rf"{path.name} is damaged"):
        again(monkeypatch, settings, alerts)
    with pytest.raises(ConfigurationError, match="--policy FILE"):
        again(monkeypatch, settings, [replace(alert, policy_digest="") for alert in alerts])
    # Its vectors would give another alert, and nobody would know why.
    versions.note(settings, {0: 0}, Version(policy_digest(POLICY), "rules", "elsewhere"))
    with pytest.raises(ConfigurationError, match="elsewhere, but none is the configured one"):
        again(monkeypatch, settings, alerts_of(LOG, (0, POLICY)))
