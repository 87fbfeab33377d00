"""The summary and memory's answers for people, on a console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.demo.operator_commands import Erased, PurgedApp
from jobs.demo.project_questions import ProjectRecalled
from jobs.demo.questions import Recalled
from jobs.demo.spaces import SpacesSummary
from jobs.demo.summary import DemoSummary
from jobs.demo.users import UsersSummary
from models.retrieval.context import SUMMARY_CHARS

_KIB = 1024


def show(summary: DemoSummary, console: Console, further: Sequence[tuple[str, str]]) -> None:
    """Print it.

    Args:
        summary: What came of the play.
        console: Where to.
        further: What else to look at: what for, and the command.
    """
    console.print()
    console.print(_figures(summary))
    for problem in summary.problems:
        console.print(Text(f"✗ {problem}", style="bold red"))
    if summary.as_expected:
        for kept in _as_promised(summary):
            console.print(Text(f"✓ {kept}", style="bold green"))
    console.print()
    console.print("[bold]How to look further[/]")
    for what, command in further:
        console.print(Text(f"  {what}", style="dim"))
        # Unwrapped, so that it can be copied.
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)


def answer_lines(recalled: Recalled) -> list[str]:
    """A question with what memory knows of the user and the nearest episode, as far as a prompt would have them."""
    lines = [f"{recalled.user_id} asks: {recalled.query} ({recalled.milliseconds:.0f} ms)"]
    if recalled.facts:
        lines.append("facts: " + ", ".join(f"{name} = {value}" for name, value in recalled.facts.items()))
    if (near := recalled.nearest_episode) is not None:
        distance = "" if near.distance is None else f", distance {near.distance:.2f}"
        lines.append(f"nearest episode: {near.turn_range}{distance}: {near.summary[:SUMMARY_CHARS]}…")
    return lines + [f"✗ {problem}" for problem in recalled.problems]


def project_lines(recalled: ProjectRecalled) -> list[str]:
    """What the memory of a project holds, and what it answered: of pivots, before and after them."""
    answers = [f"{each.asked} ({each.milliseconds:.0f} ms): {each.said}" for each in recalled.answers]
    return [project_figures(recalled), *answers, *(f"✗ {problem}" for problem in recalled.problems)]


def project_figures(recalled: ProjectRecalled) -> str:
    """How much is remembered of a project."""
    return (
        f"{recalled.chunks} chunks, {sum(recalled.memories.values())} memories ({_counted(recalled.memories)}), "
        f"{recalled.superseded} superseded, {recalled.pending} pending, {len(recalled.key_moments)} key moments"
    )


def purged_lines(purged: PurgedApp) -> list[str]:
    """What a purge took, and what is left."""
    took = f"{purged.deleted} deleted, {purged.left} left, read {purged.milliseconds:.0f} ms after the request"
    return [took] + [f"✗ {problem}" for problem in purged.problems]


def erased_lines(erased: Erased) -> list[str]:
    """The proof of an erasure: every store that held something, and what expires by itself."""
    held = [store for store in erased.stores if store.removed or store.remaining]
    clean = len(erased.stores) - len(held)
    lines = [f"proved after {erased.seconds:g} s, {_plural(erased.sessions, 'session')}, request {erased.request_id}"]
    for each in held:
        expires = "" if each.expires_at is None else f", {each.remaining} until {each.expires_at:%Y-%m-%d} (retention)"
        lines.append(f"{each.store:<32} {each.removed:>5} of {each.looked_at:,} removed{expires}")
    return lines + [f"{clean} other stores held nothing of them"] + [f"✗ {problem}" for problem in erased.problems]


def _as_promised(summary: DemoSummary) -> list[str]:
    alerts = ", ".join(f"{a.session_id} at turn {a.turn} of {a.turns_of_session}" for a in summary.alerts)
    topics = ", ".join(summary.topics.shown_by)
    compacted = f"{_plural(len(summary.apps.compactions), 'compaction')}"
    users = ", ".join(
        f"{user.user_id} ({user.turns} turns, {user.facts} facts, {len(user.episodes)} episodes)"
        for user in summary.users.shown
    )
    return [
        f"Exactly the expected alerts, in time: {alerts}.",
        f"Topics of {topics} came, were packed, unpacked and evicted.",
        f"Memory answered as it should for {users}.",
        "The project's decisions are found, and those before each pivot as of then.",
        f"Each conversation that ended became a memory, {compacted}, at most {summary.apps.most_of_an_app} of an app.",
        f"{summary.purged.app_id} was purged, {summary.erased.user_id} forgotten with a proof.",
    ]


def _figures(summary: DemoSummary) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("turns", f"{summary.turns} in {summary.sessions} sessions, {summary.open_sessions} still open")
    grid.add_row("memory", f"{summary.segments} segments compacted, {summary.episodes} episodes closed")
    topics = summary.topics
    packed = f"{topics.compacted} packed, {topics.history_bytes:,} → {topics.packed_bytes:,} bytes"
    grid.add_row("topics", f"{topics.started} started, {packed}, {topics.unpacked} unpacked, {topics.evicted} evicted")
    grid.add_row("", topics.clock)
    for name, said in user_figures(summary.users).items():
        grid.add_row(name, said)
    for name, said in app_figures(summary.apps).items():
        grid.add_row(name, said)
    grid.add_row("project", f"{summary.project.project_id}: {project_figures(summary.project)}")
    for alert in summary.alerts:
        soon = "" if alert.latency_ms is None else f", {alert.latency_ms:.0f} ms after its turn"
        grid.add_row("alert", f"{alert.session_id}: {alert.severity} ({', '.join(alert.causes)}){soon}")
        if (judged := alert.judgement) is not None:
            said = f"probability {judged.probability:.2f}, alert from {judged.threshold:.2f}"
            grid.add_row("", f"{said}. {judged.counterfactual}")
    archive = summary.archive
    ratio = f"{archive.json_to_parquet_ratio}× smaller than" if archive.json_to_parquet_ratio else "of"
    grid.add_row(
        "archive",
        f"{archive.rows:,} rows in {archive.files} Parquet files, {archive.bytes / _KIB:,.0f} KiB, {ratio} JSON",
    )
    grid.add_row("time", f"{summary.seconds:.0f} s")
    return Group(Text("The play is over.", style="bold"), grid)


def user_figures(users: UsersSummary) -> dict[str, str]:
    """What is remembered of all users: what it is → the figures."""
    ratio = "" if users.turns_to_summaries_ratio is None else f", {users.turns_to_summaries_ratio:g}:1"
    return {
        "facts": f"{_counted(users.facts) or 'none'}; {_counted(users.fact_changes) or 'no changes'}",
        "users": f"{users.episode_turns} turns of {users.users} users became {users.episodes} episodes, "
        f"{users.tokens_before:,} → {users.tokens_after:,} tokens{ratio}",
    }


def app_figures(apps: SpacesSummary) -> dict[str, str]:
    """What is remembered of apps: what it is → the figures."""
    figures = {"apps": f"{_counted({app: n for app, n in apps.memories.items() if n})}; {_counted(apps.changes)}"}
    for number, each in enumerate(apps.compactions):
        done = "deleted" if each.action == "delete" else f"takes in {each.merged_memory_id}"
        said = f"{each.app_id}: {each.before} → {each.after}, memory {each.target_memory_id} {done}: {each.reason}"
        figures["compacted" if number == 0 else " " * number] = said
    return figures


def _plural(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
