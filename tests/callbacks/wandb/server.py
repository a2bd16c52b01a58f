"""The least of a W&B server on this machine: it takes runs, and remembers the lines it is sent."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from probelight.callbacks.wandb.guard import STEP

_PROJECT = {"id": "p", "name": "p", "entity": {"id": "e", "name": "e"}}


class Server:
    """What is sent to an address.

    Attributes:
        address: Where it listens.
    """

    def __init__(self) -> None:
        self.address = ""
        self._lines: dict[str, dict[int, Any]] = {}

    def points(self, run_id: str) -> list[tuple[int, str, float]]:
        """(step, metric, value) of all that was sent of a run, sorted; epochs and clock apart."""
        return sorted(
            (row[STEP], name, value)
            for row in self._lines.get(run_id, {}).values()
            for name, value in row.items()
            if name not in (STEP, "epoch") and not name.startswith("_")
        )

    def answer(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        """What the server says to a request."""
        if path.endswith("/file_stream"):
            lines = self._lines.setdefault(path.split("/")[-2], {})
            if sent := (asked.get("files") or {}).get("wandb-history.jsonl"):
                places = range(sent["offset"], sent["offset"] + len(sent["content"]))
                lines |= zip(places, map(json.loads, sent["content"]), strict=True)
            return {"exitcode": None, "limits": {}}
        query, variables = asked.get("query", ""), asked.get("variables") or {}
        if "upsertBucket" in query:
            run = {"id": "r", "name": variables.get("name"), "config": "{}", "project": _PROJECT}
            return {"data": {"upsertBucket": {"inserted": True, "bucket": run}}}
        if "createRunFiles" in query:
            return {"data": {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": []}}}
        if "viewer" in query:
            return {"data": {"viewer": {"id": "v", "entity": "e", "username": "u", "flags": "{}"}}}
        return {"data": {}}


@contextmanager
def running_server() -> Iterator[Server]:
    """A server, as long as the block runs."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._say({})

        def do_PUT(self) -> None:
            self._body()
            self._say({})

        def do_POST(self) -> None:
            body = self._body()
            is_text = "json" in self.headers.get("Content-Type", "json")
            self._say(server.answer(self.path, json.loads(body) if is_text and body else {}))

        def _body(self) -> bytes:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            zipped = self.headers.get("Content-Encoding") == "gzip"
            return gzip.decompress(body) if zipped else body

        def _say(self, answer: dict[str, Any]) -> None:
            text = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.address = f"http://127.0.0.1:{listening.server_port}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield server
        listening.shutdown()
