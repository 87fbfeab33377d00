"""Overview dashboard: is everything there, does it keep up, do people hear of alerts."""

from __future__ import annotations

from jobs.operate.monitoring.board import MonitoringBoard, Panel, PanelRow, Query, Shows, most, per_second, total

_THERE = PanelRow(
    "Is everything there",
    (
        Panel(
            title="Alerts of operations that fire",
            queries=(
                Query('count by (severity) (ALERTS{alertname=~"Turntide.+", alertstate="firing"})', "{{severity}}"),
            ),
            shows=Shows.NUMBER,
            width=6,
        ),
        Panel(
            title="Workers that answer",
            queries=(Query('sum by (job) (up{job=~"turntide-.+"})', "{{job}}"),),
            alerts=("TurntideRoleAway",),
            width=6,
        ),
        Panel(
            title="Workers that are ready",
            queries=(Query(total("ready", "job"), "{{job}}"),),
            alerts=("TurntideNotReady",),
            width=6,
        ),
        Panel(
            title="How long no broker has answered",
            queries=(Query(most("kafka_silent_seconds", "job"), "{{job}}"),),
            unit="s",
            alerts=("TurntideKafkaAway",),
            width=6,
        ),
        Panel(
            title="Starts in half an hour",
            queries=(Query('sum by (job) (changes(process_start_time_seconds{job=~"turntide-.+"}[30m]))', "{{job}}"),),
            alerts=("TurntideRestarting",),
            width=6,
        ),
    ),
)

_FLOW = PanelRow(
    "Does it keep up",
    (
        per_second("Records done", "records_total", "job", alerts=("TurntideStalled",)),
        Panel(
            title="How long the oldest waiting record has waited",
            queries=(Query("job:turntide_waiting_seconds:max", "{{job}}"),),
            unit="s",
            alerts=("TurntideLagBurningFast", "TurntideLagBurningSlow"),
        ),
        Panel(
            title="Share of the time that the objective of 60 s was missed",
            queries=(
                Query("job:turntide_behind:ratio1h", "{{job}}, 1 h"),
                Query("job:turntide_behind:ratio6h", "{{job}}, 6 h"),
            ),
            unit="percentunit",
            alerts=("TurntideLagBurningFast", "TurntideLagBurningSlow"),
        ),
        Panel(
            title="Records that wait",
            queries=(Query("job:turntide_offset_lag_records:sum", "{{job}}"),),
            alerts=("TurntideBacklog", "TurntideStalled"),
        ),
        Panel(
            title="Time to read what waits, if nothing more came",
            queries=(Query("job:turntide_catch_up_seconds", "{{job}}"),),
            unit="s",
            alerts=("TurntideBacklog",),
        ),
        per_second("Turns folded", "turns_folded_total", "job", alerts=("TurntideAlertSilence",)),
        per_second("Dead letters", "dead_letters_total", "job", "reason", alerts=("TurntideDeadLetters",)),
        per_second("Fold errors", "fold_errors_total", "job", alerts=("TurntideFoldErrors",)),
        Panel(
            title="Releases that run",
            queries=(Query("count by (version) (turntide_build_info)", "{{version}}"),),
        ),
    ),
)

_EMITTED = PanelRow(
    "Do people hear of alerts on sessions",
    (
        Panel(
            title="Alerts raised in a quarter of an hour",
            queries=(
                Query('sum by (severity) (increase(turntide_alerts_total{cause="raised"}[15m]))', "{{severity}}"),
            ),
            alerts=("TurntideAlertStorm", "TurntideAlertSilence"),
        ),
        Panel(
            title="Alert changes that a sink has not taken yet",
            queries=(Query(most("sink_lag_records", "sink"), "{{sink}}"),),
            alerts=("TurntideSinkFailing",),
        ),
        per_second("Deliveries", "sink_deliveries_total", "sink", "result", alerts=("TurntideSinkFailing",)),
    ),
)

OVERVIEW = MonitoringBoard(
    uid="turntide-overview",
    title="Turntide: overview",
    description="Is everything there, does it keep up, do people hear of alerts.",
    rows=(_THERE, _FLOW, _EMITTED),
)
