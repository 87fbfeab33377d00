"""Metrics of what keeps and delivers: index, archive, sinks. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, gauge

STORE_METRICS = (
    gauge(
        "index_points",
        "points",
        means="Points in the vector store.",
        do="Compare with turns folded; a gap means the index role is behind.",
    ),
    gauge(
        "index_lag_records",
        "records",
        "topic",
        means="Records in the log that are not in the index yet, of all partitions that this worker has.",
        do="Rising for minutes: look which stage_seconds grew. embed: the embedder, upsert: the vector store.",
    ),
    counter(
        "index_retries_total",
        "calls",
        means="Calls to the vector store or the embedder that were not answered and are made again.",
        do="Rising: the store or the embedder is away; `turntide doctor` tries both. Alerts do not wait for it.",
    ),
    counter(
        "archive_rows_total",
        "rows",
        "topic",
        means="Rows landed in the archive.",
        do="Flat while the lag grows: look at the archive role's log.",
    ),
    counter(
        "archive_files_total",
        "files",
        "topic",
        means="Parquet files landed.",
        do="Many small ones: raise archive.flush_age or merge more often.",
    ),
    counter(
        "archive_bytes_total",
        "bytes",
        "topic",
        means="Bytes of the Parquet files landed.",
        do="For planning disk space.",
    ),
    gauge(
        "archive_lag_records",
        "records",
        "topic",
        "partition",
        means="Records in the log that are not in the archive yet.",
        do="Rising for minutes: the disk or the catalog is slow.",
    ),
    counter(
        "archive_upkeep_total",
        "runs",
        "result",
        means="Runs of the archive's upkeep, which merges files and writes down repeats: `done`, or `not_settled` "
        "where the repeats could not be written down. Views stay exact meanwhile, and grow slower.",
        do="not_settled: read the event archive_not_settled in the log, then `turntide archive verify`.",
    ),
    gauge(
        "archive_unsettled",
        "0 or 1",
        means="1 since an upkeep that did not settle, 0 since one that did.",
        do="1 for hours: a file of the archive is damaged. `turntide archive verify` names it, `turntide archive` has "
        "what repairs it.",
    ),
    gauge(
        "archive_upkeep_timestamp_seconds",
        "seconds",
        means="When the archive's upkeep last ended, in seconds since 1970; 0 before the first.",
        do="Hours ago while rows land: the upkeep does not run; read the archive role's log.",
    ),
    gauge(
        "erasures_pending",
        "erasures",
        means="Erasures that are asked for and not proved, as the archive worker sees it that carries them out.",
        do="Above zero for an hour: the archive role's log and `turntide memory erase --status` name the role.",
    ),
    gauge(
        "erasure_oldest_pending_seconds",
        "seconds",
        means="How long ago the oldest erasure was asked for that is not proved; 0 if none is pending.",
        do="Above an hour: as erasures_pending.",
    ),
    counter(
        "sink_deliveries_total",
        "alerts",
        "sink",
        "result",
        means="Alerts handed to each sink, by `delivered` or `failed`.",
        do="Failures: look at the receiver; alerts stay on the topic and are tried again.",
    ),
    gauge(
        "sink_lag_records",
        "records",
        "sink",
        "partition",
        means="Alert changes that a sink has not taken yet.",
        do="Rising: that receiver refuses or is slow, see sink_deliveries_total. Other sinks go on.",
    ),
)
