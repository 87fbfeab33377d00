"""Metrics of records on their way through a role. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, gauge, histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TURNS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500)

STAGES = ("decode", "embed", "score", "fold", "outputs", "state")
"""Values of the label `stage`: where a micro-batch of a folding role spends its time …"""
FURTHER_STAGES = ("answer", "upsert", "land", "deliver")
"""… and what other roles do besides: enrich and judge, index, archive, notify."""

FOLDING = (
    counter(
        "records_total",
        "records",
        "topic",
        means="Records that a role is done with, by the topic they were read from; every role counts its own.",
        do="Flat while offset_lag_records rises: the role stands still, read its log and /livez.",
    ),
    counter(
        "turns_folded_total",
        "turns",
        means="Turns folded into session state.",
        do="Flat while producers send: look at the lag and at readiness.",
    ),
    histogram(
        "batch_turns",
        "turns",
        means="Records in one micro-batch, all partitions of it together.",
        do="At the limit all the time: the role is behind, add workers.",
        buckets=_TURNS,
    ),
    histogram(
        "stage_seconds",
        "seconds",
        "stage",
        means="Time of one micro-batch in each stage. An answer (enrich, judge) has its own: it waits for a model.",
        do="The stage that grew is the cause: outputs or state point to the broker, embed and score to the CPU, "
        "answer to the language model or the judge, upsert to the vector store, land to the archive's disk or "
        "catalog, deliver to the receiver of alerts.",
        buckets=_SECONDS,
    ),
    counter(
        "fold_errors_total",
        "errors",
        means="Folds that raised; each became a dead letter or stopped the role.",
        do="Any at all is a defect: read the dead letter of that time and replay it.",
    ),
    counter(
        "dead_letters_total",
        "records",
        "reason",
        means="Input that could not be used.",
        do="Ask the producer about that reason; the records keep their bytes and place.",
    ),
)

LAG = (
    gauge(
        "event_time_lag_seconds",
        "seconds",
        "partition",
        means="Now minus the event time of a partition, when there was input: of its watermark in sessions, of its "
        "newest record elsewhere.",
        do="Rising with the offset lag: add workers. Rising alone: producers send old turns.",
    ),
    gauge(
        "offset_lag_records",
        "records",
        "partition",
        means="Records in the log that are not processed yet, of all topics that the role reads; where there are "
        "several sinks, of the one that is furthest behind.",
        do="Rising for minutes: add workers, or look for the stage that grew.",
    ),
)
