"""Formats that `turntide produce` reads, each a pure function of a document and the filling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from jobs.produce.formats import chats, locomo, oasst, turntide
from jobs.produce.formats.documents import Documents
from jobs.produce.formats.filling import Filling, Malformed, reason_of
from models.errors import ConfigurationError, InvalidRecord
from models.events import InputEvent

Read = Callable[[bytes, int, Filling], Sequence[Sequence[InputEvent]]]
"""A document, its place in the input and the filling -> its conversations, in order."""


class InputConversation(Struct, frozen=True):
    """Events that belong together, and the line (or the place in the array) where they stand, from 1."""

    line: int
    events: Sequence[InputEvent]


class Format(Struct, frozen=True, kw_only=True):
    """One input format.

    Attributes:
        read: Makes conversations of a document.
        marks: Fields that a document of this format has at its top level.
        rule: What it is and how it is filled, for `--help`.
        transcripts: A document holds whole conversations, which end with it.
        by_time: Its times lie far apart: conversations are sorted by their beginning before they are sent.
    """

    read: Read
    marks: frozenset[str]
    rule: str
    transcripts: bool = True
    by_time: bool = False


FORMATS: dict[str, Format] = {
    "turntide": Format(
        read=turntide.read, marks=frozenset({"session_id", "timestamp"}), rule=turntide.RULE, transcripts=False
    ),
    "openai": Format(read=chats.read_openai, marks=frozenset({"messages"}), rule=chats.OPENAI_RULE),
    "sharegpt": Format(read=chats.read_sharegpt, marks=frozenset({"conversations"}), rule=chats.SHAREGPT_RULE),
    "oasst": Format(read=oasst.read, marks=frozenset({"message_tree_id", "prompt"}), rule=oasst.RULE, by_time=True),
    "locomo": Format(read=locomo.read, marks=frozenset({"sample_id", "conversation"}), rule=locomo.RULE, by_time=True),
    "dialogues": Format(read=chats.read_dialogue, marks=frozenset({"turns"}), rule=chats.DIALOGUES_RULE),
}


def detect(document: bytes) -> str:
    """Name of the format that the document's top-level fields show.

    Raises:
        ConfigurationError: It shows none.
    """
    try:
        fields = frozenset(msgspec.json.decode(document, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = frozenset()
    for name, form in FORMATS.items():
        if form.marks <= fields:
            return name
    raise ConfigurationError(
        f"the first line shows none of the formats {', '.join(FORMATS)}: name one with --format, or see "
        "`turntide produce --help` for what each looks like"
    )


def conversations(
    form: Format, documents: Iterable[tuple[int, bytes]], filling: Filling, *, by_time: bool = False
) -> Iterator[InputConversation | Malformed]:
    """Conversations of the input in its order, or, with `by_time`, in the order of their beginnings.

    A document that cannot be read gives a `Malformed` in its place, and no turn: half a conversation would be
    another conversation.
    """
    read = _each(form, documents, filling)
    if not by_time:
        yield from read
        return
    whole: list[InputConversation] = []
    for item in read:
        if isinstance(item, Malformed):
            yield item
        else:
            whole.append(item)
    yield from sorted(whole, key=lambda conversation: conversation.events[0].timestamp)


def _each(
    form: Format, documents: Iterable[tuple[int, bytes]], filling: Filling
) -> Iterator[InputConversation | Malformed]:
    for line, document in documents:
        try:
            found = form.read(document, line, filling)
        except (msgspec.DecodeError, UnicodeDecodeError, InvalidRecord) as error:
            yield Malformed(line, reason_of(error))
        except RecursionError:
            yield Malformed(line, "nested too deeply")
        else:
            yield from (InputConversation(line, events) for events in found if events)


__all__ = ["FORMATS", "Documents", "Filling", "Format", "InputConversation", "Malformed", "conversations", "detect"]
