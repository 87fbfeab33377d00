"""Display of the demo: lines, on a terminal above its progress; one JSON object for programs."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.text import Text

from jobs.demo.operator_commands import Erased, PurgedApp
from jobs.demo.printed import answer_lines, erased_lines, project_lines, purged_lines, show
from jobs.demo.project_questions import ProjectRecalled
from jobs.demo.questions import Recalled
from jobs.demo.state import DemoState
from jobs.demo.summary import DemoSummary
from jobs.demo.wording import line
from jobs.shared.output import OutputFormat
from models.events import OutputEvent
from streams.settings import Settings
from streams.settings.live import LIVE_PAGE

_FRAMES_PER_S = 6.0
_PROGRESS_EVERY_S = 5.0
_INDENT = 10


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

    def done(self, text: str) -> None:
        """Say how the step ended."""
        self._console.print(Text(" " * _INDENT + text, style="green"))

    def page(self, url: str) -> None:
        """Say where the live page is while the roles run."""
        self._console.print(Text(f"{'page':<{_INDENT}}", style="bold").append(url, style="cyan"), soft_wrap=True)

    def event(self, event: OutputEvent) -> None:
        """Say what Turntide emitted, as far as it is worth a line."""
        if (said := line(event)) is not None:
            self._console.print(Text(said), soft_wrap=True)

    def recalled(self, recalled: Recalled) -> None:
        """Say what memory answered."""
        self._lines(answer_lines(recalled), failed=bool(recalled.problems))

    def project_recalled(self, recalled: ProjectRecalled) -> None:
        """Say what the memory of the project answered."""
        self._lines(project_lines(recalled), failed=bool(recalled.problems))

    def purged(self, purged: PurgedApp) -> None:
        """Say what came of the purge."""
        self._lines(purged_lines(purged), failed=bool(purged.problems))

    def erased(self, erased: Erased) -> None:
        """Say what came of the erasure, store by store."""
        self._lines(erased_lines(erased), failed=bool(erased.problems))

    def _lines(self, lines: Sequence[str], *, failed: bool) -> None:
        for said in lines:
            self._console.print(Text(" " * _INDENT + said, style="red" if failed else "green"), soft_wrap=True)

    async def draw(self, state: DemoState) -> None:
        """Show the state until cancelled."""
        began_s = time.monotonic()
        if not self._live:
            while True:
                await asyncio.sleep(_PROGRESS_EVERY_S)
                state.tick(time.monotonic() - began_s)
                self._console.print(Text(progress_line(state)), soft_wrap=True)
        # Drawn from this task, not from rich's thread: the state must not change under the drawing.
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                state.tick(time.monotonic() - began_s)
                bar = ProgressBar(total=max(state.planned_turns, 1), completed=state.sent_turns)
                live.update(Group(Padding(bar, 0), Text(progress_line(state), style="bold cyan")), refresh=True)
                await asyncio.sleep(1 / _FRAMES_PER_S)

    def result(self, summary: DemoSummary) -> None:
        """Print the summary."""
        if self._form is OutputFormat.JSON:
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(summary)).decode() + "\n")
            sys.stdout.flush()
            return
        show(summary, self._console, self.further(summary))

    def further(self, summary: DemoSummary) -> list[tuple[str, str]]:
        """What else to look at: what for, and the command."""
        turntide, folder = _command(), shlex.quote(summary.data_dir)
        session = (summary.alerts_raised or summary.alerts_expected)[0]
        household = next(iter(summary.topics.shown_by))
        user = summary.users.shown[0].user_id
        points = f"FROM risk_points SELECT turn, risk, score, mode WHERE session_id = '{session}' ORDER BY turn"
        changes = (
            f"FROM fact_changes SELECT timestamp, cause, category, key, value WHERE user_id = '{user}' ORDER BY ALL"
        )
        facts = "FROM facts SELECT user_id, category, key, value, valid_from WHERE active ORDER BY ALL"
        compactions = "FROM app_memory_compactions SELECT app_id, action, target_memory_id, reason, decided_by"
        project = "FROM project_memories SELECT type, content, valid_from, valid_until ORDER BY ALL"
        episodes = "FROM user_episodes SELECT user_id, turn_range, summary ORDER BY user_id, episode"
        return [
            ("The report, figures and patterns of the archive:", summary.report),
            ("Where the commands below find the archive:", f"export TURNTIDE_DATA_DIR={folder}"),
            ("Why the alerts stand:", f'{turntide} query "FROM alerts SELECT session_id, severity, reason"'),
            (f"The risk of {session}, turn by turn:", f'{turntide} query "{points}"'),
            (f"What became of the topics of {household}:", f"{turntide} memory topics {household}"),
            ("What is known of users:", f'{turntide} query "{facts}"'),
            (f"What {user} said of themselves, and how it changed:", f'{turntide} query "{changes}"'),
            ("What became of the turns of users:", f'{turntide} query "{episodes}"'),
            (
                "What is remembered of each app:",
                f'{turntide} query "FROM app_memories SELECT app_id, memory_id, content"',
            ),
            ("How memories were compacted, and why:", f'{turntide} query "{compactions}"'),
            ("What is remembered of the project, and from when until when it held:", f'{turntide} query "{project}"'),
            ("What is remembered of each session:", f'{turntide} query "FROM episodes SELECT session_id, summary"'),
            ("Everything that can be asked, and what it means:", f"{turntide} dictionary"),
            ("Remove all of it again:", f"rm -r {folder}"),
        ]

    def interrupted(self, folder: Path) -> None:
        """Say what is left of a demo that did not end."""
        self._console.print(Text(f"stopped; what was written stays in {folder} until you remove it"), soft_wrap=True)

    def kept(self, settings: Settings, urls: Mapping[str, str]) -> None:
        """Say what stays up, how to use it and how to stop it."""
        environment = {
            "TURNTIDE_KAFKA": settings.kafka.bootstrap,
            "TURNTIDE_TOPIC_PREFIX": settings.topic_prefix,
            "TURNTIDE_DATA_DIR": str(settings.data_dir),
        }
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        self._console.print("\n[bold]Kafka and the roles stay up; Ctrl-C here stops them.[/] In another terminal:")
        self._console.print(Text(f"  export {exports}", style="cyan"), soft_wrap=True)
        self._console.print(Text(f"  {_command()} alerts list", style="cyan"), soft_wrap=True)
        self._console.print(Text(f"  {'live page':<9} {urls['index']}{LIVE_PAGE}", style="cyan"), soft_wrap=True)
        for role, url in urls.items():
            self._console.print(Text(f"  {role:<9} {url}/metrics", style="dim"), soft_wrap=True)


def progress_line(state: DemoState) -> str:
    """One plain line for where the play stands."""
    seconds, lag = int(state.elapsed_s), "?" if state.lag is None else f"{state.lag}"
    archived = "?" if state.archived is None else f"{state.archived:,}"
    return (
        f"progress  {seconds // 60}:{seconds % 60:02d} turns {state.folded_turns}/{state.planned_turns} · "
        f"{state.turns_per_s:.1f}/s · lag {lag} · archived {archived} · alerts {len(state.alerts)}"
    )


def _command() -> str:
    """How this command was called: a newcomer has `turntide` only through `uv run`."""
    return "uv run turntide" if "UV_RUN_RECURSION_DEPTH" in os.environ else "turntide"
