"""An alert is made again from its log and the rules of its time, and what is not the same is told."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from jobs.replay.alert import ArchiveSource, Recorded, TopicSource, compare, differing, replay_alert
from jobs.replay.command import folding
from models.errors import ConfigurationError
from models.events import Turn
from models.wire.codec import encode
from streams.archive.catalog import paths_of, reading
from streams.archive.erasing import erase
from streams.archive.writer import LakeWriter
from streams.settings import Settings
from streams.state import policy_versions as versions
from streams.state.policy_versions import Version
from tests.support.alert_log import (
    LEARNT,
    LOG,
    POLICY,
    TOPIC,
    MemorySource,
    again,
    alerts_of,
    archive,
    consumed,
    escalating,
    kept,
)
from tests.support.command_line import refused, turntide
from tests.support.lake_records import NOW, PREFIX
from tests.support.subjects import of_session


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Own data directory, and a policy that is kept there."""
    return kept(tmp_path, monkeypatch)


def test_an_alert_is_made_again_bit_for_bit(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised, become critical, risen by a step, and resolved; nothing is folded beyond its last change."""
    alerts = alerts_of(LOG, (0, POLICY))
    found = again(monkeypatch, settings, alerts)

    assert ["raised", "worsened", "worsened", "resolved"] == [change.recorded for change in found.changes]
    assert all(change.equal and change.replayed == change.recorded for change in found.changes)
    assert (True, "alert", alerts[-1].source.offset + 1) == (found.equal, found.rules, found.records)


def test_a_judgement_is_made_again_bit_for_bit(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its contributions, from the topic's bytes and from the archive's columns, by the weights of its time."""
    digest = versions.keep(settings, LEARNT, None, "rules")
    versions.note(settings, {0: 0}, Version(digest, "rules", "none"))
    alerts = alerts_of(LOG, (0, LEARNT))
    archive(settings, escalating(), alerts)
    found = again(monkeypatch, settings, alerts)
    archived = asyncio.run(replay_alert(settings, alerts[0].alert_id, archive=True, bar=folding))

    assert alerts[0].escalation is not None
    assert "model-1" == alerts[0].escalation.model
    assert {"level", "upstream"} == {each.signal for each in alerts[0].escalation.contributions}
    assert (True, True, [digest]) == (found.equal, archived.equal, found.policies)


def test_what_is_not_the_same_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field, a change that the fold does not make, and one that was never emitted."""
    raised, *worsened, resolved = alerts_of(LOG, (0, POLICY))
    other = replace(resolved, id="never-made")
    found = again(monkeypatch, settings, [replace(raised, score=0.5, notifications=9), resolved, other])

    assert not found.equal
    assert [
        ("raised", "raised", ["score", "notifications"]),
        *[(None, "worsened", []) for _ in worsened],
        ("resolved", "resolved", []),
        ("resolved", None, []),
    ] == [(change.recorded, change.replayed, change.differs) for change in found.changes]
    assert worsened[0].source.offset == found.changes[1].offset
    assert [False, *[False for _ in worsened], True, False] == [change.equal for change in found.changes]


def test_another_policy_tells_what_would_have_been(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A later alert by higher thresholds, none by ones that nothing reaches."""
    alerts = alerts_of(LOG, (0, POLICY))
    later, never = tmp_path / "later.toml", tmp_path / "never.json"
    later.write_text('version = "later"\n[alerts]\nmin_scored_turns = 5\n')
    never.write_text('{"version": "never", "alerts": {"min_scored_turns": 99, "single_turn_risk": 1.0}}')
    delayed = again(monkeypatch, settings, alerts, policy_file=later)
    none = again(monkeypatch, settings, alerts, policy_file=never)

    assert (False, "file") == (delayed.equal, delayed.rules)
    assert ("raised", None) == (delayed.changes[0].recorded, delayed.changes[0].replayed)
    assert "raised" in [change.replayed for change in delayed.changes[1:]]
    assert {None} == {change.replayed for change in none.changes}


def test_only_changes_of_the_alert_are_compared(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is alerted twice: each alert has its own changes."""
    first = escalating()
    second = [replace(event, turn=event.turn + 20) if isinstance(event, Turn) else event for event in escalating()]
    log = consumed([*first, *second])
    alerts = alerts_of(log, (0, POLICY))
    ids = list(dict.fromkeys(alert.alert_id for alert in alerts))
    monkeypatch.setattr("jobs.replay.alert.TopicSource", lambda _: MemorySource(log, alerts))
    found = [asyncio.run(replay_alert(settings, alert_id, scorer="rules", bar=folding)) for alert_id in ids]

    assert [True, True] == [each.equal for each in found]
    assert len(alerts) == sum(len(each.changes) for each in found)


def test_of_a_change_emitted_twice_the_last_counts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash the role folded a batch again: the state went on from that."""
    raised, *others = alerts_of(LOG, (0, POLICY))
    lost = replace(raised, score=0.0)

    assert again(monkeypatch, settings, [lost, raised, *others]).equal
    assert not again(monkeypatch, settings, [raised, lost, *others]).equal


def test_the_same_fields_in_other_bytes_are_not_equal() -> None:
    """Bit for bit means the record; of a judgement a field is named, not the whole."""
    (alert, *_) = alerts_of(LOG, (0, LEARNT))
    assert alert.escalation is not None
    (row,) = compare([Recorded(alert, encode(alert).replace(b'":', b'": ', 1))], [alert])
    other = replace(alert, escalation=replace(alert.escalation, threshold=0.9))

    assert (False, ["encoding"]) == (row.equal, row.differs)
    assert (["encoding"], ["escalation.threshold"]) == (differing(alert, alert), differing(alert, other))


def test_a_log_that_is_not_whole_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention removed its beginning, or it is another topic: what came of it cannot be told."""
    extent = {0: (3, 30)}

    async def log_extent(*_: object) -> dict[int, tuple[int, int]]:
        return extent

    monkeypatch.setattr("jobs.replay.alert.log_extent", log_extent)
    source = TopicSource(settings)

    with pytest.raises(ConfigurationError, match="below offset 3: use --archive"):
        asyncio.run(source.count(0, 20))
    with pytest.raises(ConfigurationError, match="ends at offset 30"):
        asyncio.run(source.count(0, 31))
    extent[0] = (0, 30)
    assert 30 == asyncio.run(source.count(0, 30))
    archive(settings, escalating(), alerts_of(LOG, (0, POLICY)))
    with reading(paths_of(settings)) as lake, pytest.raises(ConfigurationError, match="let `turntide worker archive`"):
        asyncio.run(ArchiveSource(settings, lake).count(0, 999))


def test_an_alert_of_another_topic_or_none_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are made of the topic's name."""
    alerts = alerts_of(LOG, (0, POLICY))
    monkeypatch.setattr("jobs.replay.alert.TopicSource", lambda _: MemorySource(LOG, alerts))
    elsewhere = settings.model_copy(update={"topic_prefix": "elsewhere"})

    with pytest.raises(ConfigurationError, match=f"is from {TOPIC}, not elsewhere"):
        asyncio.run(replay_alert(elsewhere, alerts[0].alert_id, bar=folding))
    with pytest.raises(ConfigurationError, match="no alert has the id nothing"):
        asyncio.run(replay_alert(settings, "nothing", bar=folding))


def test_erasures_beside_the_alert_are_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fold lacks other sessions' turns: a difference may be that alone. Records after the alert do not count."""
    (raised, *_) = alerts_of(LOG, (0, POLICY))
    archive(settings, escalating(), [replace(raised, reason="other")])
    calm = frozenset({"calm-1", "calm-2"})
    writer = LakeWriter(paths_of(settings))
    erase(writer, of_session(*calm), now=NOW)
    writer.close()
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", PREFIX)
    run = turntide("replay", "--alert", raised.alert_id, "--archive", "--scorer", "rules")
    found = asyncio.run(replay_alert(settings, raised.alert_id, archive=True, scorer="rules", bar=folding))
    gone = [sum(event.session_id in calm for event in escalating()[:before]) for before in range(len(LOG) + 1)]
    here = gone[raised.source.offset + 1]
    with reading(paths_of(settings)) as lake:
        source = ArchiveSource(settings, lake)
        counted = [asyncio.run(source.erased(0, before)) for before in range(len(LOG) + 1)]

    assert gone == counted
    assert (False, here) == (found.equal, found.erased)
    assert f"{here} records below the alert's last offset were erased since" in " ".join(run.output.split())
    assert run.exit_code == 1


def test_the_command_prints_and_exits_by_what_it_found(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 the same, 1 not, and no text of a turn or alert in what it prints."""
    alerts = alerts_of(LOG, (0, POLICY))
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", PREFIX)
    runs = []
    for recorded in (alerts, [replace(alerts[0], reason="other"), *alerts[1:]]):
        source = MemorySource(LOG, recorded)
        monkeypatch.setattr("jobs.replay.alert.TopicSource", lambda _, source=source: source)
        arguments = ["replay", "--alert", alerts[0].alert_id, "--scorer", "rules", "--output", "json"]
        runs.append(turntide(*arguments))
    same, other = (json.loads(run.stdout) for run in runs)

    assert [0, 1] == [run.exit_code for run in runs]
    assert [True, False] == [same["equal"], other["equal"]]
    assert ["reason"] == other["changes"][0]["differs"]
    assert alerts[0].reason not in runs[1].stdout


def test_options_that_do_not_go_together_are_refused() -> None:
    """A policy without an alert would be passed over in silence."""
    for arguments in (["--policy", "p.toml"], ["--alert", "a", "--session", "s"], ["--alert", "a", "--compare"]):
        assert refused("replay", *arguments)
