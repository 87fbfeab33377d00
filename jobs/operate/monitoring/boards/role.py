"""One role in detail: batches, partitions, state, recovery, HTTP, the process."""

from __future__ import annotations

from jobs.operate.monitoring.board import (
    WINDOW,
    MonitoringBoard,
    Panel,
    PanelRow,
    Query,
    per_second,
    quantile,
    rate,
    series,
    total,
)

_HERE = 'job="$job", instance=~"$instance"'
_HTTP = f'{_HERE}, route!~"/livez|/readyz|/metrics"'

_BATCHES = PanelRow(
    "Batches",
    (
        per_second("Records done by topic", "records_total", "topic", where=_HERE, alerts=("TurntideStalled",)),
        Panel(
            title="Time of a batch in each stage, p99",
            queries=(Query(quantile(0.99, "stage_seconds", "stage", where=_HERE), "{{stage}}"),),
            unit="s",
        ),
        Panel(
            title="Records in a batch",
            queries=tuple(
                Query(quantile(share, "batch_turns", where=_HERE), f"p{share * 100:g}") for share in (0.5, 0.99)
            ),
        ),
        Panel(
            title="Records that wait, by partition",
            queries=(Query(total("offset_lag_records", "partition", where=_HERE), "{{partition}}"),),
            alerts=("TurntideBacklog", "TurntideStalled"),
        ),
        Panel(
            title="Event time behind the clock, by partition",
            queries=(Query(total("event_time_lag_seconds", "partition", where=_HERE), "{{partition}}"),),
            unit="s",
        ),
        Panel(
            title="Batches refused and read again",
            queries=(
                Query(f"sum by (reason) (increase({series('batches_refused_total', _HERE)}[30m]))", "{{reason}}"),
                Query(f"sum by (job) (increase({series('rebalance_heals_total', _HERE)}[30m]))", "read again"),
            ),
            alerts=("TurntideRebalancing",),
        ),
    ),
)

_STATE = PanelRow(
    "State and recovery",
    (
        Panel(
            title="Entries by partition",
            queries=(Query(total("state_entries", "partition", where=_HERE), "{{partition}}"),),
        ),
        Panel(
            title="Bytes by partition",
            queries=(Query(total("state_bytes", "partition", where=_HERE), "{{partition}}"),),
            unit="bytes",
            alerts=("TurntideStateGrowing",),
        ),
        Panel(
            title="Changelog bytes for each turn",
            queries=(
                Query(
                    f"{rate('changelog_bytes_total', 'job', where=_HERE)}"
                    f" / {rate('turns_folded_total', 'job', where=_HERE)}",
                    "{{job}}",
                ),
            ),
            unit="bytes",
            alerts=("TurntideChangelogGrowing",),
        ),
        Panel(
            title="Changelog records still to be applied",
            queries=(Query(total("recovery_remaining_records", "instance", where=_HERE), "{{instance}}"),),
            alerts=("TurntideRecoverySlow",),
        ),
        per_second("Changelog records applied", "recovery_records_total", "instance", where=_HERE),
        Panel(
            title="Time from assignment to ready, p99 of a day",
            queries=(
                Query(
                    "histogram_quantile(0.99, sum by (job, le) "
                    f"(increase({series('recovery_seconds_bucket', _HERE)}[1d])))",
                    "{{job}}",
                ),
            ),
            unit="s",
        ),
    ),
)

_SERVING = PanelRow(
    "HTTP",
    (
        Panel(
            title="Requests, a second",
            queries=(Query(rate("http_requests_total", "route", "status", where=_HTTP), "{{route}} {{status}}"),),
            unit="reqps",
            alerts=("TurntideHttpErrors",),
        ),
        Panel(
            title="Time of a request, p99",
            queries=(Query(quantile(0.99, "http_request_seconds", "route", where=_HTTP), "{{route}}"),),
            unit="s",
            alerts=("TurntideHttpSlow",),
        ),
        per_second("Requests and connections refused", "http_refused_total", "reason", where=_HERE),
        Panel(
            title="Live streams, and those lost in a quarter of an hour",
            queries=(
                Query(total("live_streams", "instance", where=_HERE), "{{instance}}"),
                Query(
                    f"sum by (instance) (increase({series('live_stream_drops_total', _HERE)}[15m]))",
                    "{{instance}}, lost",
                ),
            ),
            alerts=("TurntideLiveStreamDrops",),
        ),
        per_second("Audit records", "audit_records_total", "result", where=_HERE, alerts=("TurntideAuditFailing",)),
    ),
)

_PROCESS = PanelRow(
    "The process",
    (
        Panel(
            title="Memory",
            queries=(
                Query(f"process_resident_memory_bytes{{{_HERE}}}", "{{instance}}"),
                Query(series("memory_limit_bytes", _HERE), "{{instance}}, limit"),
            ),
            unit="bytes",
            alerts=("TurntideMemoryHigh",),
        ),
        Panel(
            title="CPU",
            queries=(Query(f"rate(process_cpu_seconds_total{{{_HERE}}}[{WINDOW}])", "{{instance}}"),),
            unit="percentunit",
        ),
        Panel(
            title="Open files by the limit",
            queries=(Query(f"process_open_fds{{{_HERE}}} / process_max_fds{{{_HERE}}}", "{{instance}}"),),
            unit="percentunit",
        ),
        Panel(
            title="Energy, estimated",
            queries=(Query(rate("energy_joules_total", "instance", where=_HERE), "{{instance}}"),),
            unit="watt",
        ),
        per_second("Spans of traces", "trace_spans_total", "result", where=_HERE),
    ),
)

ROLE = MonitoringBoard(
    uid="turntide-role",
    title="Turntide: one role",
    description="One role in detail; choose role and workers above.",
    rows=(_BATCHES, _STATE, _SERVING, _PROCESS),
    of_one_role=True,
)
