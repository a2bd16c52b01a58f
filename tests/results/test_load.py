from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from probelight.results import frames, load
from probelight.results.frames import ITEMS, NUMBERS, items_frame, results_frame
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.record import ModelSource
from probelight.results.row import Row
from probelight.results.run_folder import FORMAT_FILE, PLANNED, planned_keys
from tests.fixtures import subsets
from tests.fixtures.results import write_run, zero_shot_rows
from tests.fixtures.rows import LINE

Put = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a zero-shot run: `put(place, key, correct, model, **facts)` gives its folder."""

    def write(
        subdir: str = "", key: str = "one", correct: int = 5, model: str = "m", **fields: Any
    ) -> Path:
        rows = zero_shot_rows("p", correct, 10, 2, model=model)
        return write_run(tmp_path / subdir, key, rows, **fields)

    return write


def test_several_output_folders_are_read_together(tmp_path: Path, write: Put) -> None:
    write("a", model="m1")
    write("deep/b", correct=6, model="m2")  # the same key of another model is another run
    (tmp_path / "result.json").write_text("not of a run")
    results = load.load_results(tmp_path)
    assert [run.model for run in results.of("zero_shot")] == ["m1", "m2"]
    assert results.runs[1].path.startswith("deep/b/runs/one-")
    assert results.left_out == ()
    assert len(results.rows) == 2 * 6
    assert len(load.load_results(tmp_path / "a" / "runs").runs) == 1


def test_folders_read_together_are_distinguished_by_their_names(tmp_path: Path, write: Put) -> None:
    for subdir, correct in (("old/seed", 5), ("new/seed", 5), ("new/other", 7)):
        write(subdir, subdir.partition("/")[2], correct)
    planned(tmp_path / "old" / "seed", "next")
    old, new = tmp_path / "old" / "seed", tmp_path / "new" / "seed"
    results = load.load_results([old, new])
    assert results.name == "old/seed and new/seed"
    assert results.folder == tmp_path
    (run,) = results.runs
    assert run.path.startswith("new/seed/runs/seed-")
    twice, waiting = results.left_out
    assert twice.startswith("old/seed/runs/seed-")
    assert waiting == "old/seed/runs/next: not finished yet, so not in this report"
    # A folder in another one, or given twice, adds nothing and is nothing to be told.
    joined = load.load_results([tmp_path / "new", new, tmp_path / "old" / ".." / "new"])
    assert (joined.name, len(joined.runs), joined.left_out) == ("new and seed", 2, ())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no folder"),
        (["a", "b"], r"b: no results here.*--output_dir"),
        (["absent"], "there is no such folder"),
        (["c"], r"none of its results[\s\S]*runs/bad/result\.json"),
    ],
)
def test_a_folder_without_results_is_named(
    names: list[str], message: str, tmp_path: Path, write: Put
) -> None:
    write("a")
    (tmp_path / "b").mkdir()
    (tmp_path / "c" / "runs" / "bad").mkdir(parents=True)
    (tmp_path / "c" / "runs" / "bad" / "result.json").write_text(json.dumps({"key": "bad"}))
    shutil.copy(tmp_path / "a" / FORMAT_FILE, tmp_path / "c")
    with pytest.raises(FileNotFoundError, match=message):
        load.load_results([tmp_path / name for name in names])


@pytest.mark.parametrize("text", [None, '{"format": 3}', "[4]", "{"])
def test_a_folder_of_another_format_is_named_once_and_not_read(
    text: str | None, tmp_path: Path, write: Put
) -> None:
    write("a")
    for name in ("one", "two"):
        write("b", name)
    (tmp_path / "b" / FORMAT_FILE).unlink()
    if text is not None:
        (tmp_path / "b" / FORMAT_FILE).write_text(text)
    results = load.load_results(tmp_path)
    assert [run.path.split("/")[0] for run in results.runs] == ["a"]
    assert results.damaged == results.left_out
    [notice] = results.left_out
    assert notice.startswith("b: written by another version of Probelight")
    assert "another --output_dir, or use the version that wrote it" in notice
    with pytest.raises(FileNotFoundError, match=r"can be read:\n  \.: written by another version"):
        load.load_results(tmp_path / "b")


def test_a_fit_in_a_folder_named_runs_has_no_format(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "fit", [{"protocol": "fit", "metric": "val/loss", "value": 1.0}])
    (tmp_path / FORMAT_FILE).unlink()
    assert [run.protocol for run in load.load_results(folder.parent).runs] == ["fit"]


def test_same_run_twice_counts_once(tmp_path: Path, write: Put) -> None:
    for folder, correct in (("a", 5), ("b", 5), ("c", 7)):
        write(folder, correct=correct)
    results = load.load_results(tmp_path)
    (run,) = results.runs
    assert run.path.startswith("a/")
    assert run.rows[0].value == 0.5
    same, differing = results.left_out
    assert "exists twice, with the same numbers; only the one in a/runs" in same
    assert differing.startswith("c/runs/")
    assert "OTHER numbers" in differing


def test_files_next_to_a_result_are_read(tmp_path: Path, write: Put) -> None:
    folder = write("out")
    results = load.load_results(tmp_path)
    (run,) = results.runs
    assert results.read(run, "grid.json") is None
    (folder / "grid.json").write_text('{"values": [1, 2]}')
    assert results.read(run, "grid.json") == {"values": [1, 2]}
    (folder / "grid.json").write_text('{"values": [1,')
    with pytest.raises(load.UnreadableResultError, match=r"grid\.json: not a whole JSON file"):
        results.read(run, "grid.json")
    (folder / "predictions.jsonl").write_text('{"a": "\u2028"}\n{"a": 2}\n')
    assert results.read(run, "predictions.jsonl") == [{"a": "\u2028"}, {"a": 2}]


def test_a_file_that_is_not_that_of_the_record_is_refused(tmp_path: Path, write: Put) -> None:
    text = '{"values": [1]}'
    files = {"grid.json": {"size": 15, "sha256": hashlib.sha256(text.encode()).hexdigest()}}
    folder = write(files=files)
    results = load.load_results(tmp_path)
    (run,) = results.runs
    (folder / "grid.json").write_text(text)
    assert results.read(run, "grid.json") == {"values": [1]}
    (folder / "grid.json").write_text('{"values": [2]}')
    again = f"remove runs/{folder.name} and rerun the command that made it"
    message = rf"grid\.json: changed since the run ended; {again}$"
    with pytest.raises(load.UnreadableResultError, match=message):
        results.read(run, "grid.json")


def model_run(key: str, model: str, source: str | None) -> load.Run:
    origin = ModelSource(loaded_from=source or "")
    rows = tuple(Row(value=0.5, metric="accuracy", model=name) for name in (model, "published"))
    return load.Run(path=key, key=key, protocol="zero_shot", model=model, rows=rows, source=origin)


def test_the_shortest_end_of_a_path_that_differs() -> None:
    ends = load.distinct_ends(["runs/a/checkpoints/best", "runs/b/checkpoints/best", "/x/a/other"])
    assert list(ends.values()) == ["a/checkpoints/best", "b/checkpoints/best", "x/a/other"]
    assert load.distinct_ends(["org/bert", "bert"]) == {"org/bert": "org/bert", "bert": "bert"}
    for same in (["bert@one", "bert@two"], ["a/b", "a/b/"]):
        assert load.distinct_ends(same) == {name: name for name in same}


def test_models_of_one_name_from_two_places_are_two_and_others_stay() -> None:
    sources = ["one/best", "two/best", "one/best", "lm", "lm"]
    runs = [model_run(str(n), source.split("/")[-1], source) for n, source in enumerate(sources)]
    renamed = load.with_distinct_models(
        [*runs, model_run("5", "best", None)]
    )  # before its place was noted
    names = ["best (one/best)", "best (two/best)", "best (one/best)", "lm", "lm", "best"]
    assert [run.model for run in renamed] == names
    assert [[row.model for row in run.rows] for run in renamed] == [[n, "published"] for n in names]


def test_a_control_is_still_that_of_its_renamed_model() -> None:
    label = "best (random weights)"
    runs = [model_run(folder, "best", f"{folder}/best") for folder in ("one", "two")]
    untrained = replace(
        model_run("3", label, "one/best"),
        source=ModelSource(loaded_from="one/best", control_of="best"),
    )
    *_, control = load.with_distinct_models([*runs, untrained])
    assert (control.model, control.source.control_of) == (label, "best (one/best)")


def test_what_the_last_plan_does_not_hold_is_left_out_and_said(tmp_path: Path, write: Put) -> None:
    first, _ = write(key="first"), write(key="second")
    (tmp_path / PLANNED).write_text(json.dumps({"runs": [{"key": first.name}]}))
    results = load.load_results(tmp_path)
    assert [run.path for run in results.runs] == [f"runs/{first.name}"]
    assert any("second" in line and "earlier plan" in line for line in results.left_out)


@pytest.mark.parametrize("text", ["", "[]", '{"trainer": {}}'])
def test_a_plan_that_cannot_be_read_hides_nothing(tmp_path: Path, text: str) -> None:
    assert planned_keys(tmp_path) is None
    (tmp_path / PLANNED).write_text(text)
    assert planned_keys(tmp_path) is None


def planned(root: Path, name: str, *files: str) -> None:
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    for file in ("config.yaml", *files):
        text = "Traceback ...\nValueError: too few examples\n" if file == "error.txt" else "{}"
        (folder / file).write_text(text, encoding="utf-8")


def test_failed_and_unfinished_runs_are_named(tmp_path: Path) -> None:
    planned(tmp_path, "a", "result.json")
    planned(tmp_path, "b", "error.txt")
    planned(tmp_path, "c")
    # Failed once, finished when it was tried again.
    planned(tmp_path, "d", "error.txt", "result.json")
    assert load.unfinished_notices([tmp_path], tmp_path) == [
        "runs/b: failed, so not in this report (ValueError: too few examples)",
        "runs/c: not finished yet, so not in this report",
    ]


def test_pipes_in_place_of_texts_are_not_waited_for(tmp_path: Path, write: Put) -> None:
    planned(tmp_path, "a")
    os.mkfifo(tmp_path / "runs" / "a" / "error.txt")
    [notice] = load.unfinished_notices([tmp_path], tmp_path)
    assert notice.startswith("runs/a: failed, so not in this report (error.txt cannot be read: ")
    os.mkfifo(tmp_path / "command.txt")
    assert load.read_run(write() / "result.json").command == ""


def test_many_are_counted(tmp_path: Path) -> None:
    for number in range(20):
        planned(tmp_path, f"f{number:02}", "error.txt")
        planned(tmp_path, f"w{number:02}")
    notices = load.unfinished_notices([tmp_path], tmp_path)
    assert len(notices) == 14
    assert notices[12] == "8 more runs failed; see error.txt of each"
    assert notices[13].startswith("20 runs are not finished yet: runs/w00, runs/w01,")
    assert notices[13].endswith("runs/w11, ...")


def test_a_commands_folder_in_a_folder_named_runs_is_not_a_run(tmp_path: Path) -> None:
    command = tmp_path / "runs" / "curve"
    planned(tmp_path, "curve")
    planned(command, "a")
    for root, run in ((command, "runs/a"), (tmp_path, "runs/curve/runs/a")):
        notices = load.unfinished_notices([root], root)
        assert notices == [f"{run}: not finished yet, so not in this report"]


# The frames of numbers and of items, from runs that are made by hand.


ROWS = (
    Row(protocol="curve", model="m", probe="p", metric="accuracy", value=0.5, seed=3, num_items=8),
    Row(protocol="curve", metric="accuracy", value=0.25, subset=subsets.template("both"),
        ci_low=0.125, ci_high=0.5, learning_rate=1e-3),
)  # fmt: skip


SHOWN = ["run", "path", "place", "value", "control_of", "model_sha256", "subset", "subset_kind"]


def folder_of(tmp_path: Path, *lines: str) -> RunSet:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/predictions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = Run(protocol="zero_shot", model="m", probe="p", key="k", path="run")
    return RunSet("made", (run,), (), tmp_path)


def test_each_number_is_a_row_with_its_run() -> None:
    source = ModelSource(loaded_from="m", control_of="big")
    run = Run(
        protocol="curve", rows=ROWS, key="k1", path="a/runs/k1", source=source, model_sha256="abc"
    )
    grid = Run(protocol="grid", rows=(Row(metric="accuracy", value=1.0),), key="k2", path="runs/k2")
    frame = results_frame(RunSet("made", (run, grid)))
    assert list(frame) == list(NUMBERS)
    assert frame[SHOWN].to_numpy().tolist() == [
        ["k1", "a/runs/k1", 0, 0.5, "big", "abc", "", ""],
        ["k1", "a/runs/k1", 1, 0.25, "big", "abc", "template=both", "template"],
        ["k2", "runs/k2", 0, 1.0, "", "", "", ""],
    ]
    assert [subset and subset["name"] for subset in frame.part] == [None, "both", None]


def test_whole_numbers_stay_whole_and_what_is_not_there_is_missing() -> None:
    run = Run(protocol="curve", rows=ROWS, key="k1", path="runs/k1")
    frame = results_frame(RunSet("made", (run,)))
    first, second = frame.to_dict("records")
    assert (first["seed"], first["num_items"], first["model"]) == (3, 8, "m")
    assert isinstance(first["seed"], int)
    assert frame[["seed", "num_items"]].isna().all(axis=1).tolist() == [False, True]
    assert frame.ci_low.isna().tolist() == [True, False]
    assert (second["ci_low"], second["learning_rate"], second["model"]) == (0.125, 1e-3, "")


def test_without_runs_the_columns_and_their_types_are_there() -> None:
    empty = RunSet("made", ())
    assert list(results_frame(empty)) == list(NUMBERS)
    assert {str(results_frame(empty)[name].dtype) for name in frames.WHOLE} == {"Int64"}
    assert str(results_frame(empty).value.dtype) == "float64"
    assert list(items_frame(empty)) == list(ITEMS)


def test_columns_stay_as_they_are_and_each_is_described() -> None:
    # Other people's notebooks use these names: new ones may be added, none may go.
    numbers = (
        "run path protocol model probe control mode scoring num_train dose extra learning_rate "
        "epoch seed split perturbation metric value ci_low ci_high num_items num_groups role kind "
        "subset part subset_kind control_of model_sha256 place"
    )
    items = (
        "run path protocol model probe item set id position question choices scores prediction "
        "tied answer correct group hops distractor_type distractor_hops interval_group best "
        "by_rule control seed"
    )
    assert {*numbers.split()} <= {*NUMBERS}
    assert {*items.split()} <= {*ITEMS}
    for text in (*NUMBERS.values(), *ITEMS.values()):
        assert text.endswith(".") or ";" in text
        assert len(text) >= 10


def test_each_item_is_a_row_with_its_run(tmp_path: Path) -> None:
    results = folder_of(tmp_path, json.dumps(LINE), json.dumps({**LINE, "id": "m2", "correct": 0}))
    frame = items_frame(results)
    assert list(frame) == list(ITEMS)
    assert frame.id.tolist() == ["m1", "m2"]
    assert frame.correct.tolist() == [1.0, 0.0]
    of_run = frame[["run", "path", "protocol", "model", "probe"]].drop_duplicates()
    assert of_run.to_numpy().tolist() == [["k", "run", "zero_shot", "m", "p"]]
    assert frame.scores[0] == (0.5, None)


def test_damaged_predictions_are_named(tmp_path: Path) -> None:
    results = folder_of(tmp_path, json.dumps(LINE), json.dumps({**LINE, "answer": 7}))
    with pytest.raises(UnreadableResultError, match=r"run/predictions.jsonl:2"):
        items_frame(results)


def test_the_same_results_are_read_once() -> None:
    results = RunSet("made", ())
    assert results_frame(results) is results_frame(results)


def test_columns_of_other_rows_are_missing_where_no_row_is_of_the_place() -> None:
    frame = pd.DataFrame({"path": ["a", "a", "b"], "seed": [1, None, 1], "value": [3, 4, 5]})
    rows = pd.DataFrame({"path": ["a", "a"], "seed": [None, 1], "value": [6, 7], "more": [8, 9]})
    joined = frames.with_columns(frame, rows, {"value": "other"}, ["path", "seed"])
    assert joined.columns.tolist() == ["path", "seed", "value", "other"]
    assert joined.other.tolist()[:2] == [7, 6]  # no seed is the same as no seed
    assert joined.other.isna().tolist() == [False, False, True]
