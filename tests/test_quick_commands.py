"""What is answered at once imports nothing that takes seconds; a process looks at `sys.modules`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from probelight import cli
from tests.fixtures.checkout import ROOT

HEAVY = "torch torchmetrics transformers datasets wandb ray".split()
HEAVY += ["lightning", "lightning_fabric", "pytorch_lightning"]
# What commands that read no run do without too.
READERS = ["pandas"]
# Runs command lines one after the other and prints those that brought one of the modules.
LOOK = """
import json, sys
from probelight import cli
heavy, lines = json.loads(sys.stdin.read())
for line in lines:
    try:
        code = cli.main(line)
    except SystemExit as stop:
        code = stop.code
    found = [name for name in heavy if name in sys.modules]
    print(json.dumps([line, code, found]), file=sys.stderr)
    if found:
        break
"""
PROBE = {"name": "hypernymy_small", "selection_items": 20}
ORIGINAL = {"name": "definitions", "sets": ["definitions_small"]}
SWEEP = {
    "grid": {
        "models": {"own": {"name_or_path": "dictionary-lm"}, "esim": {"kind": "esim"}},
        "originals": {
            "task": ORIGINAL,
            "given": {**ORIGINAL, "checkpoint": "assets/dictionary-lm"},
        },
        "rows": [
            {"model": model, "original": original, "probe": PROBE, "doses": [10]}
            for model, original in (("own", "task"), ("esim", "task"), ("own", "given"))
        ],
    }
}
CONFIGS = "configs/experiment"
SAMPLES = (ROOT / "tests" / "fixtures" / "lm_eval").glob("*/samples_own_taxonomy_*.jsonl")
PRINTED = [
    ["zero-shot", "--output_dir=never", "--probes=age_small"],
    ["curve", f"--config={CONFIGS}/dictionary_qa_curve.yaml", "--output_dir=never"],
    ["inoculate", f"--config={CONFIGS}/inoculate_hypernymy.yaml", "--output_dir=never"],
    ["original", f"--config={CONFIGS}/science_original_task.yaml", "--output_dir=never"],
    ["demo"],
    ["sweep", "plan", "--config=configs/sweep/released.yaml", "--output_dir=never"],
]
MISTAKEN = [
    ["zeroshot"],
    ["sweep"],
    ["zero-shot", "--probez=age_small"],
    ["zero-shot", "--output_dir=never"],
    ["zero-shot", "--output_dir=never", "--probes=age_smal"],
    ["zero-shot", "--output_dir=never", "--probes=age_small", "--model.kind=esim"],
    ["zero-shot", "--output_dir=never", "--probes=age_small", "--model.max_length=1"],
    ["explain", "--probes=age_small", "--item=nothing"],
    ["curve", "--output_dir=never"],
    ["curve", "--output_dir=never", "--probes=age_small", "--grid.seeds=[1,1]"],
    ["curve", "--output_dir=never", "--probes=age_small", "--grid.sizes=[90000]"],
    ["curve", "--output_dir=never", "--probes=definitions_small", "--models=mlm_baseline"],
    ["curve", "--output_dir=never", "--probes=age_small", "--first_stage=definitions_small"],
    ["inoculate", "--output_dir=never", "--original.name=a", "--original.sets=[b]"],
    ["original", "--output_dir=never", "--original.name=a", "--original.sets=[b]"],
    ["grid", "--output_dir=never", "--grid.first_age=30", "--grid.last_age=20"],
    ["diagnose", "--output_dir=never", "--recorded=never"],
    ["report"],
    ["import", "lm-eval", "never.jsonl"],
    ["compare", "never"],
    ["probes", "lst"],
    ["probes", "audit", "hypernym", "--output_dir=never"],
]


def codes_of(lines: list[list[str]], heavy: list[str] = HEAVY) -> dict[str, int]:
    """The exit code of each command line; none of them may bring a heavy module."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=ROOT,
        input=json.dumps([heavy, lines]),
        capture_output=True,
        text=True,
    )
    answers = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[[")]
    assert [" ".join(line) for line, _, modules in answers if modules] == []
    assert len(answers) == len(lines), done.stderr
    return {" ".join(line): code for line, code, _ in answers}


def test_help_imports_nothing_heavy() -> None:
    commands = [name.split() for name in cli.SUMMARIES]
    lines = [["--help"], ["sweep", "--help"], *([*words, "--help"] for words in commands)]
    lines += [[*name.split(), "--help_all"] for name in cli.COMMANDS]
    assert set(codes_of(lines, HEAVY + READERS).values()) == {0}


@pytest.mark.thorough
def test_a_printed_config_imports_nothing_heavy() -> None:
    assert set(codes_of([[*line, "--print_config"] for line in PRINTED]).values()) == {0}


def test_usage_errors_import_nothing_heavy() -> None:
    assert set(codes_of(MISTAKEN).values()) == {cli.USAGE_ERROR}


@pytest.mark.thorough
def test_items_that_are_too_few(tmp_path: Path) -> None:
    out = tmp_path / "out"
    line = ["inoculate", "--original.name=definitions", "--original.sets=[definitions_small]"]
    line += ["--probe.name=hypernymy_small", f"--output_dir={out}"]
    lines = [[*line, "--dose=90000"], [*line, "--probe.selection_items=90000"]]
    assert set(codes_of(lines).values()) == {cli.USAGE_ERROR}
    assert not out.exists()


@pytest.mark.thorough
def test_what_trains_nothing(tmp_path: Path, demo_folder: Path) -> None:
    config, out = tmp_path / "sweep.yaml", f"--output_dir={tmp_path / 'sweep'}"
    config.write_text(yaml.safe_dump(SWEEP), encoding="utf-8")
    lines = [
        ["probes", "list"],
        ["probes", "contamination", "age_small", "--against=taxonomy_small"],
        ["sweep", "plan", f"--config={config}", out],
        ["sweep", "status", out],
        ["report", str(demo_folder)],
        ["import", "lm_eval", *map(str, SAMPLES), f"--output_dir={tmp_path / 'imported'}"],
    ]
    assert set(codes_of(lines).values()) == {0}
    assert (demo_folder / "report.html").is_file()


@pytest.mark.slow
def test_scoring_imports_nothing_of_training_and_figures(tmp_path: Path) -> None:
    """The command needs torch and transformers for the model, and pandas for the table."""
    line = ["zero-shot", "--probes=age_small", "--limit=100", f"--output_dir={tmp_path}"]
    unused = [name for name in HEAVY if name not in ("torch", "transformers")]
    unused += ["matplotlib", "sklearn", "peft", "torchvision", "nltk", "optuna", "scipy.stats"]
    rooms = "lightning_modules datamodules callbacks builders training.fit"
    unused += [f"probelight.{room}" for room in rooms.split()]
    process = subprocess.run(
        [sys.executable, "-c", LOOK],
        input=json.dumps([[*unused, "pandas"], [line]]),
        capture_output=True,
        cwd=ROOT,
        text=True,
        check=True,
    )
    assert json.loads(process.stderr.splitlines()[-1]) == [line, 0, ["pandas"]]
