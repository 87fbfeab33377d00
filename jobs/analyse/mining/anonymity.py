"""Nothing is shown about fewer than k sessions and k users: the one boundary that all of a job's findings pass.

`shown` takes what a job found and gives what may leave: tables by row and by cell, figures and findings one by one.
What is left out is counted, never described. What is left out alone could be told by subtraction from a known sum; so
the next smallest goes as well, until what is left out is about enough, too.

Two reports over periods that differ in one day can be subtracted from each other; against that nothing here helps.
"""

from typing import NamedTuple

import duckdb
import polars as pl
from msgspec.structs import asdict, replace

from jobs.analyse.mining.coverage import ABOUT, SESSIONS, USERS, enough, is_few
from jobs.analyse.mining.job import SHARE, Figure, Finding, Frames, Job, JobFindings, ShownFinding, ShownTable
from models.errors import ConfigurationError
from models.policy.archive import AnonymityPolicy, ArchivePolicy

_STRENGTH_DIGITS = 2


class ShownRows(NamedTuple):
    """What may be shown of a table, and how many rows and cells may not."""

    kept: pl.DataFrame
    left_out: int
    cells_hidden: int


class ShownFindings(NamedTuple):
    """What may be shown of a job's findings, as a section has it."""

    figures: list[Figure]
    findings: list[ShownFinding]
    findings_left_out: int
    tables: dict[str, ShownTable]


def shown(
    found: JobFindings, job: Job, con: duckdb.DuckDBPyConnection, policy: ArchivePolicy
) -> tuple[ShownFindings, Frames]:
    """Leave out what is about too few; findings in the order of their strength. Gives the tables' rows, too.

    Raises:
        ConfigurationError: A finding's evidence does not tell whom it is about.
        ValueError: Nor does a table.
    """
    k, rules = policy.anonymity, asdict(policy)
    findings = [each for finding in found.findings if (each := _shown_finding(finding, con, k)) is not None]
    tables, frames = {}, {}
    for name, frame in found.tables.items():
        said = job.about.tables[name]
        frames[name], left_out, hidden = shown_rows(frame, k, said.within)
        tables[name] = ShownTable(
            title=said.title,
            meaning=said.meaning.format(**rules),
            rows=frames[name].height,
            left_out=left_out,
            cells_hidden=hidden,
        )
    told = ShownFindings(
        figures=[shown_figure(figure, k) for figure in found.figures],
        findings=sorted(findings, key=lambda each: -each.finding.strength),
        findings_left_out=len(found.findings) - len(findings),
        tables=tables,
    )
    return told, frames


def shown_rows(frame: pl.DataFrame, k: AnonymityPolicy, within: tuple[str, ...] = ()) -> ShownRows:
    """Rows about enough sessions and users without the cells that are not.

    See `TableWording` for `within`.

    Raises:
        ValueError: A column `sessions` or `users` is missing: the table must not be shown.
    """
    if missing := {SESSIONS, USERS} - set(frame.columns):
        raise ValueError(f"a table that is shown needs the columns {sorted(missing)}")
    sessions, users = pl.col(SESSIONS).fill_null(0), pl.col(USERS).fill_null(0)
    few = ~enough(k, sessions, users)
    hidden = _with_next_smallest(few, pl.lit(value=True), sessions, users, k=k, within=within)
    cells = [column.removeprefix(ABOUT) for column in frame.columns if column.startswith(ABOUT)]
    blank = [pl.when(~_few_cell(cell, k, within)).then(pl.col(cell)).alias(cell) for cell in cells]
    kept = frame.filter(~hidden)
    told = kept.with_columns(blank).drop(ABOUT + cell for cell in cells)
    cells_hidden = sum(told[cell].null_count() - kept[cell].null_count() for cell in cells)
    return ShownRows(told, frame.height - kept.height, cells_hidden)


def _few_cell(cell: str, k: AnonymityPolicy, within: tuple[str, ...]) -> pl.Expr:
    part = pl.col(ABOUT + cell)
    sessions, users = (part.struct.field(name) for name in (SESSIONS, USERS))
    few = (~enough(k, sessions, users)).fill_null(value=False)
    told = pl.col(cell).is_not_null()
    nonzero = told & (pl.col(cell).cast(pl.Float64) != 0)
    return _with_next_smallest(few & told, nonzero, sessions.fill_null(0), users.fill_null(0), k=k, within=within)


def _with_next_smallest(
    few: pl.Expr, others: pl.Expr, sessions: pl.Expr, users: pl.Expr, *, k: AnonymityPolicy, within: tuple[str, ...]
) -> pl.Expr:
    """What is few, and of the others the smallest where a sum would tell what is few."""

    def each(expression: pl.Expr) -> pl.Expr:
        return expression.over(within) if within else expression

    gone = each(few.sum())
    of_sessions, of_users = (each(pl.when(few).then(count).otherwise(0).sum()) for count in (sessions, users))
    told = (gone == 1) | ((gone > 0) & ~enough(k, of_sessions, of_users))
    smallest = each(pl.when(others & ~few).then(users).rank("ordinal")) == 1
    return few | (told & smallest).fill_null(value=False)


def shown_figure(figure: Figure, k: AnonymityPolicy) -> Figure:
    """The figure, without its value and counts where these are about too few; what is always shown keeps its value."""
    if figure.sessions >= k.min_sessions and figure.users >= k.min_users and not is_few(figure.part, k):
        return replace(figure, part=None)
    hidden = figure.value is not None and not figure.always
    return replace(figure, value=None if hidden else figure.value, sessions=0, users=0, part=None, hidden=hidden)


def shown_text(finding: Finding, k: AnonymityPolicy) -> str:
    """The text with its shares, in words where one is about too few."""
    text = finding.text
    for share in finding.shares:
        text = text.replace(SHARE, share.instead if is_few(share.part, k) else share.text, 1)
    return text


def _shown_finding(finding: Finding, con: duckdb.DuckDBPyConnection, k: AnonymityPolicy) -> ShownFinding | None:
    """The finding with the counts of its evidence; None: it is about too few. Without sessions its users count."""
    columns = {str(row[0]) for row in con.execute(f"DESCRIBE {finding.evidence}").fetchall()}
    if "user_id" not in columns:
        raise ConfigurationError(f"evidence of {finding.title!r} has no user_id")
    of_sessions = "count(DISTINCT session_id)" if "session_id" in columns else "NULL"
    counts = con.execute(
        f"SELECT count(*), {of_sessions}, count(DISTINCT user_id) FROM ({finding.evidence})"  # noqa: S608 - a job's own
    ).fetchone()
    assert counts is not None  # noqa: S101 - an aggregate has one row
    rows, sessions, users = counts
    if users < k.min_users or (sessions is not None and sessions < k.min_sessions):
        return None
    # A strength with all its digits would give a share that the text keeps to itself.
    told = replace(finding, text=shown_text(finding, k), strength=round(finding.strength, _STRENGTH_DIGITS), shares=())
    return ShownFinding(finding=told, rows=rows, sessions=sessions, users=users)
