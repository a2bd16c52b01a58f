from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from probelight.probes.importers.items import write_ai2
from probelight.protocols import cli
from tests.fixtures.rows import read_result, read_results
from tests.protocols.conftest import questions

Inoculate = Callable[..., int]
QA = "--data.setup=mc_qa"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Options that name files with the questions of `second`."""
    found = {}
    for split, num_items, seed in (("train", 80, 1), ("dev", 22, 2), ("test", 10, 3)):
        path = tmp_path / f"second-{split}.jsonl"
        write_ai2(path, questions("second", num_items, seed))
        found[split] = f"--data.{split}={path}"
    return found


@pytest.fixture
def inoculate(inoculation_config: dict[str, Any], tmp_path: Path) -> Inoculate:
    """Runs a small inoculation with more options; no probe is named."""
    path = tmp_path / "config.yaml"
    original = {**inoculation_config["original"], "epochs": 1}
    changed = {"original": original, "probe": {"selection_items": 20}, "epochs": 1}
    path.write_text(yaml.safe_dump(inoculation_config | changed))

    def run(*options: str) -> int:
        out = f"--output_dir={tmp_path / 'out'}"
        return cli.main(["inoculate", f"--config={path}", out, *options])

    return run


def values(folder: Path) -> list[tuple[str, ...]]:
    names = ("protocol", "probe", "metric", "split", "subset", "value")
    return [tuple(row[name] for name in names) for row in read_results(folder / "results.csv")]


def test_files_give_what_a_config_of_them_gives(
    files: dict[str, str],
    inoculate: Inoculate,
    tiny_probes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert inoculate(files["train"], files["dev"], QA) == 0
    assert "second: reported on dev, as there is no --data.test" in capsys.readouterr().out
    named = f"--output_dir={tmp_path / 'named'}"  # its test file has the questions of our dev file
    assert inoculate(f"--probe.name={tiny_probes / 'second.yaml'}", named) == 0
    assert values(tmp_path / "out") == values(tmp_path / "named")
    found = read_result(tmp_path / "out", "inoculate-second-*")
    assert (found["inoculation"]["report_split"], found["counts"]["dose"]) == ("dev", 24)


def test_a_changed_file_is_refused_and_named(
    files: dict[str, str], inoculate: Inoculate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [files["train"], QA, "--probe.report_split=null", "--data.name=mine"]
    assert inoculate(*command) == 0
    assert {row[1] for row in values(tmp_path / "out") if row[0] == "inoculation"} == {"mine"}
    path = tmp_path / "second-train.jsonl"
    write_ai2(path, questions("second", 78, 1))
    assert inoculate(*command) == cli.USAGE_ERROR
    assert f"data ({path} is not what it was made with)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("splits", "options", "said"),
    [
        ([], [], "give --probe.name NAME, or --data.train FILE with --data.setup mc_qa"),
        (["train"], [QA, "--probe.name=sciq"], "either --probe.name or --data.train, not both"),
        (["train"], [QA], "nothing to measure with: give --data.dev FILE or --data.test FILE"),
        (["dev", "test"], [QA], "there is no file of the split 'train'; give --data.train FILE"),
        (["train", "test"], [QA, "--probe.report_split=dev"], "nothing to measure with"),
        (["train", "test"], [QA, "--probe.train_split=test"], "are both test"),
        (["train", "dev"], [QA, "--dose=1000"], "only 60 probe examples are left"),
        ([], ["--probe.control=no_language"], "an inoculation takes standard, choice_only"),
        ([], ["--probe.control=choices_only"], "(did you mean 'choice_only'?)"),
    ],
)
def test_what_an_inoculation_of_files_lacks_is_said(
    splits: list[str],
    options: list[str],
    said: str,
    files: dict[str, str],
    inoculate: Inoculate,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert inoculate(*(files[split] for split in splits), *options) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (tmp_path / "out").exists()
