"""Fetches released files once: resumed after a cut, checked, put in place in one step."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from probelight.io.errors import RecordError
from probelight.io.files import BLOCK, ITEMS, content_sha256, is_packed, read_blocks
from probelight.io.package import cache_folder

try:
    import fcntl
except ImportError:  # not on Windows; there two processes may fetch the same file twice
    fcntl = None  # type: ignore[assignment]

TIMEOUT = 30.0  # seconds without a byte
RETRIES = 4
HTTP_SLOWEST = 4096  # bytes a second that a server must send,
HTTP_PATIENCE = 60.0  # measured over so many seconds
BUSY = {408, 425, 429, 500, 502, 503, 504}  # answers worth asking again
# How a page begins: what a proxy or a portal sends in place of the file, with the status 200.
_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml.{0,200}?\?>\s*)?(<!--.{0,2000}?-->\s*)*"
    rb"<(!doctype\s+html|html|head|body|script|meta|title)\b",
    re.IGNORECASE | re.DOTALL,
)
ADVICE = (
    "If this machine has no network, put the files in a folder laid out like the address and "
    "name it with --mirror FOLDER"
)


class DownloadError(OSError):
    """A file could not be had; the message names the address and what to do."""


class NotThereError(DownloadError):
    """The server is there and says that the file is not."""


def is_offline(offline: bool | None = None) -> bool:
    """The given choice, or whether $PROBELIGHT_OFFLINE or $HF_HUB_OFFLINE is set to yes."""
    if offline is not None:
        return offline
    words = (os.environ.get(key, "") for key in ("PROBELIGHT_OFFLINE", "HF_HUB_OFFLINE"))
    return any(word.strip().lower() in {"1", "true", "yes", "on"} for word in words)


def fetch(
    url: str,
    *,
    sha256: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool | None = None,
) -> Path:
    """The local path of a file, downloaded if it is not in the cache yet.

    Args:
        url: http(s):// address, or file:// (then the file itself is returned, checked).
        sha256: Of the decompressed bytes. A file with another one is never put in the cache.
        cache_dir: See `cache_folder`.
        offline: Use the cache alone; see `is_offline`.

    Raises:
        DownloadError: If it cannot be had or has another checksum.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        if not path.is_file():
            raise NotThereError(f"{url}: there is no such file")
        _check(path, sha256, url)
        return path
    if parts.scheme not in {"http", "https"}:
        raise DownloadError(f"{url}: not an http://, https:// or file:// address")
    name = Path(unquote(parts.path)).name or "file"
    # The address is hashed: names like train.jsonl repeat.
    key = hashlib.sha256(url.encode()).hexdigest()[:16]
    target = cache_folder(cache_dir) / "downloads" / f"{key}-{name}"
    if _cached(target, sha256):
        return target
    if is_offline(offline):
        raise DownloadError(f"{url}: not in {target.parent}, and offline mode is on. {ADVICE}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(f".{target.name}.lock")):
        if not _cached(target, sha256):  # another process may have been faster
            _download(url, target, sha256)
    return target


def _cached(target: Path, sha256: str | None) -> bool:
    try:
        if not target.is_file():
            return False
        # Without a checksum what an earlier version kept may be a page of a proxy.
        return not _other_content(target) if sha256 is None else content_sha256(target) == sha256
    except RecordError:  # damaged: fetch it anew
        return False


def _other_content(path: Path) -> str | None:
    """What a server sent in place of a file of items: an empty body, or an HTML page.

    Raises:
        RecordError: If the file is compressed and damaged or cut off.
    """
    start = next(read_blocks(path, ITEMS), b"")
    if not start.strip(b"\xef\xbb\xbf\0\t\n\r "):
        return "an empty body"
    return "an HTML page" if _PAGE.match(start) else None


def _check(
    path: Path, sha256: str | None, url: str, *, fetched: bool = False, has_end: bool = True
) -> None:
    """Compare checksums; without one a file must at least be whole as far as can be told.

    A compressed file tells its end itself, a plain one only if it came with its length. What was
    `fetched` must not be what is sent in place of a file.
    """
    try:
        found = content_sha256(path)
    except RecordError as error:
        raise DownloadError(f"{url}: {error}") from None
    if sha256 != found and fetched and (other := _other_content(path)):
        raise DownloadError(
            f"{url}: {other} came in place of the file, as proxies and login pages send it; open "
            f"the address in a browser to see what it asks for. {ADVICE}"
        )
    if sha256 is not None and found != sha256:
        raise DownloadError(
            f"{url}: its content has sha256 {found} where {sha256} was released. The file was "
            "changed or damaged; fetch it again, or read your own version with --data.path"
        )
    if sha256 is None and not has_end and not is_packed(path):
        raise DownloadError(
            f"{url}: the server does not say how long the file is, so it may be cut off; write its "
            "sha256 in the probe's config, or fetch it yourself and name its folder with --mirror"
        )


def _download(url: str, target: Path, sha256: str | None) -> None:
    part = target.with_name(f".{target.name}.part")
    for attempt in range(RETRIES):
        resumed = part.exists()
        try:
            has_end = _transfer(url, part, resumable=sha256 is not None)
            _check(part, sha256, url, fetched=True, has_end=has_end)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # there is nothing behind the part: it is not of this file
                _forget(part)
            elif error.code not in BUSY:
                kind = NotThereError if error.code in {403, 404, 410} else DownloadError
                raise kind(
                    f"{url}: the server says {error.code} {error.reason}. {ADVICE}"
                ) from None
            reason: Exception = error
        except DownloadError:
            _forget(part)
            if not resumed:  # two halves of different versions are worth one more try; this is not
                raise
            continue
        except (OSError, http.client.HTTPException) as error:
            reason = error
        else:
            part.replace(target)
            _forget(part)
            return
        if attempt + 1 < RETRIES:
            time.sleep(0.2 * 4**attempt)
    # "HTTP Error 503: ..." says more than its reason, "<urlopen error ...>" less.
    why = reason.reason if type(reason) is urllib.error.URLError else reason
    raise DownloadError(f"{url}: not fetched after {RETRIES} tries ({why}). {ADVICE}")


def _transfer(url: str, part: Path, *, resumable: bool) -> bool:
    """One request: appends to what is there if the server agrees that it is the same file.

    Returns:
        Whether the server said where the file ends, so that it is known to be whole.
    """
    version_path = _version_path(part)
    version = version_path.read_text() if version_path.exists() else ""
    start = part.stat().st_size if part.exists() and (version or resumable) else 0
    headers = {"User-Agent": "probelight", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if version:
            headers["If-Range"] = version
    request = urllib.request.Request(url, headers=headers)
    with open_url(request, TIMEOUT) as answer:
        appending = answer.status == 206 and _first_byte(answer.headers) == start
        if answer.status == 206 and not appending:
            _forget(part)
            raise ConnectionError("the server sent another part than the one asked for")
        tag = answer.headers.get("ETag", "")
        strong = tag if not tag.startswith("W/") else ""
        version_path.write_text(strong or answer.headers.get("Last-Modified", ""))
        has_end = answer.length is not None or answer.chunked
        with part.open("ab" if appending else "wb") as stream:
            _copy(answer, stream, url)
    return has_end


def _copy(answer: http.client.HTTPResponse, stream: IO[bytes], url: str) -> None:
    """Append an answer's body to a file, up to where it ends or breaks off."""
    length, before = answer.length, stream.tell()
    _refuse_large(before + (length or 0), url)
    # What came is written at once, however little: read() would wait for a whole block.
    while block := answer.read1(BLOCK):
        stream.write(block)
        _refuse_large(stream.tell(), url)
    stream.flush()
    os.fsync(stream.fileno())
    done = stream.tell() - before
    if length is not None and done < length:
        raise ConnectionError(f"cut off after {done} of {length} bytes")


def _refuse_large(num_bytes: int, url: str) -> None:
    if num_bytes > ITEMS.num_bytes:
        raise DownloadError(
            f"{url}: more than {ITEMS.num_bytes:,} bytes, the most of a file of {ITEMS.kind}"
        )


def _first_byte(headers: http.client.HTTPMessage) -> int:
    """7 of "Content-Range: bytes 7-99/100"; -1 if it is not there."""
    first = headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1


def _version_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_path(part).unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process, also when it is killed."""
    with path.open("w") as stream:
        if fcntl is not None:
            fcntl.flock(stream, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if fcntl is not None:
                with suppress(OSError):
                    fcntl.flock(stream, fcntl.LOCK_UN)


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
        """Read what is there, at least a byte, and take the time."""
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
