"""Display of the demo: lines, on a terminal above its progress; one JSON object for programs.

Folders of demos, with broker, archive and conversations: made in the temporary folder, removed by `--clean`.
"""

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout
from rich import filesize
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobs.demo.play import DemoState
from jobs.demo.questions import load_queries
from jobs.demo.summary import DemoSummary
from jobs.shared.output import OutputFormat
from jobs.shared.role_process import called_as
from models.errors import ConfigurationError
from models.events import OutputEvent
from models.retrieval.context import SUMMARY_CHARS
from models.risk.telling import counterfactual
from streams.http import pages
from streams.settings import Settings
from streams.settings.live import LIVE_PAGE

_PREFIX = "turntide-demo-"
_BLOCK_BYTES = 512
_LOCK, _POLICY = "demo.lock", "policy.toml"


def new_folder() -> Path:
    """A new folder of a demo, open to this user alone."""
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def folders() -> list[Path]:
    """Folders that demos of this user made in the temporary folder, running ones among them."""
    found = Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")
    mine = (each for each in found if each.is_dir() and not each.is_symlink() and each.stat().st_uid == os.getuid())
    return sorted(mine)


def is_temporary(folder: Path) -> bool:
    """Check that `--clean` finds the folder by itself."""
    return folder.resolve() in [each.resolve() for each in folders()]


def size_bytes(folder: Path) -> int:
    """Bytes that its files take on the disk: Kafka's indexes are holes for the most part."""
    found = (file.stat(follow_symlinks=False) for file in folder.rglob("*") if file.is_file())
    return sum(min(each.st_size, _BLOCK_BYTES * each.st_blocks) for each in found)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder while its demo runs: it is not removed meanwhile."""
    with FileLock(folder / _LOCK, timeout=0):
        yield


def remove(folder: Path) -> bool:
    """Remove what a demo left; False where one runs there.

    Raises:
        ConfigurationError: It is no folder of a demo.
    """
    from jobs.operate.broker.local_kafka import broker_record

    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / _POLICY).is_file()):
        raise ConfigurationError(f"{folder} is not a folder of a demo: nothing is removed")
    record = broker_record(folder / "kafka")
    if record is not None and record.process():  # an earlier release holds no lock
        return False
    try:
        with held(folder):
            shutil.rmtree(folder)
    except Timeout:
        return False
    return True


COMPRESSED_CLOCK = "compressed clock for topics: a minute counts as a day, and above 10 topics, not 20, they decay"
"""What somebody who watches has to know of the demo's policy (`policy.toml`)."""
_FRAMES_PER_S = 6.0
_PROGRESS_EVERY_S = 5.0
_INDENT = 10


@cache
def _macros() -> Any:
    return pages.macros(
        "jobs/demo/lines.md.j2",
        summary_chars=SUMMARY_CHARS,
        compressed_clock=COMPRESSED_CLOCK,
        counterfactual=counterfactual,
    )


def told(of: object, macro: str = "") -> list[str]:
    """Lines about an event or an answer, by the macro of its type; none without one. Only the demo's own is quoted."""
    say = getattr(_macros(), macro or type(of).__name__, None)
    return [line for line in str(say(of)).splitlines() if line] if say else []


def event_line(event: OutputEvent) -> str | None:
    """One plain line for what is worth a line; None for the rest."""
    return " ".join(told(event)) or None


def show_summary(summary: DemoSummary, console: Console, further: Mapping[str, str]) -> None:
    """Print it.

    Args:
        summary: What came of the play.
        console: Where to.
        further: What else to look at → the command.
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for row in told(summary):
        grid.add_row(*row.split("\t", 1))
    console.print("\n[bold]The play is over.[/]", grid, sep="\n")
    for problem in summary.problems:
        console.print(Text(f"✗ {problem}", style="bold red"))
    for kept in told(summary, "promised") if summary.as_expected else ():
        console.print(Text(f"✓ {kept}", style="bold green"))
    console.print("\n[bold]How to look further[/]")
    for what, command in further.items():
        console.print(Text(f"  {what}", style="dim"))
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)  # unwrapped, so that it can be copied


class Stage:
    """Shows the demo. Results go to standard output; with JSON everything else goes to standard error.

    Args:
        form: How the summary is printed.
        view: Whether progress is to stay in view below the lines, where there is a terminal for it.
    """

    def __init__(self, form: OutputFormat, *, view: bool) -> None:
        self._form = form
        self._console = Console(stderr=form is OutputFormat.JSON, highlight=False)
        self._live = view and form is not OutputFormat.JSON and self._console.is_terminal

    def step(self, what: str, text: str) -> None:
        """Say what begins."""
        self._console.print(Text(f"{what:<{_INDENT}}", style="bold").append(f"{text} …", style="none"))

    def done(self, *lines: str, problems: Sequence[str] = ()) -> None:
        """Say how the step ended, and what is wrong with it."""
        for line in (*lines, *(f"✗ {problem}" for problem in problems)):
            self._console.print(Text(" " * _INDENT + line, style="red" if problems else "green"), soft_wrap=True)

    def page(self, url: str) -> None:
        """Say where the live page is while the roles run."""
        self._console.print(Text(f"{'page':<{_INDENT}}", style="bold").append(url, style="cyan"), soft_wrap=True)

    def event(self, event: OutputEvent) -> None:
        """Say what Turntide emitted, as far as it is worth a line."""
        if (line := event_line(event)) is not None:
            self._console.print(Text(line), soft_wrap=True)

    async def draw(self, state: DemoState) -> None:
        """Show the state until cancelled."""
        began_s = time.monotonic()
        if not self._live:
            while True:
                await asyncio.sleep(_PROGRESS_EVERY_S)
                state.elapsed_s = time.monotonic() - began_s
                self._console.print(Text(progress_line(state)), soft_wrap=True)
        # Drawn from this task, not from rich's thread: the state must not change under the drawing.
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                state.elapsed_s = time.monotonic() - began_s
                bar = ProgressBar(total=max(state.planned_turns, 1), completed=len(state.sent_at_s))
                live.update(Group(Padding(bar, 0), Text(progress_line(state), style="bold cyan")), refresh=True)
                await asyncio.sleep(1 / _FRAMES_PER_S)

    def result(self, summary: DemoSummary) -> None:
        """Print the summary."""
        if self._form is OutputFormat.JSON:
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(summary)).decode() + "\n")
            sys.stdout.flush()
        else:
            show_summary(summary, self._console, further(summary))

    def interrupted(self, folder: Path) -> None:
        """Say what is left of a demo that did not end."""
        text = f"stopped; its files stay in {folder} until `{clean_command(folder)}`"
        self._console.print(Text(text), soft_wrap=True)

    def kept(self, settings: Settings, urls: Mapping[str, str]) -> None:
        """Say what stays up, how to use it and how to stop it."""
        environment = {
            "TURNTIDE_KAFKA": settings.kafka.bootstrap,
            "TURNTIDE_TOPIC_PREFIX": settings.topic_prefix,
            "TURNTIDE_DATA_DIR": str(settings.data_dir),
            "TURNTIDE_HTTP__PUBLIC_URL": urls["index"],  # alerts then link to their sessions
        }
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        self._console.print("\n[bold]Kafka and the roles stay up; Ctrl-C here stops them.[/] In another terminal:")
        commands = [f"export {exports}", f"{called_as()} alerts list", f"{'live page':<9} {urls['index']}{LIVE_PAGE}"]
        for line in (*commands, *(f"{role:<9} {url}/metrics" for role, url in urls.items())):
            self._console.print(Text(f"  {line}", style="cyan"), soft_wrap=True)


def further(summary: DemoSummary) -> dict[str, str]:
    """What else to look at → the command."""
    folder, user = shlex.quote(summary.data_dir), summary.answers.recalled[0].user_id
    session = (summary.alerts_raised or summary.alerts_expected)[0]
    place = Path(summary.data_dir)
    size = filesize.decimal(size_bytes(place))
    asked = {
        f"{what.format(session=session, user=user)}:": f'{called_as()} query "{sql.format(session=session, user=user)}"'
        for what, sql in load_queries().further.items()
    }
    return {
        "The report, figures and patterns of the archive:": summary.report,
        "Where the commands below find the archive:": f"export TURNTIDE_DATA_DIR={folder}",
        **asked,
        "Everything that can be asked, and what it means:": f"{called_as()} archive dictionary",
        f"Remove all of it again, conversations and archive ({size} in {folder}):": clean_command(place),
    }


def clean_command(folder: Path) -> str:
    """The command that removes a demo's folder."""
    named = "" if is_temporary(folder) else f" --data-dir {shlex.quote(str(folder))}"
    return f"{called_as()} demo --clean{named}"


def progress_line(state: DemoState) -> str:
    """One plain line for where the play stands."""
    seconds, lag = int(state.elapsed_s), "?" if state.lag is None else f"{state.lag}"
    archived = "?" if state.archived is None else f"{state.archived:,}"
    turns_per_s = state.folded_turns / state.elapsed_s if state.elapsed_s else 0.0
    return (
        f"progress  {seconds // 60}:{seconds % 60:02d} turns {state.folded_turns}/{state.planned_turns} · "
        f"{turns_per_s:.1f}/s · lag {lag} · archived {archived} · alerts {len(state.alerts)}"
    )
