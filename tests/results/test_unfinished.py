from __future__ import annotations

from pathlib import Path

from probelight.results.unfinished import unfinished


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
    assert unfinished([tmp_path], tmp_path, "runs", "result.json") == [
        "runs/b: failed, so not in this report (ValueError: too few examples)",
        "runs/c: not finished yet, so not in this report",
    ]


def test_many_are_counted(tmp_path: Path) -> None:
    for number in range(20):
        planned(tmp_path, f"f{number:02}", "error.txt")
        planned(tmp_path, f"w{number:02}")
    said = unfinished([tmp_path], tmp_path, "runs", "result.json")
    assert len(said) == 14
    assert said[12] == "8 more runs failed; each has its error.txt"
    assert said[13].startswith("20 runs are not finished yet: runs/w00, runs/w01,")
    assert said[13].endswith("runs/w11, ...")


def test_a_commands_folder_in_a_folder_named_runs_is_not_a_run(tmp_path: Path) -> None:
    command = tmp_path / "runs" / "curve"
    for folder in (command, command / "runs" / "a"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text("{}")
    assert unfinished([command], command, "runs", "result.json") == [
        "runs/a: not finished yet, so not in this report"
    ]
    said = unfinished([tmp_path], tmp_path, "runs", "result.json")
    assert said == ["runs/curve/runs/a: not finished yet, so not in this report"]
