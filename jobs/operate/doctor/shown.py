"""Settings as they are printed: every field with its value and meaning, and nothing secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel

from streams.settings import Settings


def setting_rows(settings: Settings | None) -> Iterator[dict[str, object]]:
    """Every field with its value, or its default where the settings are wrong."""
    yield from _rows(Settings, settings, ())


def _rows(model: type[BaseModel], values: BaseModel | None, path: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for name, field in model.model_fields.items():
        place = (*path, name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _rows(kind, getattr(values, name, None), place)
            continue
        value = field.get_default(call_default_factory=True) if values is None else getattr(values, name)
        yield {
            "setting": ".".join(place),
            "value": "" if value is None else redacted(name, str(value)),
            "description": field.description or "",
        }


def redacted(name: str, value: str) -> str:
    """The value without what may be a secret in an address: user and password, and a webhook's path.

    >>> redacted("url", "https://me:secret@example.org/api"), redacted("webhook_url", "https://example.org/hook/123")
    ('https://…@example.org/api', 'https://example.org/…')
    """
    value = re.sub(r"//[^/@]*@", "//…@", value)
    return re.sub(r"(//[^/]+/).+", r"\1…", value) if name == "webhook_url" else value
