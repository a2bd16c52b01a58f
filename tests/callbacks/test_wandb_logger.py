from __future__ import annotations

import json
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wandb
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.callbacks import wandb_logger
from probelight.callbacks.wandb_logger import WandbGuard
from probelight.io.process import STOP
from probelight.io.wandb import PENDING, Courier, WandbSettings
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import METRICS_FILE, Logged, RunFolder, write_metrics
from tests.fixtures.wandb_offline import read_offline_runs

ONLINE = WandbSettings(project="p", group="sweep", mode="online")


@pytest.fixture(autouse=True)
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """W&B is not switched off, as it is for other tests, and its server answers."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr("probelight.io.wandb.check_server", lambda wandb: None)


class Run:
    def __init__(self, offline: bool = False, resumed: bool = False) -> None:
        self.offline, self.resumed = offline, resumed
        self.summary: dict[str, Any] = {}
        self.axes: dict[str, str | None] = {}
        self.logged: list[dict[str, Any]] = []
        self.exit_code: int | None = None
        self.was_interrupted = False

    def define_metric(
        self, name: str, step_metric: str | None = None, step_sync: bool | None = None
    ) -> None:
        self.axes[name] = step_metric

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def mark_preempting(self) -> None:
        self.was_interrupted = True

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


class Client:
    def __init__(self, kind: type[Run] = Run, **more: Any) -> None:
        self.kind, self.more = kind, more
        self.modes: list[str] = []

    def init(self, **arguments: Any) -> Any:
        self.arguments = arguments
        self.modes.append(arguments["mode"])
        return self.run(arguments["mode"] == "offline")

    def run(self, offline: bool) -> Run:
        return self.kind(offline, **self.more)


class Hanging(Client):
    """A call of it or of its run waits until it is released."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self.call, self.release = call, threading.Event()

    def run(self, offline: bool) -> Run:
        def wait(*_: Any, **__: Any) -> None:
            self.release.wait(30)

        run = Run(offline)
        if self.call == "start":
            wait()
        else:
            setattr(run, self.call, wait)
        return run


def guard(tmp_path: Path, client: Any = None, **more: Any) -> WandbGuard:
    settings = more.pop("settings", ONLINE)
    config = {"protocol": "inoculation_cell", "dose": 3}
    more.setdefault("courier", Courier())
    client = client or Client()
    return WandbGuard(settings, "run-1", config, tmp_path, client=lambda: client, **more)


def is_pending(tmp_path: Path) -> bool:
    return (tmp_path / PENDING).exists()


def test_a_run_has_a_fixed_id_a_group_and_its_config(tmp_path: Path) -> None:
    logger = guard(tmp_path, client := Client())
    logger.log_hyperparams({})
    logger.log_metrics({"val/probe_accuracy": 0.5}, 4)
    assert is_pending(tmp_path)
    logger.summarise({"inoculation_cost": 0.01})
    assert json.loads((tmp_path / PENDING).read_text()) == {"summary": {"inoculation_cost": 0.01}}
    logger.close()
    assert not is_pending(tmp_path)
    arguments = client.arguments
    assert (arguments["id"], arguments["name"], arguments["group"]) == ("run-1", "run-1", "sweep")
    assert (arguments["project"], arguments["job_type"]) == ("p", "inoculation_cell")
    assert (arguments["mode"], arguments["resume"]) == ("online", "allow")
    assert (arguments["settings"].console, arguments["settings"].finish_timeout) == ("off", 12)
    assert arguments["config"]["dose"] == 3
    run = logger._run
    assert run.logged == [{"val/probe_accuracy": 0.5, "trainer/global_step": 4}]
    assert run.summary == {"inoculation_cost": 0.01}
    assert run.axes["*"] == "trainer/global_step"
    assert run.axes["learning_curve/*"] == "learning_curve/num_examples"
    assert run.exit_code == 0


def test_a_failure_is_one_warning_and_then_silence(tmp_path: Path) -> None:
    class Unreachable(Run):
        def log(self, values: dict[str, Any]) -> None:
            raise ConnectionError("no route to host")

    logger = guard(tmp_path, Client(Unreachable))
    logger.log_metrics({"loss": 1.0}, 0)
    with pytest.warns(RuntimeWarning, match="no route to host.*rerun the command") as caught:
        logger.close()
    assert len(caught) == 1
    # In W&B it is no run that the next one of this process could be taken for.
    assert logger._run.exit_code == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logger.log_metrics({"loss": 1.0}, 1)
        logger.summarise({"accuracy": 1.0})
        logger.close()
    # What is missing there can be recorded by a later start.
    assert json.loads((tmp_path / PENDING).read_text()) == {"summary": {"accuracy": 1.0}}


def test_a_failing_start_does_not_stop_a_run(tmp_path: Path) -> None:
    class Broken(Client):
        def run(self, offline: bool) -> Run:
            raise RuntimeError("wandb service died")

    logger = guard(tmp_path, client := Broken())
    logger.log_metrics({"loss": 1.0}, 0)
    with pytest.warns(RuntimeWarning, match="wandb service died"):
        logger.close()
    assert (client.modes, is_pending(tmp_path)) == (["online", "offline"], True)


def test_what_cannot_be_online_is_written_to_disk_whole(tmp_path: Path) -> None:
    class Refused(Client):
        def run(self, offline: bool) -> Run:
            if not offline:
                raise ConnectionError("invalid API key")
            return Run(offline)

    logger = guard(tmp_path, client := Refused(), earlier_metrics=[(0, "0", "loss", 1.0)])
    logger.log_metrics({"loss": 0.5, "epoch": 0}, 1)
    with pytest.warns(
        RuntimeWarning, match="invalid API key.*send it later with `wandb sync`"
    ) as caught:
        logger.close()
    assert len(caught) == 1
    assert (client.modes, is_pending(tmp_path)) == (["online", "offline"], False)
    assert (client.arguments["resume"], client.arguments["settings"].finish_timeout) == (None, 120)
    assert [row["loss"] for row in logger._run.logged] == [1.0, 0.5]


@pytest.mark.parametrize("slow", ["start", "log", "finish"])
def test_a_call_that_hangs_costs_a_run_nothing_but_its_patience(
    tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wandb_logger, "FINISH_SECONDS", 0.3)
    logger = guard(tmp_path, client := Hanging(slow))
    start = time.perf_counter()
    for step in range(1000):
        logger.log_metrics({"loss": 1.0}, step)
    logged = time.perf_counter() - start
    with pytest.warns(RuntimeWarning, match="did not finish within 0.3 s.*rerun"):
        logger.close()
    assert is_pending(tmp_path)
    client.release.set()
    # Idle, it is 3 microseconds a call; a machine may be busy. A call that waited takes 30 s.
    assert logged < 3
    assert time.perf_counter() - start < 6


@pytest.mark.parametrize(
    ("mode", "code", "waited"), [("offline", 0, 0.6), ("offline", 143, 0.1), ("online", 0, 0.1)]
)
def test_what_is_only_written_to_disk_is_waited_for_longer(
    tmp_path: Path, mode: Any, code: int, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wandb_logger, "FINISH_SECONDS", 0.1)
    monkeypatch.setattr(wandb_logger, "OFFLINE_SECONDS", 0.6)
    settings = WandbSettings(project="p", mode=mode)
    logger = guard(tmp_path, client := Hanging("finish"), settings=settings)
    logger.log_metrics({"loss": 1.0}, 0)
    with pytest.warns(RuntimeWarning, match=f"did not finish within {waited} s"):
        logger.close(code)
    client.release.set()


def test_what_a_slow_service_cannot_take_is_counted_and_recorded_later(tmp_path: Path) -> None:
    logger = guard(tmp_path, client := Hanging("log"), courier=Courier(capacity=2))
    for step in range(50):
        logger.log_metrics({"loss": 1.0}, step)
    client.release.set()
    time.sleep(0.2)
    with pytest.warns(RuntimeWarning, match=r"too slow: 4\d calls were dropped.*rerun"):
        logger.close()
    assert is_pending(tmp_path)


def test_the_next_run_begins_when_the_one_before_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    courier, order = Courier(), []
    monkeypatch.setattr(wandb_logger, "FINISH_SECONDS", 0.01)

    class Ordered(Run):
        def __init__(self, offline: bool) -> None:
            super().__init__(offline)
            order.append("start")

        def finish(self, exit_code: int) -> None:
            time.sleep(0.2)
            order.append("finish")

    client = Client(Ordered)
    for _ in range(2):
        logger = guard(tmp_path, client, courier=courier)
        logger.log_metrics({"loss": 1.0}, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logger.close()
    assert courier.wait(5)
    assert order == ["start", "finish"] * 2


@pytest.mark.parametrize("code", [1, 130, 143])
def test_an_interrupted_run_will_go_on_and_a_failed_one_begins_if_it_has_not(
    tmp_path: Path, code: int
) -> None:
    logger = guard(tmp_path)
    logger.close(code)
    assert (logger._run is None) == (code != 1)
    logger.log_metrics({"loss": 1.0}, 0)
    logger.close(code)
    assert (logger._run.exit_code, logger._run.was_interrupted) == (code, code != 1)


@pytest.mark.parametrize("resumed", [True, False])
def test_online_only_what_is_not_there_is_logged_again(tmp_path: Path, resumed: bool) -> None:
    logger = guard(tmp_path, Client(resumed=resumed), earlier_metrics=[(0, "0", "loss", 1.0)])
    logger.log_metrics({"loss": 0.5, "epoch": 0}, 1)
    logger.close()
    points = [(row["loss"], row["epoch"], row["trainer/global_step"]) for row in logger._run.logged]
    assert points == [(1.0, 1, 0), (0.5, 1, 1)][resumed:]


def test_where_wandb_is_switched_off_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    logger = guard(tmp_path, client := Client(), settings=WandbSettings(project="p"))
    logger.log_metrics({"loss": 0.5}, 1)
    logger.close()
    assert (client.modes, list(tmp_path.iterdir())) == (["disabled"], [])


def test_other_processes_of_ddp_start_no_run(tmp_path: Path, monkeypatch: Any) -> None:
    from pytorch_lightning.utilities import rank_zero_only

    monkeypatch.setattr(rank_zero_only, "rank", 1)
    started = SimpleNamespace(send=pytest.fail, wait=pytest.fail)
    logger = guard(tmp_path, courier=started)
    logger.log_metrics({"loss": 1.0}, 0)
    logger.close()


@pytest.mark.thorough
def test_offline_runs_have_one_id_and_the_newest_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wandb_logger, "FINISH_SECONDS", 60.0)  # a busy machine
    settings = WandbSettings(project="p", group="sweep", mode="offline")
    logged: list[Logged] = []
    try:
        for code, steps in ((143, range(2)), (1, range(2, 4)), (0, range(4, 5))):
            logger = WandbGuard(
                settings, "cell-0123456789ab", {"dose": 3}, tmp_path, logged, courier=Courier()
            )
            for step in steps:
                logger.log_metrics({"loss": 1 / (1 + step), "epoch": step // 2}, step)
            logger.summarise({"code": code})
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                logger.close(code)
            logged += [(step, str(step // 2), "loss", 1 / (1 + step)) for step in steps]
    finally:
        wandb.teardown()
    runs = read_offline_runs(tmp_path)
    assert [run.exit_code for run in runs] == [143, 1, 0]
    assert [run.was_interrupted for run in runs] == [True, False, False]
    assert {(run.id, run.group) for run in runs} == {("cell-0123456789ab", "sweep")}
    last = runs[-1]
    assert (last.config["dose"], last.summary["code"]) == (3, 0)
    assert last.logged("trainer/global_step") == [0, 1, 2, 3, 4]
    assert last.logged("loss") == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert last.logged("epoch") == [1, 1, 2, 2, 3]


WANDB = WandbSettings(project="p")


class Guard:
    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.summary: dict[str, Any] = {}
        self.codes: list[int] = []

    def summarise(self, values: dict[str, Any]) -> None:
        self.summary |= values

    def close(self, exit_code: int = 0) -> None:
        self.codes.append(exit_code)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(wandb_logger, "WandbGuard", Guard)
    return RunFolder(tmp_path, "run", {"dose": 3})


def follow(run: RunFolder, *logged: Any) -> Any:
    return wandb_logger.follow(run, WANDB, *logged)


def test_a_finished_run_shows_what_it_reports(run: RunFolder) -> None:
    rows = (
        Row(protocol="x", metric="accuracy", value=0.5, split="report"),
        Row(protocol="x", metric="accuracy", value=0.9, split="selection"),
    )
    replaced, logger = follow(run), follow(run)
    run.finish(RunRecord(protocol="x", rows=rows))
    run.tell(ValueError("after the end"))
    assert (logger.summary, logger.codes) == ({"report/accuracy": 0.5}, [0])
    assert (replaced.summary, replaced.codes) == ({}, [])


@pytest.mark.parametrize(
    ("end", "noted", "code"),
    [
        (ValueError("no"), None, 1),
        (SystemExit(2), None, 1),
        (SIGTERMException(), None, 143),
        # A library made another exception of the signal.
        (RuntimeError("process ended"), 130, 130),
    ],
)
def test_what_failed_has_failed_and_what_was_stopped_was_stopped(
    end: BaseException,
    noted: int | None,
    code: int,
    run: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(STOP, "code", noted)
    logger = follow(run)
    run.tell(end)
    assert logger.codes == [code]


def test_a_logger_is_told_what_was_logged_before(run: RunFolder) -> None:
    assert follow(run).arguments == (WANDB, run.key, {"dose": 3}, run.path, ())
    rows = [(0, "0", "loss", 1.0)]
    write_metrics(run.path / METRICS_FILE, rows)
    assert follow(run).arguments[-1] == rows
    assert follow(run, rows[:0]).arguments[-1] == []
