"""Exports of other programs, as files: told apart, read, and broken parts reported while the rest is sent."""

import io
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import polars as pl
import pytest

from jobs.produce.formats import FORMATS, Filling, InputConversation, Malformed
from jobs.produce.formats.source import InputSource
from models.errors import ConfigurationError
from tests.support.golden_text import assert_text

FILES = sorted((Path(__file__).parents[1] / "data" / "formats").iterdir())
FILLING = Filling(
    source="chats",
    now=datetime(2026, 3, 1, 12, tzinfo=UTC),
    folder="general",
    assistants=frozenset({"Helpdesk"}),
    zone=ZoneInfo("Europe/Oslo"),
)


def told(data: bytes, filling: Filling = FILLING, form: str | None = None) -> tuple[str, list[str]]:
    """Name of the format, and what is read: turns, or what is wrong with which line."""
    source, lines = InputSource(io.BytesIO(data), filling, end_sessions=False, format_name=form), list[str]()
    for item in source.items:
        if isinstance(item, Malformed):
            lines.append(f"line {item.line}: {item.reason}")
        elif isinstance(item, InputConversation):
            lines += [msgspec.json.encode(event).decode() for event in item.events]
    return source.format_name, lines


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_known_and_read_and_what_is_broken_in_it_is_named(file: Path) -> None:
    """The same whenever it is read: sending it again changes nothing."""
    form, lines = told(file.read_bytes())
    later = msgspec.structs.replace(FILLING, now=datetime(2026, 4, 1, tzinfo=UTC))

    assert form == file.stem.partition("-")[0]
    assert lines == told(file.read_bytes(), later)[1]
    assert_text(f"import-{file.stem}", "\n".join(lines))


def test_the_page_has_every_format() -> None:
    """A table for people, beside the command's help."""
    page = (Path(__file__).parents[2] / "deploy" / "producers.md").read_text()

    assert [name for name in FORMATS if f"`{name}`" not in page] == []


def test_spans_in_parquet_are_those_of_lines() -> None:
    """As Phoenix exports a frame of spans: flat names, messages as lists of objects."""
    said = [{"message.role": "user", "message.content": "Rain today?"}]
    spans = pl.DataFrame(
        {
            "context.trace_id": ["t-1"],
            "span_kind": ["LLM"],
            "start_time": [datetime(2026, 1, 5, 9, tzinfo=UTC)],
            "attributes.session.id": ["s-1"],
            "attributes.llm.input_messages": [said],
            "attributes.llm.model_name": [None],
        }
    )
    spans.write_parquet(file := io.BytesIO())
    form, (turn,) = told(file.getvalue())

    assert form == "openinference"
    assert msgspec.json.decode(turn)["timestamp"] == "2026-01-05T09:00:00Z"
    assert (msgspec.json.decode(turn)["session_id"], msgspec.json.decode(turn)["content"]) == ("s-1", "Rain today?")


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b'{"id": 1, "title": "SECRET"}', "a JSON object with the fields id, title"),
        (b"Dear SECRET", "no JSON object"),
        (b'a,b,c\n1,2,"SECRET"\n', "a JSON object with the fields a, b, c"),
    ],
)
def test_what_is_none_says_what_it_looks_like_and_what_would_be_taken(data: bytes, looks: str) -> None:
    """And none of its text."""
    with pytest.raises(ConfigurationError, match="chatgpt mapping") as refused:
        told(data)

    assert looks in str(refused.value)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("form", [name for name, each in FORMATS.items() if name not in {"turntide", "whatsapp"}])
def test_a_line_of_another_form_is_one_malformed_line(form: str) -> None:
    """Whatever its fields hold; nothing of them is told."""
    data = b'{"x": "SECRET"}\n' + b"".join(
        msgspec.json.encode(dict.fromkeys(marks, value)) + b"\n"
        for marks in FORMATS[form].marks
        for value in ("SECRET", 7, [["SECRET"]], {"SECRET": None})
    )
    _, lines = told(data, form=form)

    assert not any("SECRET" in line for line in lines if line.startswith("line"))
