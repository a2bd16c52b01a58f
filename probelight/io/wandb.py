"""Weights & Biases: its settings, how runs begin there, and the thread that calls its client."""

from __future__ import annotations

import os
import queue
import shlex
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from probelight.io.process import STOP
from probelight.io.ranges import Distinct

INIT_SECONDS = 60.0
FINISH_SECONDS = 15.0  # online: what is not sent by then is on disk
OFFLINE_SECONDS = 120.0  # offline: the client only writes a file, but may share a busy machine
REACH_SECONDS = 5.0
PENDING = "wandb/pending.json"  # in a run's folder, while W&B does not have all of the run


@dataclass(frozen=True)
class WandbSettings:
    """Where runs appear in Weights & Biases.

    Args:
        project: W&B project. By default nothing is sent to W&B.
        entity: W&B team or user.
        group: Name under which W&B groups the runs of one sweep.
        mode: "auto" is online with an API key and offline without one. If the server does not
            answer, "online" also becomes offline.
        tags: Tags of the runs.
    """

    project: str | None = None
    entity: str | None = None
    group: str | None = None
    mode: Literal["auto", "online", "offline"] = "auto"
    tags: Annotated[tuple[str, ...], Distinct()] = ()

    @property
    def disabled(self) -> bool:
        """Whether W&B is switched off by the environment, whatever the settings."""
        return os.environ.get("WANDB_MODE") == "disabled"

    def offline(self) -> bool:
        """Return whether a run is written to disk only, for `wandb sync` later."""
        if self.disabled:
            return False  # then W&B does nothing at all, and no mode of ours may wake it
        if os.environ.get("WANDB_MODE") in ("offline", "dryrun"):
            return True
        if self.mode != "auto":
            return self.mode == "offline"
        return not _has_api_key()


DEFAULT_WANDB = WandbSettings()


_begun: dict[Path, None] = {}  # folders in which this command began runs in W&B


def note_begun(*folders: Path) -> None:
    """Note folders in which runs in W&B may have begun, for `saying_how_to_sync`."""
    _begun.update(dict.fromkeys(folder.absolute() for folder in folders))


@contextmanager
def saying_how_to_sync() -> Iterator[None]:
    """Print, behind a block that was not interrupted, the `wandb sync` of its offline runs."""
    _begun.clear()
    try:
        yield
    finally:
        runs = list[Path]()
        for folder in _begun:  # whose newest run holds what earlier starts wrote too
            all_runs = folder.glob("wandb/*run-*")
            runs += sorted(all_runs, key=lambda run: run.name.removeprefix("offline-"))[-1:]
        runs = [run for run in runs if run.name.startswith("offline-")]
        if runs and STOP.code is None:
            paths = " ".join(shlex.quote(str(run)) for run in runs)
            links = [*(parent := runs[0].parents[2]).glob("*/wandb/latest-run")]
            if len(links) > 1 and {link.resolve() for link in links} == {r.resolve() for r in runs}:
                paths = f"{shlex.quote(str(parent))}/*/wandb/latest-run"  # a shorter name of them
            print(f"to send it to Weights & Biases: wandb sync {paths}")


def wandb_id(key: str) -> str:
    """Return the run's id in W&B: the key, its middle cut out above W&B's 64 characters.

    The end stays: a hyphen and 12 digits of the config's hash.
    """
    return key if len(key) <= 64 else key[:51] + key[-13:]


def wandb_client() -> Any:
    """Return the wandb package, whose import takes time."""
    import wandb

    return wandb


def not_online(subject: str, folder: Path, problem: Exception) -> str:
    """Return the warning about a run, or a report, that could not be online."""
    return (
        f"Weights & Biases is not reachable: {problem}. The {subject} is saved in "
        f"{folder / 'wandb'}; send it later with `wandb sync`"
    )


def open_run(
    settings: WandbSettings, wandb: Any, offline: bool, **about: Any
) -> tuple[Any, Exception | None]:
    """Begin a run in W&B, offline where it cannot be online; return it, and the error if so.

    The mode is given to the client itself: from the environment alone, a client that was set up
    before does not see it, wants a key and records nothing. `about` goes to `wandb.init`.
    """
    note_begun(Path(about["dir"]))
    options = {"project": settings.project, "entity": settings.entity, "tags": list(settings.tags)}
    problem = None
    if not offline:
        try:
            if not settings.disabled:
                check_server(wandb)
            mode = "disabled" if settings.disabled else "online"
            online = client_settings(offline=False)
            run = wandb.init(**options, **about, mode=mode, resume="allow", settings=online)
            return run, None
        except Exception as error:
            problem = error
    # An offline run cannot be resumed: a second start writes a second file.
    options |= {"mode": "offline", "resume": None, "settings": client_settings(offline=True)}
    return wandb.init(**options, **about), problem


def check_server(wandb: Any) -> None:
    """Raise ConnectionError if W&B's server does not answer at all.

    The client itself tries for `INIT_SECONDS`, and a command that ends earlier waits for it.
    """
    address = wandb.setup().settings.base_url
    try:
        with urllib.request.urlopen(address, timeout=REACH_SECONDS):
            pass
    except urllib.error.HTTPError:
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if not isinstance(reason, ssl.SSLError):  # the client may know its certificate
            raise ConnectionError(f"{address} does not answer ({reason})") from error


def client_settings(offline: bool) -> Any:
    """Return settings that make W&B's client give up early and leave the terminal alone.

    What it could not send is on disk; `wandb sync` sends it.
    """
    import wandb

    options: dict[str, Any] = {
        "init_timeout": INIT_SECONDS,
        # A little less than the run waits for it: then the client says what is left to do.
        "finish_timeout": OFFLINE_SECONDS if offline else FINISH_SECONDS - 3,
        "finish_timeout_raises": offline,  # a file that is not whole is written again
        "console": "off",
        "silent": offline,  # it has no address to show, and the command says how to sync
    }
    # `finish_timeout` came with a later version than the first one that we take.
    supported = set(wandb.Settings.model_fields)
    return wandb.Settings(**{name: value for name, value in options.items() if name in supported})


def _has_api_key() -> bool:
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    import wandb

    try:
        return bool(wandb.login(prompt=False, verify=False))
    except TypeError:  # a version that cannot be kept from asking on the terminal
        return bool(wandb.api.api_key)
    except wandb.Error:  # there is one, which `wandb.init` says what is wrong with
        return True


Call = Callable[[], Any]


class Courier:
    """Make calls one after another on a daemon thread; sending one never blocks.

    More than `capacity` waiting calls, which a run of many hours does not log, are turned away.
    """

    def __init__(self, capacity: int = 5000) -> None:
        self._calls: queue.Queue[Call] = queue.Queue(capacity)
        self._since: float | None = None
        self._thread: threading.Thread | None = None

    def send(self, call: Call) -> bool:
        """Queue a call that must not raise; False if the queue is full."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="wandb", daemon=True)
            self._thread.start()
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until everything sent so far is done; False if it is not done in time.

        A call that has been running for so long already is not waited for.
        """
        since = self._since
        stuck = 0.0 if since is None else time.monotonic() - since
        done = threading.Event()
        return self.send(done.set) and done.wait(max(0.0, seconds - stuck))

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            self._since = time.monotonic()
            call()
            self._since = None


@cache
def process_courier() -> Courier:
    """Return the one courier of this process: W&B has one run at a time."""
    return Courier()
