"""Index and archive: what is kept, and how far behind the log it is."""

from __future__ import annotations

from jobs.operate.monitoring.board import MonitoringBoard, Panel, PanelRow, Query, most, per_second, rate, total

_INDEX = PanelRow(
    "Index",
    (
        Panel(
            title="Records that are not in the index yet",
            queries=(Query(total("index_lag_records", "topic"), "{{topic}}"),),
            alerts=("TurntideIndexBehind",),
        ),
        Panel(title="Points", queries=(Query(most("index_points", "job"), "points"),)),
        per_second("Calls to vector store or embedder made again", "index_retries_total", "job"),
    ),
)

_ARCHIVE = PanelRow(
    "Archive",
    (
        Panel(
            title="Records that are not in the archive yet",
            queries=(Query(total("archive_lag_records", "topic"), "{{topic}}"),),
            alerts=("TurntideArchiveBehind",),
        ),
        per_second("Rows landed", "archive_rows_total", "topic", alerts=("TurntideArchiveBehind",)),
        per_second("Files landed", "archive_files_total", "topic"),
        Panel(
            title="Bytes landed, a second",
            queries=(Query(rate("archive_bytes_total", "topic"), "{{topic}}"),),
            unit="Bps",
        ),
        per_second("Upkeep: runs", "archive_upkeep_total", "result"),
        Panel(
            title="Upkeep: 1 since one did not settle",
            queries=(Query(most("archive_unsettled", "job"), "{{job}}"),),
            alerts=("TurntideArchiveNotSettled",),
        ),
        Panel(
            title="Upkeep: time since the last",
            queries=(
                Query(
                    "time() - max by (job) (turntide_archive_upkeep_timestamp_seconds > 0)",
                    "{{job}}",
                ),
            ),
            unit="s",
            alerts=("TurntideArchiveNotSettled",),
        ),
        Panel(
            title="Erasures asked for and not proved",
            queries=(Query(most("erasures_pending", "job"), "{{job}}"),),
        ),
        Panel(
            title="How long the oldest of them is pending",
            queries=(Query(most("erasure_oldest_pending_seconds", "job"), "{{job}}"),),
            unit="s",
            alerts=("TurntideErasuresOverdue",),
        ),
    ),
)

STORES = MonitoringBoard(
    uid="turntide-stores",
    title="Turntide: archive and index",
    description="What is kept, how far behind the log it is, and what is still to be forgotten.",
    rows=(_INDEX, _ARCHIVE),
)
