"""Ctrl-C and SIGTERM at places where Lightning alone would swallow them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight import cli
from probelight.callbacks.last_state import read_state
from probelight.evaluation import scorers
from probelight.evaluation.scorers import predict, scorer_for
from probelight.io.process import SENTENCES, STOP
from probelight.models import answering
from probelight.models.registry import ModelSettings
from probelight.results.run_folder import CommandFolder
from tests.fixtures.checkout import ROOT
from tests.fixtures.tiny import sentences
from tests.training.test_resuming import SETTINGS, Interrupted, assert_goes_on, start, stop

CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


class Sender(Callback):
    """Sends a signal to its own process from within a hook."""

    def __init__(self, hook: str, signum: int) -> None:
        def send(*_: Any, **__: Any) -> None:
            os.kill(os.getpid(), signum)

        setattr(self, hook, send)


def test_ctrl_c_in_a_fit_is_a_keyboard_interrupt_and_the_run_goes_on(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGINT)
    stop(tmp_path, "SIGINT", ("training", 1, 0, 1))
    assert signal.getsignal(signal.SIGINT) is handler
    assert_goes_on(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("hook", ["on_train_end", "on_fit_end", "teardown"])
def test_sigterm_in_the_last_hooks_keeps_the_finished_fit(hook: str, tmp_path: Path) -> None:
    with pytest.raises(SIGTERMException):
        start(tmp_path / "stopped", Interrupted(), callbacks=[Sender(hook, signal.SIGTERM)])
    [state] = tmp_path.glob("stopped/runs/*/checkpoints/last.ckpt")
    assert read_state(state)["global_step"] == 12
    assert_goes_on(tmp_path)


@pytest.mark.parametrize(
    ("hook", "code"), [("setup", 143), ("on_fit_start", None), ("on_train_start", None)]
)
def test_sigterm_before_the_first_step_ends_a_fit(
    hook: str, code: int | None, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit if code else SIGTERMException) as stopped:
        start(tmp_path, Interrupted(), callbacks=[Sender(hook, signal.SIGTERM)])
    assert stopped.value.code == code


@pytest.mark.parametrize(
    ("signum", "ended_by"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
@pytest.mark.parametrize("by_lightning", [False, True])
def test_a_prediction_is_not_ended_in_silence(
    by_lightning: bool,
    signum: int,
    ended_by: type[BaseException],
    curve_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scorer = scorer_for(
        ModelSettings(str(curve_model), max_length=32, kind="transformer"), "mc_mlm"
    )
    signalled = lambda *_: os.kill(os.getpid(), signum)  # noqa: E731
    if by_lightning:
        monkeypatch.setattr(scorers, "single_device", lambda _: None)
    monkeypatch.setattr(answering, "answer_batch", signalled)
    with pytest.raises(ended_by):
        predict(scorer, {"a": sentences(6, 0)}, SETTINGS)


@pytest.mark.parametrize(
    ("begun", "end"),
    [
        ("nothing", ""),
        ("runs", "; finished runs are kept"),
        ("fit", " to resume from the saved state"),
    ],
)
def test_what_a_stopped_command_begins_with_again_is_said(
    begun: str,
    end: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`explain` keeps nothing, and of what is measured before a training there is no state."""

    def stopped(*_: Any) -> None:
        if begun != "nothing":
            CommandFolder(tmp_path / "command", {})
        if begun == "fit":
            start(tmp_path, Interrupted(), callbacks=[Sender("on_train_end", signal.SIGTERM)])
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(STOP, "begins_with", "")
    monkeypatch.setattr(cli, "call", stopped)
    assert cli.main(["explain"]) == 143
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"terminated; rerun the same command{end}"


@pytest.mark.parametrize(("signum", "code"), CODES)
@pytest.mark.parametrize("answer", ["none", "swallowed", "another exception"])
def test_a_stopped_command_says_so_whatever_a_library_makes_of_it(
    signum: int,
    code: int,
    answer: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(*_: Any) -> None:
        try:
            os.kill(os.getpid(), signum)
        except BaseException:
            if answer == "none":
                raise
            if answer == "another exception":
                raise ImportError("half a module") from None

    monkeypatch.setattr(cli, "call", stopped)
    assert cli.main(["report"]) == code
    assert capsys.readouterr().err.count(SENTENCES[code]) == 1


class Finalised:
    """Signals its own process from a finaliser, which no exception leaves."""

    def __init__(self, signum: int) -> None:
        self.signum = signum

    def __del__(self) -> None:
        os.kill(os.getpid(), self.signum)


@pytest.mark.parametrize(("signum", "code"), CODES)
def test_a_signal_within_a_finaliser_ends_the_command_soon(
    signum: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        Finalised(signum)
        for _second in range(100):
            time.sleep(0.1)
        raise AssertionError("it went on")

    monkeypatch.setattr(cli, "call", stopped)
    began = time.monotonic()
    assert cli.main(["report"]) == code
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("signum", "code"), CODES)
@pytest.mark.parametrize(
    ("module", "function"), [("difflib", "get_close_matches"), ("sys", "exit")]
)
def test_a_signal_outside_of_a_command_has_the_same_exit_code(
    module: str, function: str, signum: int, code: int
) -> None:
    """The command is not known: before the one that is run begins, and after it has ended."""
    program = f"""
import os, runpy, sys
import {module} as module
sys.argv = ["train.py", "zeroshot"]
module.{function} = lambda *_, **__: os.kill(os.getpid(), {int(signum)})
runpy.run_path("train.py", run_name="__main__")
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code
    assert SENTENCES[code] in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signum", "code", "whole_group"),
    [(signal.SIGINT, 130, True), (signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True)],
)
def test_all_processes_of_a_stopped_run_end(
    signum: int, code: int, whole_group: bool, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    inoculation_config["original"]["epochs"] = 500
    inoculation_config["trainer"] |= {"devices": 2, "strategy": "ddp", "num_workers": 1}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(inoculation_config))
    arguments = ["inoculate", f"--config={path}", f"--output_dir={tmp_path / 'out'}"]
    process = subprocess.Popen(
        [sys.executable, ROOT / "train.py", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        process_group=0,
    )
    try:
        end = time.monotonic() + 120
        while not list(tmp_path.glob("out/runs/*/checkpoints/last.ckpt")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        (os.killpg if whole_group else os.kill)(process.pid, signum)
        _, printed = process.communicate(timeout=60)
        assert process.returncode == code, printed
        assert printed.count(SENTENCES[code]) == 1
        assert "Traceback" not in printed  # nor of the loader processes
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and alive(process.pid):
            time.sleep(0.05)
        assert not alive(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def alive(group: int) -> bool:
    """Whether a process group has a member."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
