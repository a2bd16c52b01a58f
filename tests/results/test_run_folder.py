from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError
from probelight.io.files import DataFile
from probelight.probes.catalog import ProbeConfig
from probelight.probes.source import ProbeData
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, ConfigConflictError, RunFolder, config_hash
from probelight.results.subset import Answered
from tests.fixtures.rows import read_results

RECORD = RunRecord(protocol="p")


def test_a_run_is_finished_when_its_result_is_there(tmp_path: Path) -> None:
    run = CommandFolder(tmp_path, {"command": "x"}).run("my run", {"dose": 3})
    assert run.result() is None
    run.finish(replace(RECORD, rows=(Row(metric="accuracy", value=0.5),)))
    again = CommandFolder(tmp_path, {"command": "x"}).run("my run", {"dose": 3})
    assert again.key == run.key
    result = again.result()
    assert result is not None
    assert result.rows == (Row(metric="accuracy", value=0.5, run_dir=f"runs/{run.key}"),)
    assert (result.protocol, result.key) == ("p", run.key)


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2", "\x00"])
def test_a_damaged_config_is_named(text: str, tmp_path: Path) -> None:
    run = CommandFolder(tmp_path, {"command": "x"}).run("my run", {"dose": 3})
    run.finish(RECORD)
    (run.path / "config.yaml").write_text(text)
    with pytest.raises(ValueError, match=f"^{run.path / 'config.yaml'}: changed since"):
        RunFolder.at(run.path)
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=f"^{tmp_path / 'config.yaml'}") as refused:
        CommandFolder(tmp_path, {"command": "x"})
    assert "\n" not in str(refused.value)


def test_a_finished_run_keeps_its_best_model_and_no_training_states(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "curve", {})
    (run.checkpoint_dir / "best").mkdir(parents=True)
    for name in ("last.ckpt", "last.ckpt.previous", "best/model.safetensors"):
        (run.checkpoint_dir / name).touch()
    run.finish(RECORD)
    left = [p.name for p in run.checkpoint_dir.rglob("*")]
    assert sorted(left) == ["best", "model.safetensors"]


def test_the_key_names_the_run_and_changes_with_its_config(tmp_path: Path) -> None:
    folder = CommandFolder(tmp_path, {})
    first, second = folder.run("a b/c", {"dose": 3}), folder.run("a b/c", {"dose": 4})
    assert first.key.startswith("a-b-c-")
    assert first.key != second.key
    assert config_hash({"a": 1, "b": 2}) == config_hash({"b": 2, "a": 1})


def test_another_config_is_refused_and_the_difference_shown(tmp_path: Path) -> None:
    config = {"command": "zero-shot", "model": {"revision": None, "n": 1}}
    CommandFolder(tmp_path, config).run("done", {}).finish(RECORD)
    CommandFolder(tmp_path, config)
    with pytest.raises(ConfigConflictError, match=r"-  n: 1\n\+  n: 2"):
        CommandFolder(tmp_path, {"command": "zero-shot", "model": {"revision": None, "n": 2}})


def test_a_data_file_that_has_changed_is_named(tmp_path: Path) -> None:
    config = ProbeConfig("mine", "mc_qa", 2, 0.5)

    def read(name: str, sha256: str) -> ProbeData:
        return ProbeData(config, (), files=(DataFile(name, sha256, 3),), notices=())

    def asked(*sha256: str) -> dict[str, object]:
        return {"command": "zero-shot", "probes": [{"sha256": [one]} for one in sha256]}

    same, old, new = read("a.jsonl", "0a"), read("my/b.jsonl", "1b"), read("my/b.jsonl", "2c")
    folder = CommandFolder(tmp_path, asked("0a", "1b"), [same, old])
    folder.run("done", {}).finish(RECORD)
    with pytest.raises(ConfigConflictError) as caught:
        CommandFolder(tmp_path, asked("0a", "2c"), [same, new])
    first = str(caught.value).splitlines()[0]
    assert "or data (my/b.jsonl is not what it was made with); choose another" in first
    assert "a.jsonl" not in first.replace("my/b.jsonl", "")


def test_results_are_the_rows_of_the_finished_runs(tmp_path: Path) -> None:
    folder = CommandFolder(tmp_path, {})
    folder.run("unfinished", {"a": 1})
    for value in (0.25, 0.75):
        folder.run("done", {"value": value}).finish(
            replace(RECORD, rows=(Row(metric="m", value=value),))
        )
    rows = read_results(folder.write_results())
    assert sorted(row["value"] for row in rows) == ["0.25", "0.75"]
    assert all(json.loads((tmp_path / row["run_dir"] / "result.json").read_text()) for row in rows)


def test_metrics_of_a_run_without_training(tmp_path: Path) -> None:
    run = CommandFolder(tmp_path, {}).run("r", {})
    run.write_metrics(
        [Row(metric="accuracy", value=0.5, subset=Answered("older"), control="standard")]
    )
    assert (run.path / "metrics.csv").read_text().splitlines()[
        1
    ] == "0,,standard/older/accuracy,0.5"
