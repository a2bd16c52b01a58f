"""`train.py sweep`: which runs a grid has; plan, run and status; examples for SLURM and W&B."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonargparse import ArgumentParser

from probelight import cli
from probelight.callbacks.aggregate_checkpoint import AGGREGATE
from probelight.commands.inoculation import sweep
from probelight.commands.inoculation.command import inoculate
from probelight.commands.inoculation.settings import CANDIDATE, STRENGTHS
from probelight.commands.inoculation.sweep import DEFAULT_DOSES, KeepingGrid, SweepGrid, sweep_jobs
from probelight.io.errors import UsageError
from probelight.io.process import Process, this_process
from probelight.io.settings import RangeError
from probelight.io.wandb import WandbSettings
from probelight.runs.fencing import Driver, drive_alone
from probelight.runs.on_ray import drive
from probelight.runs.plan import StoredPlan
from probelight.runs.settings import RaySettings, TrainerSettings
from probelight.runs.status import RunView
from tests.commands.inoculation.conftest import kinds, run_context, with_a_line_less
from tests.fixtures.checkout import ROOT
from tests.fixtures.tiny import Refused
from tests.runs.harness import planned
from tests.runs.trivial import cells


@pytest.fixture
def config_path(grid: SweepGrid, mirror: str, tmp_path: Path) -> Path:
    small = replace(grid, rows=[replace(grid.rows[0], doses=[24], extras=["none"])])
    trainer = {"accelerator": "cpu", "threads": 1}
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump({"grid": asdict(small), "mirror": mirror, "trainer": trainer}))
    return path


def test_each_setting_of_each_way_of_keeping_is_reported(grid: SweepGrid, mirror: str) -> None:
    keeping = [
        KeepingGrid(learning_rates=[1e-3, 1e-4]),
        KeepingGrid("replay", [0.25, 0.5]),
        KeepingGrid("l2_sp"),
        KeepingGrid("lora", [4, 16]),
    ]
    row = replace(grid.rows[0], doses=[24], extras=None, learning_rates=[1e-3])
    plain = sweep_jobs(replace(grid, rows=[replace(row, extras=["none"])]), run_context(mirror))
    jobs = sweep_jobs(replace(grid, rows=[replace(row, keeping=keeping)]), run_context(mirror))
    assert kinds(jobs) == ["original", "before", *[CANDIDATE, "inoculation"] * 7]
    # What has none is the run that it was before there were ways of keeping.
    assert jobs[2].key == plain[2].key
    assert jobs[3].key == plain[3].key.replace("-k24-", "-k24-lr0.001-").replace(
        plain[3].key[-12:], jobs[3].key[-12:]
    )
    cells, chosen = jobs[2::2], jobs[3::2]
    settings = [cell.spec.setting for cell in cells]
    assert [(s.method_and_strength, s.learning_rate, s.extra) for s in settings] == [
        (("", None), 1e-3, "none"),
        (("", None), 1e-4, "none"),
        (("replay", 0.25), 1e-3, "none"),
        (("replay", 0.5), 1e-3, "none"),
        (("l2_sp", STRENGTHS["l2_sp"]), 1e-3, "none"),
        (("lora", 4.0), 1e-3, "none"),
        (("lora", 16.0), 1e-3, "none"),
    ]
    assert [job.spec.candidates for job in chosen] == [(cell.key,) for cell in cells]
    assert len({job.key for job in jobs}) == len(jobs)
    # 24 examples: 3 steps of 8; with 2 or 4 of each step replayed 4 and 6.
    assert [cell.num_steps for cell in cells] == [3, 3, 4, 6, 3, 3, 3]


def test_ways_of_keeping_are_tried_with_each_extra_that_is_given(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = yaml.safe_load(config_path.read_text())
    [row] = config["grid"]["rows"]
    row |= {"keeping": ["none", {"method": "l2_sp", "strengths": [1.0, 1.00000001]}]}
    row |= {"extras": ["none", "x1"], "doses": [8], "learning_rates": [1e-3]}
    config_path.write_text(yaml.safe_dump(config))
    assert plan(config_path, tmp_path / "out") == 0
    # None, and two strengths that look alike, each with and without added questions.
    assert "6 inoculate, 6 chosen" in capsys.readouterr().out
    names = [path.name for path in (tmp_path / "out" / "runs").iterdir()]
    assert sum("-lr0.001-x1-s0-" in name for name in names if name.startswith("chosen-")) == 3
    row |= {"keeping": [], "tuning": "lora"}
    config_path.write_text(yaml.safe_dump(config))
    assert plan(config_path, tmp_path / "lora") == 0
    assert "2 inoculate, 1 chosen" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"method": "l2sp"}, "give one of none, replay, l2_sp, distillation, lora|l2_sp"),
        ({"method": "replay", "strengths": [0.5, 2]}, "2: for replay it is a share of each batch"),
        ({"method": "lora", "strengths": [1.5]}, "ranks: give whole numbers, not 1.5"),
        ({"method": "none", "strengths": [1]}, "give method, one of replay, l2_sp"),
    ],
)
def test_a_slip_in_a_way_of_keeping_is_refused(
    config_path: Path, tmp_path: Path, refused: Refused, entry: dict[str, Any], message: str
) -> None:
    config = yaml.safe_load(config_path.read_text())
    config["grid"]["rows"][0]["keeping"] = [entry]
    config_path.write_text(yaml.safe_dump(config))
    line = refused(["sweep", "plan", f"--config={config_path}", f"--output_dir={tmp_path / 'o'}"])
    assert re.search(message, line)
    assert "rows" in line


def plan(config_path: Path, folder: Path, *options: str) -> int:
    command = ["sweep", "plan", f"--config={config_path}", f"--output_dir={folder}"]
    return cli.main([*command, *options])


def test_a_plan_says_what_is_to_be_done_and_a_second_one_adds_nothing(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert plan(config_path, folder) == 0
    out = capsys.readouterr().out
    # The original task, its scores before, two learning rates, the best of them.
    assert "5 runs: 1 original, 1 before, 2 inoculate, 1 chosen" in out
    assert "0 done, 5 to be run\n" in out
    # 80 questions less a fifth to select and a fifth reserved are 3 batches of 16; 24 examples are
    # 3 batches of 8, with 2 learning rates: 3 + 6.
    assert "time: 9 steps" in out
    assert "rough estimate: 6 operations per weight and token" in out
    assert len(list(folder.glob("runs/*/config.yaml"))) == 5
    assert f"next: train.py sweep run --output_dir {folder}\n" in out
    assert plan(config_path, folder) == 0
    out = capsys.readouterr().out
    assert "0 done, 5 to be run\n" in out
    assert "no longer in the plan" not in out
    assert cli.main(["sweep", "status", f"--output_dir={folder}"]) == 0
    out = capsys.readouterr().out.replace("\n", " ")
    assert "5 runs: 0 done, 0 running, 5 waiting, 0 failed" in out
    assert "not started yet; to start: train.py sweep run --output_dir" in out


def test_a_plan_with_another_config_takes_the_place_of_the_one_before(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    plan(config_path, folder)
    old_keys = [cell.key for cell in StoredPlan.read(folder).jobs]
    config = yaml.safe_load(config_path.read_text())
    config["grid"]["rows"][0]["learning_rates"] = [1.0e-3, 1.0e-5]
    config_path.write_text(yaml.safe_dump(config))
    capsys.readouterr()
    assert plan(config_path, folder) == 0
    new_keys = [cell.key for cell in StoredPlan.read(folder).jobs]
    # What both have in common is the original task, its scores and one of the rates.
    assert [key for key in new_keys if key in old_keys] == old_keys[:3]
    assert len(new_keys) == 5
    assert "no longer in the plan: 2 runs, which stay" in capsys.readouterr().out
    assert len(list(folder.glob("runs/*/config.yaml"))) == 7


def test_a_folder_that_somebody_runs_is_not_planned_anew(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    plan(config_path, folder)
    contents = {path: path.read_bytes() for path in folder.glob("*.json")}
    config_path.write_text(config_path.read_text().replace("doses:\n    - 24", "doses:\n    - 16"))
    with drive_alone(folder, take_over=False):
        capsys.readouterr()
        assert plan(config_path, folder) == cli.USAGE_ERROR
        [line] = capsys.readouterr().err.splitlines()
        assert f"{folder}: {this_process()} has been working on it since 20" in line
    assert len(list(folder.glob("runs/*/config.yaml"))) == 5
    assert (folder / "planned.json").read_bytes() == contents[folder / "planned.json"]
    elsewhere = Driver(7, Process("elsewhere/1/2", 7, 1), since=0.0)
    (folder / "driver.json").write_text(json.dumps(asdict(elsewhere)))
    assert plan(config_path, folder) == cli.USAGE_ERROR
    assert "process 7 on elsewhere has been working on it" in capsys.readouterr().err
    assert plan(config_path, folder, "--engine.take_over=true") == 0
    assert "no longer in the plan: 3 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("models", "tiny", "name_or_path", "./none"),
            "models.tiny: there is no folder ./none, and it is",
        ),
        (("models", "tiny", "name_or_path", "none"), "models.tiny: there is no folder 'none'"),
        (("models", "tiny", "vectors", "none.txt"), "models.tiny: model.vectors none.txt: there"),
        (("rows", 0, "learning_rates", [0.1, 0]), "{}: grid.rows[0].learning_rates[1] 0.0: give"),
        (("originals", "colours", "learning_rate", 0), "{}: grid.originals.colours.learning_rate"),
    ],
)
def test_what_cells_would_fail_of_is_refused_at_planning(
    change: tuple[Any, ...],
    message: str,
    config_path: Path,
    refused: Refused,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load(config_path.read_text())
    *path, key, value = change
    node = config["grid"]
    for step in path:
        node = node[step]
    node[key] = value
    if key == "vectors":
        node["kind"] = "esim"
    config_path.write_text(yaml.safe_dump(config))
    code = cli.FAILURE if key == "name_or_path" else cli.USAGE_ERROR
    line = refused(f"sweep plan --config={config_path} --output_dir=out", code)
    assert message.format(config_path) in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep run --output_dir={}", "has no plan; make one with `train.py sweep plan"),
        ("sweep attempt {}", "only `sweep run` starts `sweep attempt`"),
    ],
)
def test_mistaken_commands_of_a_sweep_are_named(
    command: str, message: str, refused: Refused, tmp_path: Path
) -> None:
    assert message in refused(command.format(tmp_path))


def test_the_slurm_example_is_valid_shell() -> None:
    path = ROOT / "configs" / "sweep" / "slurm.sh"
    subprocess.run(["bash", "-n", path], check=True)
    assert "-m probelight sweep run" in path.read_text()


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (0, "results: {0}/results.csv\nnext: train.py report '{0}'\n"),
        (
            1,
            "results so far: {0}/results.csv\ntracebacks: {0}/runs/<run>/error.txt\n"
            "to retry the failed runs: train.py sweep run --output_dir '{0}'\n",
        ),
        (143, "results so far: {0}/results.csv\n"),  # train.py says how to go on
    ],
)
def test_the_end_of_a_run_says_what_is_next(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    printed: str,
) -> None:
    folder = tmp_path / "my sweep"
    folder.mkdir()
    planned(folder, cells(1))
    monkeypatch.setattr(drive, "drive", lambda *_: code)
    with nullcontext() if code == 0 else pytest.raises(SystemExit, match=str(code)):
        sweep.run(str(folder))
    assert capsys.readouterr().out == printed.format(folder)


def test_a_run_goes_by_the_plan_but_for_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = planned(tmp_path, cells(2), max_retries=5)
    plans: list[StoredPlan] = []

    def driven(folder: Path, planned: StoredPlan, view: RunView) -> int:
        plans.append(planned)
        return 0

    monkeypatch.setattr(drive, "drive", driven)
    engine, trainer = RaySettings(gpus_per_cell=0.5), TrainerSettings(threads=3)
    sweep.run(str(tmp_path), engine, "there", trainer, WandbSettings(project="probes"))
    [plan], file = plans, StoredPlan.read(tmp_path)
    assert plan.jobs == jobs
    assert plan.engine == replace(file.engine, gpus_per_cell=0.5)
    assert file.engine == RaySettings(cpus_per_cell=1, max_retries=5)  # of one run, not of the plan
    context = plan.context
    assert (context.trainer.threads, context.trainer.accelerator) == (3, "cpu")
    assert not context.trainer.progress_bar  # of its own: runs have none
    assert (context.wandb.project, context.mirror) == ("probes", "there")
    assert context.wandb.group == f"{tmp_path.name}-{file.id}"


def example(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "sweep" / name).read_text("utf-8"))
    return spec


def arguments(index: int) -> list[str]:
    """What the agent puts for ${args}: here the first or the last value of each parameter."""
    values = {
        name: spec["values"][index] if "values" in spec else spec["value"]
        for name, spec in example("wandb.yaml")["parameters"].items()
    }
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.mark.parametrize("index", [0, -1])
def test_parameters_of_the_wandb_sweep_are_options_of_inoculate(
    index: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    *_, script, zero, args = example("wandb.yaml")["command"]
    assert (zero, args) == ("train.py", "${args}")
    words = shlex.split(script)
    assert words[:5] == ["exec", "python", "-m", "probelight", "inoculate"]
    # The shell sees to these.
    at, original = words.index("$@"), words.index("${ORIGINAL:+--original.checkpoint")
    options = [*words[5:at], *arguments(index), *words[at + 1 : original]]
    parser = ArgumentParser()
    parser.add_argument("--config", action="config")
    parser.add_function_arguments(inoculate)
    parsed = parser.parse_args([*options, "--original.checkpoint", str(tmp_path)])
    assert parsed.dose == (100, 1000)[index]
    assert parsed.learning_rate == (5e-5, 1e-4)[index]
    assert parsed.extra == ("none", "x1")[index]
    assert parsed.original.reserved_share == 0.335
    assert parsed.wandb.project == "probelight"
    assert parsed.output_dir == "runs/wandb/$WANDB_RUN_ID"


def test_the_wandb_sweep_is_the_grid_of_the_released_one() -> None:
    sweep, released = example("wandb.yaml"), example("released.yaml")["grid"]
    assert (sweep["method"], sweep["program"]) == ("grid", "train.py")
    assert sweep["metric"] == {"name": AGGREGATE, "goal": "maximize"}
    parameters = sweep["parameters"]
    row = released["rows"][0]
    assert row["probe"]["name"] == "hypernymy"
    for name, names in (
        ("dose", "doses"),
        ("learning_rate", "learning_rates"),
        ("extra", "extras"),
        ("seed", "seeds"),
    ):
        assert parameters[name]["values"] == row[names]
    original = released["originals"][row["original"]]
    for name in ("report_share", "selection_share", "reserved_share", "epochs"):
        assert parameters[f"original.{name}"]["value"] == original[name]


BATCHES = ("trials_at_once", "num_trials")


def test_a_grid_is_its_settings_and_what_they_share(grid: SweepGrid, mirror: str) -> None:
    cells = sweep_jobs(grid, run_context(mirror))
    # One original task, one scoring before, then 2 rates x 2 extras and one choice for each dose.
    settings = ["inoculation_cell"] * 4 + ["inoculation"]
    assert kinds(cells) == ["original", "before", *settings, *settings]
    keys = [cell.key for cell in cells]
    assert len(set(keys)) == len(keys)
    assert all(
        {*cell.needs, *cell.follows} <= set(keys[:index]) for index, cell in enumerate(cells)
    )
    # The choice is made among those that are finished: one that failed does not stop it.
    assert (list(cells[6].needs), cells[6].follows) == (keys[2:6], ())
    # 8 examples are one step of 8, balanced with as many two; 12 are two steps, balanced three.
    assert [cell.num_steps for cell in cells[2:6]] == [1, 1, 2, 2]
    assert [cell.num_steps for cell in cells[7:11]] == [2, 2, 3, 3]


def test_a_second_row_shares_the_original_task(grid: SweepGrid, mirror: str) -> None:
    [row] = grid.rows
    more = replace(grid, rows=[row, replace(row, doses=[8, 16])])
    alone, extended = (sweep_jobs(g, run_context(mirror)) for g in (grid, more))
    assert [c.key for c in extended[: len(alone)]] == [c.key for c in alone]
    assert kinds(extended[len(alone) :]) == ["inoculation_cell"] * 4 + ["inoculation"]


def test_another_data_file_makes_other_cells(grid: SweepGrid, mirror: str, tmp_path: Path) -> None:
    copy = tmp_path / "mirror"
    with_a_line_less(mirror, copy, "second")
    keys, new_keys = (
        {c.spec.name: c.key for c in sweep_jobs(grid, run_context(m))} for m in (mirror, str(copy))
    )
    changed = {name.split("-")[0] for name in keys if keys[name] != new_keys[name]}
    assert changed == {"before", "inoculate", "chosen"}  # the original task reads another file


def test_tpe_draws_its_settings_before_a_cell_is_started(grid: SweepGrid, mirror: str) -> None:
    cells = sweep_jobs(replace(grid, search="tpe", num_trials=3), run_context(mirror))
    [trial, *_] = [cell for cell in cells if cell.spec.trial]
    assert kinds(cells).count("inoculation_cell") == 2 * 3
    assert trial.spec.trial.space["learning_rate"] == {"low": 1e-4, "high": 1e-3, "log": True}
    assert trial.spec.trial.space["extra"] == {"choices": ["none", "x1"]}
    assert trial.spec.setting.extra == "x1"  # of what is drawn, the largest is planned with


def test_trials_follow_all_earlier_batches_of_their_dose_and_seed(
    grid: SweepGrid, mirror: str
) -> None:
    tpe = replace(grid, search="tpe", num_trials=7, trials_at_once=3)
    cells = sweep_jobs(tpe, run_context(mirror))
    for dose in (8, 12):
        of_dose = [c for c in cells if c.spec.trial and c.spec.setting.dose == dose]
        keys = tuple(cell.key for cell in of_dose)
        assert [cell.follows for cell in of_dose] == [(), (), (), *[keys[:3]] * 3, keys[:6]]
        assert {cell.needs for cell in of_dose} == {(of_dose[0].spec.before_run,)}
    # What a trial is drawn in view of is a part of it; how many there are after it is not.
    plans = [sweep_jobs(replace(tpe, **{name: 5}), run_context(mirror)) for name in BATCHES]
    trials = [{cell.key for cell in plan if cell.spec.trial} for plan in (cells, *plans)]
    assert [len(keys) for keys in trials] == [14, 14, 10]
    assert not trials[0] & trials[1]
    assert trials[2] < trials[0]


@pytest.mark.parametrize("empty", ["learning_rates", "extras", "doses", "seeds"])
def test_a_row_without_settings_is_refused(grid: SweepGrid, empty: str) -> None:
    with pytest.raises(RangeError, match=rf"SweepRow\.{empty} \[\]: give at least one"):
        replace(grid.rows[0], **{empty: []})
    with pytest.raises(
        RangeError,
        match=rf"SweepRow\.{empty} .*: give at least one value, and each value only once",
    ):
        replace(grid.rows[0], **{empty: 2 * getattr(grid.rows[0], empty)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "huge"}, "rows: number 1: model is 'huge'; choose from tiny"),
        ({"doses": [61]}, "rows: number 1: --dose 61: only 60"),
    ],
)
def test_unknown_names_and_too_many_examples_are_said(
    grid: SweepGrid, mirror: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        sweep_jobs(replace(grid, rows=[replace(grid.rows[0], **change)]), run_context(mirror))


def test_default_doses_and_extras_are_those_that_there_are_items_for(
    grid: SweepGrid, mirror: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = replace(grid.originals["colours"], reserved_share=0.1)  # 8 of 80 items
    [row] = grid.rows
    defaults = {"doses": DEFAULT_DOSES, "extras": None, "learning_rates": [1e-5]}
    plain = replace(grid, originals={"colours": task}, rows=[replace(row, seeds=[0], **defaults)])
    jobs = sweep_jobs(plain, run_context(mirror))
    settings = [job.spec.setting for job in jobs if job.spec.protocol == CANDIDATE]
    assert [(setting.dose, setting.extra) for setting in settings] == [(60, "none")]
    assert [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "number 1: doses [60], because 60 probe examples are left for doses",
        "number 1: dose 60 without extra x1, x2, because only 8 original-task examples are "
        "reserved",
    ]
    plain = replace(plain, rows=[replace(plain.rows[0], extras=["x1"], doses=[8, 9])])
    with pytest.raises(
        UsageError, match=r"extra x1 with dose 9 .*there are 8; give .*dose of at most 8"
    ):
        sweep_jobs(plain, run_context(mirror))


def test_planning_imports_neither_lightning_nor_optuna() -> None:
    code = (
        "import sys, probelight.commands.inoculation.sweep, probelight.runs.search; "
        "sys.exit(not {'torch', 'optuna'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
