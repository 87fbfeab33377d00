"""Exports of chat programs: ChatGPT and Claude, Slack and WhatsApp."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from jobs.produce.formats.filling import FileMessage, Filling, Transcript
from models.errors import InvalidRecord
from models.events import Turn
from models.messages.dialects import messages_in
from models.messages.openai import parts_of


class _Node(Struct):
    message: dict[str, Any] | None = None
    parent: str | None = None


class _ChatGpt(Struct):
    mapping: dict[str, _Node]
    current_node: str | None = None
    conversation_id: str | None = None
    id: str | None = None


def read_chatgpt(document: bytes, position: int, filling: Filling) -> list[list[Turn]]:
    """The conversation as it was shown last."""
    chat = msgspec.json.decode(document, type=_ChatGpt)
    path, node = list[dict[str, Any]](), chat.current_node or next(reversed(chat.mapping), None)
    seen = set[str]()
    while node in chat.mapping and node not in seen:
        seen.add(node)
        if (message := chat.mapping[node].message) is not None and message.get("weight") != 0:
            path.append(message)
        node = chat.mapping[node].parent
    said = [each for message in reversed(path) for each in _of_chatgpt(message)]
    return [filling.turns(chat.conversation_id or chat.id or filling.session_id(position), said)]


def _of_chatgpt(message: dict[str, Any]) -> Iterator[FileMessage]:
    content, author = message.get("content") or {}, message.get("author") or {}
    parts = content.get("parts") or [content.get("text") or content.get("result") or ""]
    said = [each if isinstance(each, str) else f"[{each.get('content_type', 'part')}]" for each in parts]
    if text := "\n\n".join(each for each in said if each):
        seconds = message.get("create_time")
        time = datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None
        yield FileMessage(role=str(author.get("role")), content=text, timestamp=time)


class _Account(Struct):
    uuid: str | None = None


class _ClaudeMessage(Struct):
    sender: str
    text: str = ""
    content: list[dict[str, Any]] = []
    created_at: datetime | None = None


class _Claude(Struct):
    uuid: str
    chat_messages: list[_ClaudeMessage]
    account: _Account | None = None


def read_claude(document: bytes, _position: int, filling: Filling) -> list[list[Turn]]:
    """One conversation; what a tool was asked and what it answered are turns of their own."""
    chat = msgspec.json.decode(document, type=_Claude)
    said = [
        FileMessage(role=role.value, content=content, timestamp=message.created_at, metadata=noted or None)
        for message in chat.chat_messages
        for blocks in _in_order(message)
        for each in messages_in({"role": message.sender, "content": blocks}, message.sender)
        for role, content, noted in parts_of(each)
    ]
    return [filling.turns(chat.uuid, said, user_id=chat.account.uuid if chat.account else None)]


def _in_order(message: _ClaudeMessage) -> Iterator[list[dict[str, Any]]]:
    """Blocks of a message, those of one kind that follow each other together; what a tool answered as text."""
    for kind, several in groupby(
        message.content or [{"type": "text", "text": message.text}], lambda each: each.get("type")
    ):
        blocks = list(several)
        for each in blocks if kind == "tool_result" else ():
            if isinstance(parts := each.get("content"), list):
                each["content"] = "\n\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        yield blocks


class Line(Struct, frozen=True, kw_only=True):
    """What somebody wrote in a chat of several."""

    speaker: str
    text: str
    time: datetime
    is_assistant: bool = False
    session: str


def transcripts_of(lines: Iterable[Line], filling: Filling) -> Iterator[Transcript]:
    """What was said in each session of lines: each speaker is a user; the assistant speaks to who spoke last."""
    by_session = sorted(lines, key=lambda line: (line.session, line.time))
    for session, several in groupby(by_session, key=lambda line: line.session):
        lines_said = list(several)
        user = next((line.speaker for line in lines_said if not line.is_assistant), filling.user_of(session))
        said = []
        for line in lines_said:
            user = user if line.is_assistant else line.speaker
            role = "assistant" if line.is_assistant else "user"
            said.append(FileMessage(role=role, content=line.text, timestamp=line.time, user_id=user))
        yield Transcript(session, said)


def read_slack(document: bytes, _position: int, filling: Filling) -> list[Line]:
    """A message of a person or a bot; none for who came and went."""
    told = msgspec.json.decode(document, type=dict[str, Any])
    text, subtype = told.get("text"), told.get("subtype")
    if told.get("type") != "message" or not text or subtype not in _WRITTEN:
        return []
    speaker = str(told.get("user") or told.get("username") or told.get("bot_id") or "unknown")
    session = "/".join(filter(None, (filling.folder, filling.source, told.get("thread_ts"))))
    is_bot = bool(told.get("bot_id")) or speaker in filling.assistants
    return [Line(speaker=speaker, text=str(text), time=_seconds(told), is_assistant=is_bot, session=session)]


def _seconds(told: dict[str, Any]) -> datetime:
    try:
        return datetime.fromtimestamp(float(told["ts"]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidRecord("unreadable_time", "ts is missing or not a time") from error


_MARK = "\u200e"
_LAST_MONTH, _LAST_DAY, _CENTURY = 12, 31, 100
_WRITTEN = {None, "bot_message", "thread_broadcast", "file_share"}
_WHATSAPP = re.compile(
    r"\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),? "
    r"(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[AaPp]\.?\s?[Mm]\.?)?)"
    r"(?:\] | - )(?:(?P<speaker>[^:\n]{1,100}): )?(?P<text>.*)"
)


def is_whatsapp(line: str) -> bool:
    """Check that a chat's text begins so."""
    return _WHATSAPP.match(line.lstrip(_MARK + "\ufeff")) is not None


class PlainChat(Struct, frozen=True):
    """A chat's whole text, as `Documents` hands it out."""

    plain_chat: str


def read_whatsapp(document: bytes, _position: int, filling: Filling) -> list[Line]:
    """Messages of the chat; what is no beginning of one goes on with the one before."""
    text = msgspec.json.decode(document, type=PlainChat).plain_chat.replace("\u202f", " ").replace(_MARK, "")
    found: list[tuple[str, str, str | None, list[str]]] = []
    for line in text.splitlines():
        if (match := _WHATSAPP.match(line)) is not None:
            found.append((match["date"], match["time"], match["speaker"], [match["text"]]))
        elif found:
            found[-1][3].append(line)
    days = [[int(each) for each in re.split(r"\D", date)] for date, *_ in found]
    month_first = any(day[1] > _LAST_MONTH for day in days) and not any(day[0] > _LAST_MONTH for day in days)
    lines = []
    for (_, clock, speaker, words), day in zip(found, days, strict=True):
        if speaker is not None:
            time = _clock(day, clock, month_first=month_first).replace(tzinfo=filling.zone)
            session = f"{filling.source}/{time.date().isoformat()}"
            is_assistant = speaker in filling.assistants
            said = "\n".join(words)
            lines.append(Line(speaker=speaker, text=said, time=time, is_assistant=is_assistant, session=session))
    return lines


def _clock(day: list[int], clock: str, *, month_first: bool) -> datetime:
    """A date without a zone: day, month and year in the order of the chat's whole text, years of two digits in 2000."""
    hour, minute, *seconds = map(int, re.findall(r"\d+", clock))
    if (half := re.search(r"[AaPp]", clock)) is not None:
        hour = hour % 12 + (12 if half[0] in "Pp" else 0)
    one, two, three = day
    year, month, date = (one, two, three) if one > _LAST_DAY else (three, *((one, two) if month_first else (two, one)))
    century = 2000 if year < _CENTURY else 0
    try:
        return datetime(year + century, month, date, hour, minute, sum(seconds))  # noqa: DTZ001 - a chat names none
    except ValueError as error:
        raise InvalidRecord("unreadable_date", "a date is not in the form 31/12/2025") from error
