"""Metrics of project memory. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, gauge

PROJECT_METRICS = (
    counter(
        "project_item_changes_total",
        "changes",
        "cause",
        means="Changes of memories, episodes, chunks, conversations and pending facts of projects.",
        do="Displaced all the time: a project has more than the policy keeps. Superseded as often as created: subjects "
        "are taken for one another, see `turntide eval extraction`.",
    ),
    counter(
        "project_consolidations_total",
        "consolidations",
        "cause",
        means="Consolidations that ended: scheduled, or asked for.",
        do="Flat while projects are spoken of for days: look at the log of the memory role.",
    ),
    counter(
        "project_tokens_reclaimed_total",
        "tokens",
        means="Tokens of memories that consolidations archived, and of episodes that they merged.",
        do="For knowing what projects would weigh without.",
    ),
    gauge(
        "projects",
        "projects",
        "partition",
        means="Projects in the state.",
        do="For planning memory: times what `turntide bench project` shows.",
    ),
    gauge(
        "project_memories",
        "memories",
        "partition",
        means="Long-term memories of all projects in the state.",
        do="Rising without end: `projects.long_term.most` bounds each project, projects themselves have no bound.",
    ),
    counter(
        "project_accesses_total",
        "accesses",
        "result",
        means="Memories and episodes of projects that readers retrieved: `recorded`, `failed` where the log did not "
        "confirm it, `refused` where too many waited or the process takes no commands.",
        do="Failed or refused: memories decay though they are used; look at the broker, and at which role answers.",
    ),
)
