"""One hostile model, probe and item through every output: what they say acts nowhere."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from probelight import cli
from probelight.io.escaping import visible
from probelight.io.settings import typed
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.results.row import Row
from tests.fixtures.rows import read_results
from tests.fixtures.tiny import SPECIAL, write_bert

NAME = "=HYPERLINK(1)<img src=x>[go](javascript%3Ax)$x^|`*"
TEXT = "@SUM(1)\x1b[2J\x00\x9b31m\u202e<script>alert(1)</script>[l](http://e.vil)|`*$\\frac$\x07"
COLOURS = ("red", "green")
QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]


def model(folder: Path) -> str:
    words = [*SPECIAL, *COLOURS, "blah", "ya", "a", "is", "."]
    folder = folder / f"{NAME}\x1b[31m"
    return str(write_bert(folder, words, hidden_size=16, layers=1, max_length=64))


def probe(folder: Path, name: str, setup: str) -> str:
    for split in ("train", "test"):
        records = []
        for i in range(24):
            choices = COLOURS if setup == "mc_mlm" else (f"{TEXT} red", f"={i}<b>green</b>")
            mask = " [MASK]" if setup == "mc_mlm" else ""
            meta = {"cluster": f"{TEXT}{split}{i // 2}", "template": TEXT, "hops": 1}
            meta |= {"distractor_type": TEXT, "distractor_hops": 1}
            records.append(
                Record(f"{TEXT}{i}", f"{TEXT} a{mask} {split} {i}", choices, i % 2, meta)
            )
        write_ai2(folder / f"{name}-{split}.jsonl", records)
    config = {
        "description": TEXT,
        "citation": TEXT,
        "setup": setup,
        "num_choices": 2,
        "chance": 0.5,
        "base_url": str(folder),
        "files": {split: {"path": f"{name}-{split}.jsonl"} for split in ("train", "test")},
        "group_by": "cluster",
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))
    return str(folder / f"{name}.yaml")


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    option = f"--model.name_or_path={model(folder)}"
    masked, qa = probe(folder, f"{NAME}m", "mc_mlm"), probe(folder, f"{NAME}q", "mc_qa")
    task = {"name": NAME, "sets": [qa], "report_sets": [qa], "epochs": 1, "batch_size": 8}
    task |= {"selection_share": 0.3, "reserved_share": 0.3, "num_choices": 2}
    config = {"original": task, "probe": {"name": qa, "selection_items": 8}, "dose": 8}
    (folder / "inoculate.yaml").write_text(yaml.safe_dump({**config, "epochs": 1}))
    zero = ["zero-shot", f"--probes={masked},{qa}", "--split=test", option, *QUIET]
    grid = ["--grid.sizes=[8]", "--grid.seeds=[1]", "--grid.epochs=1", "--grid.split=test"]
    curve = ["curve", f"--probes={masked}", option, *grid, "--grid.controls=[standard]", *QUIET]
    inoculate = ["inoculate", f"--config={folder / 'inoculate.yaml'}", option, *QUIET]
    for command in (zero, curve, inoculate):
        assert cli.main([*command, f"--output_dir={folder / 'out' / command[0]}"]) == 0
    assert cli.main(["report", str(folder / "out")]) == 0
    return folder / "out"


def test_no_file_holds_a_control_character(out_dir: Path) -> None:
    kinds = {".csv", ".jsonl", ".json", ".md", ".html", ".svg", ".yaml"}
    files = [path for path in out_dir.rglob("*") if path.suffix in kinds and path.is_file()]
    files = [path for path in files if "checkpoints" not in path.parts]
    assert {path.suffix for path in files} == kinds
    for path in files:
        text = path.read_bytes().decode()
        assert visible(text) == text, path


def test_the_results_are_read_back_as_they_were(out_dir: Path) -> None:
    for folder in ("zero-shot", "curve", "inoculate"):
        expected = {
            (row.metric, row.subset_text, row.model)
            for path in (out_dir / folder).glob("runs/*/result.json")
            for cells in json.loads(path.read_text())["rows"]
            for row in [typed(Row, cells, str(path))]
        }
        rows = read_results(out_dir / folder / "results.csv")
        assert {(row["metric"], row["subset"], row["model"]) for row in rows} == expected
    assert any(TEXT in subset for _, subset, _ in expected)
    ids = {
        json.loads(line)["id"]
        for path in out_dir.glob("zero-shot/runs/*/predictions.jsonl")
        for line in path.read_text().splitlines()
    }
    assert ids == {f"{TEXT}{i}" for i in range(24)}


def test_no_cell_is_a_formula(out_dir: Path) -> None:
    for path in out_dir.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        for cell in cells:
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), (path, cell)
            assert not re.match(r"-(?!\d+(\.\d+)?(e-?\d+)?$)", cell), (path, cell)


def test_figures_are_xml_and_pages_have_no_elements_of_the_texts(out_dir: Path) -> None:
    figures = list(out_dir.rglob("*.svg"))
    assert figures
    for path in figures:
        assert ElementTree.parse(path) is not None
    page, markdown = (out_dir / f"report.{kind}" for kind in ("html", "md"))
    for text in (page.read_text(), markdown.read_text(), *(f.read_text() for f in figures)):
        assert "<img" not in text
        assert "<script>alert" not in text
        assert "<b>green" not in text
    source = markdown.read_text()
    assert "HYPERLINK" in source
    assert "http://e" not in source
    assert re.findall(r"(?<!\\)\]\((?!figures/|tables/)", source) == []


def test_the_terminal_shows_texts_as_they_are(
    out_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = [str(path) for path in sorted(out_dir.parent.glob("*.yaml")) if NAME in path.name]
    [folder] = [path for path in out_dir.parent.iterdir() if path.name.startswith(f"{NAME}\x1b")]
    command: list[Any] = ["zero-shot", f"--probes={','.join(probes)}", "--split=test", *QUIET]
    command += [f"--model.name_or_path={folder}", f"--output_dir={tmp_path / 'out'}"]
    assert cli.main(command) == 0
    assert cli.main(["zero-shot", "--probes=\x1b[2Jx", f"--output_dir={tmp_path / 'x'}"]) == 2
    printed = capsys.readouterr()
    assert "HYPERLINK" in printed.out
    assert "\\x1b[2Jx" in printed.err
    for text in (printed.out, printed.err):
        assert visible(text) == text
