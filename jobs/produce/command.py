"""`turntide produce`: send conversations of many formats to `turns.v1`.

Sending an opened input to `turns.v1`: pace, counts, and what Ctrl-C does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from jobs.cli import with_examples
from jobs.produce.formats import FORMATS, Filling, InputConversation, Malformed
from jobs.produce.formats.filling import in_utc
from jobs.produce.formats.source import InputSource, Item, RawLine
from jobs.shared.output import OutputFormat, OutputOption, Printer
from jobs.shared.sending import Pace, ReadAhead, Sender, turns_sender
from models.errors import ConfigurationError, InvalidRecord
from models.events import Turn
from streams.kafka.producer import Record
from streams.kafka.records import input_record
from streams.settings import Settings, load_settings


class ProductionSummary(Struct, kw_only=True):
    """Counts of what was sent; `turns` counts turns, or lines when they are sent raw."""

    format: str
    turns: int = 0
    sessions: int = 0
    malformed: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    turns_per_s: float = 0.0
    interrupted: bool = False


class _Production:
    """Sends items through a sender and counts."""

    def __init__(
        self,
        sender: Sender,
        pace: Pace,
        *,
        shift_to_now: bool,
        limit: int | None,
        report: Callable[[Malformed], None],
        format_name: str,
    ) -> None:
        self.summary = ProductionSummary(format=format_name)
        self._sender = sender
        self._pace = pace
        self._shift_to_now = shift_to_now
        self._limit = limit
        self._report = report
        self._sessions: set[str] = set()
        self._began = time.monotonic()

    async def send(self, chunk: list[Item], stop: asyncio.Event) -> None:
        """Send what is read; sets `stop` when the limit is reached."""
        for item in chunk:
            if stop.is_set():
                return
            if isinstance(item, Malformed):
                self._refuse(item)
                continue
            try:
                await self._send_item(item, stop)
            except InvalidRecord as error:
                self._refuse(Malformed(item.line, error.detail))

    async def finish(self, *, interrupted: bool) -> ProductionSummary:
        """Wait for the broker, complete the figures."""
        await self._sender.finish()
        summary = self.summary
        summary.seconds = round(time.monotonic() - self._began, 3)
        summary.turns_per_s = round(summary.turns / max(summary.seconds, 1e-3), 1)
        summary.acknowledged = self._sender.acknowledged
        summary.sessions = len(self._sessions)
        summary.interrupted = interrupted
        return summary

    def _refuse(self, malformed: Malformed) -> None:
        self.summary.malformed += 1
        self._report(malformed)

    async def _send_item(self, item: InputConversation | RawLine, stop: asyncio.Event) -> None:
        if isinstance(item, RawLine):
            await self._wait(datetime.now(UTC), stop)
            if stop.is_set():
                return
            await self._sender.add(Record(item.key, item.value))
            self._count(stop)
            return
        for event in item.events:
            await self._wait(event.timestamp, stop)
            if stop.is_set():
                return
            sent = msgspec.structs.replace(event, timestamp=datetime.now(UTC)) if self._shift_to_now else event
            await self._sender.add(input_record(sent))
            self._sessions.add(sent.session_id)
            if isinstance(sent, Turn):
                self._count(stop)

    async def _wait(self, timestamp: datetime, stop: asyncio.Event) -> None:
        ahead = self._began + self._pace.due(timestamp) - time.monotonic()
        if ahead <= 0:
            return
        await self._sender.flush()
        try:
            await asyncio.wait_for(stop.wait(), timeout=ahead)
        except TimeoutError:
            return

    def _count(self, stop: asyncio.Event) -> None:
        self.summary.turns += 1
        if self.summary.turns == self._limit:
            stop.set()


async def send(
    settings: Settings,
    source: InputSource,
    pace: Pace,
    *,
    shift_to_now: bool = False,
    limit: int | None = None,
    report: Callable[[Malformed], None],
    progress: Callable[[int, int], None] = lambda _bytes, _turns: None,
) -> ProductionSummary:
    """Send an input to `turns.v1`. Ctrl-C ends the reading; what was read by then is still delivered.

    Args:
        settings: Which cluster.
        source: The input.
        pace: When each event goes out.
        shift_to_now: Whether each event's time becomes the moment it is sent.
        limit: Largest number of turns.
        report: Told of what cannot be read.
        progress: Told of bytes read and turns sent.

    Raises:
        ConfigurationError: The topic is missing.
        DeliveryFailed: The broker did not confirm.
    """
    stop, interrupted = asyncio.Event(), asyncio.Event()
    async with turns_sender(settings) as sender:
        production = _Production(
            sender, pace, shift_to_now=shift_to_now, limit=limit, report=report, format_name=source.format_name
        )
        with _first_interrupt_stops(stop, interrupted):
            async for chunk in ReadAhead(source.items, ready=source.ready).chunks(stop):
                await production.send(chunk, stop)
                progress(source.bytes_read, production.summary.turns)
            return await production.finish(interrupted=interrupted.is_set())


@contextmanager
def _first_interrupt_stops(stop: asyncio.Event, interrupted: asyncio.Event) -> Iterator[None]:
    """The first Ctrl-C ends the reading, a second one everything."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        interrupted.set()
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


_MAX_REPORTED = 20
_STDIN = "-"
_EXIT_MALFORMED = 1
_EXIT_INTERRUPTED = 130


FormatName = Literal[
    "auto",
    "turntide",
    "batch",
    "responses",
    "langsmith",
    "langfuse",
    "openinference",
    "otlp",
    "chatgpt",
    "claude",
    "slack",
    "whatsapp",
    "openai",
    "sharegpt",
    "oasst",
    "locomo",
    "dialogues",
]
"""Values of `--format`."""


_HELP = "\n\n".join(
    [
        (
            "Send conversations from a file, or from stdin (`-`), to turns.v1, in order within each session. The "
            "partition is murmur2 of the session id (`murmur2_random` in librdkafka): other producers of the same "
            "session must use the same partitioner."
        ),
        "Malformed lines are counted and reported by number; the others are sent, and the exit code is 1.",
        *(f"[bold]{name}[/] {escape(form.rule)}." for name, form in FORMATS.items()),
        (
            "[bold]Filling[/] in conversation formats: a missing session id is <file name>-<line>, a missing user id "
            "user-<session id>, a missing turn number the position from 0, a missing time 5 s after the previous turn; "
            "a session without times begins at --start, or else ends now."
        ),
    ]
)


@with_examples(
    "turntide produce chats.jsonl",
    "turntide produce locomo10.json --format locomo --speedup 3600 --shift-to-now",
    "zcat oasst.trees.jsonl.gz | turntide produce - --format oasst --limit 10000",
    "turntide produce dialogues.jsonl --app-id support --rate 500 --output json",
    "turntide produce conversations.json --user-id me    # an export of ChatGPT or Claude",
    "cat requests.jsonl results.jsonl | turntide produce - --format batch",
    "turntide produce 'WhatsApp Chat.txt' --assistant Helpdesk --time-zone Europe/Oslo",
)
def produce(
    file: Annotated[
        str, typer.Argument(help="JSON Lines, a JSON array or object, CSV, Parquet or a chat's text; `-` is stdin.")
    ],
    *,
    form: Annotated[FormatName, typer.Option("--format", help="Format; auto detects it from the first line.")] = "auto",
    app_id: Annotated[str, typer.Option(help="App of turns without an app.")] = "default",
    user_id: Annotated[str | None, typer.Option(help="User of turns without a user.")] = None,
    start: Annotated[
        datetime | None, typer.Option(help="Start of sessions without times, UTC.", show_default="they end now")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=1e-3, help="Turns per second.", show_default="no limit")] = None,
    speedup: Annotated[
        float | None, typer.Option(min=1e-3, help="Keep the gaps between turns, but this many times shorter.")
    ] = None,
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Replace each turn's time by the time of sending.")
    ] = False,
    end_sessions: Annotated[
        bool | None,
        typer.Option(
            "--end-sessions/--no-end-sessions",
            help="Send session_ended after each conversation.",
            show_default="on, except for turntide",
        ),
    ] = None,
    by_time: Annotated[
        bool | None,
        typer.Option(
            "--by-time/--no-by-time",
            help="Read the whole input first, then send conversations in order of their start.",
            show_default="on for locomo and oasst",
        ),
    ] = None,
    keep_metadata: Annotated[
        bool, typer.Option("--keep-metadata", help="Keep further fields of a dialogue as metadata.")
    ] = False,
    assistant: Annotated[
        list[str] | None, typer.Option(help="Speaker in a group chat who is the assistant; may be repeated.")
    ] = None,
    time_zone: Annotated[str, typer.Option(help="Time zone of times without one, e.g. Europe/Oslo.")] = "UTC",
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many turns.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Send lines unchanged, to test bad input.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Send conversations."""
    if rate is not None and speedup is not None:
        raise ConfigurationError("--rate and --speedup exclude each other: use one of them")
    filling = Filling(
        source="stdin" if file == _STDIN else Path(file).name.partition(".")[0] or "input",
        now=datetime.now(UTC),
        start=None if start is None else in_utc(start),
        app_id=app_id,
        user_id=user_id,
        keep_metadata=keep_metadata,
        folder="" if file == _STDIN else Path(file).resolve().parent.name,
        assistants=frozenset(assistant or ()),
        zone=_zone(time_zone),
    )
    name, pace = None if form == "auto" else form, Pace(rate_per_s=rate, speedup=speedup)
    with _opened(file) as stream, _progress(stream) as (report, progress):
        source = InputSource(stream, filling, format_name=name, end_sessions=end_sessions, by_time=by_time, raw=raw)
        options: dict[str, Any] = {"shift_to_now": shift_to_now, "limit": limit}
        sending = send(load_settings(), source, pace, report=report, progress=progress, **options)
        summary = asyncio.run(sending)
    Printer(output).record(msgspec.structs.asdict(summary))
    if summary.interrupted:
        raise typer.Exit(_EXIT_INTERRUPTED)
    if summary.malformed:
        raise typer.Exit(_EXIT_MALFORMED)


produce.__doc__ = _HELP


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ConfigurationError(f"--time-zone {name} is not a time zone: use e.g. Europe/Oslo or UTC") from error


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    try:
        # A reader of its own for stdin: a daemon thread may still stand in it when the interpreter ends.
        stream = open(0, "rb", closefd=False) if file == _STDIN else Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    try:
        yield stream
    finally:
        if file != _STDIN:
            stream.close()


@contextmanager
def _progress(stream: BinaryIO) -> Iterator[tuple[Callable[[Malformed], None], Callable[[int, int], None]]]:
    """A bar on stderr, which a redirected stderr does not get, and what reports malformed lines above it."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[turns]} turns"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    reported, total_bytes = 0, os.fstat(stream.fileno()).st_size if stream.seekable() else None

    def report(malformed: Malformed) -> None:
        nonlocal reported
        reported += 1
        if reported <= _MAX_REPORTED:
            console.print(f"line {malformed.line}: {malformed.reason}", markup=False, highlight=False, soft_wrap=True)
        elif reported == _MAX_REPORTED + 1:
            console.print("… further malformed lines are only counted", highlight=False)

    with bar:
        task = bar.add_task("sending", total=total_bytes, turns=0)
        yield report, lambda read_bytes, turns: bar.update(task, completed=read_bytes, turns=turns)
