"""Frames of sessions as mining jobs see them."""

import numpy as np
import polars as pl

EVERYBODY = 1_000_000


def sessions_of(count: int, *, users: int = EVERYBODY, prefix: str = "", **columns: object) -> pl.DataFrame:
    """So many sessions, whose users come round; of each column a value for each session, or one for all."""
    ids = {
        "session_id": [f"{prefix}s-{n:04}" for n in range(count)],
        "user_id": [f"{prefix}u-{n % users:04}" for n in range(count)],
    }
    given = {
        name: values if isinstance(values, list | np.ndarray | pl.Series) else [values] * count
        for name, values in columns.items()
    }
    return pl.DataFrame(ids | given)
