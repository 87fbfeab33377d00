"""Personal data goes from words, everything else stays; and it comes back neither in the archive nor in the index."""

import asyncio
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import msgspec
import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from models.errors import InvalidRecord
from models.events import FactChanged, SegmentCompacted, Turn, VectorsErasureDue
from models.events.topics import COMPACTIONS, ERASURES, FACTS, PROFILES, TURNS, Topic
from models.policy import IntakePolicy, Policy
from models.policy.archive import MaskingPolicy
from models.policy.digest import policy_digest
from models.wire.codec import decode_input, encode
from streams.archive.buffer import Move
from streams.masking.found import Masker
from streams.masking.records import RecordMasker
from streams.roles import archive
from streams.roles.archive import Archivist
from streams.settings import load_settings
from tests.support.api_doubles import AT, said
from tests.support.lake_records import example

SECRETS = ("ann@example.org", "+41 44 668 18 00", "4111 1111 1111 1111", "GB82 WEST 1234 5698 7654 32")
PII = f"write {SECRETS[0]}, call {SECRETS[1]}, pay {SECRETS[2]} or {SECRETS[3]} today"
MASKED = "write [email], call [phone], pay [card] or [iban] today"
TEXTS: dict[str, list[Any]] = tomllib.loads((Path(__file__).parent / "data" / "masked_texts.toml").read_text())
EVERYWHERE = MaskingPolicy(at_archive=True, at_index=True)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (PII, MASKED),
        ("12 34567" * 9_000, "[phone]"),
        ("GB82WEST12345698765432 " + "7a" * 10_001, "[iban] " + "7a" * 10_001),
        *TEXTS["masked"],
        *((kept, kept) for kept in TEXTS["kept"]),
    ],
)
def test_what_is_masked(text: str, masked: str) -> None:
    """Only what the libraries hold for one; once masked it stays as it is."""
    mask = Masker(MaskingPolicy()).mask

    assert (mask(text), mask(masked)) == (masked, masked)


def test_kinds_and_regions_are_the_policys() -> None:
    """A number without its country is one where the country is known; alerts are made again by any masking."""
    here = Masker(MaskingPolicy(kinds=("phone",), phone_regions=("GB", "CH")))

    assert here.mask("020 7946 0018, 044 668 18 00, ann@example.org") == "[phone], [phone], ann@example.org"
    assert policy_digest(Policy()) == policy_digest(Policy(masking=EVERYWHERE))


def record(topic: Topic, value: bytes, key: bytes = b"s") -> ConsumerRecord:
    """As a consumer gives it."""
    at = int(AT.timestamp() * 1000)
    return ConsumerRecord(topic.name, 0, 7, at, 1, key, value, None, len(key), len(value), ())


def test_records_keep_ids_codes_and_figures() -> None:
    """Words, and what is in no class, are masked: metadata, fields that a producer added, escaped or not."""
    turn = msgspec.structs.replace(said(1, PII, app="a", user=SECRETS[0], session=SECRETS[1]), metadata={"id": PII})
    value = encode(turn)
    value = value[:-1] + rb',"added":{"key":["ann\u0040example.org",5]},"source":"ann@example.org"}'
    masked = msgspec.json.decode(RecordMasker(EVERYWHERE, personal=True).value(TURNS, value))

    assert (masked["content"], masked["metadata"]["id"]) == (MASKED, MASKED)
    assert (masked["added"], masked["source"]) == ({"key": ["[email]", 5]}, "[email]")
    assert (masked["user_id"], masked["session_id"], masked["turn"]) == (SECRETS[0], SECRETS[1], 1)


def test_words_in_lists_are_masked_and_names_of_facts_are_not() -> None:
    """Whatever is in no class is words; facts whose names became one by masking would overwrite each other."""
    masker = RecordMasker(EVERYWHERE, personal=True)
    segment = msgspec.structs.replace(example(SegmentCompacted), summary=PII, key_topics=[PII, "parcels"])
    fact = msgspec.structs.replace(example(FactChanged), key=SECRETS[0], value=PII)
    told = msgspec.json.decode(masker.value(COMPACTIONS, encode(segment)[:-1] + b',"of_no_class":"ann@example.org"}'))
    known = msgspec.json.decode(masker.value(FACTS, encode(fact)))

    assert (told["summary"], told["key_topics"], told["of_no_class"]) == (MASKED, [MASKED, "parcels"], "[email]")
    assert (known["key"], known["value"]) == (SECRETS[0], MASKED)


@pytest.mark.parametrize("at_archive", [True, False])
async def test_the_archive_is_masked_where_the_policy_asks_for_it(
    at_archive: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it asks for of the index."""
    policy = Policy(masking=MaskingPolicy(at_archive=at_archive, at_index=not at_archive))
    made = MagicMock(side_effect=RuntimeError("made"))
    monkeypatch.setattr(archive, "require_topic", AsyncMock())
    monkeypatch.setattr(archive, "LakeWriter", MagicMock())
    monkeypatch.setattr(archive, "Archivist", made)
    with pytest.raises(RuntimeError, match="made"):
        await archive.run(load_settings(data_dir=tmp_path), policy, stop=asyncio.Event())

    assert made.call_args.kwargs["mask"].personal is at_archive


async def test_the_archive_role_masks_what_it_takes(tmp_path: Path) -> None:
    """Before anything is made of a record; of one that is no event, whose ids may be anything, no bytes are kept."""
    settings = load_settings(data_dir=tmp_path)
    topics = {topic.full_name(settings.topic_prefix): topic for topic in (TURNS, PROFILES)}
    archivist = Archivist(settings, topics, IntakePolicy(), MagicMock(), mask=RecordMasker(EVERYWHERE, personal=True))
    turn = encode(said(1, PII, app="a", user="u", session="s"))
    for (name, topic), value in zip(topics.items(), (turn, b'{"user_id":"ann@example.org"}'), strict=True):
        archivist._taken.know(TopicPartition(name, 0), 7)
        archivist._landed[TopicPartition(name, 0)] = Move(7, 7, 7)
        await archivist._take(TopicPartition(name, 0), [record(topic, value)])
    await archivist._consumer.stop()
    buffer = archivist._buffer
    held = repr([buffer.rows, buffer.skipped])

    assert (len(buffer.rows), len(buffer.skipped)) == (1, 1)
    assert MASKED in held
    assert [] == [secret for secret in SECRETS if secret in held]


@pytest.mark.parametrize("value", [b"{", b"\xff@", b'"ann@example.org', b"[" * 5_000])
def test_what_is_no_json_is_nobodys_event(value: bytes) -> None:
    """Nothing of it goes on, and it is refused as it always was."""
    masked = RecordMasker(EVERYWHERE, personal=True).value(TURNS, value)

    assert masked == b""
    for each in (value, masked):
        with pytest.raises(InvalidRecord):
            decode_input(each, b"s", AT, IntakePolicy())


@pytest.mark.parametrize(
    "added",
    [b"1e999", b'"\xff"', b"[" * 900 + b"]" * 900, b'["ann@example.org",1e999]'],
    ids=["number", "text", "depth", "words"],
)
def test_a_field_that_cannot_be_read_hides_nothing(added: bytes) -> None:
    """A turn with one that no event names is a turn, and its words are masked all the same."""
    words = msgspec.structs.replace(said(1, PII, app="a", user="u", session="s"), metadata={"id": PII})
    value = encode(words)[:-1] + b',"added":' + added + b"}"
    masked = RecordMasker(EVERYWHERE, personal=True).value(TURNS, value)
    turn = decode_input(masked, b"s", AT, IntakePolicy())

    assert isinstance(turn, Turn)
    assert turn.content == MASKED
    assert [] == [secret for secret in SECRETS if secret.encode() in masked]


def test_whom_an_erasure_names_stays_readable() -> None:
    """Also in a list: points of a session whose id looks like an address would else stay in the index."""
    due = VectorsErasureDue(request_id="r", timestamp=AT, scope="user", user_id=SECRETS[0], session_ids=[SECRETS[0]])

    assert encode(due) == RecordMasker(EVERYWHERE, personal=True).value(ERASURES, encode(due))
