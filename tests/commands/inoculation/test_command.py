from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForMultipleChoice, AutoTokenizer

from probelight import cli
from probelight.commands.inoculation import inoculate as inoculations
from probelight.commands.inoculation.runs import inoculation_jobs
from probelight.commands.inoculation.settings import Setting, Subject
from probelight.commands.inoculation.sweep import SweepGrid, sweep_jobs
from probelight.lightning_modules.baselines.esim import ESIM
from probelight.models.registry import ModelSettings, weights_bytes
from probelight.probes.importers.items import write_ai2
from probelight.reports.inoculation.runs import dose_lines
from probelight.reports.overview.skills import CHOICES, verdicts
from probelight.results.load import load_results
from probelight.training.modules import saved_module
from tests.commands.inoculation.conftest import kinds, outcome, run, run_context
from tests.fixtures.hub_cache import HubCache
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.fixtures.tiny import questions


def test_an_inoculation_reports_what_its_predictions_say(finished: Path) -> None:
    reported = {
        row["metric"]: float(row["value"])
        for row in read_results(finished / "results.csv")
        if row["protocol"] == "inoculation" and row["split"] == "report" and not row["subset"]
    }
    hits: dict[str, dict[str, float]] = {}
    for row in read_predictions(finished, "inoculate-*"):
        assert len(row["scores"]) == 5
        if not row["set"].startswith("report"):
            continue
        assert row["prediction"] == row["scores"].index(max(row["scores"]))
        assert row["correct"] == (row["prediction"] == row["answer"])
        hits.setdefault(row["set"], {})[row["id"]] = row["correct"]
    assert [len(scores) for scores in hits.values()] == [22] * 4
    probe, original = hits["report_probe"], hits["report_original"]
    at_first = hits["report_original_before"]
    assert reported["probe_accuracy"] == pytest.approx(fmean(probe.values()))
    start = fmean(hits["report_probe_before"].values())
    assert reported["probe_accuracy_before"] == pytest.approx(start)
    accuracy = fmean(original.values())
    assert reported["inoculation_cost"] == pytest.approx(fmean(at_first.values()) - accuracy)
    assert reported["aggregate"] == pytest.approx((fmean(probe.values()) + accuracy) / 2)
    forgotten = read_result(finished, "inoculate-*")["inoculation"].get("forgotten", [])
    assert [item["id"] for item in forgotten] == [i for i in at_first if at_first[i] > original[i]]


def test_a_given_model_is_looked_for_before_a_dry_run(
    inoculation_config: dict[str, Any],
    tiny_model: Path,
    hub_cache: HubCache,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    inoculation_config["dry_run"] = True

    def plan(checkpoint: str) -> int:
        inoculation_config["original"]["checkpoint"] = checkpoint
        return run(inoculation_config, tmp_path / "out", tmp_path)

    assert plan("bookshelf_qa") == cli.FAILURE
    assert "no folder 'bookshelf_qa' (did you mean 'bookshelf-qa'?)" in capsys.readouterr().err
    hub_cache("org/questions", {"main": tiny_model})  # in the cache, so nothing is downloaded
    assert plan("org/questions") == 0
    assert "1 run: 1 inoculate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pattern", "name", "text"),
    [
        ("original-*", "checkpoints/best/tokenizer.json", None),
        ("original-*", "checkpoints/best/chosen.json", ""),
        ("original-*", "result.json", "{}"),
        ("inoculate-*", "result.json", ""),
    ],
)
def test_damaged_files_of_a_finished_run_are_named(
    pattern: str,
    name: str,
    text: str | None,
    finished: Path,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [folder] = finished.glob(f"runs/{pattern}")
    if name.startswith("checkpoints"):  # the original model is used again by another dose
        [result] = finished.glob("runs/inoculate-*/result.json")
        result.unlink()
    (folder / name).unlink() if text is None else (folder / name).write_text(text)
    capsys.readouterr()
    assert run(inoculation_config, finished, tmp_path) == cli.FAILURE
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert f"{folder / name}: " in error
    assert f"remove {folder}" in error


def test_the_same_command_is_complete_and_another_one_refused(
    finished: Path,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    contents = outcome(finished)
    assert run(inoculation_config, finished, tmp_path) == 0
    assert "complete" in capsys.readouterr().out
    assert outcome(finished) == contents
    assert run({**inoculation_config, "dose": 25}, finished, tmp_path) == cli.USAGE_ERROR
    assert "-dose: 24\n+dose: 25" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_model_of_somebody_else_is_inoculated_and_cut_concepts_have_no_strict_accuracy(
    inoculation_config: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"  # transformers' own head for choices
    model = AutoModelForMultipleChoice.from_config(AutoConfig.from_pretrained(tiny_model))
    model.save_pretrained(theirs)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(theirs)
    inoculation_config["original"]["checkpoint"] = str(theirs)
    inoculation_config["epochs"] = 1
    outcomes = []
    for number in (7, 1000):  # of 22 report items
        inoculation_config["probe"]["report_items"] = number
        out = tmp_path / str(number)
        assert run(inoculation_config, out, tmp_path) == 0
        clusters: dict[str, float] = {}
        for line in read_predictions(out, "inoculate-*"):
            if line["set"] == "report_probe":
                clusters[line["group"]] = clusters.get(line["group"], 1.0) * line["correct"]
        values = [
            float(row["value"])
            for row in read_results(out / "results.csv")
            if row["metric"] == "strict_cluster_accuracy" and not row["subset"]
        ]
        notices = read_result(out, "inoculate-*").get("notices", [])
        outcomes.append((values, [n for n in notices if "no strict cluster" in n]))
    assert outcomes[0] == (
        [],
        [
            "probe.report_items: only 7 of 22 report items are scored, "
            "and not all questions about a concept, so there is no strict cluster accuracy; "
            "remove the limit to get it"
        ],
    )
    assert outcomes[1] == ([pytest.approx(fmean(clusters.values()))], [])
    [best] = out.glob("runs/inoculate-*/checkpoints/best")
    taught, original = (AutoModelForMultipleChoice.from_pretrained(path) for path in (best, theirs))
    assert not torch.equal(taught.classifier.weight, original.classifier.weight)
    assert saved_module(best).num_choices is None


def test_under_a_control_the_model_sees_the_choices_alone(
    finished: Path,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the dose, of what is selected with and of what is reported; groups and splits stay."""
    [checkpoint] = finished.glob("runs/original-*/checkpoints/best")
    trained: list[tuple[list[str], dict[str, set[bool]]]] = []
    fit = inoculations.fit_choices

    def noted(module: Any, items: Any, watched: Any, *args: Any) -> Any:
        empty = {name: {not record.stem for record in records} for name, records in watched.items()}
        trained.append(([record.stem for record in items], empty))
        return fit(module, items, watched, *args)

    monkeypatch.setattr(inoculations, "fit_choices", noted)
    config = dict(inoculation_config)
    config["original"] = {**config["original"], "checkpoint": str(checkpoint)}
    config["probe"] = {**config["probe"], "control": "choice_only"}
    assert run(config, tmp_path / "control", tmp_path) == 0
    [(stems, empty)] = trained
    assert stems == [""] * config["dose"]
    assert empty == {"dose": {True}, "probe": {True}, "original": {False}}
    ours = read_predictions(tmp_path / "control", "inoculate-*-choice_only-*")
    theirs = read_predictions(finished, "inoculate-*")
    assert len(ours) == len(theirs)
    for row, standard in zip(ours, theirs, strict=True):
        of_probe = row["set"] == "dose" or "_probe" in row["set"]
        assert row["question"] == ("" if of_probe else standard["question"])
        assert row.get("control", "") == ("choice_only" if of_probe else "")
        for key in ("set", "id", "choices", "answer", "interval_group"):
            assert row.get(key) == standard.get(key)
        if row["set"] == "report_original_before":
            assert row["scores"] == pytest.approx(standard["scores"], abs=1e-5)
    # A choice has one score whatever it was asked with, as the model sees nothing else.
    for name in ("report_probe_before", "report_probe"):
        assert spread_of_a_choice(ours, name) < 3e-6
        assert spread_of_a_choice(theirs, name) > 3e-5
    # In the report it is a line of its own, and the like-for-like control of the other.
    results = load_results([finished, tmp_path / "control"])
    lines_of = dose_lines(results)
    assert [series.control for series in lines_of] == ["", "choice_only"]
    [verdict] = [verdict for verdict in verdicts(results) if verdict.skill.kind == "inoculated"]
    case = verdict.case
    assert case.start is not None
    assert case.end is not None
    for score in (case.start, case.end):
        assert CHOICES in [control.how for control in score.controls if control.is_alike]


def spread_of_a_choice(lines: list[dict[str, Any]], name: str) -> float:
    """The largest difference between the scores that one choice gets in the items of a set."""
    by_choice: dict[str, list[float]] = {}
    for line in lines:
        for choice, score in zip(line["choices"], line["scores"], strict=True):
            if line["set"] == name:
                by_choice.setdefault(choice, []).append(score)
    assert any(len(scores) > 1 for scores in by_choice.values())
    return max(max(scores) - min(scores) for scores in by_choice.values())


def test_weights_are_counted_in_single_precision(tmp_path: Path) -> None:
    weights = {"a": torch.zeros(2, 3, dtype=torch.float16), "b": torch.zeros(5)}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert weights_bytes(ModelSettings(str(tmp_path), kind="transformer")) == 4 * (6 + 5)
    assert weights_bytes(ModelSettings("some/hub-model", kind="transformer")) == 0
    counted = {name: p.numel() for name, p in ESIM().named_parameters() if "words" not in name}
    assert weights_bytes(ModelSettings(kind="esim")) == 4 * sum(counted.values())


def test_an_inoculation_of_ones_own_is_one_job_behind_the_original_task(
    grid: SweepGrid, mirror: str
) -> None:
    [row] = grid.rows
    subject = Subject(grid.models["tiny"], grid.originals["colours"], row.probe)
    settings = [Setting(dose, "x1", 3, epochs=2, batch_size=8) for dose in (8, 12)]
    original, small, large = inoculation_jobs(subject, settings, run_context(mirror))
    assert kinds([original, small, large]) == ["original", "inoculation", "inoculation"]
    assert small.needs == large.needs == (original.key,)
    # 8 examples and as many that balance them are 2 steps of 8, 12 are 3.
    assert [small.num_steps, large.num_steps] == [2 * 2, 2 * 3]
    assert small.spec.name == "inoculate-second-k8-x1-s3"
    sweep = sweep_jobs(grid, run_context(mirror))
    assert sweep[0].key == original.key


Inoculate = Callable[..., int]
QA = "--data.setup=mc_qa"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Options that name files with the questions of `second`."""
    options = {}
    for split, num_items, seed in (("train", 80, 1), ("dev", 22, 2), ("test", 10, 3)):
        path = tmp_path / f"second-{split}.jsonl"
        write_ai2(path, questions("second", num_items, seed))
        options[split] = f"--data.{split}={path}"
    return options


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


@pytest.mark.thorough
def test_files_give_what_a_config_of_them_gives(
    files: dict[str, str],
    inoculate: Inoculate,
    tiny_probes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert inoculate(files["train"], files["dev"], QA) == 0
    assert "second: reporting on dev, because there is no --data.test" in capsys.readouterr().out
    named = f"--output_dir={tmp_path / 'named'}"  # its test file has the questions of our dev file
    assert inoculate(f"--probe.name={tiny_probes / 'second.yaml'}", named) == 0
    assert values(tmp_path / "out") == values(tmp_path / "named")
    content = read_result(tmp_path / "out", "inoculate-second-*")
    assert (content["inoculation"]["report_split"], content["counts"]["dose"]) == ("dev", 24)


@pytest.mark.thorough
def test_a_changed_file_is_refused_and_named(
    files: dict[str, str], inoculate: Inoculate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [files["train"], QA, "--probe.report_split=null", "--data.name=mine"]
    assert inoculate(*command) == 0
    assert {row[1] for row in values(tmp_path / "out") if row[0] == "inoculation"} == {"mine"}
    path = tmp_path / "second-train.jsonl"
    write_ai2(path, questions("second", 78, 1))
    assert inoculate(*command) == cli.USAGE_ERROR
    assert f"data (these files have changed: {path})" in capsys.readouterr().err


def test_files_of_the_same_items_are_refused(
    files: dict[str, str],
    inoculate: Inoculate,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Packed or plain, under whatever names: they are 80 items to train on and to report."""
    plain = Path(files["train"].partition("=")[2])
    packed = tmp_path / "others.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert inoculate(files["train"], f"--data.test={packed}", QA) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert f"those to measure are the same 80 ({plain} and {packed})" in line
    assert "or hold out a share of the train items (--probe.report_split null)" in line
    assert not list((tmp_path / "out").glob("runs/*"))


@pytest.mark.parametrize(
    ("splits", "options", "message"),
    [
        ([], [], "give --probe.name NAME, or --data.train FILE with --data.setup mc_qa"),
        (["train"], [QA, "--probe.name=sciq"], "either --probe.name or --data.train, not both"),
        (["train"], [QA], "nothing to measure with: give --data.dev FILE or --data.test FILE"),
        (["dev", "test"], [QA], "no file for the split 'train'; give the file as --data.train"),
        (["train", "test"], [QA, "--probe.report_split=dev"], "nothing to measure on"),
        (["train", "test"], [QA, "--probe.train_split=test"], "are both test"),
        (["train", "dev"], [QA, "--dose=1000"], "only 60 probe examples are left"),
        ([], ["--probe.control=no_language"], "choose from standard, choice_only"),
        ([], ["--probe.control=choices_only"], "(did you mean 'choice_only'?)"),
    ],
)
def test_what_an_inoculation_of_files_lacks_is_said(
    splits: list[str],
    options: list[str],
    message: str,
    files: dict[str, str],
    inoculate: Inoculate,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert inoculate(*(files[split] for split in splits), *options) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()
