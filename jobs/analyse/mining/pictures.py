"""Pictures of what jobs show: Vega-Lite of `pictures.yaml` with the rows of the job's tables."""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt
import msgspec
import polars as pl

from jobs.analyse.mining.job import Frames
from jobs.shared.pictures import Drawn, drawn
from streams.http.pages import source

_ABOUT = ("title", "caption", "table", "needs", "days")
_CHANNELS = ("encoding", "facet")


def pictures_of(job: str, tables: Frames) -> list[Drawn]:
    """All pictures of a job's tables, none of a table in which there is nothing to draw."""
    return [
        drawn(about["title"], about["caption"], _chart(about, tables[about["table"]]))
        for about in _described().get(job, ())
        if about["table"] in tables and _is_drawn(about, tables[about["table"]])
    ]


@cache
def _described() -> dict[str, list[dict[str, Any]]]:
    text = source("jobs/analyse/mining/pictures.yaml")
    return msgspec.yaml.decode(text, type=dict[str, list[dict[str, Any]]])


def _is_drawn(about: dict[str, Any], frame: pl.DataFrame) -> bool:
    if not frame.height or ("days" in about and frame["day"].n_unique() < about["days"]):
        return False
    return "needs" not in about or frame[about["needs"]].null_count() < frame.height


def _chart(about: dict[str, Any], frame: pl.DataFrame) -> Any:
    spec = _spec({name: part for name, part in about.items() if name not in _ABOUT})
    chart = alt.Chart.from_dict(spec | {"data": {"name": about["table"]}})
    chart.data = frame
    return chart


def _spec(part: Any) -> Any:
    """A part of Vega-Lite, its channels written out."""
    if isinstance(part, list):
        return [_spec(each) for each in part]
    if not isinstance(part, dict):
        return part
    written = {name: _spec(each) for name, each in part.items() if name not in _CHANNELS}
    if "facet" in part:
        written["facet"] = _channel(part["facet"])
    if "encoding" in part:
        written["encoding"] = {
            name: [_channel(each) for each in channel] if isinstance(channel, list) else _channel(channel)
            for name, channel in part["encoding"].items()
        }
    return written


def _channel(channel: str | dict[str, Any]) -> dict[str, Any]:
    given = {"of": channel} if isinstance(channel, str) else channel
    looks = {name: look for name, look in given.items() if name != "of"}
    return alt.utils.parse_shorthand(given["of"]) | looks if "of" in given else looks
