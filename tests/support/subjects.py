"""Subjects of erasures in tests."""

from models.erasure import ErasureSubject, sessions_of
from models.events import SessionName


def sessions(*ids: str, app_id: str = "support") -> frozenset[SessionName]:
    """Sessions of an app, none of which another app has."""
    return sessions_of(SessionName(app_id, each) for each in ids)


def of_session(*ids: str, app_id: str = "support") -> ErasureSubject:
    """Sessions of an app that are to be forgotten."""
    return ErasureSubject("session", sessions=sessions(*ids, app_id=app_id))
