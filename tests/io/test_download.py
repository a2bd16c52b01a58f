from __future__ import annotations

import gzip
import hashlib
import multiprocessing
import random
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from probelight.io import download
from probelight.io.download import DownloadError, NotThereError, fetch, is_offline
from probelight.io.files import SizeLimit

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
        self.requests: list[tuple[str, str | None]] = []  # path and Range of each request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fetch(self, name: str, **options: Any) -> Path:
        return fetch(f"{self.url}/{name}", cache_dir=self.cache, **options)

    @property
    def downloads(self) -> set[Path]:
        return {*self.cache.glob("downloads/*")} - {*self.cache.glob("downloads/*.lock")}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        byte_range = self.headers.get("Range")
        self.server.requests.append((self.path, byte_range))
        code = self.server.codes.pop(0) if self.server.codes else 0
        if code or self.path == "/missing":
            self.send_error(code or 404)
            return
        body, start = self.server.body, 0
        same = self.headers.get("If-Range") in {None, self.server.etag}
        if byte_range and self.server.ranges and same:
            start = int(byte_range.removeprefix("bytes=").removesuffix("-"))
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


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with Server(tmp_path) as running:
        thread = Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()


def test_a_file_is_fetched_once(server: Server) -> None:
    path = server.fetch("a/train.jsonl", sha256=SHA256)
    assert path.read_bytes() == BODY
    assert server.fetch("a/train.jsonl", sha256=SHA256) == path
    assert server.fetch("a/train.jsonl", sha256=SHA256, offline=True) == path
    assert len(server.requests) == 1
    other_path = server.fetch("b/train.jsonl")
    assert other_path != path
    assert server.downloads == {path, other_path}


def test_a_cut_transfer_goes_on_where_it_stopped(server: Server) -> None:
    server.cut_after = [100_000, 50_000]
    path = server.fetch("x")
    assert path.read_bytes() == BODY
    assert [sent for _, sent in server.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_the_part_of_an_ended_process_is_used_where_a_checksum_guards_it(server: Server) -> None:
    server.cut_after = [1000] * 4
    with pytest.raises(DownloadError, match=r"download failed 4 times \(.*\(1000 bytes read, 29"):
        server.fetch("x", sha256=SHA256)
    assert server.fetch("x", sha256=SHA256).read_bytes() == BODY
    assert server.requests[-1][1] == "bytes=4000-"
    server.cut_after = [1000] * 4
    with pytest.raises(DownloadError):
        server.fetch("y")
    server.body = BODY[::-1]
    assert server.fetch("y").read_bytes() == BODY[::-1]
    assert server.requests[-1][1] is None


def test_a_file_that_changes_between_two_tries_is_fetched_whole(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def release(_: float) -> None:
        server.etag, server.body = '"v2"', BODY[::-1]

    monkeypatch.setattr(download.time, "sleep", release)
    server.cut_after = [1000]
    assert server.fetch("x").read_bytes() == BODY[::-1]
    assert [byte_range for _, byte_range in server.requests] == [None, "bytes=1000-"]


def test_without_version_and_checksum_nothing_is_resumed(server: Server) -> None:
    server.etag, server.cut_after = None, [1000]
    assert server.fetch("x").read_bytes() == BODY
    assert [byte_range for _, byte_range in server.requests] == [None, None]


def test_the_checksum_guards_a_resumed_file_without_version(server: Server) -> None:
    server.etag, server.cut_after, server.body = None, [1000] * 4, BODY[::-1]
    with pytest.raises(DownloadError):
        server.fetch("x", sha256=SHA256)
    server.body = BODY  # the part is of the old version: found out at the end, fetched anew
    path = server.fetch("x", sha256=SHA256)
    assert path.read_bytes() == BODY
    assert [byte_range for _, byte_range in server.requests[-2:]] == ["bytes=4000-", None]


def test_a_server_without_ranges_and_a_part_too_long(server: Server) -> None:
    server.ranges, server.cut_after = False, [1000]
    assert server.fetch("x").read_bytes() == BODY
    server.ranges, server.cut_after = True, [200_000]
    server.codes = [0, 503, 503, 503]
    short = hashlib.sha256(BODY[:1000]).hexdigest()
    with pytest.raises(DownloadError, match=r"4 times \(503 Service Unavailable\)"):
        server.fetch("y", sha256=short)
    server.body = BODY[:1000]  # shorter than the part: the server answers 416
    path = server.fetch("y", sha256=short)
    assert path.read_bytes() == BODY[:1000]


def test_a_wrong_checksum_is_refused_and_not_kept(server: Server) -> None:
    with pytest.raises(
        DownloadError, match=rf"/x: its content has sha256 {SHA256}, but the released file has 0000"
    ):
        server.fetch("x", sha256="0" * 64)
    assert len(server.requests) == 1
    assert server.downloads == set()


def test_the_checksum_is_of_the_content(server: Server) -> None:
    server.body = gzip.compress(BODY)
    path = server.fetch("x.gz", sha256=SHA256)
    assert gzip.decompress(path.read_bytes()) == BODY
    server.body = server.body[:-20]
    with pytest.raises(DownloadError, match="truncated gzip"):
        server.fetch("y.gz")


def test_a_damaged_cache_is_repaired_or_refused_offline(server: Server) -> None:
    path = server.fetch("x", sha256=SHA256)
    path.write_bytes(b"damaged")
    with pytest.raises(DownloadError, match="offline mode is on"):
        server.fetch("x", sha256=SHA256, offline=True)
    assert server.fetch("x", sha256=SHA256).read_bytes() == BODY


LOGIN = b"<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>"
PAGES = {
    "login": (LOGIN, "an HTML page"),
    "xhtml": (b"\xef\xbb\xbf \n<?xml version='1.0'?>\n<!-- a -->\n<HTML lang=en>", "an HTML page"),
    "packed": (gzip.compress(LOGIN, mtime=0), "an HTML page"),
    "nothing": (b"", "nothing"),
    "blank": (b"\r\n \n", "nothing"),
    "packed nothing": (gzip.compress(b"", mtime=0), "nothing"),
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("sha256", [None, SHA256], ids=["unknown", "known"])
def test_what_comes_in_place_of_a_file_is_named_and_not_kept(
    server: Server, name: str, sha256: str | None
) -> None:
    server.body, page_kind = PAGES[name]
    with pytest.raises(
        DownloadError, match=rf"{server.url}/x\.jsonl: the server sent {page_kind} instead of"
    ):
        server.fetch("x.jsonl", sha256=sha256)
    assert server.downloads == set()
    server.body = BODY
    assert server.fetch("x.jsonl", sha256=sha256).read_bytes() == BODY


def test_a_page_that_was_kept_before_is_fetched_anew(server: Server) -> None:
    path = server.fetch("x")
    for body, _ in PAGES.values():
        path.write_bytes(body)
        assert server.fetch("x").read_bytes() == BODY


def test_text_with_markup_is_no_page(server: Server) -> None:
    for number, body in enumerate(
        [b"<s> a sentence </s>\n", b'{"a": "<html>"}\n', b"<headless>\n"]
    ):
        server.body = body
        assert server.fetch(f"{number}").read_bytes() == body


def test_busy_servers_are_asked_again_and_missing_files_are_not(server: Server) -> None:
    server.codes = [503, 429]
    assert server.fetch("x").read_bytes() == BODY
    with pytest.raises(NotThereError, match=r"/missing: the server answered 404 .*--mirror FOLDER"):
        server.fetch("missing")
    assert len(server.requests) == 4


def test_no_network_names_the_address_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    url = "http://127.0.0.1:9/x"  # nothing listens there
    with pytest.raises(DownloadError, match=rf"{url}: .* 4 times \(Connection refused\).*--mirror"):
        fetch(url, cache_dir=tmp_path, offline=False)


@pytest.mark.parametrize("variable", ["PROBELIGHT_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_is_said_by_argument_or_environment(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("PROBELIGHT_OFFLINE", raising=False)
    assert not is_offline()
    monkeypatch.setenv(variable, "1")
    assert is_offline()
    assert not is_offline(False)
    with pytest.raises(DownloadError, match=r"http://x/y: not in .*offline mode is on.*--mirror"):
        fetch("http://x/y", cache_dir=tmp_path)


def test_a_file_address_is_read_in_place_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "with space" / "x"
    path.parent.mkdir()
    path.write_bytes(BODY)
    assert fetch(path.as_uri(), sha256=SHA256, offline=True) == path
    with pytest.raises(DownloadError, match="sha256"):
        fetch(path.as_uri(), sha256="0" * 64)
    with pytest.raises(NotThereError, match="no such file"):
        fetch((tmp_path / "none").as_uri())
    with pytest.raises(DownloadError, match="not an http"):
        fetch("ftp://x/y")


def test_a_body_without_an_end_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "ITEMS", SizeLimit("items", 3_000_000, 1000))
    server.says_length, server.endless = False, True
    with pytest.raises(DownloadError, match=r"/x: more than 3,000,000 bytes, the limit for a f"):
        server.fetch("x")
    assert server.downloads == set()
    server.says_length, server.endless, server.body = True, False, b"x" * 3_000_001
    with pytest.raises(DownloadError, match=r"/y: more than 3,000,000 bytes"):
        server.fetch("y")


def test_a_server_that_trickles_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "HTTP_PATIENCE", 0.2)
    monkeypatch.setattr(download, "RETRIES", 1)
    server.pause = 0.02
    with pytest.raises(DownloadError, match=r"/x: .*fewer than 4,096 bytes per second for"):
        server.fetch("x")


@pytest.mark.parametrize("patience", [60.0, 0.0])
def test_what_comes_fast_enough_is_read_whole_however_often_it_is_measured(
    patience: float, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "HTTP_PATIENCE", patience)
    assert server.fetch("x").read_bytes() == BODY


def test_a_body_of_unknown_length_is_only_taken_if_it_tells_its_end(server: Server) -> None:
    server.says_length = False
    with pytest.raises(
        DownloadError, match=r"/x: the server does not report the length .*its sha256"
    ):
        server.fetch("x")
    assert server.fetch("x", sha256=SHA256).read_bytes() == BODY
    packed = server.body = gzip.compress(BODY)
    assert server.fetch("x.gz").read_bytes() == packed
    server.cut_after = [len(packed) // 2]
    with pytest.raises(DownloadError, match=r"/y\.gz: .*truncated gzip"):
        server.fetch("y.gz")


def _fetch(url: str, cache_dir: Path) -> str:
    return hashlib.sha256(fetch(url, cache_dir=cache_dir, offline=False).read_bytes()).hexdigest()


def test_processes_at_once_share_one_transfer(server: Server, tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        sums = pool.starmap(_fetch, [(f"{server.url}/x", tmp_path)] * 6)
    assert sums == [SHA256] * 6
    assert len(server.requests) == 1
