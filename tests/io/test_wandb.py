from __future__ import annotations

import shlex
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.io import wandb as wandb_settings
from probelight.io.process import STOP
from probelight.io.wandb import (
    Courier,
    WandbSettings,
    check_server,
    client_settings,
    note_begun,
    saying_how_to_sync,
    wandb_id,
)


class Client:
    """What `wandb.Settings` is in a version that does not know `finish_timeout` yet."""

    model_fields = ("init_timeout", "console")

    def __init__(self, **values: object) -> None:
        self.values = values


def test_no_key_means_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(wandb_settings, "_has_api_key", lambda: False)
    assert WandbSettings(project="p").offline()
    assert not WandbSettings(project="p", mode="online").offline()
    monkeypatch.setattr(wandb_settings, "_has_api_key", lambda: True)
    assert not WandbSettings(project="p").offline()
    assert WandbSettings(project="p", mode="offline").offline()
    # The client goes by that, whatever mode it is given.
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert WandbSettings(project="p", mode="online").offline()
    # Lightning's logger would wake a client that is switched off to write to disk.
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert not WandbSettings(project="p", mode="offline").offline()


def test_a_key_comes_from_the_environment_or_from_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    client = SimpleNamespace(Error=KeyError, login=lambda prompt, verify: False)
    monkeypatch.setitem(sys.modules, "wandb", client)
    assert WandbSettings(project="p").offline()
    client.login = lambda prompt, verify: (prompt, verify) == (False, False)
    assert not WandbSettings(project="p").offline()
    # An older client can only be asked for the key itself.
    client.login, client.api = lambda verify: True, SimpleNamespace(api_key="")
    assert WandbSettings(project="p").offline()
    client.api.api_key = "k"
    assert not WandbSettings(project="p").offline()
    # It is given the settings that it knows.
    client.Settings = Client
    assert client_settings(offline=True).values == {"init_timeout": 60, "console": "off"}
    monkeypatch.setitem(sys.modules, "wandb", None)  # not installed
    monkeypatch.setenv("WANDB_API_KEY", "k")
    assert not WandbSettings(project="p").offline()


@pytest.mark.parametrize("answer", [b"HTTP/1.0 404 No\r\n\r\n", b"HTTP/1.0 200 Yes\r\n\r\n"])
def test_a_server_that_answers_anything_is_there(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        wandb = SimpleNamespace(
            setup=lambda: SimpleNamespace(settings=SimpleNamespace(base_url=address))
        )

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        check_server(wandb)
        thread.join()
    with pytest.raises(ConnectionError, match=rf"{address} does not answer \(.*refused"):
        check_server(wandb)


def begun(folder: Path, *runs: str) -> Path:
    """A folder in which W&B began these runs, the newest last."""
    for run in runs:
        (folder / "wandb" / run).mkdir(parents=True)
    (folder / "wandb" / "latest-run").symlink_to(runs[-1])
    return folder


def test_one_line_says_how_to_sync_the_newest_offline_runs_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def say(*folders: Path) -> str:
        with suppress(SystemExit), saying_how_to_sync():
            note_begun(*folders, tmp_path / "nothing")
            raise SystemExit(3)  # as of a check that found something
        return capsys.readouterr().out

    old, new = "offline-run-20260101_000000-a", "offline-run-20260102_000000-a"
    first = begun(tmp_path / "my runs" / "a", old, new)
    second = begun(tmp_path / "my runs" / "b", old)
    online = begun(tmp_path / "c", old, "run-20260102_000000-a")
    send = "to send it to Weights & Biases: wandb sync"
    assert say(online) == ""
    assert say(first, online) == f"{send} '{first}/wandb/{new}'\n"
    assert say(second, first) == f"{send} '{tmp_path}/my runs'/*/wandb/latest-run\n"
    # The pattern would also name what was not begun now, and no pattern names both folders.
    begun(tmp_path / "my runs" / "earlier", old)
    listed = [shlex.quote(f"{first}/wandb/{new}"), shlex.quote(f"{second}/wandb/{old}")]
    assert say(first, second) == f"{send} {' '.join(listed)}\n"
    with saying_how_to_sync():  # the next command
        pass
    monkeypatch.setattr(STOP, "code", 143)
    assert say(first) == capsys.readouterr().out == ""


def test_ids_are_fixed_and_not_too_long() -> None:
    assert wandb_id("inoculate-k100-0123456789ab") == "inoculate-k100-0123456789ab"
    long = wandb_id("x" * 100 + "-0123456789ab")
    assert long == "x" * 51 + "-0123456789ab"
    assert len(long) == 64


def test_calls_are_made_in_order_on_another_thread() -> None:
    courier, calls = Courier(), []
    for number in range(100):
        courier.send(lambda number=number: calls.append((number, threading.get_ident())))
    assert courier.wait(5)
    assert [number for number, _ in calls] == list(range(100))
    assert {thread for _, thread in calls}.isdisjoint({threading.get_ident()})


def test_a_full_queue_turns_calls_away_at_once() -> None:
    courier, release = Courier(capacity=3), threading.Event()
    courier.send(release.wait)
    start = time.perf_counter()
    while courier.send(lambda: None):
        pass
    assert not courier.send(lambda: None)
    assert not courier.wait(5)
    assert time.perf_counter() - start < 1
    release.set()


def test_a_stuck_call_is_waited_for_once() -> None:
    courier, release = Courier(), threading.Event()
    courier.send(release.wait)
    start = time.perf_counter()
    assert not courier.wait(0.2)
    assert time.perf_counter() - start > 0.1
    # It has been under way for as long as anyone would wait.
    again = time.perf_counter()
    assert not courier.wait(0.2)
    assert time.perf_counter() - again < 0.1
    release.set()
