"""Unit and property tests cannot reach a network; event loops still work."""

import asyncio
import socket

import pytest
from pytest_socket import SocketBlockedError


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
async def test_sockets_are_refused_and_loops_run() -> None:
    """A connection is an error, and a call from another thread still wakes the loop."""
    with pytest.raises(SocketBlockedError):
        socket.socket(socket.AF_INET)

    assert await asyncio.to_thread(lambda: "woken") == "woken"
