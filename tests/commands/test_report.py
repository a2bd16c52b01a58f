"""`report` says where its page is; it and `compare` name what is damaged and show all else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from probelight import cli
from probelight.results.load import load_results
from probelight.results.record import artifacts_of
from tests.fixtures.items import lines, write_lines
from tests.fixtures.results import write_run, zero_shot_rows

Damage = Callable[[Path], object]


def changed(**keys: object) -> Damage:
    """Gives a record other values."""

    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | keys))

    return change


def raw(text: str) -> Damage:
    """Gives the first row another subset, as it is there."""

    def change(path: Path) -> None:
        record = json.loads(path.read_text())
        record["rows"][0]["subset"] = "HERE"
        path.write_text(json.dumps(record).replace('"HERE"', text))

    return change


def moved(make: Damage) -> Damage:
    """Puts something in place of the file."""

    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


HOPS = '{"kind": "difficulty", "hops": %s, "distractor_type": "x", "distractor_hops": 1}'
DAMAGES: dict[str, tuple[Damage, str]] = {
    "brackets": (lambda path: path.write_text("[" * 100_000), "not a whole JSON file (values ne"),
    "objects": (lambda path: path.write_text('{"a":' * 9_000), "not a whole JSON file (values ne"),
    "nested": (raw("[" * 300 + "]" * 300), "values nested more than 50 levels deep"),
    "digits": (raw("9" * 6_000), "a number of 6,000 digits is too large: 999"),
    "seconds": (changed(seconds=10**19), "a number of 20 digits is too large"),
    "infinity": (raw(HOPS % "Infinity"), "Infinity is not a JSON value"),
    "too large": (raw(HOPS % "1e999"), "the number 1e999 is too large"),
    "hops": (raw(HOPS % '"two"'), "which is not a part of a set"),
    "files": (changed(files={"hits.json": {}}), "`files.hits.json.size` is missing"),
    "rows": (changed(rows={}), "not a result file (it has no list of rows)"),
    "seeds": (changed(seeds="1"), "`seeds` must be a list, not '1'"),
    "empty": (lambda path: path.write_text(""), "not a whole JSON file (Expecting value"),
    "binary": (lambda path: path.write_bytes(bytes(range(256))), "not UTF-8"),
    "utf-16": (lambda path: path.write_text(path.read_text(), encoding="utf-16"), "this is UTF-16"),
    "folder": (moved(lambda path: path.mkdir()), "a folder, where a file is needed"),
    "pipe": (moved(os.mkfifo), "a device or a pipe, where a file on the disk is needed"),
}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs on the same items, each in a folder."""
    for name, right in (("one", "++-+"), ("two", "+--+")):
        rows = zero_shot_rows("age", right.count("+"), 4, 2, model=f"model_{name}")
        run = write_run(tmp_path / name, name, rows)
        write_lines(run, lines("age", right))
        changed(files=artifacts_of(run))(run / "result.json")
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_result_is_left_out_and_named(folders: tuple[Path, Path], name: str) -> None:
    damage, words = DAMAGES[name]
    [path] = folders[1].glob("runs/*/result.json")
    damage(path)
    results = load_results(folders)
    assert [run.model for run in results.runs] == ["model_one"]
    [sentence] = results.left_out
    assert results.damaged == results.left_out
    assert sentence.startswith(f"two/runs/{path.parent.name}/result.json:")
    assert words in sentence
    assert str(folders[1].parent) not in sentence


def test_it_is_named_on_the_terminal_the_page_and_in_markdown(
    folders: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    style = import_module("probelight.reports.figure").STYLE
    monkeypatch.setitem(style, "pdf.fonttype", 3)  # quicker
    [path] = folders[1].glob("runs/*/result.json")
    path.write_text("[" * 100_000)
    out = folders[0].parent / "out"
    assert cli.main(["report", *map(str, folders), f"--output_dir={out}"]) == 0
    named = f"two/runs/{path.parent.name}/result.json: not a whole JSON file"
    [line] = [line for line in capsys.readouterr().out.splitlines() if "left out" in line]
    assert line.startswith(f"left out: {named}")
    for page in ("report.html", "report.md"):
        text = (out / page).read_text(encoding="utf-8").replace("\\", "").replace("<wbr>", "")
        assert named in text
        assert "model_one" in text


def test_compare_says_in_which_of_its_folders_damage_lies(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def complaint() -> str:
        out = f"--output_dir={folders[0].parent / 'out'}"
        assert cli.main(["compare", *map(str, folders), out]) in (1, 2)
        error = capsys.readouterr().err
        assert "Traceback" not in error
        return error

    [run] = folders[1].glob("runs/*")
    content = (run / "predictions.jsonl").read_text()
    (run / "predictions.jsonl").write_text(content[:-20])
    assert f"{folders[1]}: runs/{run.name}/predictions.jsonl: changed since" in complaint()
    changed(files=artifacts_of(run))(run / "result.json")
    assert f"{folders[1]}: runs/{run.name}/predictions.jsonl: not a whole JSON" in complaint()
    (run / "result.json").write_text("[" * 100_000)
    assert f"{folders[1]}: none of its results can be read" in complaint()
    copy = folders[1] / "runs" / "other"
    run.rename(copy.with_name("gone"))
    text = next(folders[0].glob("runs/*/result.json")).read_text()
    copy.mkdir()
    (copy / "result.json").write_text(text.replace("zero_shot", "grid"))
    assert "two: runs/gone/result.json: not a whole JSON file" in complaint()


def test_a_plan_that_cannot_be_read_is_said(folders: tuple[Path, Path]) -> None:
    (folders[0] / "planned.json").write_text("[" * 100_000)
    (folders[0] / "runs" / "failed").mkdir()
    (folders[0] / "runs" / "failed" / "config.yaml").write_text("a: 1")
    (folders[0] / "runs" / "failed" / "error.txt").mkdir()
    results = load_results(folders)
    assert len(results.runs) == 2
    assert results.damaged == (
        "one/planned.json: damaged, so runs of an earlier plan are counted too; rerun `sweep plan`",
    )
    reason = "error.txt cannot be read: a folder, where a file is needed"
    assert results.left_out[-1] == f"one/runs/failed: failed, so not in this report ({reason})"


def test_hits_that_are_no_record_are_not_used(folders: tuple[Path, Path]) -> None:
    """Whatever is under `files` of a file, nothing is made of it."""
    from probelight.results.record import artifact_change

    [run] = folders[0].glob("runs/*")
    for recorded in ({}, [], None, {"size": 3}, "x"):
        change: Any = artifact_change(run, {"predictions.jsonl": recorded}, "predictions.jsonl")
        assert change == "predictions.jsonl: result.json does not have its size and checksum"


def test_the_report_says_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "out", "one", zero_shot_rows("age_small", 2, 4, 2))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "out", "--output_dir=pages"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("page: ")]
    assert lines == [f"page: {tmp_path / 'pages' / 'report.html'}"]
    assert Path(lines[0].removeprefix("page: ")).is_file()
    assert cli.main(["report", "out", "out"]) == 2
    assert "--output_dir" in capsys.readouterr().err


def test_the_report_of_an_empty_folder_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path)]) == cli.FAILURE
    assert str(tmp_path) in capsys.readouterr().err
