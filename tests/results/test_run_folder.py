from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from probelight.io.atomic import write_text_atomic
from probelight.io.errors import ConfigError
from probelight.results import run_folder
from probelight.results.record import RunRecord
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.checkout import ROOT

RECORD = RunRecord(protocol="p")


def test_a_run_is_finished_when_its_result_is_there(tmp_path: Path) -> None:
    run = run_folder.CommandFolder(tmp_path, {"command": "x"}).run("my run", {"dose": 3})
    assert run.result() is None
    run.finish(replace(RECORD, rows=(Row(metric="accuracy", value=0.5),)))
    again = run_folder.CommandFolder(tmp_path, {"command": "x"}).run("my run", {"dose": 3})
    assert again.key == run.key
    result = again.result()
    assert result is not None
    assert result.rows == (Row(metric="accuracy", value=0.5, run_dir=f"runs/{run.key}"),)
    assert (result.protocol, result.key) == ("p", run.key)


def test_a_very_long_name_is_cut_in_the_name_of_its_folder(tmp_path: Path) -> None:
    """By no more than the 255 bytes that file systems take, a temporary folder's end included."""
    names = ["x" * 400 + end for end in "ab"]
    keys = [run_folder.RunFolder(tmp_path, name, {"model": name}).key for name in names]
    assert keys[0] != keys[1]
    assert {len(key) for key in keys} == {180 + 1 + 12}
    assert run_folder.RunFolder(tmp_path, "y" * 180, {}).key.startswith("y" * 180 + "-")


@pytest.mark.parametrize("text", [None, '{"format": 3}', "[4]", "{"])
def test_a_folder_of_another_format_is_refused_and_left_as_it_is(
    text: str | None, tmp_path: Path
) -> None:
    run = run_folder.CommandFolder(tmp_path, {}).run("my run", {})
    (tmp_path / run_folder.FORMAT_FILE).unlink()
    if text is not None:
        (tmp_path / run_folder.FORMAT_FILE).write_text(text)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for config in ({}, {"n": 1}):
        with pytest.raises(run_folder.ConfigConflictError, match=f"^{tmp_path}: written by an"):
            run_folder.CommandFolder(tmp_path, config)
    (tmp_path / "config.yaml").unlink()
    run.finish(RECORD)
    with pytest.raises(run_folder.ConfigConflictError, match="or use the version that wrote it"):
        run_folder.CommandFolder(tmp_path, {})
    assert times.keys() - {*tmp_path.rglob("*")} == {tmp_path / "config.yaml"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_command_killed_while_it_begins_a_folder_begins_it_again(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has written its format, and before its config."""
    writes = []

    def write(path: Path, text: str) -> None:
        writes.append(path)
        if len(writes) == number:
            raise KeyboardInterrupt
        write_text_atomic(path, text)

    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "write_text_atomic", write)
        with pytest.raises(KeyboardInterrupt):
            run_folder.CommandFolder(tmp_path, {"n": 1})
    assert not (tmp_path / "config.yaml").exists()
    run_folder.CommandFolder(tmp_path, {"n": 1}).run("done", {}).finish(RECORD)
    assert len(run_folder.CommandFolder(tmp_path, {"n": 1}).finished()) == 1


def test_folders_of_commands_in_a_folder_named_runs_are_none_of_its_runs(tmp_path: Path) -> None:
    run_folder.CommandFolder(tmp_path / "runs" / "a", {}).run("done", {}).finish(RECORD)
    run_folder.CommandFolder(tmp_path, {})
    run_folder.CommandFolder(tmp_path, {})


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2", "\x00"])
def test_a_damaged_config_is_named(text: str, tmp_path: Path) -> None:
    run = run_folder.CommandFolder(tmp_path, {"command": "x"}).run("my run", {"dose": 3})
    run.finish(RECORD)
    (run.path / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=f"^{run.path / 'config.yaml'}: changed since"):
        run_folder.RunFolder.at(run.path)
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=f"^{tmp_path / 'config.yaml'}") as refused:
        run_folder.CommandFolder(tmp_path, {"command": "x"})
    assert "\n" not in str(refused.value)


def test_a_config_is_written_in_plain_values_without_aliases(tmp_path: Path) -> None:
    doses = (10, 100)
    config = {"model": np.str_("1e5"), "doses": doses, "twice": {"doses": doses}}
    run = run_folder.CommandFolder(tmp_path, config).run("r", config)
    text = "model: '1e5'\ndoses:\n- 10\n- 100\ntwice:\n  doses:\n  - 10\n  - 100\n"
    for folder in (tmp_path, run.path):
        assert (folder / "config.yaml").read_text() == text


def test_a_finished_run_keeps_its_best_model_and_no_training_states(tmp_path: Path) -> None:
    run = run_folder.RunFolder(tmp_path, "curve", {})
    (run.checkpoint_dir / "best").mkdir(parents=True)
    for name in ("last.ckpt", "last.ckpt.previous", "best/model.safetensors"):
        (run.checkpoint_dir / name).touch()
    run.finish(RECORD)
    names = [p.name for p in run.checkpoint_dir.rglob("*")]
    assert sorted(names) == ["best", "model.safetensors"]


def test_metrics_of_a_run_without_training(tmp_path: Path) -> None:
    run = run_folder.CommandFolder(tmp_path, {}).run("r", {})
    row = Row(metric="accuracy", value=0.5, subset=subsets.answered("older"), control="standard")
    run.write_metrics([row])
    lines = (run.path / "metrics.csv").read_text().splitlines()
    assert lines[1] == "0,,standard/older/accuracy,0.5"


FIRST, SECOND = {"command": "curve", "n": 1}, {"command": "curve", "n": 2}


def config_of(folder: Path) -> dict[str, object]:
    config: dict[str, object] = yaml.safe_load((folder / "config.yaml").read_text())
    return config


def test_a_config_that_computed_nothing_gives_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_folder.CommandFolder(tmp_path, FIRST).run("a", {"n": 1})
    run.checkpoint_dir.mkdir()
    (run.path / ".config.yaml.77-0a0b0c0d.tmp").touch()  # of a write that was killed
    (tmp_path / "nohup.out").touch()
    run_folder.CommandFolder(tmp_path, SECOND)
    assert config_of(tmp_path) == SECOND
    line = f"{tmp_path / 'config.yaml'}: replaced, as nothing was computed with the previous config"
    assert line in capsys.readouterr().out
    assert not (run.path / "config.yaml").exists()
    assert (tmp_path / "nohup.out").exists()


@pytest.mark.parametrize(
    "name",
    [
        *(f"runs/a/{name}" for name in ("result.json", "before.json", "metrics.csv")),
        *(f"runs/a/checkpoints/{name}" for name in ("last.ckpt", "config.yaml")),
        *("results.csv", "driver.json", "planned.json"),
    ],
)
def test_states_results_and_plans_keep_their_config(tmp_path: Path, name: str) -> None:
    run_folder.CommandFolder(tmp_path, FIRST)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(run_folder.ConfigConflictError, match="was made with another config"):
        run_folder.CommandFolder(tmp_path, SECOND)
    assert config_of(tmp_path) == FIRST
    assert (tmp_path / name).exists()


WAITS = """
import sys
from pathlib import Path
from probelight.results.run_folder import CommandFolder
folder = CommandFolder(Path(sys.argv[1]), {"command": "curve", "n": 1})
print("there", flush=True)
sys.stdin.read()
"""


def test_a_process_that_has_not_computed_yet_keeps_its_config(tmp_path: Path) -> None:
    waits = [sys.executable, "-c", WAITS, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(waits, cwd=ROOT, stdin=pipe, stdout=pipe) as waiting:
        try:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == b"there\n"
            with pytest.raises(run_folder.ConfigConflictError, match="another process is working"):
                run_folder.CommandFolder(tmp_path, SECOND)
            run_folder.CommandFolder(tmp_path, FIRST)  # the same command may be there twice
            assert config_of(tmp_path) == FIRST
        finally:
            waiting.kill()
    run_folder.CommandFolder(tmp_path, SECOND)
    assert config_of(tmp_path) == SECOND


def test_who_replaces_a_config_keeps_others_out_until_it_is_written(tmp_path: Path) -> None:
    first, second = run_folder.FolderClaim(tmp_path), run_folder.FolderClaim(tmp_path)
    assert not first.lock(exclusive=True)
    second.close()
    assert first.lock(exclusive=True)
    first.lock(exclusive=False)
    assert not run_folder.FolderClaim(tmp_path).lock(exclusive=True)


LOGGED = [(0, "0", "train/loss", 0.1), (3, "", "=1+1", -2.5), (4, "1", "a,b\n'x'", 1e-300)]


def test_metrics_come_back_to_the_last_digit_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.csv"
    run_folder.write_metrics(path, LOGGED)
    lines = path.read_text().splitlines()
    assert lines[:3] == ["step,epoch,metric,value", "0,0,train/loss,0.1", "3,,'=1+1,-2.5"]
    assert run_folder.read_metrics(path) == LOGGED
    run_folder.write_metrics(path, [])
    assert run_folder.read_metrics(path) == []


HEAD = "step,epoch,metric,value\n"


@pytest.mark.parametrize(
    "text",
    ["", "step,epoch\n", f"{HEAD}3,0,train/loss", f"{HEAD}x,,a,1", f'{HEAD}3,0,"a,1'],
    ids=["empty", "other columns", "a line cut off", "no step", "a cell cut off"],
)
def test_a_damaged_file_is_named_with_what_to_do(text: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    with pytest.raises(
        ValueError, match=rf"^{path}: not all lines .*; remove {tmp_path} "
    ) as refused:
        run_folder.read_metrics(path)
    assert "\n" not in str(refused.value)


def test_a_folder_that_was_removed_meanwhile_gets_no_results_without_a_config(
    tmp_path: Path,
) -> None:
    folder = run_folder.CommandFolder(tmp_path / "out", {"command": "zero_shot"})
    run, unfinished = (folder.run(name, {"name": name}) for name in "ab")
    shutil.rmtree(tmp_path / "out")
    for write in (
        lambda: run.finish(RECORD),
        lambda: folder.run("c", {"name": "c"}),
        folder.write_results,
    ):
        with pytest.raises(
            run_folder.ConfigConflictError, match="was removed while the command was working"
        ):
            write()
    assert not (tmp_path / "out").exists()
    run_folder.CommandFolder(tmp_path / "out", {"command": "curve"})  # another command's by now
    with pytest.raises(
        run_folder.ConfigConflictError, match="was removed while the command was working"
    ):
        folder.write_results()
    assert not unfinished.result_path.exists()
