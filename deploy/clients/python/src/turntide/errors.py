"""Errors: all are `TurntideError`, and none holds a turn's text."""

from __future__ import annotations

from dataclasses import dataclass


class TurntideError(Exception):
    """Base of all errors of this client."""


class Unreachable(TurntideError):  # noqa: N818 - it says what happened
    """No response after all tries. The write may have succeeded: adding it again with the same ids is safe."""


class NotYet(TurntideError):  # noqa: N818 - likewise
    """It is in the log and will be carried out, but was not seen in time: a turn to be visible, an erasure proved."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """Error of one field of a request."""

    field: str
    detail: str


class ApiError(TurntideError):
    """The server refused a request.

    Attributes:
        status: Of HTTP.
        code: Constant snake_case word, for programs.
        detail: Explanation for people: the error and what to do.
        errors: Errors of single fields.
    """

    def __init__(self, status: int, code: str, detail: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
