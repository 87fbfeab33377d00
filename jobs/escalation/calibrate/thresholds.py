"""Thresholds that keep a target, from the highest scores of sessions, and policy files with them."""

import re
import tomllib
from collections.abc import Sequence
from math import floor
from pathlib import Path
from typing import Any

import msgspec
import tomli_w
from msgspec import structs

from models.errors import ConfigurationError
from models.policy import AppModes, ModePolicy, load_policy
from models.policy.escalation import ModeThreshold

_STEPS = 10_000
"""Thresholds are whole ten-thousandths: what a file says is what was proposed."""


def threshold_for(highest: Sequence[float], allowed: int) -> float | None:
    """The lowest threshold that at most so many sessions reach; where scores are equal, fewer do.

    A session alerts only where a score of it reaches the threshold, so no more sessions than these can alert (beside
    single turns of a very high upstream risk, which ask for no threshold).

    Returns:
        None where every session may alert: nothing limits the threshold. 1 at most, so that sessions at a score of 1
        are still reached.

    >>> threshold_for([0.2, 0.9, 0.5, 0.4], 1), threshold_for([0.2, 0.9, 0.9, 0.4], 1), threshold_for([0.2], 1)
    (0.5001, 0.9001, None)
    >>> threshold_for([0.57], 0)
    0.5701
    """
    if allowed >= len(highest):
        return None
    just_below = sorted(highest, reverse=True)[allowed]
    steps = floor(just_below * _STEPS)
    # 0.57 * 10,000 is less than 5,700: one step more need not be above.
    while steps < _STEPS and steps / _STEPS <= just_below:
        steps += 1
    return steps / _STEPS


def moved(modes: ModePolicy, app_id: str, enter: float) -> ModePolicy:
    """The modes with another alert threshold, for one app, or for all that have none of their own.

    `elevated.leave` stays as far below `enter` as it was, and at least as high in proportion: a low threshold must not
    become one that is never left. `critical` keeps its place between `enter` and 1. `watch` gives way where it would
    lie above.
    """
    watch, elevated, critical = modes.thresholds(app_id)
    new_elevated = ModeThreshold(enter=enter, leave=_leave(elevated, enter))
    room = (1 - critical.enter) / (1 - elevated.enter) if elevated.enter < 1 else 0.0
    higher = round(1 - (1 - enter) * room, 4)
    new_critical = ModeThreshold(enter=higher, leave=max(_leave(critical, higher), new_elevated.leave))
    if app_id:
        own = AppModes(app_id=app_id, elevated=new_elevated, critical=new_critical)
        return structs.replace(modes, apps=(*(each for each in modes.apps if each.app_id != app_id), own))
    lower = ModeThreshold(enter=min(watch.enter, enter), leave=min(watch.leave, new_elevated.leave))
    return structs.replace(modes, watch=lower, elevated=new_elevated, critical=new_critical)


def _leave(present: ModeThreshold, enter: float) -> float:
    as_far = enter - (present.enter - present.leave)
    in_proportion = enter * present.leave / present.enter if present.enter else 0.0
    return round(min(enter, max(as_far, in_proportion)), 4)


def next_version(version: str) -> str:
    """The version after this one.

    >>> next_version("default-1"), next_version("night shift"), next_version("v09")
    ('default-2', 'night shift-2', 'v10')
    """
    found = re.fullmatch(r"(.*?)(\d+)", version, re.DOTALL)
    if found is None:
        return f"{version}-2"
    return found[1] + str(int(found[2]) + 1).zfill(len(found[2]))


def written(present: Path | None, version: str, modes: ModePolicy, *, said: str) -> bytes:
    """The new file as TOML: what the present one names, with the version and the thresholds.

    Args:
        present: TOML or JSON; None: the defaults, of which nothing is written out.
        version: The new one.
        modes: The new ones, written out in full.
        said: Where they come from; stands above everything, a line.
    """
    fields = {"version": "", **_fields(present), "modes": msgspec.to_builtins(modes)} | {"version": version}
    content = f"# {said}\n{tomli_w.dumps(fields)}".encode()
    load_policy(content, "toml")
    return content


def require_new(file: Path) -> None:
    """Say before hours of folding that a file is there already.

    Raises:
        ConfigurationError: It is.
    """
    if file.exists():
        raise ConfigurationError(f"{file} is there already: a policy in use is never overwritten, name a new one")


def write_new(file: Path, content: bytes) -> None:
    """Write a file that is not there yet.

    Raises:
        ConfigurationError: It is there, or cannot be written.
    """
    require_new(file)
    try:
        with file.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise ConfigurationError(f"cannot write {file}: {error.strerror}") from error


def _fields(present: Path | None) -> dict[str, Any]:
    if present is None:
        return {}
    data = present.read_bytes()
    fields: dict[str, Any] = msgspec.json.decode(data) if present.suffix == ".json" else tomllib.loads(data.decode())
    # TOML has no null: a field of JSON that says null says what its default says.
    return _without_nulls(fields)


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if value is not None
    }
