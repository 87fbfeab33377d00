"""Lines of the demo for people: events as they come, answers of memory, and the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.demo.asking import Erased, PurgedApp
from jobs.demo.questions import ProjectRecalled, Recalled
from jobs.demo.summary import DemoSummary
from models.events import (
    AlertChanged,
    AppMemoriesCompacted,
    AppMemoryChanged,
    EpisodeClosed,
    EpisodeCompressed,
    EpisodeKind,
    FactChanged,
    MemoryType,
    OutputEvent,
    ProjectItemChanged,
    SegmentCompacted,
    TopicChanged,
)
from models.retrieval.context import SUMMARY_CHARS
from streams.notify.wording import counterfactual

COMPRESSED_CLOCK = "compressed clock for topics: a minute counts as a day, and above 10 topics, not 20, they decay"
"""What somebody who watches has to know of the demo's policy (`policy.toml`)."""
_KIB = 1024


def event_line(event: OutputEvent) -> str | None:
    """One plain line for what is worth a line; None for the rest. Facts and memories are quoted: the demo's own."""
    match event:
        case AlertChanged():
            turns = ", ".join(str(evidence.turn) for evidence in event.evidence)
            score = f"{event.cause}, {event.severity}, score {event.score:.2f}, turn {event.turn}"
            line = "alert", event.session_id, f"{score}: {event.reason} (evidence: turns {turns})"
        case SegmentCompacted():
            first, last, tokens = event.first_turn, event.last_turn, (event.tokens_before, event.tokens_after)
            turns = f"turn {last}" if first == last else f"turns {first}-{last}"
            line = "segment", event.session_id, _compressed(turns, tokens, event.key_topics)
        case EpisodeCompressed():
            tokens = event.tokens_before, event.tokens_after
            line = "episode", event.user_id, _compressed(event.turn_range, tokens, event.key_topics)
        case EpisodeClosed():
            closed = f"closed after {event.turn_count} turns, peak risk {event.peak_risk:.2f}"
            line = "episode", event.session_id, closed + _about(event.key_topics)
        case TopicChanged():
            line = "topic", event.session_id, _topic(event)
        case FactChanged():
            before = f", was {event.history[-1].value}" if event.cause == "updated" and event.history else ""
            value = f"{event.value}{before}" if event.active else f"was {event.value}"
            line = "fact", event.user_id, f"{event.category}/{event.key} {event.cause}: {value}"
        case AppMemoryChanged() if event.cause != "conflict":
            content = f": {event.content}" if event.active else ""
            line = "memory", event.app_id, f"memory {event.memory_id} {event.cause}{content}"
        case AppMemoriesCompacted():
            line = "memory", event.app_id, _compaction(event)
        case ProjectItemChanged():
            line = "project", event.project_id, _milestone(event)
        case _:
            return None
    kind, whose, text = line
    return f"{kind:<9} {whose}: {text}" if text else None


def _compressed(turns: str, tokens: tuple[int, int], topics: Sequence[str]) -> str:
    return f"{turns} → summary, {tokens[0]:,} → {tokens[1]:,} tokens{_about(topics)}"


def _topic(change: TopicChanged) -> str:
    """What happened to a topic, without its title; starts and returns happen all the time and get no line."""
    packing = change.compaction
    match change.cause:
        case "compacted" if packing is not None:
            size = f"{packing.bytes_before:,} → {packing.bytes_after:,} bytes"
            return f"topic packed, {len(packing.turns)} messages, {size}"
        case "unpacked":
            return f"topic came back, {len(change.active_turns)} messages unpacked"
        case "evicted":
            return f"topic evicted after {change.message_count} messages, {change.detail}"
        case "merged" if not change.kept:
            return "topic merged into another"
    return ""


def _compaction(compaction: AppMemoriesCompacted) -> str:
    merged = "" if compaction.merged_memory_id is None else f" with {compaction.merged_memory_id} merged into it"
    kept = "deleted" if compaction.action == "delete" else f"kept{merged}"
    return (
        f"{len(compaction.before)} memories → {len(compaction.after)}, {compaction.target_memory_id} {kept} "
        f"({compaction.decided_by}): {compaction.reason}"
    )


def _milestone(event: ProjectItemChanged) -> str:
    """A decision that came or was superseded, or another key moment; the episode of a decision says the same again."""
    memory, episode = event.memory, event.episode
    if memory is not None and memory.type is MemoryType.DECISION and event.cause in {"created", "superseded"}:
        return f"{memory.type} {event.cause}: {memory.content}"
    if episode is not None and episode.kind is not EpisodeKind.DECISION_MADE and event.cause == "created":
        return f"{episode.kind.value.replace('_', ' ')}: {episode.title}"
    return ""


def _about(topics: Sequence[str]) -> str:
    return f": {', '.join(topics)}" if topics else ""


def recalled_lines(recalled: Recalled) -> list[str]:
    """A question with what memory knows of the user and the nearest episode, as far as a prompt would have them."""
    lines = [f"{recalled.user_id} asks: {recalled.query} ({recalled.milliseconds:.0f} ms)"]
    if recalled.facts:
        lines.append("facts: " + ", ".join(f"{name} = {value}" for name, value in recalled.facts.items()))
    if (near := recalled.nearest_episode) is not None:
        distance = "" if near.distance is None else f", distance {near.distance:.2f}"
        lines.append(f"nearest episode: {near.turn_range}{distance}: {near.summary[:SUMMARY_CHARS]}…")
    return lines


def project_lines(recalled: ProjectRecalled) -> list[str]:
    """What the memory of a project holds, and what it answered: of pivots, before and after them."""
    answers = [f"{each.asked} ({each.milliseconds:.0f} ms): {each.said}" for each in recalled.answers]
    return [_project_figures(recalled), *answers]


def purged_lines(purged: PurgedApp) -> list[str]:
    """What a purge took, and what is left."""
    return [f"{purged.deleted} deleted, {purged.left} left, read {purged.milliseconds:.0f} ms after the request"]


def erased_lines(erased: Erased) -> list[str]:
    """The proof of an erasure: every store that held something, and what expires by itself."""
    if (proof := erased.proof) is None:
        return []
    held = [store for store in proof.stores if store.removed or store.remaining]
    lines = [f"proved after {erased.seconds:g} s, {proof.sessions} session(s), request {proof.request_id}"]
    for each in held:
        expires = "" if each.expires_at is None else f", {each.remaining} until {each.expires_at:%Y-%m-%d} (retention)"
        lines.append(f"{each.store:<32} {each.removed:>5} of {each.looked_at:,} removed{expires}")
    return [*lines, f"{len(proof.stores) - len(held)} other stores held nothing of them"]


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
    for name, text in {**summary.figures, **_more_figures(summary)}.items():
        grid.add_row(name, text)
    for alert in summary.alerts:
        soon = "" if alert.latency_ms is None else f", {alert.latency_ms:.0f} ms after its turn"
        grid.add_row("alert", f"{alert.session_id}: {alert.gravest.severity} ({', '.join(alert.causes)}){soon}")
        if (judged := alert.gravest.escalation) is not None:
            probability = f"probability {judged.probability:.2f}, alert from {judged.threshold:.2f}"
            grid.add_row("", f"{probability}. {counterfactual(judged)}")
    console.print("\n[bold]The play is over.[/]", grid, sep="\n")
    for problem in summary.problems:
        console.print(Text(f"✗ {problem}", style="bold red"))
    for kept in _as_promised(summary) if summary.as_expected else ():
        console.print(Text(f"✓ {kept}", style="bold green"))
    console.print("\n[bold]How to look further[/]")
    for what, command in further.items():
        console.print(Text(f"  {what}", style="dim"))
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)  # unwrapped, so that it can be copied


def _more_figures(summary: DemoSummary) -> dict[str, str]:
    archive, project = summary.archive, summary.answers.project
    ratio = f"{archive.json_to_parquet_ratio}× smaller than" if archive.json_to_parquet_ratio else "of"
    return {
        "clock": COMPRESSED_CLOCK,
        "project": f"{project.project_id}: {_project_figures(project)}",
        "archive": f"{archive.rows:,} rows in {archive.files} Parquet files, {archive.bytes / _KIB:,.0f} KiB, "
        f"{ratio} JSON",
        "time": f"{summary.seconds:.0f} s",
    }


def _as_promised(summary: DemoSummary) -> list[str]:
    alerts = ", ".join(f"{a.session_id} at turn {a.turn} of {a.turns_of_session}" for a in summary.alerts)
    users = ", ".join(sorted({each.user_id for each in summary.answers.recalled}))
    return [
        f"Exactly the expected alerts, in time: {alerts}.",
        "Topics came, were packed, unpacked and evicted.",
        f"Memory answered as it should for {users}.",
        "The project's decisions are found, and those before each pivot as of then.",
        "Each conversation that ended became a memory of its app; the oldest were compacted, none has more than ten.",
        f"{summary.answers.purged.app_id} was purged, {summary.answers.erased.user_id} forgotten with a proof.",
    ]


def _project_figures(recalled: ProjectRecalled) -> str:
    types = ", ".join(f"{count} {name}" for name, count in recalled.memories.items())
    return (
        f"{recalled.chunks} chunks, {sum(recalled.memories.values())} memories ({types}), "
        f"{recalled.superseded} superseded, {recalled.pending} pending, {len(recalled.key_moments)} key moments"
    )
