"""Analysis of PromQL: series there are, series an expression asks for, labels of its result (extra `monitoring`)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import promql_parser as promql

from models.errors import TurntideError
from models.metrics import METRICS, Metric, MetricKind
from streams.observe.telemetry import PREFIX

Labels = frozenset[str]

_GRAFANA = {"$__rate_interval": "5m", "$__range": "1h"}
_KEEPING = ("and", "unless")
_PICKING = ("topk", "bottomk")
_WORD = re.compile(r"\w+")


class LabelMatch(NamedTuple):
    """A value of a label that an expression names."""

    series: str
    label: str
    value: str


class WrongExpression(TurntideError):  # noqa: N818 - it is a finding, like `InvalidRecord`
    """The expression cannot be read, or names a series or label that does not exist."""


def parse(expression: str) -> Any:
    """Read an expression of a rule or panel; Grafana's own variables stand for some duration.

    Raises:
        WrongExpression: It is no PromQL.
    """
    for variable, duration in _GRAFANA.items():
        expression = expression.replace(variable, duration)
    try:
        return promql.parse(expression)
    except ValueError as error:
        raise WrongExpression(f"{expression!r} is not PromQL: {error}") from error


def asked(expression: str) -> tuple[str, ...]:
    """Names of the series that it asks for, each once, in order.

    >>> asked("sum(rate(a_total[5m])) / b")
    ('a_total', 'b')
    """
    return tuple(dict.fromkeys(selector.name for selector in _selectors(expression)))


def values_asked(expression: str) -> tuple[LabelMatch, ...]:
    """Values of labels that it names, in order; patterns only where they are a choice of plain words.

    >>> [match.value for match in values_asked('a_total{result=~"lost|late", job!~".+-x"}')]
    ['lost', 'late']
    """
    return tuple(
        LabelMatch(selector.name, matcher.name, word)
        for selector in _selectors(expression)
        for matcher in selector.matchers.matchers
        if all(map(_WORD.fullmatch, matcher.value.split("|")))
        for word in matcher.value.split("|")
    )


def _selectors(expression: str) -> list[Any]:
    """Selectors of named series, in order."""
    found: list[Any] = []
    promql.walk(parse(expression), found.append)
    return [node for node in found if isinstance(node, promql.VectorSelector) and node.name]


def labels_of(expression: str, known: Mapping[str, Labels]) -> Labels:
    """Labels that its result has.

    Raises:
        WrongExpression: A series that is not known, a label that it has not, or two sides that can never match.

    >>> sorted(labels_of("sum by (job) (rate(a_total[5m]))", {"a_total": frozenset({"job", "x"})}))
    ['job']
    """
    return _labels(parse(expression), known) or frozenset()


def _labels(node: Any, known: Mapping[str, Labels]) -> Labels | None:
    """Labels of a vector; None for a number."""
    found: Labels | None = None
    match node:
        case promql.VectorSelector():
            found = _selected(node, known)
        case promql.MatrixSelector():
            found = _selected(node.vector_selector, known)
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            found = _labels(node.expr, known)
        case promql.AggregateExpr():
            found = _aggregated(node, known)
        case promql.Call():
            found = _called(node, known)
        case promql.BinaryExpr():
            found = _joined(node, known)
    return found


def _selected(node: promql.VectorSelector, known: Mapping[str, Labels]) -> Labels:
    name = node.name or ""
    if name not in known:
        raise WrongExpression(f"no series {name or str(node)!r}")
    _need(known[name], (matcher.name for matcher in node.matchers.matchers), name)
    return known[name]


def _aggregated(node: promql.AggregateExpr, known: Mapping[str, Labels]) -> Labels:
    inner = _labels(node.expr, known) or frozenset()
    if str(node.op) in _PICKING:
        return inner
    if node.modifier is None:
        return frozenset()
    named = frozenset(node.modifier.labels)
    _need(inner, named, str(node))
    return named if node.modifier.type == promql.AggModifierType.By else inner - named


def _called(node: promql.Call, known: Mapping[str, Labels]) -> Labels | None:
    vectors = [labels for argument in node.args if (labels := _labels(argument, known)) is not None]
    if node.func.name == "absent":
        (argument,) = node.args
        return frozenset(m.name for m in argument.matchers.matchers if m.op == promql.MatchOp.Equal)
    if node.func.name == "histogram_quantile":
        (buckets,) = vectors
        _need(buckets, ["le"], str(node))
        return buckets - {"le"}
    return vectors[0] if vectors else None


def _joined(node: promql.BinaryExpr, known: Mapping[str, Labels]) -> Labels | None:
    left, right = _labels(node.lhs, known), _labels(node.rhs, known)
    if left is None or right is None:
        return right if left is None else left
    operator, modifier = str(node.op), node.modifier
    if operator == "or":
        return left | right
    matching = None if modifier is None else modifier.matching
    if matching is None:
        if left != right:
            raise WrongExpression(
                f"its sides never match: {_list(left)} {operator} {_list(right)} in {str(node)!r}; add `on (…)`"
            )
        return left
    assert modifier is not None  # noqa: S101 - it has the matching
    named = frozenset(matching.labels)
    _need(left, named, str(node))
    _need(right, named, str(node))
    if operator in _KEEPING or modifier.card == promql.VectorMatchCardinality.ManyToOne:
        return left | frozenset(modifier.group_labels or ())
    return named


def _need(there: Labels, wanted: Any, where: str) -> None:
    if missing := frozenset(wanted) - there:
        raise WrongExpression(f"{where} has no label {_list(missing)}, only {_list(there)}")


def _list(labels: Labels) -> str:
    return ", ".join(sorted(labels)) or "none"


# --- every series that rules and panels may ask for

SCRAPED = frozenset({"job", "instance"})
"""What Prometheus adds to every series that it scrapes."""

OF_OTHERS: Mapping[str, Labels] = {
    "up": SCRAPED,
    **dict.fromkeys(
        (
            "process_cpu_seconds_total",
            "process_max_fds",
            "process_open_fds",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_virtual_memory_bytes",
        ),
        SCRAPED,
    ),
    "ALERTS": frozenset({"alertname", "alertstate", "severity", *SCRAPED}),
}
"""Series of Prometheus itself and of its client in each process."""


def names_of(metric: Metric) -> tuple[str, ...]:
    """Names of a metric of the catalogue in Prometheus; a histogram has three."""
    name = PREFIX + metric.name
    return (
        tuple(name + end for end in ("_bucket", "_sum", "_count")) if metric.kind is MetricKind.HISTOGRAM else (name,)
    )


def _scraped() -> Iterator[tuple[str, Labels]]:
    for metric in METRICS:
        for name in names_of(metric):
            le = {"le"} if name.endswith("_bucket") else set()
            yield name, SCRAPED.union(metric.labels, le)


SERIES: Mapping[str, Labels] = {**dict(_scraped()), **OF_OTHERS}
"""All of them but what rules record."""

METRIC_NAMED: Mapping[str, Metric] = {name: metric for metric in METRICS for name in names_of(metric)}


def means(expression: str) -> tuple[str, ...]:
    """Catalogue texts of the metrics in an expression: meaning, and what to do."""
    metrics = [METRIC_NAMED[name] for name in asked(expression) if name in METRIC_NAMED]
    return tuple(f"{metric.help} {metric.what_to_do}" for metric in dict.fromkeys(metrics))
