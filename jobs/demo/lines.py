"""Lines of the demo for people, from `lines.md.j2`: events as they come, answers of memory, and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.demo.summary import DemoSummary
from models.events import OutputEvent
from models.retrieval.context import SUMMARY_CHARS
from streams.http import pages
from streams.notify.wording import counterfactual

COMPRESSED_CLOCK = "compressed clock for topics: a minute counts as a day, and above 10 topics, not 20, they decay"
"""What somebody who watches has to know of the demo's policy (`policy.toml`)."""


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
