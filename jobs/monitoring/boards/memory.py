"""Memory of users, apps and projects, and the language model that helps with it."""

from __future__ import annotations

from jobs.monitoring.board import Board, Panel, Query, Row, quantile, rate, total

_USERS = Row(
    "Users",
    (
        Panel(
            title="Changes of facts, a second",
            queries=(Query(rate("fact_changes_total", "cause"), "{{cause}}"),),
            unit="ops",
        ),
        Panel(title="Episodes, a second", queries=(Query(rate("episodes_total", "job"), "episodes"),), unit="ops"),
        Panel(
            title="Tokens of summaries by tokens of their turns",
            queries=(
                Query(f"{rate('episode_tokens_total', 'job')} / {rate('episode_turn_tokens_total', 'job')}", "ratio"),
            ),
            unit="percentunit",
        ),
        Panel(
            title="Turns that wait to become episodes",
            queries=(Query(total("compaction_backlog_turns", "job"), "{{job}}"),),
            alerts=("TurntideCompactionBehind",),
        ),
        Panel(
            title="Requests of the memory role, answered a second",
            queries=(Query(rate("requests_answered_total", "result"), "{{result}}"),),
            unit="ops",
        ),
        Panel(
            title="Prompts put together, a second",
            queries=(Query(rate("contexts_total", "result"), "{{result}}"),),
            unit="ops",
        ),
    ),
)

_APPS = Row(
    "Apps",
    (
        Panel(
            title="Memories, a second",
            queries=(
                Query(rate("app_memories_created_total", "job"), "created"),
                Query(rate("app_memories_edited_total", "job"), "edited"),
                Query(rate("app_memories_deleted_total", "cause"), "deleted: {{cause}}"),
            ),
            unit="ops",
        ),
        Panel(
            title="Conversations of which no memory was made, a second",
            queries=(Query(rate("app_memories_skipped_total", "reason"), "{{reason}}"),),
            unit="ops",
        ),
        Panel(
            title="Compactions, a second",
            queries=(Query(rate("app_memory_compactions_total", "result", "reason"), "{{result}} {{reason}}"),),
            unit="ops",
        ),
        Panel(
            title="Conversations that wait to become a memory",
            queries=(Query(total("app_memories_waiting", "job"), "waiting"),),
        ),
        Panel(
            title="Spaces",
            queries=(
                Query(total("app_memory_spaces", "job"), "all"),
                Query(total("app_memory_spaces_used", "job"), "with memories"),
            ),
        ),
        Panel(
            title="Energy units, a second",
            queries=(Query(rate("app_memory_energy_units_total", "cause"), "{{cause}}"),),
            unit="ops",
        ),
        Panel(
            title="Seconds of work on spaces, a second",
            queries=(Query(rate("app_memory_work_seconds_total", "job"), "{{job}}"),),
            unit="percentunit",
        ),
    ),
)

_PROJECTS = Row(
    "Projects",
    (
        Panel(
            title="Projects and their memories",
            queries=(Query(total("projects", "job"), "projects"), Query(total("project_memories", "job"), "memories")),
        ),
        Panel(
            title="Changes of items, a second",
            queries=(Query(rate("project_item_changes_total", "cause"), "{{cause}}"),),
            unit="ops",
        ),
        Panel(
            title="Consolidations, a second",
            queries=(Query(rate("project_consolidations_total", "cause"), "{{cause}}"),),
            unit="ops",
        ),
        Panel(
            title="Tokens reclaimed, a second",
            queries=(Query(rate("project_tokens_reclaimed_total", "job"), "tokens"),),
            unit="ops",
        ),
        Panel(
            title="Accesses, a second",
            queries=(Query(rate("project_accesses_total", "result"), "{{result}}"),),
            unit="ops",
        ),
    ),
)

_MODELS = Row(
    "Language models",
    (
        Panel(
            title="Calls, a second",
            queries=(Query(rate("llm_calls_total", "service", "result"), "{{service}} {{result}}"),),
            unit="ops",
            alerts=("TurntideLlmFailing",),
        ),
        Panel(
            title="Time of a call, p99",
            queries=(Query(quantile(0.99, "llm_call_seconds", "service"), "{{service}}"),),
            unit="s",
        ),
        Panel(
            title="Tokens, a second",
            queries=(Query(rate("llm_tokens_total", "service", "direction"), "{{service}} {{direction}}"),),
            unit="ops",
        ),
        Panel(
            title="Cost in a day",
            queries=(Query("sum by (service) (increase(turntide_llm_cost_total[1d]))", "{{service}}"),),
            alerts=("TurntideLlmCostHigh",),
        ),
    ),
)

MEMORY = Board(
    uid="turntide-memory",
    title="Turntide: memory",
    description="What is remembered of users, apps and projects, and what the language model does for it.",
    rows=(_USERS, _APPS, _PROJECTS, _MODELS),
)
