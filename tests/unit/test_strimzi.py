"""Topics: what Strimzi is told is what the table says, nobody lacks a right or has one more; differences are seen."""

import re
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from jobs.operate.strimzi import ACCESS
from jobs.operate.topics import app
from jobs.shared.topic_drift import DriftKind, compare, refused, wanted_topics
from models.entities import REGISTRY
from models.events import topics
from models.events.topics import JUDGEMENTS, TURNS, Topic
from streams.api.live import feed
from streams.erase.purge import _loosened, _tight
from streams.kafka.topics import BrokerTopic
from streams.oracle.replay import FOLDED
from streams.roles.enrich import EnrichRole
from streams.roles.index import IndexRole
from streams.roles.judge import JudgeRole
from streams.roles.memory import MemoryRole
from streams.roles.sessions import SessionsRole
from streams.settings import load_settings
from streams.wiring import ROLES
from tests.support.manifests import KUBERNETES, documents

STREAMS = Path(__file__).parents[2] / "streams"
NAMED = re.compile(r"\b([A-Z_]{4,})\.full_name\(")


def test_files_are_what_the_table_says(tmp_path: Path) -> None:
    """A topic that is added or changed must be applied to clusters too: `turntide topics strimzi` says how."""
    result = CliRunner().invoke(app, ["strimzi", "--folder", str(tmp_path)])

    assert result.exit_code == 0, result.output
    for name in ("topics.yaml", "users.yaml"):
        assert (KUBERNETES / "topics" / name).read_text() == (tmp_path / name).read_text(), (
            "run `turntide topics strimzi --folder deploy/kubernetes/topics`"
        )


def test_prefix_and_partitions_are_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several installations share a cluster; resource names take no capitals and underscores."""
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", "Team_A")
    monkeypatch.setenv("TURNTIDE_KAFKA__PARTITIONS", "48")
    result = CliRunner().invoke(app, ["strimzi", "--cluster", "main"])
    first = documents(result.stdout)[0]

    assert first["metadata"]["name"] == "team-a.turns.v1"
    assert first["metadata"]["labels"]["strimzi.io/cluster"] == "main"
    assert (first["spec"]["topicName"], first["spec"]["partitions"]) == ("Team_A.turns.v1", 48)


def test_each_role_may_read_and_write_what_its_code_names() -> None:
    """Sources, outputs and changelogs by the tables of the code, and each topic that a role's module names."""
    roles = (SessionsRole, MemoryRole, EnrichRole, JudgeRole, IndexRole)
    owners = {role for topic in REGISTRY.topics for role in re.split(r", | and ", topic.owner)} - {"producers"}

    assert set(ROLES) <= set(ACCESS)
    for role in roles:
        assert set(role.sources) <= set(ACCESS[role.name].reads), role.name
    for folded in FOLDED:
        access = ACCESS[folded.role]
        assert {*folded.outputs, folded.changelog} <= set(access.writes)
        assert folded.changelog in access.reads
    for owner in owners:
        owned = {topic for topic in REGISTRY.topics if owner in re.split(r", | and ", topic.owner)}
        assert owned <= set(ACCESS[owner].writes), owner
    for role_name in ("index", "api"):
        assert set(feed.TOPICS) <= set(ACCESS[role_name].reads)
    for role in roles:
        module = STREAMS / "roles" / f"{role.name}.py"
        named = {getattr(topics, name) for name in NAMED.findall(module.read_text())}
        assert named <= {*ACCESS[role.name].reads, *ACCESS[role.name].writes}, role.name


def test_no_user_may_do_more_than_it_needs() -> None:
    """Words of turns reach only who folds, shows, keeps or judges them; only erasures cut logs off."""
    may_read = {name for name, access in ACCESS.items() if topics.TURNS in access.reads}
    changelogs = {topic for topic in REGISTRY.topics if not topic.public}

    assert may_read == {"sessions", "index", "api", "archive", "operator"}
    assert {name for name, access in ACCESS.items() if access.resets} == {"operator"}
    assert {name for name, access in ACCESS.items() if access.purges} == {"archive"}
    assert {name for name, access in ACCESS.items() if changelogs & set(access.writes)} == {
        "sessions",
        "memory",
        "archive",
    }
    users = {each["metadata"]["name"]: each for each in documents((KUBERNETES / "topics" / "users.yaml").read_text())}
    rules = users["turntide-producer"]["spec"]["authorization"]["acls"]
    assert rules == [
        {
            "resource": {"type": "topic", "name": "turntide.turns.v1", "patternType": "literal"},
            "operations": ["Write", "Describe"],
            "host": "*",
        }
    ]
    assert _topics_named(users) <= {topic.full_name("turntide") for topic in REGISTRY.topics} | {"turntide."}


def _topics_named(users: dict[str, dict[str, object]]) -> set[str]:
    return {
        rule["resource"]["name"]
        for user in users.values()
        for rule in user["spec"]["authorization"]["acls"]  # type: ignore[index]
        if rule["resource"]["type"] == "topic"
    }


def test_every_topic_is_written_and_read_by_somebody() -> None:
    """A topic that nobody may read or write is one that was forgotten here."""

    def by(direction: str) -> set[Topic]:
        return {topic for access in ACCESS.values() for topic in getattr(access, direction)}

    assert by("reads") == by("writes") == set(REGISTRY.topics)


SETTINGS = load_settings(topic_prefix="p")
WANTED = wanted_topics(SETTINGS)


def standing(**changes: object) -> dict[str, BrokerTopic]:
    """The broker's topics, all as wanted but for changes to the turns."""
    topics = {topic.name: topic for topic in WANTED}
    topics["p.turns.v1"] = msgspec.structs.replace(topics["p.turns.v1"], **changes)
    return topics


def test_an_erasure_leaves_the_tables_file_length_behind() -> None:
    """What it set itself goes, the table's own entry comes back."""
    assert {"segment.ms": "3600000"} == _loosened(JUDGEMENTS, dict(_tight(JUDGEMENTS)))
    assert {"retention.ms": "7"} == _loosened(TURNS, {**_tight(TURNS), "retention.ms": "7"})


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"config": {**WANTED[0].config, "segment.ms": "1000"}}, set()),  # somebody's own entry
        ({"replication": 5}, set()),  # nobody should be told to give up copies
        ({"config": {**WANTED[0].config, "retention.ms": "1"}}, {DriftKind.CONFIG}),
        ({"config": {**WANTED[0].config, "message.timestamp.type": "CreateTime"}}, {DriftKind.CONFIG}),
        ({"partitions": 6}, {DriftKind.TOO_FEW_PARTITIONS, DriftKind.CO_PARTITIONING}),
        ({"partitions": 24}, {DriftKind.TOO_MANY_PARTITIONS, DriftKind.CO_PARTITIONING}),
        ({"replication": 0}, {DriftKind.REPLICATION}),
    ],
)
def test_each_kind_of_difference(changes: dict[str, object], kinds: set[DriftKind]) -> None:
    """A changed topic is seen, and a changed count also puts turns and outputs apart."""
    assert kinds == {difference.kind for difference in compare(WANTED, standing(**changes))}


@pytest.mark.parametrize(
    ("partitions", "allow", "reasons"), [(6, False, 1), (6, True, 0), (24, False, 1), (24, True, 1)]
)
def test_refusals(partitions: int, allow: bool, reasons: int) -> None:
    """Moving keys needs a flag; removing partitions cannot be had at all."""
    found = compare(WANTED, standing(partitions=partitions))

    assert reasons == len(refused(found, allow_repartition=allow))
