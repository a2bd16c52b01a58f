from __future__ import annotations

import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wandb

from callbacks.wandb.courier import Courier
from callbacks.wandb.guard import WandbGuard
from callbacks.wandb.settings import WandbSettings
from results.metrics_file import Logged
from tests.callbacks.wandb.offline_run import read_offline_runs

ONLINE = WandbSettings(project="p", group="sweep", mode="online")


class Run:
    """What `WandbLogger.experiment` is."""

    def __init__(self) -> None:
        self.summary: dict[str, Any] = {}
        self.axes: dict[str, str | None] = {}
        self.exit_code: int | None = None
        self.was_interrupted = False

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.axes[name] = step_metric

    def mark_preempting(self) -> None:
        self.was_interrupted = True

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


class Recorder:
    """What `WandbLogger` is."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.experiment = Run()
        self.logged: list[tuple[dict[str, float], int | None]] = []

    def log_metrics(self, values: dict[str, float], step: int | None) -> None:
        self.logged.append((values, step))

    def log_hyperparams(self, config: dict[str, Any]) -> None:
        self.config = config


def guard(tmp_path: Path, make: Any = Recorder, **more: Any) -> WandbGuard:
    settings = more.pop("settings", ONLINE)
    config = {"protocol": "inoculation_cell", "dose": 3}
    more.setdefault("courier", Courier())
    patience = more.pop("patience", None)
    logger = WandbGuard(settings, "run-1", config, tmp_path, make=make, **more)
    if patience is not None:
        logger.patience = patience
    return logger


def test_a_run_has_a_fixed_id_a_group_and_no_uploaded_models(tmp_path: Path) -> None:
    logger = guard(tmp_path)
    logger.log_hyperparams({})
    logger.log_metrics({"val/probe_accuracy": 0.5}, 4)
    logger.summarise({"inoculation_cost": 0.01})
    logger.close()
    arguments = logger._inner.arguments
    assert (arguments["id"], arguments["name"], arguments["group"]) == ("run-1", "run-1", "sweep")
    assert arguments["job_type"] == "inoculation_cell"
    assert arguments["log_model"] is False
    assert arguments["resume"] == "allow"
    assert arguments["settings"].console == "off"
    assert logger._inner.config["dose"] == 3
    assert logger._inner.logged == [({"val/probe_accuracy": 0.5}, 4)]
    run = logger._inner.experiment
    assert run.summary == {"inoculation_cost": 0.01}
    assert run.axes["learning_curve/*"] == "learning_curve/num_examples"
    assert run.exit_code == 0


def test_a_failure_is_one_warning_and_then_silence(tmp_path: Path) -> None:
    class Unreachable(Recorder):
        def log_metrics(self, values: dict[str, float], step: int | None) -> None:
            raise ConnectionError("no route to host")

    logger = guard(tmp_path, Unreachable)
    logger.log_metrics({"loss": 1.0}, 0)
    with pytest.warns(RuntimeWarning, match="no route to host") as caught:
        logger.close()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logger.log_metrics({"loss": 1.0}, 1)
        logger.summarise({"accuracy": 1.0})
        logger.close()


def test_a_failing_start_does_not_stop_a_run(tmp_path: Path) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("wandb service died")

    logger = guard(tmp_path, broken)
    logger.log_metrics({"loss": 1.0}, 0)
    with pytest.warns(RuntimeWarning, match="wandb service died"):
        logger.close()


@pytest.mark.parametrize("slow", ["start", "log", "finish"])
def test_a_call_that_hangs_costs_a_run_nothing_but_its_patience(tmp_path: Path, slow: str) -> None:
    release = threading.Event()

    class Hanging(Recorder):
        def __init__(self, **arguments: Any) -> None:
            if slow == "start":
                release.wait(30)
            super().__init__(**arguments)
            if slow == "finish":
                self.experiment.finish = lambda exit_code: release.wait(30)  # type: ignore[method-assign]

        def log_metrics(self, values: dict[str, float], step: int | None) -> None:
            if slow == "log":
                release.wait(30)

    logger = guard(tmp_path, Hanging, patience=0.3)
    start = time.perf_counter()
    for step in range(1000):
        logger.log_metrics({"loss": 1.0}, step)
    logged = time.perf_counter() - start
    with pytest.warns(RuntimeWarning, match="not ended after 0.3 s"):
        logger.close()
    release.set()
    # Idle, it is 3 microseconds a call; a machine may be busy. A call that waited takes 30 s.
    assert logged < 3
    assert time.perf_counter() - start < 6


def test_what_a_slow_service_cannot_take_is_counted(tmp_path: Path) -> None:
    release = threading.Event()

    class Slow(Recorder):
        def log_metrics(self, values: dict[str, float], step: int | None) -> None:
            release.wait(30)

    logger = guard(tmp_path, Slow, courier=Courier(capacity=2), patience=0.1)
    for step in range(50):
        logger.log_metrics({"loss": 1.0}, step)
    release.set()
    time.sleep(0.2)
    with pytest.warns(RuntimeWarning, match=r"too slow: 4\d calls were left out"):
        logger.close()


def test_the_next_run_begins_when_the_one_before_has_ended(tmp_path: Path) -> None:
    courier, order = Courier(), []

    class Ordered(Recorder):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            order.append("start")
            finish = self.experiment.finish
            self.experiment.finish = lambda exit_code: (  # type: ignore[method-assign]
                time.sleep(0.2),
                order.append("finish"),
                finish(exit_code),
            )[0]

    for _ in range(2):
        logger = guard(tmp_path, Ordered, courier=courier, patience=0.01)
        logger.log_metrics({"loss": 1.0}, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logger.close()
    assert courier.wait(5)
    assert order == ["start", "finish"] * 2


@pytest.mark.parametrize("code", [130, 143])
def test_an_interrupted_run_will_go_on_and_one_that_has_not_begun_is_none(
    tmp_path: Path, code: int
) -> None:
    logger = guard(tmp_path)
    logger.close(code)
    assert logger._inner is None
    logger.log_metrics({"loss": 1.0}, 0)
    logger.close(code)
    run = logger._inner.experiment
    assert (run.exit_code, run.was_interrupted) == (code, True)


def test_a_failed_run_is_none_that_goes_on_and_begins_if_it_has_not(tmp_path: Path) -> None:
    logger = guard(tmp_path)
    logger.close(1)
    run = logger._inner.experiment
    assert (run.exit_code, run.was_interrupted) == (1, False)


def test_online_nothing_is_logged_again(tmp_path: Path) -> None:
    logger = guard(tmp_path, before=[(0, "0", "loss", 1.0)])
    logger.log_metrics({"loss": 0.5, "epoch": 0}, 1)
    logger.close()
    assert logger._inner.logged == [({"loss": 0.5, "epoch": 1}, 1)]


def test_other_processes_of_ddp_start_no_run(tmp_path: Path, monkeypatch: Any) -> None:
    from pytorch_lightning.utilities import rank_zero_only

    monkeypatch.setattr(rank_zero_only, "rank", 1)
    started = SimpleNamespace(send=pytest.fail, wait=pytest.fail)
    logger = guard(tmp_path, courier=started)
    logger.log_metrics({"loss": 1.0}, 0)
    logger.close()


def test_offline_runs_have_one_id_and_the_newest_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    settings = WandbSettings(project="p", group="sweep", mode="offline")
    before: list[Logged] = []
    try:
        for code, steps in ((143, range(2)), (1, range(2, 4)), (0, range(4, 5))):
            logger = WandbGuard(
                settings, "cell-0123456789ab", {"dose": 3}, tmp_path, before, courier=Courier()
            )
            logger.patience = 60
            for step in steps:
                logger.log_metrics({"loss": 1 / (1 + step), "epoch": step // 2}, step)
            logger.summarise({"code": code})
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                logger.close(code)
            before += [(step, str(step // 2), "loss", 1 / (1 + step)) for step in steps]
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
