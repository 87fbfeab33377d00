"""Records of the log as they are folded and kept where words are masked: ids, codes and figures as they were.

By the name of each field: what is words in any event (`models.events.fields`), and whatever no event has, is masked.
So what a producer adds is, too.
"""

import base64
import binascii
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import msgspec
from aiokafka.structs import ConsumerRecord

from models.entities import TOPIC_OF
from models.errors import ConfigurationError
from models.events import InputEvent, Turn
from models.events.fields import Privacy, meaning_of, parts_of
from models.events.topics import DEAD_LETTERS, TURNS, Topic
from models.policy.archive import MaskingPolicy
from models.wire.envelope import tag_of
from streams.masking.credentials import MAY_HOLD_ONE, without_secrets

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, binascii.Error)
_NO_FIELD = b"[[]]"
"""In place of what cannot be read: no field that an event names takes it, so nothing becomes an event by it."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RecordMasker:
    """Masks records; one that has nothing to mask is given as it is.

    Args:
        policy: What is masked.
        personal: Whether personal data is, too; it needs the extra `masking`.
    """

    def __init__(self, policy: MaskingPolicy, *, personal: bool) -> None:
        self._steps: list[Callable[[str], str]] = [without_secrets] if policy.secrets else []
        self.personal = personal
        if personal:
            from streams.masking.found import Masker  # noqa: PLC0415 - extra `masking`

            self._steps.append(Masker(policy).mask)
        self._decode = msgspec.json.Decoder().decode
        self._encode = msgspec.json.Encoder().encode

    def records(self, topic: Topic, records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
        """Records of a topic, in their order."""
        return [self._record(topic, record) for record in records]

    def value(self, topic: Topic, value: bytes) -> bytes:
        """One record's value. What is no JSON is no event and is refused as it was: masked as text, or empty."""
        if not self.personal and MAY_HOLD_ONE.search(value) is None and topic is not DEAD_LETTERS:
            return value
        try:
            said = self._decode(value)
            masked = self._masked(said, words=True, own=_own_fields(said) if topic is TURNS else frozenset())
            if topic is DEAD_LETTERS and isinstance(masked, dict):
                masked["value"] = self._refused(said.get("value"))
            return value if masked == said else self._encode(masked)
        except _UNREADABLE:
            return self._by_field(topic, value)

    def _by_field(self, topic: Topic, value: bytes) -> bytes:
        """What events do not name is passed over unread where they are decoded, so it may hold what cannot be read."""
        try:
            fields = _fields(value)
        except _UNREADABLE:
            return b"" if self.personal else self._raw(value)
        own = _own_fields(fields) if topic is TURNS else frozenset()
        return self._encode({name: msgspec.Raw(self._field(name, raw, own)) for name, raw in fields.items()})

    def _field(self, name: str, raw: msgspec.Raw, own: Container[str]) -> bytes:
        try:
            return self._encode(self._masked({name: self._decode(raw)}, words=True, own=own)[name])
        except _UNREADABLE:
            return _NO_FIELD

    def _refused(self, value: Any) -> str | None:
        """The bytes of a dead letter; none where personal data goes, as it is not known whose they are."""
        if self.personal or not isinstance(value, str):
            return None
        return base64.b64encode(self.value(TURNS, base64.b64decode(value))).decode()

    def _raw(self, value: bytes) -> bytes:
        """Bytes of any kind: one letter each."""
        return self.text(value.decode("latin-1")).encode("latin-1")

    def text(self, text: str) -> str:
        """One text."""
        for step in self._steps:
            text = step(text)
        return text

    def _record(self, topic: Topic, record: ConsumerRecord) -> ConsumerRecord:
        if record.value is None:
            return record
        value = self.value(topic, record.value)
        return record if value is record.value else replace(record, value=value)

    def _masked(self, value: Any, *, words: bool, own: Container[str] = ()) -> Any:
        if isinstance(value, str):
            return self.text(value) if words else value
        if isinstance(value, list):
            return [self._masked(each, words=words) for each in value]
        if isinstance(value, dict):
            return {
                name: self._all_masked(each) if name in own else self._masked(each, words=_is_words(name))
                for name, each in value.items()
            }
        return value

    def _all_masked(self, value: Any) -> Any:
        """What a producer added, whatever its fields are called."""
        if isinstance(value, dict):
            return {name: self._all_masked(each) for name, each in value.items()}
        if isinstance(value, list):
            return list(map(self._all_masked, value))
        return self._masked(value, words=True)


def _is_words(name: str) -> bool:
    return name not in _KNOWN or name in _WORDS


def _own_fields(said: Any) -> frozenset[str]:
    """Fields of a turn that are the producer's own: `metadata`, and those that its event does not have."""
    if not isinstance(said, dict):
        return frozenset()
    tag = said.get("type")
    ours = _OUR_FIELDS.get(tag if isinstance(tag, str) else _TURN, _OUR_FIELDS[_TURN])
    return frozenset(said).difference(ours) | {"metadata"}


@cache
def masker_of(policy: MaskingPolicy, *, personal: bool = False) -> RecordMasker | None:
    """The masker of a policy, for a place where personal data is masked or stays; None where nothing is masked.

    Raises:
        ConfigurationError: What it needs is not installed.
    """
    if not (policy.secrets or personal):
        return None
    try:
        return RecordMasker(policy, personal=personal)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"masking needs the package `{error.name}`: install `turntide[masking]`") from error


def quoting(policy: MaskingPolicy) -> Callable[[str], str]:
    """What masks a text that is quoted to people: secrets always, personal data where the extra `masking` is there."""
    try:
        masker = RecordMasker(policy, personal=True)
    except ModuleNotFoundError:
        return without_secrets
    return lambda text: without_secrets(masker.text(text))


_TURN = tag_of(Turn)
_OUR_FIELDS = {tag_of(event): frozenset({"type", *event.__struct_fields__}) for event in get_args(InputEvent)}
_MEANINGS = [meaning for part in parts_of(*TOPIC_OF) for meaning in meaning_of(part).items()]
_KNOWN = frozenset(name for name, _ in _MEANINGS)
_WORDS = frozenset(name for name, meaning in _MEANINGS if meaning.privacy is Privacy.CONTENT) - {"key"}
"""But what a fact is about, in snake case: two that became one by masking would overwrite each other."""
