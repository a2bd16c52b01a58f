"""HTTP whose pace is watched, that of headers too: an answer that only trickles is given up.

The time-out of a socket is that of one read. A server that sends a byte before each of them is out
keeps a download going for ever, so how fast bytes come is measured below all of http.client.
"""

from __future__ import annotations

import http.client
import io
import time
import urllib.request
from typing import Any, cast

from probelight.io.limits import HTTP_PATIENCE, HTTP_SLOWEST


class TooSlowError(ConnectionError):
    """A server sends less than a download needs to end in a lifetime."""


class _Paced(io.RawIOBase):
    """What a socket receives; raises when too little came in a while.

    Args:
        raw: The socket's stream, which it owns.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._since, self._received = time.monotonic(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Reads what is there, at least a byte, and takes the time."""
        received = self._raw.readinto(buffer)
        self._received += received or 0
        elapsed = time.monotonic() - self._since
        if elapsed > HTTP_PATIENCE:
            if self._received < HTTP_SLOWEST * elapsed:
                raise TooSlowError(
                    f"fewer than {HTTP_SLOWEST:,} bytes a second over {HTTP_PATIENCE:g} seconds"
                )
            self._since, self._received = time.monotonic(), 0
        return received

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fp = io.BufferedReader(_Paced(self.fp.detach()))


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Response


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


def open_url(request: urllib.request.Request, timeout: float) -> http.client.HTTPResponse:
    """`urllib.request.urlopen` with the pace watched, through redirects and proxies too.

    Args:
        request: For an http:// or https:// address.
        timeout: Seconds for one read.

    Raises:
        TooSlowError: While it is opened, and in each read of what it returns.
        OSError: As `urlopen`.
    """
    opener = urllib.request.build_opener(_Handler, _SecureHandler)
    return cast(http.client.HTTPResponse, opener.open(request, timeout=timeout))
