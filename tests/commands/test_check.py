"""`check`: two models, one verdict per probe, and what a pipeline reads of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

import probelight
from probelight import cli
from probelight.commands import check as command
from probelight.io.errors import UsageError
from probelight.io.package import ASSETS
from probelight.probes.catalog import load_probe_config
from probelight.reports.forgetting import changed
from probelight.results.load import load_results
from probelight.runs.estimates import Plan
from tests.fixtures.checkout import ROOT

PROBES = ("taxonomy_small", "age_small")
BASE = "bookshelf-lm"
CPU = {"accelerator": "cpu"}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model with half of its matrices disturbed: it forgets what things are."""
    folder = tmp_path_factory.mktemp("models") / "broken"
    model = AutoModelForMaskedLM.from_pretrained(ASSETS / BASE)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2 and torch.rand(1) < 0.5:
                weight.add_(torch.randn_like(weight) * weight.std() * 0.6)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(ASSETS / BASE).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def checked(broken: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a check from the command line, in a process of its own."""
    folder = tmp_path_factory.mktemp("runs") / "check"
    command_line = [sys.executable, "train.py", "check", BASE, str(broken), "--probes"]
    command_line += [",".join(PROBES), "--output_dir", str(folder), "--fail_on", "forgot"]
    command_line += ["--trainer.accelerator", "cpu"]
    run = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 3, run.stderr
    (folder / "stdout.txt").write_text(run.stdout, encoding="utf-8")
    return folder


def test_the_lines_say_what_was_forgotten_and_a_pipeline_stops(checked: Path) -> None:
    lines = (checked / "stdout.txt").read_text(encoding="utf-8").splitlines()
    [start] = [n for n, line in enumerate(lines) if line.startswith("bookshelf-lm → broken")]
    forgot, unknown, mean = lines[start + 1 : start + 4]
    assert forgot.startswith("✗ forgot            taxonomy_small  ")
    assert " lost, " in forgot
    assert forgot.endswith(" of 300")
    assert unknown.startswith("○ not known before  age_small ")
    assert unknown.endswith(": not clearly above chance before")
    assert "all probes" in mean
    assert lines[-1] == "--fail_on forgot: taxonomy_small"


def test_the_json_has_the_numbers_of_the_answers(checked: Path) -> None:
    """Counted here from the answers of both models, by what is in their own runs."""
    values = json.loads((checked / "check.json").read_text(encoding="utf-8"))
    assert values["format"] == 1
    assert values["models"] == [BASE, "broken"]
    assert values["margin"] == 0.05
    taxonomy, age = values["probes"]
    assert (taxonomy["probe"], taxonomy["split"], age["probe"]) == (
        "taxonomy_small",
        "test",
        PROBES[1],
    )
    answers = []
    for model in (BASE, "broken"):
        [path] = (checked / "runs").glob(f"zero-shot-taxonomy_small-{model}-*/predictions.jsonl")
        answers.append([json.loads(line) for line in path.read_text().splitlines()])
    before, after = ([line["correct"] for line in lines] for lines in answers)
    lost = sum(b * (1 - a) for b, a in zip(before, after, strict=True))
    gained = sum((1 - b) * a for b, a in zip(before, after, strict=True))
    assert (taxonomy["lost"], taxonomy["gained"]) == (lost, gained)
    assert taxonomy["change"]["value"] == pytest.approx((gained - lost) / 300)
    assert taxonomy["before"]["value"] == pytest.approx(sum(before) / 300)
    assert taxonomy["change"]["ci_low"] < taxonomy["change"]["value"] < 0
    # A model of two candidates has the margin of either sign.
    margins = []
    for lines in answers:
        of_model = []
        for line in lines:
            right = line["scores"][line["answer"]]
            others = [s for n, s in enumerate(line["scores"]) if n != line["answer"]]
            of_model.append(right - max(others))
        margins.append(of_model)
    moved = sum(a - b for b, a in zip(*margins, strict=True)) / 300
    assert taxonomy["margin_change"]["value"] == pytest.approx(moved)
    mean = (taxonomy["change"]["value"] + age["change"]["value"]) / 2
    assert values["all_probes"]["change"]["value"] == pytest.approx(mean)
    comment = (checked / "check.md").read_text(encoding="utf-8")
    assert comment.startswith(
        "**bookshelf-lm → broken** Of 2 probes: forgot 1, not known before 1."
    )
    assert "| ✗ forgot | taxonomy_small | 59.7 |" in comment


@pytest.mark.thorough
def test_forgetting_says_the_same(checked: Path, broken: Path, tmp_path: Path) -> None:
    """By hand: zero-shot of each model, then forgetting of the two folders."""
    folders = []
    for model in (BASE, str(broken)):
        results = probelight.zero_shot(
            model, list(PROBES), split="test", output_dir=tmp_path / Path(model).name, trainer=CPU
        )
        folders.append(results.folder)
    probelight.forgetting(*folders, output_dir=tmp_path / "forgetting")
    by_hand, by_check = (
        changed(load_results(folder)).sort_values("set")
        for folder in (tmp_path / "forgetting", checked)
    )
    names = [n for n in by_check.columns if n[0] != "_" and n not in ("model", "before")]
    for name in names:
        assert [*map(str, by_hand[name])] == [*map(str, by_check[name])], name
    # And a check of the two folders asks nothing anew.
    again = probelight.check(*map(probelight.load, folders), output_dir=tmp_path / "measured")
    assert isinstance(again, probelight.Checked)
    assert sorted(again.verdicts.verdict) == sorted(by_check.verdict)
    assert not [*(tmp_path / "measured" / "runs").glob("zero-shot-*")]


@pytest.mark.thorough
def test_answers_of_the_base_are_taken_over(
    checked: Path, broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments: dict[str, Any] = {"probes": [PROBES[0]], "trainer": CPU, "limit": None}
    again = probelight.check(
        BASE, broken, base_results=checked, output_dir=tmp_path / "again", **arguments
    )
    assert isinstance(again, probelight.Checked)
    [run] = (tmp_path / "again" / "runs").glob(f"zero-shot-{PROBES[0]}-{BASE}-*")
    [first] = (checked / "runs").glob(f"zero-shot-{PROBES[0]}-{BASE}-*")
    assert (run / "result.json").read_bytes() == (first / "result.json").read_bytes()
    with pytest.raises(UsageError, match="it has no answers to these items by bookshelf-lm"):
        probelight.check(BASE, broken, "age_small", limit=50, base_results=checked, trainer=CPU)


@pytest.mark.thorough
def test_a_notebook_sees_lines_and_a_test_stops(broken: Path) -> None:
    networks = [AutoModelForMaskedLM.from_pretrained(f) for f in (ASSETS / BASE, broken)]
    reader = AutoTokenizer.from_pretrained(broken)
    before, after = ((network, reader) for network in networks)
    results = probelight.check(before, after, ["taxonomy_small"], trainer=CPU)
    assert isinstance(results, probelight.Checked)
    assert repr(results).startswith("✗ forgot  taxonomy_small")
    with pytest.raises(probelight.ForgottenError, match="✗ forgot  taxonomy_small"):
        results.raise_if_forgotten()
    # Two choices of which the model knows neither: nothing to forget.
    unknown = probelight.check(before, after, ["age_small"], limit=100, trainer=CPU)
    assert isinstance(unknown, probelight.Checked)
    unknown.raise_if_forgotten()


def test_a_plan_asks_nothing(broken: Path, tmp_path: Path) -> None:
    plan = probelight.check(BASE, broken, dry_run=True, output_dir=tmp_path / "none", limit=100)
    assert isinstance(plan, Plan)
    assert plan.num_runs == 2 * len(command.PANELS["shipped"])
    assert plan.seconds
    assert not (tmp_path / "none").exists()


def test_the_panel_is_there() -> None:
    panel = command.PANELS["shipped"]
    sets = command.load_sets(panel, command.DEFAULT_FILE, "test", None)
    assert [loaded.name for loaded in sets] == [*panel]
    assert all(len({r.position for r in loaded.data.records}) > 100 for loaded in sets)


def adapter_of(base: Path, folder: Path) -> Path:
    model = peft.get_peft_model(AutoModelForMaskedLM.from_pretrained(base), peft.LoraConfig(r=2))
    model.save_pretrained(folder)
    return folder


def test_an_adapter_alone_is_checked_against_its_base(
    tiny_model: Path, broken: Path, tmp_path: Path
) -> None:
    adapter = adapter_of(tiny_model, tmp_path / "adapter")
    for names in ([str(adapter)], [str(tiny_model), str(adapter)], [f"{tiny_model}+{adapter}"]):
        before, after = command.before_and_after(names)
        assert Path(before.name_or_path) == tiny_model
        assert before.adapter is None
        assert Path(after.name_or_path) == tiny_model
        assert after.adapter == str(adapter)
    with pytest.raises(UsageError, match=r"is an adapter of .*, not of bookshelf-lm; leave out"):
        command.before_and_after([BASE, str(adapter)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([BASE], "is no adapter, so give the model before it too"),
        ([BASE, BASE], "is given twice"),
        ([BASE, "dictionary-lm", BASE], "give the model before and the model after"),
        ([BASE, "dictionary-lm", "--probes", "taxonmy_small"], "taxonomy_small"),
        ([BASE, "dictionary-lm", "--fail_on", "forgotten"], "forgot"),
        ([BASE, "dictionary-lm", "--margin", "0"], "margin"),
        ([BASE, "dictionary-lm", "--margin", "five"], "margin"),
        ([BASE, "dictionary-lm", "--limit", "0"], "limit"),
        ([BASE, "dictionary-lm", "--probes", "arithmetic", "--split", "tset"], "test"),
        (["esim", BASE], "knows nothing before training"),
        (["/nowhere/model", BASE], "there is no folder /nowhere/model"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "check"
    try:
        code: Any = cli.main(["check", *arguments, "--output_dir", str(folder)])
    except SystemExit as stop:  # of the parser
        code = stop.code
    error = capsys.readouterr().err.strip()
    assert code in (1, 2)
    assert message in error
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1
    assert not folder.exists()


def test_an_adapter_of_a_named_model_has_another_name(tiny_model: Path, tmp_path: Path) -> None:
    config = tmp_path / "tiny.yaml"
    config.write_text(f"model:\n  name_or_path: {tiny_model}\n  name: tiny\n")
    adapter = adapter_of(tiny_model, tmp_path / "school")
    before, after = command.before_and_after([str(config), str(adapter)])
    assert (before.label, after.label) == ("tiny", "tiny+school")


def test_panels_are_of_probes_that_there_are_and_all_has_each_once() -> None:
    for panel in command.PANELS.values():
        for entry in panel:
            name, _, split = entry.partition(":")
            assert (split or "test") in load_probe_config(name).splits
    everything = command.panel_probes("all")
    assert len(everything) == len({*everything}) == 10 + 11 + 1
    assert command.panel_probes("language") == ("agreement", "blimp:test")


def test_a_panel_beside_probes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--panel", "language", "--probes", "age_small"]
    assert cli.main(["check", BASE, "dictionary-lm", *options]) == 2
    assert "--panel language says what to ask, but so do --probes" in capsys.readouterr().err
