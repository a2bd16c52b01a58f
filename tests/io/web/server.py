from __future__ import annotations

import hashlib
import random
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any

from probelight.io.download import fetch

BODY = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `body` under every path but /missing, with ranges; cuts and versions on request."""

    daemon_threads = True

    def __init__(self, cache: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cache = cache
        self.body = BODY
        self.etag: str | None = '"v1"'
        self.ranges = True
        self.cut_after: list[int] = []  # bytes to send before hanging up, per request
        self.codes: list[int] = []  # answers to give instead, per request
        self.says_length = True
        self.pause = 0.0  # seconds between bytes
        self.endless = False
        self.asked: list[tuple[str, str | None]] = []  # path and Range of each request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fetch(self, name: str, **options: Any) -> Path:
        return fetch(f"{self.url}/{name}", cache_dir=self.cache, **options)

    @property
    def kept(self) -> set[Path]:
        return {*self.cache.glob("downloads/*")} - {*self.cache.glob("downloads/*.lock")}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        code = self.server.codes.pop(0) if self.server.codes else 0
        if code or self.path == "/missing":
            self.send_error(code or 404)
            return
        body, start = self.server.body, 0
        same = self.headers.get("If-Range") in {None, self.server.etag}
        if wanted and self.server.ranges and same:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        if self.server.says_length:
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        with suppress(OSError):  # the client hangs up
            while self.server.endless:
                self.wfile.write(body)
            while self.server.pause:
                self.wfile.write(b"x")
                Event().wait(self.server.pause)  # the fixture takes the time out of time.sleep
            cut = self.server.cut_after.pop(0) if self.server.cut_after else len(body)
            self.wfile.write(body[start : start + cut])

    def log_message(self, *_: Any) -> None:
        pass
