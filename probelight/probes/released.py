"""Finding a released file: in a folder of its probe, in a mirror, or at its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from probelight.io.download import DownloadError, NotThereError, fetch, is_offline
from probelight.io.errors import RecordError
from probelight.io.files import content_sha256
from probelight.probes.catalog import EMBEDDED, FileSource


class Released(Protocol):
    """What has released files: a probe, as its config says, or a diagnostic set."""

    @property
    def name(self) -> str:
        """How messages call it."""

    @property
    def base_url(self) -> str | None:
        """Address in front of the paths; None where there is none."""

    @property
    def mirror_folder(self) -> str:
        """Folder of a mirror that stands for `base_url`."""

    @property
    def own_folder(self) -> Path | None:
        """The folder of its own files, where it has one."""

    @property
    def get(self) -> str:
        """What to do by hand where there is no address."""


class Located(NamedTuple):
    """Where a released file lies.

    Attributes:
        path: Its local path.
        url: The address that it was fetched from; None of a file that somebody put there.
    """

    path: Path
    url: str | None = None


def locate(
    config: Released,
    source: FileSource,
    mirror: str | Path | None,
    cache_dir: str | Path | None,
    offline: bool | None,
) -> Located:
    """Return the local path of a released file, which is fetched if it is not there yet.

    Args:
        config: The probe or set that it belongs to.
        source: The file.
        mirror: See `probelight.probes.source.load_probe`.
        cache_dir: See `probelight.io.package.cache_folder`.
        offline: See `probelight.io.download.is_offline`.

    Raises:
        DownloadError: If it cannot be had; the message says what to do.
    """
    own = config.own_folder
    if own is not None:
        if path := _in_folder(own, source):
            if not _is_released(path, source):
                fetch(path.as_uri(), sha256=source.sha256)  # it says what is wrong
            return Located(path)
        if not mirror:
            advice = (
                "`base_url` is the folder of the files, relative to the probe's YAML file, or an "
                "address that begins with https://"
            )
            if config.base_url == EMBEDDED:
                advice = (
                    f"if {config.name} is a probe of the repository, this checkout is not "
                    "complete; for a probe of your own, say under `base_url` in which folder its "
                    "files are"
                )
            raise NotThereError(f"{_not_in(own, source)}; {advice}")
    if mirror:
        parts = urlsplit(str(mirror))
        if parts.scheme in {"http", "https"}:
            base = f"{str(mirror).rstrip('/')}/{config.mirror_folder}".rstrip("/")
            return _fetch_either(base, source, cache_dir, offline)
        folder = Path(unquote(parts.path) if parts.scheme == "file" else mirror).expanduser()
        if not folder.is_dir():
            raise NotThereError(f"{mirror}: the mirror is not a folder")
        folder = folder / config.mirror_folder
        if path := _in_folder(folder, source):
            return Located(path)
        advice = f"nor is it in {own}" if own else "leave --mirror out to fetch it"
        raise NotThereError(f"{_not_in(folder, source)}; {advice}")
    if config.base_url is None:
        raise NotThereError(
            f"{config.name}: there is no address to fetch it from. {config.get} Put it in the AI2 "
            f"format at <mirror>/{config.mirror_folder}/{source.path} and give --mirror"
        )
    url = f"{config.base_url.rstrip('/')}/{source.path}"
    path = fetch(url, sha256=source.sha256, cache_dir=cache_dir, offline=offline)
    return Located(path, None if url.startswith("file:") else url)


@contextmanager
def reading(found: Located, source: FileSource, offline: bool | None) -> Iterator[Path]:
    """Give a block the path of a released file to read.

    A download that no checksum vouches for and that cannot be read does not stay in the cache under
    its name, so that the next start fetches it anew; without a network it stays where it is.

    Raises:
        RecordError: As the block; of such a download the message names the address.
    """
    try:
        yield found.path
    except RecordError as error:
        if found.url is None or source.sha256:
            raise
        aside = found.path.with_name(f"{found.path.name}.unreadable")
        if is_offline(offline):
            advice = f"without offline mode, remove {found.path} and it is fetched anew"
        else:
            with suppress(FileNotFoundError):  # another process was faster
                found.path.replace(aside)
            advice = f"the next start fetches it anew, and this one is kept as {aside}"
        raise RecordError(
            f"{found.url}: what was downloaded cannot be read ({error}); {advice}"
        ) from error


def _either(path: str) -> tuple[str, str]:
    """Return a path, and that of the same file with or without gzip."""
    return path, path.removesuffix(".gz") if path.endswith(".gz") else f"{path}.gz"


def _is_released(path: Path, source: FileSource) -> bool:
    try:
        return content_sha256(path) == source.sha256 or source.sha256 is None
    except RecordError:  # compressed and damaged
        return False


def _in_folder(folder: Path, source: FileSource) -> Path | None:
    found = (folder / path for path in _either(source.path))
    return next((path for path in found if path.is_file()), None)


def _not_in(folder: Path, source: FileSource) -> str:
    first, second = _either(source.path)
    return f"there is no {folder / first} (nor {Path(second).name})"


def _fetch_either(
    base: str, source: FileSource, cache_dir: str | Path | None, offline: bool | None
) -> Located:
    def fetched(url: str) -> Located:
        path = fetch(url, sha256=source.sha256, cache_dir=cache_dir, offline=offline)
        return Located(path, url)

    first, second = (f"{base}/{path}" for path in _either(source.path))
    try:
        return fetched(first)
    except DownloadError as error:
        if not (isinstance(error, NotThereError) or is_offline(offline)):
            raise
        try:
            return fetched(second)
        except NotThereError:
            raise error from None
