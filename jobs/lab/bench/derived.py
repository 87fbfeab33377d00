"""Figures of the page that follow from those that a command printed: rows, sums and limits."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from jobs.lab.bench.layout import Measured, at, entries_at, figure, number, rows_at

CONTENDERS = msgspec.toml.decode((Path(__file__).parent / "contenders.toml").read_bytes(), type=dict[str, str])
"""Contender → its name on the page."""
KEPT_UP = 0.98
"""Share of the wanted rate: at the end of a run some requests are still due."""
_OURS = "sessions_role"
_WRONG = ("lost", "doubled", "alerts_missing", "alerts_false")
_MOST_MILESTONES = 6
_AFTER_TIMEOUT_S = 1.0
"""An alert may come this much later than the session time-out after a kill."""
_GOAL_RATE = 0.05


def _stream(measured: Measured) -> dict[str, Any]:
    """Contenders, latency, size and stages, the dearest first."""
    spent = entries_at(measured, "stage_us_per_turn")
    contenders = [
        {
            "name": CONTENDERS.get(name, name),
            "rate": rate,
            "range": " – ".join(number(each) for each in at(measured, f"spread.{name}_turns_per_s") or ()),
            "ratio": at(measured, f"ratio_{name}"),
            "ours": name == _OURS,
        }
        for name, rate in entries_at(measured, "absolute_turns_per_s").items()
    ]
    total = sum(spent.values())
    dearest = sorted(spent.items(), key=lambda each: -each[1])
    stages = [{"name": name, "now": us, "share": f"{us / total:.0%}"} for name, us in dearest if total]
    turn_bytes, latency = figure(measured, "turn_bytes"), entries_at(measured, "alert_latency_ms")
    return {
        "contenders": contenders,
        "by_rate": sorted(contenders, key=lambda row: -float(row["rate"])),
        "latency": [{"name": name, "ms": latency.get(name)} for name in ("p50", "p99")],
        "alerts_read": latency or None,
        "changelog_limit": None if turn_bytes is None else 2 * turn_bytes + 1_000,
        "stages": stages,
        "stages_and_all": [*stages, {"name": "all", "now": total}] if stages else [],
    }


def _memory(measured: Measured) -> dict[str, Any]:
    """At most about so many milestones, the last among them."""
    rows = rows_at(measured, "milestones")
    step = -(-len(rows) // _MOST_MILESTONES) or 1
    return {"milestones": rows[::-1][::step][::-1]}


def _kills(measured: Measured) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for row in rows_at(measured, "rows"):
        wrong, name = [each for key in _WRONG if (each := figure(row, key)) is not None], str(row.get("contender", ""))
        sums = {"wrong": sum(wrong)} if wrong else {}
        rows.append({**row, **sums, "name": CONTENDERS.get(name, name), "ours": name == _OURS})
    return {"rows": rows}


def _chaos(measured: Measured) -> dict[str, Any]:
    """A row for each seed and one for all; a single run is a sweep of one, and a run may not have finished."""
    single = [measured] if figure(measured, "seed") is not None else []
    runs = rows_at(measured, "runs") or single
    results = [at(run, "result") or (run if figure(run, "kills") is not None else None) for run in runs]
    finished, total = [result for result in results if result], dict[str, float]()
    for key in dict.fromkeys(key for result in finished for key in result):
        if values := [value for result in finished if (value := figure(result, key)) is not None]:
            total[key] = max(values) if key.startswith("worst") else sum(values)
    named = zip([number(figure(run, "seed")) for run in runs], results, strict=True)
    rows = [{**(result or {}), "name": seed if result else f"{seed} (not finished)"} for seed, result in named]
    lengths = dict.fromkeys((figure(run, "minutes"), figure(run, "turns_per_s")) for run in runs)
    timeout_s = figure(measured, "session_timeout_s")
    return {
        "rows": [*rows, {**total, "name": f"all {len(rows)}"}] if rows else [],
        "total": {**total, "seeds": len(rows), "unfinished": len(rows) - len(finished)} if rows else {},
        "delay_limit_s": None if timeout_s is None else timeout_s + _AFTER_TIMEOUT_S,
        "lengths": [each for each in lengths if each[0]],
    }


def _roles(measured: Measured) -> dict[str, Any]:
    rows = [row for row in rows_at(measured, "topics") if figure(row, "records_per_turn")]
    log_bytes = sum(figure(row, "log_bytes_per_turn") or 0.0 for row in rows)
    turn_bytes = figure(measured, "turn_bytes")
    return {"topics": rows, "log_to_turn": log_bytes / turn_bytes if log_bytes and turn_bytes else None}


def _retrieve(measured: Measured) -> dict[str, Any]:
    """Where answers did not keep up with the rate, or lacked the turn that was sent, no limit is reached."""
    route = next((row for row in rows_at(measured, "routes") if row.get("path") == "/v1/retrieve"), {})
    kept_up = (figure(route, "rate") or 0.0) >= KEPT_UP * (figure(measured, "rate") or 0.0)
    return {
        "retrieve": route,
        "kept_up": kept_up and not figure(route, "errors"),
        "with_turn": not figure(measured, "end_to_end.without_turn"),
    }


def _archive(measured: Measured) -> dict[str, Any]:
    peaks = [figure(measured, "landing_peak_mb"), figure(measured, "query_peak_mb")]
    known = [peak for peak in (*peaks, *entries_at(measured, "job_peak_mb").values()) if peak is not None]
    return {
        "slowest_view_s": max(entries_at(measured, "query_s").values(), default=None),
        "slowest_job_s": max(entries_at(measured, "job_s").values(), default=None),
        "most_memory_mb": max(known, default=None),
    }


def _escalation(measured: Measured) -> dict[str, Any]:
    """Of each way of judging; goals are held against the last one."""
    named = {str(outcome.get("policy", "")): outcome for outcome in rows_at(measured, "outcomes")}
    if not named:
        return {}
    policy, last = next(reversed(named.items()))
    rates = [figure(each, "false_alarm_ratio") for each in entries_at(last, "by_app").values()]
    areas = entries_at(last, "roc_auc_by_app").values()
    curve = [(figure(row, "false_alarm_ratio") or 0.0, figure(row, "recall") or 0.0) for row in rows_at(last, "curve")]
    recalls = [0.0 if rate > _GOAL_RATE else recall for rate, recall in curve]
    return {
        "policy": policy,
        "last": {
            **entries_at(last, "overall"),
            "mean_auc": mean(areas) if areas else None,
            "least_auc": min(areas, default=None),
            "recall": max(recalls, default=None),
            "worst_rate": max((rate for rate in rates if rate is not None), default=None),
        },
        "alerts": [
            {
                **outcome,
                "recall": _with_interval(at(outcome, "overall"), "recall"),
                "false_alarms": _with_interval(at(outcome, "overall"), "false_alarm"),
            }
            for outcome in named.values()
        ],
    }


def _with_interval(part: Any, kind: str) -> str:
    """A ratio with its interval, percent; empty without it."""
    found = figure(part, "recall" if kind == "recall" else f"{kind}_ratio")
    interval = at(part, f"{kind}_interval")
    between = " ({:.1%} – {:.1%})".format(*interval) if interval else ""
    return "" if found is None else f"{found:.1%}{between}"


DERIVED: Mapping[str, Callable[[Measured], dict[str, Any]]] = {
    "stream": _stream,
    "recovery": lambda measured: {
        "rows": [{**row, "name": f"{number(figure(row, 'keys'))} keys"} for row in rows_at(measured, "rows")]
    },
    "roles": _roles,
    "memory": _memory,
    "kills": _kills,
    "chaos": _chaos,
    "retrieve": _retrieve,
    "archive": _archive,
    "escalation": _escalation,
}
"""Section → the keys that are added to what was measured, or replace its own."""
