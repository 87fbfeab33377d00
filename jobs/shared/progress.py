"""A progress bar for long work, on standard error where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar on stderr, none where that is redirected; call what it gives with what is done, and of how much."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=None)
        yield lambda done, runs: bar.update(task, completed=done, total=runs)


@contextmanager
def status_line(label: str, *, shown: bool = True) -> Iterator[Callable[[str], None]]:
    """A line on stderr while something is waited for; call what it gives with what is under way."""
    from rich.console import Console

    if not shown:
        yield lambda _text: None
        return
    with Console(stderr=True).status(label) as status:
        yield lambda text: status.update(f"{label}: {text}")
