"""Encryption at rest without a broker: what is sealed of every event, keys, and what is read where they are gone."""

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiokafka.structs import ConsumerRecord
from pydantic import SecretStr

from jobs.operate.doctor.places import check_encryption
from models.entities import TOPIC_OF, carried_by
from models.errors import ConfigurationError, RecoveryFailed
from models.events.topics import DEAD_LETTERS, PROFILES, TURNS, Topic
from models.wire.envelope import tag_of
from streams.archive.rows import Rows
from streams.encryption.keyring import Keyring, Sealer, keyring_of
from streams.encryption.records import HEADER, RecordSealer, opened, record_sealer_of
from streams.encryption.wrapping import wrapper_of
from streams.index.edge import EdgeStore
from streams.index.sealed import sealed_store
from streams.kafka.producer import Record
from streams.ports import Point
from streams.settings import EncryptionSettings, Settings
from streams.state.changelog import keyed, opened_part, sealed_part
from tests.support.command_line import printed, refused, turntide
from tests.support.encrypted import MASTER_KEY, encrypted
from tests.support.lake_records import turn

EXAMPLES = [
    (topic, path)
    for topic in sorted({TURNS, *TOPIC_OF.values()}, key=lambda topic: topic.name)
    for event in carried_by(topic)
    for path in sorted((Path(__file__).parents[2] / "deploy/contracts/examples").glob(f"{tag_of(event)}.v1*.json"))
]
WORD = "ptarmigan"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """With a keyring outside of the data directory."""
    return Settings(data_dir=tmp_path / "data", topic_prefix="t", encryption=encrypted(tmp_path))


def sealing(settings: Settings) -> RecordSealer:
    """What a producer seals with."""
    made = record_sealer_of(settings)
    assert made is not None
    return made


def ring(settings: Settings) -> Keyring:
    """The keyring."""
    made = keyring_of(settings.encryption)
    assert made is not None
    made.refresh()  # it may be of a test before this one, whose folder had the same name
    return made


def read(topic: Topic, record: Record) -> list[ConsumerRecord]:
    """The record as a consumer gives it."""
    key, value = record.key or b"", record.value or b""
    kept = ConsumerRecord(
        topic.full_name("t"), 0, 0, 0, 1, key, value, None, len(key), len(value), tuple(record.headers)
    )
    return opened([kept])


@pytest.mark.parametrize(("topic", "path"), EXAMPLES, ids=lambda each: getattr(each, "stem", ""))
def test_every_event_is_the_same_again(settings: Settings, topic: Topic, path: Path) -> None:
    """Byte for byte, headers too; written again it is sealed to the same bytes, and is still an event of its kind."""
    plain = Record(b"k", msgspec.json.encode(msgspec.json.decode(path.read_bytes())), (("ce_id", b"1"),))
    sealed = sealing(settings).sealed(topic.full_name("t"), plain)
    (again,) = read(topic, sealed)

    assert (again.value, again.headers) == (plain.value, plain.headers)
    assert sealed == sealing(settings).sealed(topic.full_name("t"), plain)


def nested(word: str) -> dict[str, Any]:
    """Parts of a turn that hold words in places of their own."""
    return {"content": f"My {word} sings.", "metadata": {f"of {word}": word, "n": 1}, "its own": [{"word": word}]}


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        (TURNS, {"session_id": "s", "app_id": "shop", **nested(WORD)}),
        (PROFILES, {"type": "profile_updated", "app_id": "shop", "repeated_topics": {WORD: 3}}),
        (
            DEAD_LETTERS,
            {"type": "dead_letter", "value": b64encode(f'{{"app_id": "shop", "x": "{WORD}"}}'.encode()).decode()},
        ),
    ],
    ids=["turn", "profile", "dead letter"],
)
def test_no_word_is_left_and_erasing_the_apps_key_takes_the_record(
    settings: Settings, topic: Topic, said: dict[str, Any]
) -> None:
    """In names of mappings, in a producer's own fields and in bytes of refused records; ids and figures stay."""
    plain = Record(b"k", msgspec.json.encode(said))
    sealed = sealing(settings).sealed(topic.full_name("t"), plain)
    kept = sealed.value or b""
    before = [each.value for each in read(topic, sealed)]
    erased = ring(settings).erase("shop")

    assert WORD.encode() not in kept
    assert all(WORD.encode() not in b64decode(each) for each in kept.split(b'"') if each.startswith(b"c2Vh"))
    assert {name: value for name, value in msgspec.json.decode(kept).items() if name in ("session_id", "app_id")} == {
        name: value for name, value in said.items() if name in ("session_id", "app_id")
    }
    assert (before, read(topic, sealed)) == ([plain.value], [])
    assert [key.app_id for key in erased] == ["shop"]


def test_text_that_looks_sealed_is_text(settings: Settings) -> None:
    """Whoever types a sealed text, or names a session by one, has it back; no key is asked for it, nor a day read."""
    sealer, topic = sealing(settings), TURNS.full_name("t")
    other = sealer.sealed(topic, Record(b"k", msgspec.json.encode({"session_id": "s", "content": WORD})))
    token = msgspec.json.decode(other.value or b"")["content"]
    typed = Record(b"k", msgspec.json.encode({"session_id": token, "app_id": "shop", "content": token}))
    (again,) = read(TURNS, sealer.sealed(topic, typed))

    assert [each.value for each in read(TURNS, typed)] == [typed.value]
    assert msgspec.json.decode(again.value)["content"] == token
    assert Rows(events=[turn(0, content="sealed:1.A-2024-B")]).days_told() == [None]


def test_parts_of_state_open_under_their_name_alone(settings: Settings) -> None:
    """Each under its app's key; a part moved to another name is refused, one whose key was erased is gone."""
    sealer = sealing(settings).sealer
    parts = keyed(
        {"user:shop/anna": {"head": WORD.encode()}, "user:bank/anna": {"head": WORD.encode()}, "": {"c": b""}}
    )
    sealed = {key: sealed_part(sealer, key, value or b"") for key, value in parts.items()}
    shop, bank, own = sealed

    assert {key: opened_part(key, value) for key, value in sealed.items()} == parts
    assert len(set(sealed.values())) == 3
    assert not any(WORD.encode() in value for value in sealed.values())
    with pytest.raises(RecoveryFailed):
        opened_part(shop, sealed[bank])
    ring(settings).erase("shop")
    assert [opened_part(key, sealed[key]) for key in (shop, bank, own)] == [None, WORD.encode(), b""]


def test_keys_are_rotated_rewrapped_and_erased(settings: Settings, tmp_path: Path) -> None:
    """Old keys still open; a writer goes over to new ones when it says so, and is told of erased ones."""
    held = ring(settings)
    writer = Sealer(held, ("shop",))
    first = writer.key("shop")
    held.rotate("shop")
    assert (writer.key("shop"), writer.key("bank")) == (first, None)
    assert writer.refresh() is False
    second = writer.key("shop")
    assert first is not None
    assert second is not None
    assert held.key(first.id) is not None
    assert first.id != second.id

    renewed = settings.encryption.model_copy(
        update={
            "master_key": SecretStr(b64encode(bytes(32)).decode()),
            "previous_master_key": settings.encryption.master_key,
        }
    )
    Keyring(tmp_path / "keys.json", wrapper_of(renewed)).rewrap()
    alone = Keyring(tmp_path / "keys.json", wrapper_of(renewed.model_copy(update={"previous_master_key": None})))
    assert alone.key(second.id) is not None
    with pytest.raises(ConfigurationError, match="rewrap"):
        Keyring(tmp_path / "keys.json", wrapper_of(settings.encryption))

    wrapped = [key.wrapped.encode() for key in alone.keys if key.app_id == "shop"]
    alone.erase("shop")
    assert writer.refresh() is True
    assert not any(each in (tmp_path / "keys.json").read_bytes() for each in wrapped)
    third = writer.key("shop")
    assert third is not None
    assert third.id not in {first.id, second.id}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"keyring": Path("/nowhere/keys.json")}, "keys init"),
        ({"master_key": None}, "encryption.master_key"),
        ({"master_key": SecretStr("short")}, "32 bytes"),
        ({"vault_url": "http://127.0.0.1:1"}, "vault_token"),
    ],
)
def test_a_role_does_not_start_without_its_keys(settings: Settings, change: dict[str, Any], match: str) -> None:
    """Whoever would write or read is told what to do; nothing is written in plain text instead."""
    wrong = EncryptionSettings.model_validate({**dict(settings.encryption), "keyring": "/other/keys.json", **change})

    with pytest.raises(ConfigurationError, match=match):
        record_sealer_of(settings.model_copy(update={"encryption": wrong}))


def test_an_operator_makes_lists_and_erases_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By commands, which show no key; a second `init`, and an app without a key, are refused."""
    monkeypatch.setenv("TURNTIDE_ENCRYPTION__KEYRING", str(tmp_path / "ring" / "keys.json"))
    monkeypatch.setenv("TURNTIDE_ENCRYPTION__MASTER_KEY", MASTER_KEY)
    made = turntide("ops", "keys", "init")
    turntide("ops", "keys", "rotate", "--app", "shop")
    listed = printed("ops", "keys", "list")
    gone = printed("ops", "keys", "erase", "--app", "shop", "--yes")

    assert made.exit_code == 0
    assert "exists already" in refused("ops", "keys", "init")
    assert "no key" in refused("ops", "keys", "erase", "--app", "shop", "--yes")
    assert [row["app"] for row in listed] == ["(no app)", "shop"]
    assert [(row["app"], row["key"]) for row in gone] == [("shop", listed[1]["key"])]
    assert set(listed[0]) == {"app", "key", "made_at", "erased_at"}


def test_a_key_that_is_missing_stops_the_reader_until_it_is_said_to_be_lost(settings: Settings) -> None:
    """The message has the key's id; once it is said to be lost, what it sealed is passed."""
    foreign = Record(b"k", b"{}", ((HEADER, bytes.fromhex("ab" * 8)),))
    held = ring(settings)

    with pytest.raises(ConfigurationError, match="ab" * 8):
        read(TURNS, foreign)
    held.erase("", lost="ab" * 8)
    assert read(TURNS, foreign) == []


@pytest.mark.parametrize("said", ["turntide", "ab", "", "own"], ids=["no digits", "too short", "nothing", "held"])
def test_only_a_key_that_is_missing_is_lost(settings: Settings, tmp_path: Path, said: str) -> None:
    """A slip, or the key of what belongs to no app, must not make the keyring one that no role can read."""
    held = ring(settings)
    before = (tmp_path / "keys.json").read_bytes()

    with pytest.raises(ConfigurationError, match=r"not the id of a key|is not lost"):
        held.erase("", lost=held.keys[0].id if said == "own" else said or " ")
    assert (tmp_path / "keys.json").read_bytes() == before


async def test_a_store_that_is_only_read_lets_go_of_an_erased_key(settings: Settings, tmp_path: Path) -> None:
    """Though nobody writes by it, and another process erased the key."""
    store = sealed_store(EdgeStore(tmp_path / "vectors", embedder="matter"), sealing(settings).sealer)
    point = Point("s_1", np.ones(2, dtype=np.float32), {"app_id": "shop", "content": WORD, "turn": 1})
    await store.upsert("turns", [point])
    before = await store.latest("turns", where={}, by="turn", limit=1)
    Keyring(tmp_path / "keys.json", wrapper_of(settings.encryption)).erase("shop")
    after = await store.latest("turns", where={}, by="turn", limit=1)
    await store.close()

    assert (before, after) == ([point.payload], [])


def test_doctor_warns_of_a_keyring_that_is_backed_up_with_the_data(settings: Settings, tmp_path: Path) -> None:
    """A backup with its keys cannot be made unreadable."""
    beside = check_encryption(settings)
    within = check_encryption(settings.model_copy(update={"data_dir": tmp_path}))

    assert [each.status.value for each in (beside, within)] == ["ok", "warn"]
