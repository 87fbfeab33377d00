"""Reading settings so that what is wrong is told by its name: files, unknown names, unreadable JSON, wrong values.

What is told never holds a value: it may be a secret in the wrong place.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from models.errors import ConfigurationError

PREFIX = "TURNTIDE_"
_DELIMITER = "__"
_NO_SETTINGS = frozenset(
    {"TURNTIDE_CONFIG", "TURNTIDE_KAFKA", "TURNTIDE_URL", "TURNTIDE_WRITE_URL", "TURNTIDE_TOKEN"}  # the clients'
)
"""The file's name, and the short form of the bootstrap address."""
_OF_KUBERNETES = re.compile(r"_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)")
"""What a cluster puts into every container for a service whose name begins with `turntide`."""
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_DURATION = "Write a duration as PT30S or PT1H30M (ISO 8601), as 00:00:30, or as a number of seconds"


class Unknown(NamedTuple):
    """A name that is not a setting, and a setting with a similar name."""

    name: str
    meant: str | None

    @property
    def rendered(self) -> str:
        """In a few words."""
        return f"{self.name} is not a setting" + (f": did you mean {self.meant}?" if self.meant else "")


def unknown_variables(model: type[BaseModel], environment: Mapping[str, str] | None = None) -> list[Unknown]:
    """Environment variables that begin as settings do and are none; they change nothing.

    They are no error: a cluster or a shell may have variables of that prefix for reasons of its own.
    """
    fields = _fields(model)
    variables = [f"{PREFIX}{_DELIMITER.join(place).upper()}" for place in _settings(model)]
    found = []
    for variable, value in sorted((os.environ if environment is None else environment).items()):
        name = variable.upper()
        if not name.startswith(PREFIX) or name in _NO_SETTINGS or _is_kubernetes(name, value):
            continue
        place = (*name.removeprefix(PREFIX).lower().split(_DELIMITER),)
        if not _is_known(fields, place):
            found.append(Unknown(variable, _nearest(name, variables)))
        elif (section := _section(fields.get(place))) is not None and isinstance(said := _json(value), dict):
            found += [Unknown(f"{variable}: {each.name}", each.meant) for each in _unknown_keys(section, said, place)]
    return found


def _json(text: str) -> Any:
    """What a variable says in JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def with_seconds(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The environment's values, with durations that are written as a number of seconds as such: all of it is text."""
    read = dict(values)
    for name, value in values.items():
        field = model.model_fields.get(name)
        if field is None:
            continue
        if isinstance(value, str) and timedelta in (field.annotation, *get_args(field.annotation)):
            read[name] = float(value) if _SECONDS.fullmatch(value) else value
        elif isinstance(value, Mapping) and (section := _section(field.annotation)) is not None:
            read[name] = with_seconds(section, value)
    return read


def _is_kubernetes(name: str, value: str) -> bool:
    return bool(_OF_KUBERNETES.search(name)) or (name.endswith("_PORT") and "://" in value)


def file_values(path: Path, model: type[BaseModel]) -> dict[str, Any]:
    """Read a settings file.

    Raises:
        ConfigurationError: It cannot be read, is no TOML, or names what is no setting.
    """
    where = f"TURNTIDE_CONFIG {path}"
    if path.suffix.lower() in {".yaml", ".yml", ".json"}:
        raise ConfigurationError(
            f"{where}: the settings file must be TOML, not {path.suffix}: write e.g. `[kafka]` and below it "
            '`bootstrap = "broker:9092"`, and rename the file to .toml'
        )
    try:
        values = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{where}: {error.strerror}. Set it to a readable TOML file, or unset it.") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{where}: byte {error.start} is not UTF-8: save the file as UTF-8.") from None
    except RecursionError:
        raise ConfigurationError(f"{where}: nested too deeply for settings. Correct the brackets.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where}: not valid TOML, {error}. Correct that line.") from None
    unknown = list(_unknown_keys(model, values, ()))
    if unknown:
        raise ConfigurationError(
            f"{where}: {'; '.join(each.rendered for each in unknown)}. Rename or remove it; `turntide doctor` lists "
            "all settings."
        )
    return values


def _unknown_keys(model: type[BaseModel], values: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Unknown]:
    everything = [".".join(each) for each in _settings(model, place)]
    for key, value in values.items():
        here = (*place, key)
        field = model.model_fields.get(key)
        if field is None:
            shown = ".".join(f'"{part}"' if "." in part else part for part in here)
            yield Unknown(shown, _nearest(".".join(here), everything))
            continue
        section = _section(field.annotation)
        if section is not None and isinstance(value, Mapping):
            yield from _unknown_keys(section, value, here)


def render_error(error: ValidationError, model: type[BaseModel]) -> str:
    """Render the wrong fields and the reasons, without their values."""
    lines = []
    for each in error.errors(include_input=False, include_context=False, include_url=False):
        place, why = [str(part) for part in each["loc"]], each["msg"]
        if each["type"].startswith("time_delta"):
            why = f"{why}. {_DURATION}"
        if each["type"] == "extra_forbidden":
            place, why = _unknown_field(model, place)
        lines.append(f"{'.'.join(place)} ({PREFIX}{_DELIMITER.join(_until_number(place)).upper()}): {why}")
    return "; ".join(lines)


def _unknown_field(model: type[BaseModel], place: list[str]) -> tuple[list[str], str]:
    """A field that an element of a list does not have: by name if it is like a field's, else it may be the secret."""
    element = _section(next(iter(get_args(_fields(model)[_until_number(place)])), None))
    fields = list(element.model_fields) if element is not None else []
    meant = _nearest(place[-1], fields)
    if meant is None:
        return place[:-1], f"has an unknown field. The fields are {', '.join(fields)}"
    return place, f"not a field: did you mean {meant}?"


def _until_number(place: Sequence[str]) -> tuple[str, ...]:
    """Up to the list that an element is in: the list is one variable."""
    return (*takewhile(lambda part: not part.isdigit(), place),)


def unreadable_json(model: type[BaseModel], environment: Mapping[str, str] | None = None) -> str:
    """Name the variables that hold invalid JSON, and the places in them; empty if there are none."""
    given = {k.upper(): v for k, v in (os.environ if environment is None else environment).items()}
    found = []
    for place, annotation in _fields(model).items():
        variable = f"{PREFIX}{_DELIMITER.join(place).upper()}"
        if variable in _NO_SETTINGS or variable not in given or not _is_complex(annotation):
            continue
        try:
            json.loads(given[variable])
        except ValueError as error:
            at = f", {error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
            found.append(f"{'.'.join(place)} ({variable}): not JSON{at}")
    return "; ".join(found)


def _fields(model: type[BaseModel], place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Annotation of every setting and section, by its place."""
    found: dict[tuple[str, ...], Any] = {}
    for name, field in model.model_fields.items():
        found[*place, name] = field.annotation
        if (section := _section(field.annotation)) is not None:
            found |= _fields(section, (*place, name))
    return found


def _settings(model: type[BaseModel], place: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [each for each, annotation in _fields(model, place).items() if _section(annotation) is None]


def _is_known(fields: Mapping[tuple[str, ...], Any], place: tuple[str, ...]) -> bool:
    """A setting, a section, or a key below a setting that is a mapping."""
    if place in fields:
        return True
    kind = next((fields[place[:n]] for n in range(len(place) - 1, 0, -1) if place[:n] in fields), None)
    return _section(kind) is None and _is_complex(kind)


def _section(annotation: Any) -> type[BaseModel] | None:
    """The model of a section, also of one that may be missing."""
    for each in (annotation, *get_args(annotation)) if get_origin(annotation) not in (list, dict) else ():
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None


def _is_complex(annotation: Any) -> bool:
    kinds = get_args(annotation) if get_origin(annotation) in (Union, type(int | str)) else (annotation,)
    return any(get_origin(kind) in (list, dict, tuple, set) or _section(kind) is not None for kind in kinds)


def _nearest(name: str, names: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(name, names, 1)), None)
