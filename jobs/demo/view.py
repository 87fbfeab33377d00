"""The live view: a pure function from what is known to what is drawn, for 80 columns and any height from 24 on.

Where the output is no terminal, `line` says the same events one a line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from jobs.demo.state import AlertSeen, DemoState, Memory, SessionSeen, is_open, is_told
from models.events import AlertChanged, EpisodeClosed, Mode, OutputEvent, SegmentCompacted, Severity, TopicChanged

WIDTH = 80
LEAST_HEIGHT = 24

MODE_STYLES = {
    Mode.CALM: "green",
    Mode.WATCH: "yellow",
    Mode.ELEVATED: "dark_orange",
    Mode.CRITICAL: "bold red",
}
_SEVERITY_STYLES = {Severity.WARNING: "dark_orange", Severity.CRITICAL: "bold red"}
_TOPIC_STYLES = {"compacted": "magenta", "unpacked": "bold magenta", "merged": "magenta", "evicted": "yellow"}
_BARS = "▁▂▃▄▅▆▇█"
_RISK_STYLES = ((0.8, "red"), (0.5, "dark_orange"), (0.3, "yellow"), (0.0, "green"))
_SPARK_WIDTH = 22
_ID_WIDTH = 12
_MODE_WIDTH = 10
_FEWEST_MEMORIES = 1
_MOST_MEMORIES = 8
_MOST_ALERTS = 2
_HEIGHT_FOR_REASONS = 28
_MOST_COLUMNS = 100
_FIXED_LINES = 6
"""Header, progress bar, the table's head, two rules, and the line of the cursor."""


def render(state: DemoState, *, height: int = LEAST_HEIGHT, width: int = WIDTH) -> RenderableType:
    """The whole view.

    Args:
        state: What is known.
        height: Lines that may be used; the list of memories takes what is left.
        width: Columns of the screen; at most 100 of them are used.
    """
    columns = min(width, _MOST_COLUMNS)
    alerts = sorted(state.alerts.values(), key=is_open)[-_MOST_ALERTS:]
    reason_lines = 1 if height < _HEIGHT_FOR_REASONS else 2
    taken = _FIXED_LINES + len(state.sessions) + max(1, (1 + reason_lines) * len(alerts))
    memories = min(_MOST_MEMORIES, max(_FEWEST_MEMORIES, height - taken))
    parts: list[RenderableType] = [
        _header(state),
        Padding(ProgressBar(total=max(state.planned_turns, 1), completed=state.sent_turns), 0),
        _sessions(state),
        _rule("Alerts"),
        *(_alert(alert, width=columns, reason_lines=reason_lines) for alert in alerts),
        *([] if alerts else [Text("  none so far", style="dim")]),
        _rule(f"Memory: {state.segments} segments · {topic_counts(state.topics)}"),
        *(_memory(memory) for memory in list(state.memories)[-memories:]),
    ]
    return Padding(Group(*parts), (0, width - columns, 0, 0))


def sparkline(values: Sequence[float], width: int) -> Text:
    """The latest values, 0-1, one character each, coloured by height.

    >>> sparkline([0.0, 0.5, 1.0], 8).plain
    '▁▅█'
    """
    spark = Text()
    for value in list(values)[-width:]:
        style = next(style for least, style in _RISK_STYLES if value >= least)
        spark.append(_BARS[min(int(value * len(_BARS)), len(_BARS) - 1)], style=style)
    return spark


def line(event: OutputEvent) -> str | None:
    """One plain line for what is worth a line; None for the rest."""
    if isinstance(event, AlertChanged):
        turns = ", ".join(str(evidence.turn) for evidence in event.evidence)
        return (
            f"alert     {event.session_id}: {event.cause}, {event.severity}, score {event.score:.2f}, "
            f"turn {event.turn}: {event.reason} (evidence: turns {turns})"
        )
    if isinstance(event, SegmentCompacted):
        return f"segment   {event.session_id}: {_segment(event)}"
    if isinstance(event, TopicChanged) and is_told(event):
        return f"topic     {event.session_id}: {_topic(event)}"
    if isinstance(event, EpisodeClosed):
        return f"episode   {event.session_id}: {_episode(event)}"
    return None


def topic_counts(causes: Mapping[str, int]) -> str:
    """How many topics came, were packed, unpacked and evicted.

    >>> topic_counts({"started": 3, "evicted": 1})
    'topics: 3 started, 0 packed, 0 unpacked, 1 evicted'
    """
    counted = (("started", "started"), ("compacted", "packed"), ("unpacked", "unpacked"), ("evicted", "evicted"))
    return "topics: " + ", ".join(f"{causes.get(cause, 0)} {word}" for cause, word in counted)


def progress_line(state: DemoState) -> str:
    """One plain line for where the play stands."""
    return f"progress  {_minutes(state.elapsed_s)} " + " · ".join(_figures(state))


def _figures(state: DemoState) -> list[str]:
    lag = "?" if state.lag is None else f"{state.lag}"
    archived = "?" if state.archived is None else f"{state.archived:,}"
    return [
        f"turns {state.folded_turns}/{state.planned_turns}",
        f"{state.turns_per_s:.1f}/s",
        f"lag {lag}",
        f"archived {archived}",
        f"alerts {len(state.alerts)}",
    ]


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _header(state: DemoState) -> Text:
    header = Text("Turntide ", style="bold", no_wrap=True, overflow="ellipsis")
    header.append(f" {_minutes(state.elapsed_s)}  ", style="bold cyan")
    header.append(" │ ".join(_figures(state)), style="none")
    return header


def _rule(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style="dim")


def _sessions(state: DemoState) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    for title, columns in (("session", _ID_WIDTH), ("mode", _MODE_WIDTH), ("risk by turn", _SPARK_WIDTH)):
        table.add_column(title, min_width=columns, max_width=columns, no_wrap=True)
    for title in ("score", "turns"):
        table.add_column(title, justify="right", min_width=len(title), no_wrap=True)
    table.add_column("strongest signal", no_wrap=True, overflow="ellipsis")
    for session_id, session in state.sessions.items():
        table.add_row(*_session(session_id, session, state.alert_of(session_id)))
    return table


def _session(session_id: str, session: SessionSeen, alert: AlertSeen | None) -> list[Text]:
    style = MODE_STYLES[session.mode]
    faint = "dim" if session.episode or not session.turns else "none"
    mark = " ⚠" if alert and is_open(alert) else ""
    return [
        Text(session_id + mark, style="bold" if mark else faint),
        Text(f"● {session.mode}" if session.turns else "·", style=style if session.turns else "dim"),
        sparkline(session.risks, _SPARK_WIDTH),
        Text(f"{session.score:.2f}" if session.turns else "", style=style),
        Text(str(session.turns or ""), style=faint),
        Text(_last_word(session), style="none" if session.signal else "dim"),
    ]


def _last_word(session: SessionSeen) -> str:
    ended = "ended" if session.episode else ""
    return (session.signal or ended).replace("_", " ")


def _alert(alert: AlertSeen, *, width: int, reason_lines: int) -> Group:
    change = alert.latest
    head = Text("  ", no_wrap=True, overflow="ellipsis")
    head.append(f"{change.severity.upper()} ", style=_SEVERITY_STYLES[change.severity] if is_open(alert) else "dim")
    head.append(change.session_id, style="bold")
    head.append(f" at turn {alert.raised.turn}: {', '.join(alert.causes)}")
    turns = ", ".join(str(evidence.turn) for evidence in alert.gravest.evidence)
    why = f"turns {turns}: {alert.gravest.reason}"
    wrapped = textwrap.wrap(
        why, width, max_lines=reason_lines, placeholder=" …", initial_indent="  ", subsequent_indent="  "
    )
    return Group(head, Text("\n".join(wrapped), style="dim", no_wrap=True, overflow="ellipsis"))


def _memory(memory: Memory) -> Text:
    shown = Text(f"  {memory.session_id:<{_ID_WIDTH}}", style="cyan", no_wrap=True, overflow="ellipsis")
    if isinstance(memory, TopicChanged):
        return shown.append(_topic(memory), style=_TOPIC_STYLES[memory.cause]).append(f": {memory.title}", style="dim")
    if isinstance(memory, SegmentCompacted):
        return shown.append(_segment(memory), style="none")
    return shown.append(_episode(memory), style="bold")


def _topic(change: TopicChanged) -> str:
    """What happened to a topic, without its title: that is what somebody wrote."""
    packing = change.compaction
    if packing is not None:
        return f"topic packed, {len(packing.turns)} messages, {packing.bytes_before:,} → {packing.bytes_after:,} bytes"
    if change.cause == "unpacked":
        return f"topic came back, {len(change.active_turns)} messages unpacked"
    if change.cause == "evicted":
        return f"topic evicted after {change.message_count} messages, {change.detail}"
    return "topic merged into another"


def _segment(segment: SegmentCompacted) -> str:
    first, last = segment.first_turn, segment.last_turn
    return (
        f"{f'turn {last}' if first == last else f'turns {first}-{last}'} → summary, "
        f"{segment.tokens_before} → {segment.tokens_after} tokens{_about(segment.key_topics)}"
    )


def _episode(episode: EpisodeClosed) -> str:
    return f"closed after {episode.turn_count} turns, peak risk {episode.peak_risk:.2f}{_about(episode.key_topics)}"


def _about(topics: Sequence[str]) -> str:
    return f": {', '.join(topics)}" if topics else ""
