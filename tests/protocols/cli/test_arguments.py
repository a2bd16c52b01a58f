from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols.cli.arguments import Known, read_arguments

KNOWN = Known(
    [
        *("output_dir", "seed", "probes", "grid.sizes", "grid.full.epochs"),
        *("model.name_or_path", "model.max_length"),
    ],
    ["model", "grid", "grid.full"],
    ["probes", "grid.sizes", "folders"],
)


def words(*given: str) -> list[str]:
    return read_arguments(given, KNOWN).words


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--output-dir", "a-b", "--seed=-1"], ["--output_dir", "a-b", "--seed=-1"]),
        (["--model.max-length=8"], ["--model.max_length=8"]),
        (["--seeed", "--o-p"], ["--seeed", "--o-p"]),  # no options: shown as they were typed
        (["a.jsonl=gpt-2", "-mirror"], ["a.jsonl=gpt-2", "-mirror"]),
        (
            ["--probes", "a, b@1,", "--grid.sizes=62,1e3"],
            ['--probes=["a", "b@1"]', '--grid.sizes=["62", "1e3"]'],
        ),
        (
            ["--probes=[a,b]", "--probes", "", "--probes=null"],
            ["--probes=[a,b]", "--probes=[]", "--probes=null"],
        ),
        (["--model", "{name_or_path: x}"], ["--model={name_or_path: x}"]),
    ],
)
def test_an_option_may_be_written_with_hyphens(given: list[str], expected: list[str]) -> None:
    assert words(*given) == expected


def test_files_of_a_command_line_are_given_to_the_parser_as_text(tmp_path: Path) -> None:
    config, model, own = tmp_path / "a.yaml", tmp_path / "model.yaml", tmp_path / "own.yaml"
    config.write_text("seed: 1\nfolders: a, b\nmodel:\n  # max_length: 8\ngrid: {full: }\n")
    model.write_text("model: {max_length: 100}\n")
    own.write_text("name_or_path: gpt2\n")
    line = ["--config", str(config), f"--model={model}", "--model", str(own), "-c", str(config)]
    read = read_arguments([*line, "--seed", "2"], KNOWN)
    assert read.words == [
        '--config={"seed": 1, "folders": ["a", "b"], "grid": {}}',
        '--model={"max_length": 100}',
        '--model={"name_or_path": "gpt2"}',
        '-c={"seed": 1, "folders": ["a", "b"], "grid": {}}',
        "--seed",
        "2",
    ]
    assert read.place("seed") == "--seed"  # the command line holds
    assert read.place("model.max_length") == f"{model}: model.max_length"
    assert read.place("grid.full.epochs") == "--grid.full.epochs"


def test_a_place_in_a_list_of_a_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("grid: {rows: [{seeds: [1, 2]}]}\n")
    read = read_arguments([f"--config={path}"], KNOWN)
    assert read.place("grid.rows[0].seeds[1]") == f"{path}: grid.rows[0].seeds[1]"
    read = read_arguments([f"--config={path}", "--grid.rows=[]"], KNOWN)
    assert read.place("grid.rows[0].seeds[1]") == "--grid.rows[0].seeds[1]"
