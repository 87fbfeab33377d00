"""Metrics of memories: of topics, users, apps and projects. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, gauge

TOPIC_METRICS = (
    counter(
        "topic_changes_total",
        "changes",
        "cause",
        means="Changes of conversation topics: started, returned, compacted, unpacked, merged, evicted and others.",
        do="Hardly any returned beside started: the similarity threshold is too high for this embedder, see "
        "`turntide lab eval topics`. Evicted as often as started: topics do not last, look at the half-lives.",
    ),
    counter(
        "topic_history_bytes_total",
        "bytes",
        means="JSON of the messages that compactions of topics packed.",
        do="Compare with topic_packed_bytes_total: that by this is the ratio of packing.",
    ),
    counter(
        "topic_packed_bytes_total",
        "bytes",
        means="The same messages, packed.",
        do="More than half of topic_history_bytes_total: messages are short or all unlike; the codec deflate packs "
        "such ones better.",
    ),
)

USER_METRICS = (
    counter(
        "fact_changes_total",
        "changes",
        "cause",
        means="Changes of facts of users: stored, updated, confirmed, retracted, evicted.",
        do="Updated as often as stored: rules take passing remarks for facts, see `turntide lab eval facts`.",
    ),
    counter(
        "episodes_total",
        "episodes",
        means="Episodes that turns of users became.",
        do="Flat while turns are folded: the enrich role does not answer, look at its lag.",
    ),
    counter(
        "episode_turn_tokens_total",
        "tokens",
        means="Tokens of the turns that became episodes.",
        do="By episode_tokens_total: how much shorter a context is.",
    ),
    counter(
        "episode_tokens_total",
        "tokens",
        means="Tokens of the summaries that stand for them.",
        do="Near episode_turn_tokens_total: turns are short, lower users.summary_sentences.",
    ),
    counter(
        "requests_answered_total",
        "requests",
        "result",
        means="Requests of the memory role: `answered` as wished; `extractive` (episodes), `empty` (facts) or `failed` "
        "(memories of apps) where the language model failed.",
        do="Hardly any answered while a model is configured: `turntide doctor`, then the log of the enrich role.",
    ),
)

APP_METRICS = (
    counter(
        "app_memories_created_total",
        "memories",
        means="Memories made of ended conversations. Its rate per hour is the memory creation rate.",
        do="Flat while conversations end: look at app_memories_waiting, then at the lag of the memory role.",
    ),
    counter(
        "app_memories_skipped_total",
        "conversations",
        "reason",
        means="Ended conversations of which no memory was made: nothing_said, or why the language model made none.",
        do="Timeout, llm_error or no_answer: look at the enrich role. Mostly nothing_said: conversations are short, or "
        "in a language that the rules do not read; configure a language model.",
    ),
    counter(
        "app_memories_edited_total",
        "memories",
        means="Memories that an admin changed, pinned or shared.",
        do="Often by hand: read what is made (`turntide memory apps`), and why it is not good enough.",
    ),
    counter(
        "app_memories_deleted_total",
        "memories",
        "cause",
        means="Memories that went, by cause: compacted, merged, deleted, purged, erased.",
        do="A jump in purged or deleted: read app_memory_audited events, they say who.",
    ),
    counter(
        "app_memory_compactions_total",
        "compactions",
        "result",
        "reason",
        means="Compactions by who decided (rules, model, fifo), and why another decision could not be used. By spaces "
        "with memories and day it is the compaction frequency: about one per conversation once a space is full.",
        do="Much fifo while a model is configured: its decisions are refused, the reason says why.",
    ),
    counter(
        "app_memory_energy_units_total",
        "units",
        "cause",
        means="Energy spent on memory work (app memory, energy consumption), by creation and compaction.",
        do="Near the refill of all spaces: memories wait, raise apps.energy.refill_units_per_hour or ask no model.",
    ),
    counter(
        "app_memory_work_seconds_total",
        "seconds",
        means="Time the memory role spent on spaces of memories.",
        do="More than 5 % of all folding (stage_seconds of sessions and memory): see `turntide lab bench memories`.",
    ),
    gauge(
        "app_memories_waiting",
        "conversations",
        "partition",
        means="Ended conversations that wait to become a memory: for energy, or for an answer.",
        do="Rising for minutes: the energy budget is too small for the traffic, or the enrich role does not answer.",
    ),
    gauge(
        "app_memory_spaces",
        "spaces",
        "partition",
        means="Spaces of memories: apps, and users in apps.",
        do="Near the number of users though spaces are of apps: app_id holds ids of users.",
    ),
    gauge(
        "app_memory_spaces_used",
        "spaces",
        "partition",
        means="Spaces that hold a memory. By app_memory_spaces it is the memory utilisation.",
        do="Few of many: conversations leave nothing, see app_memories_skipped_total.",
    ),
)

PROJECT_METRICS = (
    counter(
        "project_item_changes_total",
        "changes",
        "cause",
        means="Changes of memories, episodes, chunks, conversations and pending facts of projects.",
        do="Displaced all the time: a project has more than the policy keeps. Superseded as often as created: subjects "
        "are taken for one another, see `turntide lab eval extraction`.",
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
        do="For planning memory: times what `turntide lab bench project` shows.",
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
