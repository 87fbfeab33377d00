"""The live view: a pure function from what is known to what is drawn, for 80 columns and any height from 24 on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from jobs.demo.state import AlertSeen, DemoState, Memory, News, SessionSeen, is_open
from jobs.demo.wording import (
    compaction_words,
    episode_words,
    fact_words,
    memory_words,
    milestone_words,
    segment_words,
    topic_words,
    user_episode_words,
)
from models.events import (
    AppMemoriesCompacted,
    AppMemoryChanged,
    FactChanged,
    Mode,
    ProjectItemChanged,
    SegmentCompacted,
    Severity,
    TopicChanged,
)

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
_FACT_STYLES = {"stored": "green", "updated": "bold green", "retracted": "yellow", "evicted": "yellow"}
_BARS = "▁▂▃▄▅▆▇█"
_RISK_STYLES = ((0.8, "red"), (0.5, "dark_orange"), (0.3, "yellow"), (0.0, "green"))
_SPARK_WIDTH = 22
_ID_WIDTH = 13
_MODE_WIDTH = 10
_FEWEST_MEMORIES = 1
_MOST_MEMORIES = 8
_FEWEST_NEWS = 1
_MOST_NEWS = 5
_MOST_ALERTS = 2
_HEIGHT_FOR_REASONS = 28
_MOST_COLUMNS = 100
_FIXED_LINES = 7
"""Header, progress bar, the table's head, three rules, and the line of the cursor."""


def render(state: DemoState, *, height: int = LEAST_HEIGHT, width: int = WIDTH) -> RenderableType:
    """The whole view.

    Args:
        state: What is known.
        height: Lines that may be used. Where they are few, sessions that ended give way first; what is left goes to
            the lists of users and memories.
        width: Columns of the screen; at most 100 of them are used.
    """
    columns = min(width, _MOST_COLUMNS)
    alerts = sorted(state.alerts.values(), key=is_open)[-_MOST_ALERTS:]
    reason_lines = 1 if height < _HEIGHT_FOR_REASONS else 2
    left = height - _FIXED_LINES - max(1, (1 + reason_lines) * len(alerts))
    sessions = _in_view(state, left - _FEWEST_NEWS - _FEWEST_MEMORIES)
    left -= len(sessions)
    news = min(_MOST_NEWS, max(_FEWEST_NEWS, left // 2))
    memories = min(_MOST_MEMORIES, max(_FEWEST_MEMORIES, left - news))
    parts: list[RenderableType] = [
        _header(state),
        Padding(ProgressBar(total=max(state.planned_turns, 1), completed=state.sent_turns), 0),
        _sessions(state, sessions),
        _rule("Alerts"),
        *(_alert(alert, width=columns, reason_lines=reason_lines) for alert in alerts),
        *([] if alerts else [Text("  none so far", style="dim")]),
        _rule(
            f"Users: {state.users.facts} facts · {state.users.episodes} episodes │ "
            f"Apps: {state.spaces.memories} memories │ Projects: {state.projects.memories}"
        ),
        *(_news(each) for each in list(state.news)[-news:]),
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


def _in_view(state: DemoState, most: int) -> list[str]:
    """Ids of the sessions that are shown, in their order; those that alerted whatever the room."""

    def place(numbered: tuple[int, str]) -> tuple[int, int]:
        number, session_id = numbered
        session = state.sessions[session_id]
        if state.alert_of(session_id):
            return 0, number
        if session.episode:
            return 3, -number
        return (1 if session.turns else 2), number

    ranked = sorted(enumerate(state.sessions), key=place)
    alerted = sum(state.alert_of(session_id) is not None for session_id in state.sessions)
    kept = {session_id for _, session_id in ranked[: max(most, alerted)]}
    return [session_id for session_id in state.sessions if session_id in kept]


def _sessions(state: DemoState, shown: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    hidden = len(state.sessions) - len(shown)
    first = f"session (+{hidden})" if hidden else "session"
    for title, columns in ((first, _ID_WIDTH), ("mode", _MODE_WIDTH), ("risk by turn", _SPARK_WIDTH)):
        table.add_column(title, min_width=columns, max_width=columns, no_wrap=True)
    for title in ("score", "turns"):
        table.add_column(title, justify="right", min_width=len(title), no_wrap=True)
    table.add_column("strongest signal", no_wrap=True, overflow="ellipsis")
    for session_id in shown:
        table.add_row(*_session(session_id, state.sessions[session_id], state.alert_of(session_id)))
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
        return shown.append(topic_words(memory), style=_TOPIC_STYLES[memory.cause]).append(
            f": {memory.title}", style="dim"
        )
    if isinstance(memory, SegmentCompacted):
        return shown.append(segment_words(memory), style="none")
    return shown.append(episode_words(memory), style="bold")


def _news(news: News) -> Text:
    if isinstance(news, ProjectItemChanged):
        who = news.project_id
    else:
        who = news.app_id if isinstance(news, AppMemoriesCompacted | AppMemoryChanged) else news.user_id
    shown = Text(f"  {who:<{_ID_WIDTH}}", style="cyan", no_wrap=True, overflow="ellipsis")
    if isinstance(news, AppMemoriesCompacted):
        return shown.append(compaction_words(news), style="bold magenta")
    if isinstance(news, AppMemoryChanged):
        return shown.append(memory_words(news), style="green" if news.active else "yellow")
    if isinstance(news, ProjectItemChanged):
        return shown.append(milestone_words(news), style="yellow" if news.cause == "superseded" else "bold green")
    if isinstance(news, FactChanged):
        return shown.append(fact_words(news), style=_FACT_STYLES.get(news.cause, "none"))
    return shown.append(user_episode_words(news), style="bold")
