from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from probelight.io import download
from probelight.io.download import TooSlowError, open_url
from tests.io.web.server import BODY, Server


@pytest.fixture
def trickle() -> Iterator[str]:
    """A server whose header is sent byte by byte."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = Event()

        def serve() -> None:
            with suppress(OSError):
                while not over.is_set():
                    asking, _ = listening.accept()
                    with asking, suppress(OSError):
                        while not over.is_set():
                            asking.sendall(b"HTTP/1.1 200 O"[:1])
                            over.wait(0.02)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def read(url: str) -> bytes:
    with open_url(Request(url), timeout=5) as answer:
        return answer.read()


@pytest.mark.parametrize("patience", [60.0, 0.0])
def test_what_comes_fast_enough_is_read_whole_however_often_it_is_measured(
    patience: float, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "HTTP_PATIENCE", patience)
    assert read(f"{server.url}/x") == BODY


def test_a_body_that_trickles_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "HTTP_PATIENCE", 0.2)
    server.pause = 0.02
    with pytest.raises(TooSlowError, match=r"fewer than 4,096 bytes a second over 0\.2 seconds"):
        read(f"{server.url}/x")


def test_a_header_that_trickles_is_given_up(trickle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "HTTP_PATIENCE", 0.2)
    with pytest.raises(OSError, match="fewer than 4,096 bytes a second"):
        read(trickle)


def test_other_answers_are_as_without_a_watch(server: Server) -> None:
    with pytest.raises(HTTPError, match="404"):
        read(f"{server.url}/missing")
