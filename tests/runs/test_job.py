from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pytorch_lightning.accelerators import AcceleratorRegistry

from probelight.io.errors import UsageError
from probelight.io.settings import RangeError
from probelight.io.wandb import DEFAULT_WANDB, PENDING, WandbSettings
from probelight.probes.catalog import ProbeConfig, load_probe_config
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import METRICS_FILE, RunFolder, write_metrics
from probelight.runs.context import RunContext, cached
from probelight.runs.execution import make_run, record_pending
from probelight.runs.fencing import AttemptLostError
from probelight.runs.settings import ACCELERATORS, TrainerSettings
from tests.fixtures.tiny import Refused
from tests.fixtures.wandb_offline import fresh_environment, points_of, read_offline_runs
from tests.runs.runner_spec import folder_of, runner_job
from tests.runs.tiny_training import NUM_STEPS
from tests.runs.wandb_kills import PLACES


def note_precision(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    return RunRecord(protocol="end", facts=context.trainer.precisions())


@pytest.mark.parametrize(
    "config",
    [
        {"precision": "32-true", "matmul_precision": "highest"},
        {"precision": "bf16-mixed", "matmul_precision": "high"},
    ],
)
def test_a_run_has_the_precision_of_its_config(config: dict[str, str], tmp_path: Path) -> None:
    """Whatever the settings of the command that makes it, in whatever process."""
    trainer = TrainerSettings(precision="16-mixed", matmul_precision="medium")
    sent = json.loads(json.dumps(RunContext(trainer).to_json()))
    job = runner_job("run", config, f"{__name__}:note_precision")
    run = folder_of(job, tmp_path)
    make_run(job.spec, run, RunContext.from_json(sent))
    record = run.result()
    assert record is not None
    assert record.facts == config


ENDS: dict[str, BaseException] = {
    "failed": ValueError("no"),
    "stopped": KeyboardInterrupt(),
    "lost": AttemptLostError("another one"),
}


def end(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    if config["end"] in ENDS:
        raise ENDS[config["end"]]
    return RunRecord(protocol="end")


@pytest.mark.parametrize(
    ("how", "calls"),  # without W&B, with it, and with it where the run had begun there
    [("failed", (1, 1, 1)), ("stopped", (1, 0, 1)), ("lost", (0, 0, 0)), ("finished", (1, 0, 1))],
)
def test_listeners_and_wandb_are_told_what_ended_a_run(
    how: str, calls: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(run: RunFolder, wandb: WandbSettings) -> None:
        run.listeners = [heard.append]

    monkeypatch.setattr("probelight.callbacks.wandb_logger.follow", follow)
    project = WandbSettings(project="p")
    settings = ((DEFAULT_WANDB, False), (project, False), (project, True))
    for number, (wandb, has_begun) in enumerate(settings):
        heard: list[Any] = []
        job = runner_job(how, {"end": how}, f"{__name__}:end")
        folder = folder_of(job, tmp_path / str(number))
        if wandb is DEFAULT_WANDB:
            folder.listeners.append(heard.append)
        if has_begun:
            (folder.path / "wandb").mkdir()
        raises = pytest.raises(type(ENDS[how])) if how in ENDS else nullcontext()
        with raises:
            make_run(job.spec, folder, RunContext(wandb=wandb))
        assert len(heard) == calls[number]
        assert how == "finished" or heard == [ENDS[how]] * calls[number]


def test_what_wandb_does_not_have_of_a_finished_run_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    guard = MagicMock()
    monkeypatch.setattr("probelight.callbacks.wandb_logger.WandbGuard", guard)
    rows = [(3, "0", "val/accuracy", 0.25)]
    keys = {}
    for name in ("pending", "recorded", "goes on", "damaged"):
        folder = RunFolder(tmp_path, name, {"name": name})
        keys[name] = folder.key
        write_metrics(folder.path / METRICS_FILE, rows)
        if name != "recorded":
            folder.write(PENDING, {"summary": {"best_epoch": 1}})
        if name != "goes on":
            row = Row(protocol="end", metric="accuracy", value=0.5, split="report")
            folder.finish(RunRecord(protocol="end", rows=(row,)))
        if name == "damaged":
            folder.result_path.write_text("{")
    record_pending(tmp_path, DEFAULT_WANDB)
    guard.assert_not_called()
    with pytest.warns(RuntimeWarning, match=keys["damaged"]) as caught:
        record_pending(tmp_path, WandbSettings(project="p"))
    assert len(caught) == 1
    guard.assert_called_once()
    _, key, _, _, points = guard.call_args.args
    assert (key, list(points)) == (keys["pending"], rows)
    assert [call.args for call in guard.return_value.summarise.call_args_list] == [
        ({"best_epoch": 1},),
        ({"report/accuracy": 0.5},),
    ]
    guard.return_value.close.assert_called_once_with()
    assert f"{key}: sending the rest of this run to Weights & Biases" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("point", PLACES)
def test_wherever_a_run_is_killed_wandb_gets_all_of_it(point: str, tmp_path: Path) -> None:
    def start(*places: str) -> int:
        module, out = "tests.runs.wandb_kills", str(tmp_path / "out")
        command = [sys.executable, "-m", module, out, *places]
        environment = fresh_environment(tmp_path / "home")
        return subprocess.run(command, env=environment, check=False).returncode

    # What goes on, or makes up for the first, is killed there too.
    assert [start(point), start(point), start()] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    [run] = tmp_path.glob("out/runs/*")
    runs = read_offline_runs(run)
    assert {recorded.id for recorded in runs} == {run.name}
    points = runs[-1].points()
    assert (runs[-1].exit_code, points) == (0, points_of(run / METRICS_FILE))
    losses = [step for step, name, _ in points if name == "train/loss"]
    assert losses == list(range(NUM_STEPS))
    assert runs[-1].summary["train/loss"] == points[-1][-1]
    assert not (run / PENDING).exists()
    assert start() == 0
    assert len(read_offline_runs(run)) == len(runs)


def test_another_process_is_told_all_of_it() -> None:
    context = RunContext(
        TrainerSettings(accelerator="cpu", threads=2),
        WandbSettings(project="probes", tags=("a", "b")),
        "file:///mirror",
        {"whales": ProbeConfig("whales", "mc_qa", 3, 0.4, candidates=("a", "b", "c"))},
        {"wordnet": "/somewhere"},
        force=True,
    )
    sent = json.loads(json.dumps(context.to_json()))
    assert RunContext.from_json(sent) == context
    with pytest.raises(RangeError):
        RunContext.from_json({**sent, "trainer": {"threads": 0}})
    with pytest.raises(KeyError):
        RunContext.from_json({"trainer": {}})


def test_a_probe_of_ones_own_is_found_by_its_name() -> None:
    config = load_probe_config("age_small")
    own_context = RunContext(user_probes={"whales": config})
    assert (own_context.probe("whales"), own_context.probe("age_small")) == (config, "age_small")


def test_a_loader_keeps_as_many_values_as_it_says_for_a_command() -> None:
    calls: list[int] = []

    @cached(most=1)
    def load(context: RunContext, number: int) -> str:
        calls.append(number)
        return f"{number} of {context.mirror}"

    @cached(most=None)
    def load_all(context: RunContext, *, number: int) -> int:
        calls.append(-number)
        return number

    context = RunContext(mirror="here")
    assert [load(context, 1) for _ in range(2)] == ["1 of here", "1 of here"]
    fixed = replace(context, trainer=TrainerSettings(threads=2))
    assert [load(fixed, number)[0] for number in (1, 2, 1)] == ["1", "2", "1"]
    assert calls == [1, 2, 1]
    assert [load_all(context, number=number) for number in (1, 2, 1, 2)] == [1, 2, 1, 2]
    assert calls == [1, 2, 1, -1, -2]
    assert load(replace(context, mirror="there"), 1) == "1 of there"
    assert load(RunContext(), 1) == "1 of None"  # another command begins with nothing
    assert context == RunContext(mirror="here")


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    assert TrainerSettings(accumulate=4).micro_batch(16) == 4
    with pytest.raises(UsageError, match=r"batch_size 16 is not a multiple of .*accumulate 3"):
        TrainerSettings(accumulate=3).micro_batch(16)


PLAN = ["sweep", "plan", "--config=configs/sweep/released.yaml"]
RUN = ["sweep", "run"]
CURVE, ZERO_SHOT = ([name, "--probes=age_small"] for name in ("curve", "zero-shot"))


FRACTION = "2.0001: Ray gives only fractions below 1 or whole numbers"
ADVICE = "give one of these"
RAY = "is only for Ray; add --engine.kind ray"
# Command, option, words of what it answers next to the option's name.
REFUSED = [
    (PLAN, "trainer.devices=-1", ["-1: Ray must know how many devices a run needs"]),
    (PLAN, "trainer.accelerator=foo", ["foo: give one of auto, cpu, cuda, gpu, mps, tpu"]),
    (PLAN, "mirror=ftp://a/b", ["ftp://a/b: give a folder, or an address that starts with file"]),
    (PLAN, "engine.adress=1", ["--engine.address?"]),
    (RUN, "engine.takeover=1", ["--engine.take_over?"]),
    (RUN, "engine.max_retries=-1", [" error: --engine", " -1: give "]),
    (RUN, "engine.memory_per_cell=8GB", ["8GB"]),
    (RUN, "engine.cpus_per_cell=2.0001", [FRACTION, ADVICE]),
    (RUN, "engine.gpus_per_cell=2.0001", [FRACTION, ADVICE]),
    (RUN, "engine.address=nope", ["nope: give auto or HOST:PORT"]),
    (RUN, "engine.address=nope:65536", ["nope:65536: give auto or HOST:PORT"]),
    (RUN, "engine.address=ray://nope:1", ["ray://nope:1: give auto or HOST:PORT"]),
    (CURVE, "engine.kind=rey", ["rey: give one of here, ray (did you mean 'ray'?)"]),
    (CURVE, "engine.kid=ray", ["there is no option", "(did you mean --engine.kind?)"]),
    (CURVE, "engine.adress=auto", ["there is no option", "(did you mean --engine.address?)"]),
    (CURVE, "engine.address=auto", [f"{RAY}, or leave"]),
    (CURVE, "engine.gpus_per_cell=1", [RAY]),
    (CURVE, "engine.max_retries=0", [RAY]),
    (CURVE, "engine.max_retries=-1", ["-1: give "]),
    (ZERO_SHOT, "engine.take_over=true", [RAY]),
    (ZERO_SHOT, "trainer.accelerator=GPU", ["GPU: give one of auto, cpu, cuda, gpu, mps, tpu"]),
    (ZERO_SHOT, "mirror=s3://bucket", ["s3://bucket: give a folder, or an address"]),
]


@pytest.mark.parametrize(("command", "option", "words"), REFUSED)
def test_an_option_that_cannot_be_used_is_refused_by_name(
    command: list[str], option: str, words: list[str], refused: Refused, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    line = refused([*command, f"--output_dir={folder}", f"--{option}"])
    assert [word for word in (option.split("=")[0], *words) if word not in line] == []
    assert not folder.exists()


def test_the_accelerators_are_those_of_lightning() -> None:
    registered = AcceleratorRegistry.available_accelerators()
    assert sorted({"auto", "gpu", *registered}) == list(ACCELERATORS)
