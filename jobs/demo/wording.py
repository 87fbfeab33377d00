"""Events in words, one a line."""

from __future__ import annotations

from collections.abc import Sequence

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

_SHOWN_TOPIC_CHANGES = frozenset({"compacted", "unpacked", "merged", "evicted"})
"""What is worth a line; topics start and are left all the time."""


def line(event: OutputEvent) -> str | None:
    """One plain line for what is worth a line; None for the rest."""
    match event:
        case AlertChanged():
            said = f"alert     {event.session_id}: {_alert(event)}"
        case SegmentCompacted():
            said = f"segment   {event.session_id}: {_segment(event)}"
        case TopicChanged() if _is_shown(event):
            said = f"topic     {event.session_id}: {_topic(event)}"
        case EpisodeClosed():
            said = f"episode   {event.session_id}: {_episode(event)}"
        case FactChanged():
            said = f"fact      {event.user_id}: {_fact(event)}"
        case AppMemoryChanged() if event.cause != "conflict":
            said = f"memory    {event.app_id}: {_memory(event)}"
        case AppMemoriesCompacted():
            said = f"memory    {event.app_id}: {_compaction(event)}"
        case EpisodeCompressed():
            said = f"episode   {event.user_id}: {_user_episode(event)}"
        case ProjectItemChanged() if _is_milestone(event):
            said = f"project   {event.project_id}: {_milestone(event)}"
        case _:
            return None
    return said


def _is_shown(change: TopicChanged) -> bool:
    return change.cause in _SHOWN_TOPIC_CHANGES and not (change.cause == "merged" and change.kept)


def _is_milestone(event: ProjectItemChanged) -> bool:
    """Whether it is a decision that came or was superseded, or another key moment.

    A decision is told as such; its episode says the same again.
    """
    if event.memory is not None:
        return event.memory.type is MemoryType.DECISION and event.cause in {"created", "superseded"}
    return (
        event.episode is not None and event.episode.kind is not EpisodeKind.DECISION_MADE and event.cause == "created"
    )


def _alert(change: AlertChanged) -> str:
    turns = ", ".join(str(evidence.turn) for evidence in change.evidence)
    return (
        f"{change.cause}, {change.severity}, score {change.score:.2f}, turn {change.turn}: {change.reason} "
        f"(evidence: turns {turns})"
    )


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
    """Which turns became how much shorter, and what they are about."""
    first, last = segment.first_turn, segment.last_turn
    return (
        f"{f'turn {last}' if first == last else f'turns {first}-{last}'} → summary, "
        f"{segment.tokens_before} → {segment.tokens_after} tokens{_about(segment.key_topics)}"
    )


def _episode(episode: EpisodeClosed) -> str:
    """What is kept of a session."""
    return f"closed after {episode.turn_count} turns, peak risk {episode.peak_risk:.2f}{_about(episode.key_topics)}"


def _fact(change: FactChanged) -> str:
    """What became of a fact, with its value: the texts of the demo are the demo's own."""
    name = f"{change.category}/{change.key} {change.cause}"
    if not change.active:
        return f"{name}: was {change.value}"
    before = f", was {change.history[-1].value}" if change.cause == "updated" and change.history else ""
    return f"{name}: {change.value}{before}"


def _memory(memory: AppMemoryChanged) -> str:
    """What became of a memory of an app, with its text: the demo's own."""
    name = f"memory {memory.memory_id} {memory.cause}"
    return f"{name}: {memory.content}" if memory.active else name


def _compaction(compaction: AppMemoriesCompacted) -> str:
    """How eleven memories became ten, and why."""
    merged = "" if compaction.merged_memory_id is None else f" with {compaction.merged_memory_id} merged into it"
    done = "deleted" if compaction.action == "delete" else f"kept{merged}"
    return (
        f"{len(compaction.before)} memories → {len(compaction.after)}, {compaction.target_memory_id} {done} "
        f"({compaction.decided_by}): {compaction.reason}"
    )


def _milestone(event: ProjectItemChanged) -> str:
    """What became of a decision, or which key moment it was, with its text: the demo's own."""
    if event.episode is not None:
        return f"{event.episode.kind.value.replace('_', ' ')}: {event.episode.title}"
    if event.memory is not None:
        return f"{event.memory.type} {event.cause}: {event.memory.content}"
    return f"{event.kind} {event.cause}"


def _user_episode(episode: EpisodeCompressed) -> str:
    """Which turns of a user became how much shorter, and what they are about."""
    return (
        f"{episode.turn_range} → summary, {episode.tokens_before:,} → {episode.tokens_after:,} tokens"
        f"{_about(episode.key_topics)}"
    )


def _about(topics: Sequence[str]) -> str:
    return f": {', '.join(topics)}" if topics else ""
