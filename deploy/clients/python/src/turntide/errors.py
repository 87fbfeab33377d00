"""Errors: all are `TurntideError`, and none holds a turn's text."""

from __future__ import annotations

from dataclasses import dataclass


class TurntideError(Exception):
    """Base of all errors of this client."""


class Unreachable(TurntideError):  # noqa: N818 - it says what happened
    """No answer came, after all tries. What was to be written may have been: adding it again under its ids is safe."""


class NotYet(TurntideError):  # noqa: N818 - likewise
    """It is in the log and will be carried out, but was not seen in time: a turn to be visible, an erasure proved."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request."""

    field: str
    detail: str


class ApiError(TurntideError):
    """The server refused a request.

    Attributes:
        status: Of HTTP.
        code: Constant snake_case word, for programs.
        detail: What is wrong and what to do, for people.
        errors: What is wrong with which field.
    """

    def __init__(self, status: int, code: str, detail: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
