"""Pictures of what jobs show: Vega-Lite of `pictures.yaml` with the rows of the job's tables."""

from typing import Any

import altair as alt
import polars as pl

from jobs.analyse.mining.job import Frames
from jobs.shared.pictures import Drawn, charts_of, drawn, written_out

_ABOUT = ("title", "caption", "table", "needs", "days", "rows")


def pictures_of(job: str, tables: Frames) -> list[Drawn]:
    """All pictures of a job's tables, none of a table in which there is nothing to draw."""
    found = []
    for about in charts_of("jobs/analyse/mining/pictures.yaml").get(job, ()):
        frame = tables.get(about["table"])
        if frame is not None and _is_drawn(about, frame):
            spec = written_out({name: part for name, part in about.items() if name not in _ABOUT}, {})
            chart: Any = alt.Chart.from_dict(spec | {"data": {"name": about["table"]}})
            chart.data = frame
            found.append(drawn(about["title"], about["caption"], chart))
    return found


def _is_drawn(about: dict[str, Any], frame: pl.DataFrame) -> bool:
    if frame.height < about.get("rows", 1) or ("days" in about and frame["day"].n_unique() < about["days"]):
        return False
    return "needs" not in about or frame[about["needs"]].count() >= about.get("rows", 1)
