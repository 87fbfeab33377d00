"""Memory of users, apps and projects, and the language model that helps with it."""

from __future__ import annotations

from jobs.operate.monitoring.board import MonitoringBoard, Panel, PanelRow, Query, per_second, quantile, rate, total

_USERS = PanelRow(
    "Users",
    (
        per_second("Changes of facts", "fact_changes_total", "cause"),
        per_second("Episodes", "episodes_total", "job", legend="episodes"),
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
        per_second("Prompts put together", "contexts_total", "result"),
    ),
)

_APPS = PanelRow(
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
        per_second("Conversations of which no memory was made", "app_memories_skipped_total", "reason"),
        per_second("Compactions", "app_memory_compactions_total", "result", "reason"),
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
        per_second("Energy units", "app_memory_energy_units_total", "cause"),
        Panel(
            title="Seconds of work on spaces, a second",
            queries=(Query(rate("app_memory_work_seconds_total", "job"), "{{job}}"),),
            unit="percentunit",
        ),
    ),
)

_PROJECTS = PanelRow(
    "Projects",
    (
        Panel(
            title="Projects and their memories",
            queries=(Query(total("projects", "job"), "projects"), Query(total("project_memories", "job"), "memories")),
        ),
        per_second("Changes of items", "project_item_changes_total", "cause"),
        per_second("Consolidations", "project_consolidations_total", "cause"),
        per_second("Tokens reclaimed", "project_tokens_reclaimed_total", "job", legend="tokens"),
        per_second("Accesses", "project_accesses_total", "result"),
    ),
)

_MODELS = PanelRow(
    "Language models",
    (
        per_second("Calls", "llm_calls_total", "service", "result", alerts=("TurntideLlmFailing",)),
        Panel(
            title="Time of a call, p99",
            queries=(Query(quantile(0.99, "llm_call_seconds", "service"), "{{service}}"),),
            unit="s",
        ),
        per_second("Tokens", "llm_tokens_total", "service", "direction"),
        Panel(
            title="Cost in a day",
            queries=(Query("sum by (service) (increase(turntide_llm_cost_total[1d]))", "{{service}}"),),
            alerts=("TurntideLlmCostHigh",),
        ),
    ),
)

MEMORY = MonitoringBoard(
    uid="turntide-memory",
    title="Turntide: memory",
    description="What is remembered of users, apps and projects, and what the language model does for it.",
    rows=(_USERS, _APPS, _PROJECTS, _MODELS),
)
