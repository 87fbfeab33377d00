"""Metrics of app memory (Metrics to Track). Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, gauge

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
        do="Often by hand: read what is made (`turntide memories`), and why it is not good enough.",
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
        do="More than 5 % of all folding (stage_seconds of sessions and memory): see `turntide bench memories`.",
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
