"""Records whose texts are sealed: what is content of an event (`models.events.fields`), field by field.

Ids, figures and fixed words stay as they are, so topics, columns and filters work as before. What a producer added to
a turn is sealed too. Names of facts (`key`) are a part of record keys, by which topics are compacted, and stay.

A sealed record says so in its last header. Text of its own that looks sealed is opened nowhere: whoever reads asks for
the header first.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.entities import TOPIC_OF, carried_by
from models.events import DeadLetter, Turn
from models.events.base import DEFAULT_APP
from models.events.fields import Privacy, meaning_of
from models.events.topics import AUDIT, ERASURES, TURNS, Topic
from models.wire.envelope import tag_of
from streams.encryption.keyring import NOBODY, Sealer, key_of_id, sealer_of
from streams.encryption.tokens import MARK, MARK_BASE64, DataKey, sealed_bytes
from streams.settings import Settings

HEADER = "sealed"
_Seal = Callable[[str], str]
_Step = Callable[[Any, _Seal], Any]
_Record = TypeVar("_Record", bound=tuple[Any, ...])
_SEALED = re.compile(rb'"(?:(%s[\w-]+)|(%s[\w+/]+=*))"' % (re.escape(MARK.encode()), MARK_BASE64.encode()), re.ASCII)
_APP = re.compile(rb'"app_id"\s*:\s*("(?:[^"\\]|\\.)*")')
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode, _encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


# --- what is content of an event, as a way through its values: JSON's or the event itself


def _words(value: Any, seal: _Seal) -> Any:
    """Every text in a value, names of a mapping too."""
    if isinstance(value, str):
        return seal(value)
    if isinstance(value, list):
        return [_words(each, seal) for each in value]
    return {seal(k): _words(each, seal) for k, each in value.items()} if isinstance(value, dict) else value


def _bytes(value: Any, seal: _Seal) -> Any:
    """Bytes, which JSON has as base64."""
    return value and b64encode(seal(value).encode()).decode()


def _step_of(hint: Any) -> _Step | None:
    """How a field of this type is sealed; None where nothing in it is content."""
    if get_origin(hint) in (Annotated, Union, UnionType):
        return next(filter(None, map(_step_of, get_args(hint))), None)
    if hint is str or get_origin(hint) is dict:
        return _words
    if hint is bytes:
        return _bytes
    if isinstance(hint, type) and issubclass(hint, Struct):
        steps = steps_of(hint)
        return (lambda value, seal: value and _with(value, steps, seal)) if steps else None
    if get_origin(hint) in (list, tuple):
        parts = [_step_of(each) for each in get_args(hint) if each is not Ellipsis]
        return (lambda value, seal: value and _each(value, parts, seal)) if any(parts) else None
    return None


def _each(values: Any, parts: list[_Step | None], seal: _Seal) -> Any:
    steps = parts if len(parts) > 1 else parts * len(values)
    return type(values)(v if step is None else step(v, seal) for v, step in zip(values, steps, strict=True))


def _with(value: Any, steps: Mapping[str, _Step], seal: _Seal) -> Any:
    if isinstance(value, Struct):
        changed = {name: step(getattr(value, name), seal) for name, step in steps.items()}
        return msgspec.structs.replace(value, **changed)
    return {name: steps[name](each, seal) if name in steps else each for name, each in value.items()}


@cache
def steps_of(struct: type[Struct]) -> Mapping[str, _Step]:
    """Fields of a structure that are content, each with how it is sealed."""
    hints = get_type_hints(struct, include_extras=True)
    wanted = [name for name, said in meaning_of(struct).items() if said.privacy is Privacy.CONTENT and name != "key"]
    return {name: step for name in wanted if (step := _step_of(hints[name])) is not None}


def sealed_event(event: Struct, seal: _Seal) -> Any:
    """An event whose content is sealed."""
    return _with(event, steps_of(type(event)), seal)


# --- records


class _SealedFields(NamedTuple):
    steps: Mapping[str, _Step]
    known: frozenset[str] | None
    """Fields of an event that others send, who may add some."""


def _kinds(topic: Topic) -> dict[str, _SealedFields]:
    return {
        tag_of(event): _SealedFields(
            steps_of(event), frozenset((*event.__struct_fields__, "type")) if topic is TURNS else None
        )
        for event in carried_by(topic)
    }


class RecordSealer:
    """Seals records on their way into topics.

    Attributes:
        sealer: The keys.
    """

    def __init__(self, sealer: Sealer, prefix: str) -> None:
        self.sealer = sealer
        # What an erasure says of itself names nobody, and must be read when the keys are gone.
        topics = {TURNS, *TOPIC_OF.values()} - {ERASURES, AUDIT}
        self._kinds = {topic.full_name(prefix): _kinds(topic) for topic in topics}
        self._default = {TURNS.full_name(prefix): DEFAULT_APP}

    def sealed(self, topic: str, record: _Record) -> _Record:
        """The record as it is kept; as it was where it is of no event, or of an app that is not encrypted."""
        kinds, value = self._kinds.get(topic), record.value  # type: ignore[attr-defined]
        if kinds is None or value is None or any(name == HEADER for name, _ in record.headers):  # type: ignore[attr-defined]
            return record
        try:
            fields = _fields(value)
            tag = _decode(fields["type"]) if "type" in fields else tag_of(Turn)
            app_id = _app_of(tag, fields, self._default.get(topic, NOBODY))
            kind, key = kinds.get(tag), self.sealer.key(app_id)
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
            return record
        if kind is None or key is None:
            return record
        salt = key.salt(value)

        def seal(text: str) -> str:
            return key.seal_text(text, salt)

        for name, raw in fields.items():
            step = kind.steps.get(name) or (_words if kind.known is not None and name not in kind.known else None)
            if step is not None:
                fields[name] = msgspec.Raw(_encode(step(_decode(raw), seal)))
        headers = (*record.headers, (HEADER, key.id))  # type: ignore[attr-defined]
        return record._replace(value=_encode(fields), headers=headers)  # type: ignore[attr-defined,no-any-return]


def record_sealer_of(settings: Settings) -> RecordSealer | None:
    """The one of somebody who writes; None where nothing is encrypted."""
    sealer = sealer_of(settings)
    return None if sealer is None else RecordSealer(sealer, settings.topic_prefix)


def app_of_event(event: Struct) -> str:
    """Whose an event is, likewise."""
    if isinstance(event, DeadLetter):
        return _app_in(event.value)
    return getattr(event, "app_id", NOBODY)


def _app_in(refused: bytes | None) -> str:
    named = _APP.search(refused or b"")
    return str(_decode(named[1])) if named else DEFAULT_APP


def _app_of(tag: str, fields: Mapping[str, msgspec.Raw], default: str) -> str:
    """Whose a record is; a refused one is of the app that its bytes name, else of the default app."""
    if tag == tag_of(DeadLetter) and (value := _decode(fields.get("value", b"null"))) is not None:
        return _app_in(b64decode(value))
    return str(_decode(fields["app_id"])) if "app_id" in fields else default


def opened(records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
    """Records as they were written, without those whose key was erased.

    Raises:
        ConfigurationError: A key is missing.
    """
    return [each for record in records if (each := _opened(record)) is not None]


def _opened(record: ConsumerRecord) -> ConsumerRecord | None:
    headers = record.headers
    if not headers or headers[-1][0] != HEADER:
        return record
    if (key := key_of_id(headers[-1][1])) is None:
        return None
    return replace(record, value=record.value and opened_json(record.value, key), headers=headers[:-1])


def opened_json(value: bytes, key: DataKey) -> bytes:
    """JSON whose texts this key sealed; what it did not seal stays."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - extra `encryption`

    def plain(found: re.Match[bytes]) -> bytes:
        try:
            if found[1] is not None:
                return _encode(key.opened_text(sealed_bytes(found[1].decode())))
            return b'"%s"' % key.opened_text(sealed_bytes(b64decode(found[2]).decode())).encode()
        except (ValueError, InvalidTag):
            return found[0]

    return _SEALED.sub(plain, value)
