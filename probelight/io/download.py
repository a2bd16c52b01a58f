"""Fetch released files once: resumed after a cut, checked, put in place in one step."""

from __future__ import annotations

import hashlib
import os
import re
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from probelight.io.errors import ProbelightError, RecordError, causes
from probelight.io.files import BINARY, BLOCK, ITEMS, PACKED_MAGIC, content_sha256, read_blocks
from probelight.io.package import cache_folder

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

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
    "If this machine has no network, add --mirror FOLDER, which reads "
    "FOLDER/<mirror_folder>/<path>, both as in the probe's config"
)


class DownloadError(ProbelightError, OSError):
    """A file could not be fetched; the message names the address and what to do."""


class NotThereError(DownloadError):
    """The server answers that it does not have the file."""


def is_offline(offline: bool | None = None) -> bool:
    """Return the choice, or whether $PROBELIGHT_OFFLINE or $HF_HUB_OFFLINE is set to yes."""
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
    """Return the local path of a file, downloaded if it is not in the cache yet.

    Args:
        url: http(s):// address, or file:// (then the file itself is returned, checked).
        sha256: Of the decompressed bytes. A file with another one is never put in the cache.
        cache_dir: See `cache_folder`.
        offline: Use the cache alone; see `is_offline`.

    Raises:
        DownloadError: If it cannot be fetched or has another checksum.
    """
    address = urlsplit(url)
    if address.scheme == "file":
        path = Path(unquote(address.path, errors="surrogateescape"))
        if not path.is_file():
            raise NotThereError(f"{url}: there is no such file")
        if fault := _fault(path, sha256):
            raise DownloadError(f"{url}: {fault}")
        return path
    if address.scheme not in {"http", "https"}:
        raise DownloadError(f"{url}: not an http://, https:// or file:// address")
    name = Path(unquote(address.path)).name or "file"
    # The address is hashed: names like train.jsonl repeat.
    key = hashlib.sha256(url.encode()).hexdigest()[:16]
    target = cache_folder(cache_dir) / "downloads" / f"{key}-{name}"
    if target.is_file() and not _fault(target, sha256):
        return target
    if is_offline(offline):
        raise DownloadError(f"{url}: not in {target.parent}, but offline mode is on. {ADVICE}")
    from filelock import FileLock  # not above, for quick commands

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if not target.is_file() or _fault(target, sha256):  # no other process was faster
            _download(url, target, sha256)
    return target


def _fault(path: Path, sha256: str | None, *, has_end: bool = True) -> str:
    """Return why a file cannot be the released one; "" if it may be.

    Without a checksum, a compressed file shows its own end, a plain one needs its length from the
    server, and neither may be what proxies send in place of a file.
    """
    try:
        content_hash = content_sha256(path)
        if content_hash == sha256:
            return ""
        if path.suffix.lower() in BINARY:
            with path.open("rb") as stream:
                start = stream.read(BLOCK)
        else:
            start = next(read_blocks(path, ITEMS), b"")
    except RecordError as error:
        return str(error)
    is_empty = not start.strip(b"\xef\xbb\xbf\0\t\n\r ")
    if is_empty or _PAGE.match(start):
        return (
            f"the server sent {'nothing' if is_empty else 'an HTML page'} instead of the file, as "
            "proxies and login pages do; open the address in a browser to see what it asks for. "
            f"{ADVICE}"
        )
    if sha256 is not None:
        return (
            f"its content has sha256 {content_hash}, but the released file has {sha256}. The file "
            "was changed or damaged; download it again, or read your own version with --data.path"
        )
    with path.open("rb") as stream:
        is_packed = stream.read(4).startswith(PACKED_MAGIC)
    if not has_end and not is_packed:
        return (
            "the server does not report the length of the file, so it may be cut off; write its "
            "sha256 in the probe's config, or download it yourself and use --mirror FOLDER"
        )
    return ""


def _download(url: str, target: Path, sha256: str | None) -> None:
    """Fetch a file in a few requests, each from where the last one was cut off, and check it."""
    import requests  # not above: most commands find their files in the cache
    import urllib3

    partial = target.with_name(f".{target.name}.part")
    etag = ""
    reason: Exception | str = ""
    for attempt in range(RETRIES):
        if attempt:
            time.sleep(0.2 * 4 ** (attempt - 1))
        # Without checksum and ETag nothing would tell the halves of two versions apart.
        start = partial.stat().st_size if partial.exists() and (sha256 or etag) else 0
        headers = {"User-Agent": "probelight", "Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-"} | ({"If-Range": etag} if etag else {})
        try:
            with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
                code = answer.status_code
                if code in BUSY:
                    reason = f"{code} {answer.reason}"
                    continue
                is_other_range = f"bytes {start}-" not in answer.headers.get("Content-Range", "")
                if (start and code == 416) or (code == 206 and is_other_range):
                    partial.unlink(missing_ok=True)
                    reason = f"the server has nothing after byte {start}"
                    continue
                if code not in (200, 206):
                    error = NotThereError if code in {403, 404, 410} else DownloadError
                    raise error(f"{url}: the server answered {code} {answer.reason}. {ADVICE}")
                etag = answer.headers.get("ETag", "")
                etag = "" if etag.startswith("W/") else etag
                with partial.open("ab" if start and code == 206 else "wb") as stream:
                    _receive(answer.raw, stream, url)
                has_end = answer.raw.length_remaining is not None or answer.raw.chunked
            if fault := _fault(partial, sha256, has_end=has_end):
                raise DownloadError(f"{url}: {fault}")
        except DownloadError as error:
            reason = error
            partial.unlink(missing_ok=True)
            if not start:  # two halves of different versions are worth one more try; this is not
                raise
        except requests.ConnectionError as error:
            *_, root = causes(error)  # of the three libraries' texts the innermost says why
            reason = getattr(root, "strerror", None) or str(root)
        except (OSError, urllib3.exceptions.HTTPError) as error:
            reason = error.args[0] if isinstance(error, urllib3.exceptions.HTTPError) else error
        else:
            partial.replace(target)
            return
    raise DownloadError(f"{url}: download failed {RETRIES} times ({reason}). {ADVICE}")


def _receive(answer: BaseHTTPResponse, stream: IO[bytes], url: str) -> None:
    """Write a body to a file as it arrives; refuse one that is too large or too slow."""
    since, received = time.monotonic(), 0
    while block := answer.read1(BLOCK):
        stream.write(block)
        if stream.tell() + (answer.length_remaining or 0) > ITEMS.num_bytes:
            raise DownloadError(
                f"{url}: more than {ITEMS.num_bytes:,} bytes, the limit for a file of {ITEMS.kind}"
            )
        received += len(block)
        if (elapsed := time.monotonic() - since) > HTTP_PATIENCE:
            if received < HTTP_SLOWEST * elapsed:
                raise ConnectionError(
                    f"fewer than {HTTP_SLOWEST:,} bytes per second for {HTTP_PATIENCE:g} seconds"
                )
            since, received = time.monotonic(), 0
    stream.flush()
    os.fsync(stream.fileno())
