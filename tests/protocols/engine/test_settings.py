"""A baseline is never replaced by a transformer, nor measured before it is trained."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean
from typing import Any

import pytest
import yaml

from probelight.io.errors import UsageError
from probelight.probes.source import load_probe
from probelight.protocols import cli
from probelight.protocols.engine.models import check_questions, module_for, module_of
from probelight.protocols.engine.settings import (
    MODEL_TYPES,
    TRANSFORMER,
    ModelSettings,
    ModelType,
    SplitFiles,
)
from probelight.protocols.inoculation.settings import InoculatedProbe, OriginalTask
from probelight.protocols.inoculation.sweep import SweepGrid, SweepRow, sweep_jobs
from probelight.protocols.jobs.job import RunContext
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results

QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
ADVICE = {
    "choice_only": "`train.py curve --models choice_only --setup mc_qa --probes ...`",
    "mlm_baseline": "`train.py curve --models mlm_baseline --probes ...`",
    "esim": "`train.py curve --models esim --setup mc_qa --probes ...`",
}


@pytest.mark.parametrize("kind", ["mlm_baseline", "esim", "choice_only"])
@pytest.mark.parametrize(
    "command",
    [
        ["zero-shot", "--probes", "age_small,definitions_small"],
        ["zero-shot", "--probes", "definitions_small", "--ranks", "true"],
        ["grid", "--grid.panels", "[A]"],
        ["demo"],
    ],
)
def test_a_baseline_is_refused_where_nothing_is_trained(
    kind: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = ["--config", str(ROOT / "configs" / "model" / f"{kind}.yaml")]
    given = [f"--plan.model.kind={kind}"] if command == ["demo"] else preset
    folder = tmp_path / "out"
    assert cli.main([*command, *given, f"--output_dir={folder}"]) == cli.USAGE_ERROR
    said = capsys.readouterr().err
    assert f"model.kind {kind}" in said
    assert ADVICE[kind] in said
    assert not folder.exists()


def test_a_grid_of_several_models_computes_none_before_it_refuses_one(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command = ["grid", "--models=dictionary-lm,mlm_baseline", f"--output_dir={folder}"]
    assert cli.main(command) == cli.USAGE_ERROR
    assert not folder.exists()


def original(checkpoint: str | None = None) -> dict[str, Any]:
    return {"name": "task", "sets": ["definitions_small"], "checkpoint": checkpoint}


NOT_FINE_TUNED = {
    "mlm_baseline": "model.kind mlm_baseline fills the mask .* choose model.kind esim",
    "vec_similarity": "model.kind vec_similarity is not trained here, .* choose model.kind esim",
    "causal": "model.kind causal is not trained here.* give a model of kind transformer",
    "seq2seq": "model.kind seq2seq is not trained here.* give a model of kind transformer",
}


@pytest.mark.parametrize("kind", NOT_FINE_TUNED)
@pytest.mark.parametrize("command", ["inoculate", "original"])
def test_what_is_not_fine_tuned_is_no_original_task_model(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"original": original(), "model": {"kind": kind}}
    if command == "inoculate":
        config["probe"] = {"name": "hypernymy_small"}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    folder = tmp_path / "out"
    assert cli.main([command, f"--config={path}", f"--output_dir={folder}"]) == cli.USAGE_ERROR
    assert re.search(NOT_FINE_TUNED[kind], capsys.readouterr().err)
    assert not folder.exists()


@pytest.mark.parametrize("kind", NOT_FINE_TUNED)
def test_a_sweep_refuses_it_when_it_is_planned(kind: str) -> None:
    grid = SweepGrid(
        {"mine": ModelSettings(kind=kind)},
        {"task": OriginalTask(**original())},
        [SweepRow("mine", "task", InoculatedProbe("hypernymy_small"))],
    )
    with pytest.raises(UsageError, match=f"rows: number 1: {NOT_FINE_TUNED[kind]}"):
        sweep_jobs(grid, RunContext())


def test_a_checkpoint_is_called_what_it_is(tmp_path: Path) -> None:
    pairs = ModelSettings(kind="esim")
    folder = str(tmp_path / "esim")
    module_for(pairs, "mc_qa").save_pretrained(folder)
    check_questions(pairs, folder)
    with pytest.raises(UsageError, match=r"kind esim.*called dictionary-lm.*kind esim"):
        check_questions(ModelSettings(), folder)
    (tmp_path / "transformer").mkdir()
    check_questions(ModelSettings(), str(tmp_path / "transformer"))
    with pytest.raises(UsageError, match=r"kind transformer.*called ESIM"):
        check_questions(pairs, str(tmp_path / "transformer"))


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A new kind of model: its file and its line in the registry."""
    kind = ModelType(scorer="tests.protocols.engine.counted_letters")
    monkeypatch.setitem(MODEL_TYPES, "letters", kind)
    return ["--model.kind=letters", "--model.name_or_path=counter", *QUIET]


def test_a_new_kind_is_a_file_and_a_line(letters: list[str], tmp_path: Path) -> None:
    probes = ["age_small", "definitions_small"]  # a sentence with a mask, a question with answers
    command = ["zero-shot", *letters, f"--probes={','.join(probes)}", f"--output_dir={tmp_path}"]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "results.csv")
    assert {(row["model"], row["mode"]) for row in rows} == {("counter", "counted")}
    for probe in probes:
        records = load_probe(probe, "dev").records
        lengths = [[len(choice) for choice in record.choices] for record in records]
        [value] = [
            float(row["value"])
            for row in rows
            if (row["probe"], row["metric"], row["subset"]) == (probe, "accuracy", "")
        ]
        credit = [
            (sizes[record.answer] == max(sizes)) / sizes.count(max(sizes))
            for sizes, record in zip(lengths, records, strict=True)
        ]
        assert value == pytest.approx(fmean(credit))
    [*results] = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/result.json")]
    assert len(results) == 2
    assert all("letters were counted" in result["notices"] for result in results)


def test_what_a_new_kind_cannot_do_is_refused_by_name(
    letters: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["zero-shot", *letters, "--probes=age_small", "--ranks=true"]
    assert cli.main([*command, f"--output_dir={tmp_path}"]) == cli.USAGE_ERROR
    said = capsys.readouterr().err
    assert "LetterCounter (mode counted) gives no log-probabilities over a vocabulary" in said
    command = ["curve", *letters, "--probes=age_small", f"--output_dir={tmp_path / 'curve'}"]
    assert cli.main(command) == cli.USAGE_ERROR
    assert "is not trained here, and the probes are mc_mlm" in capsys.readouterr().err


def test_an_unknown_kind_is_told_which_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["zero-shot", "--model.kind=elmo", "--probes=age_small", f"--output_dir={tmp_path}"]
    assert cli.main(command) == cli.USAGE_ERROR
    said = capsys.readouterr().err
    assert "--model.kind elmo: give one of transformer, causal, mlm_baseline, esim" in said


def test_the_registry_imports_nothing_heavy() -> None:
    code = "import sys, probelight.protocols.engine.models; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not {"torch", "transformers", "pytorch_lightning"} & set(done.stdout.split())


@pytest.mark.parametrize("name", list(MODEL_TYPES))
def test_an_entry_of_the_registry_names_what_is_there(name: str) -> None:
    model_type = MODEL_TYPES[name]
    if model_type.is_pretrained:
        module = module_of(model_type)
        assert callable(module.load)
        assert callable(module.check)
        if model_type.has_checkpoint:
            assert {"mc_mlm", "mc_qa", "minimal_pair"} == set(module.FORMS)
    setups = model_type.trained
    assert all(isinstance(resolve_name(trained.made_by), type) for trained in setups.values())
    if name != TRANSFORMER:
        assert all(
            hasattr(resolve_name(trained.made_by), "from_folder") for trained in setups.values()
        )


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (ModelSettings(), "dictionary-lm"),
        (ModelSettings(name_or_path="group/bert/"), "bert"),
        (ModelSettings(name_or_path="a/b", random_weights=True), "b (random weights)"),
        (ModelSettings(name_or_path="a/b", name=" mine "), "mine"),
        (ModelSettings(kind="esim"), "ESIM (word_vectors)"),
        (
            ModelSettings(kind="mlm_baseline", vectors="d/glove.6B.50d.txt.gz"),
            "MLM-baseline (glove.6B.50d)",
        ),
    ],
)
def test_what_tables_call_a_model(model: ModelSettings, label: str) -> None:
    assert model.label == label


def test_a_name_that_looks_like_a_model_to_load_is_refused() -> None:
    with pytest.raises(UsageError, match=r"give the folder or Hub name .* as model\.name_or_path"):
        ModelSettings(name="group/bert")


def test_a_config_has_a_name_only_where_one_is_given() -> None:
    assert "name" not in ModelSettings().config()
    assert ModelSettings(name="mine").config()["name"] == "mine"


def test_a_config_has_a_form_of_likelihoods_only_where_it_is_not_the_original() -> None:
    assert "pll" not in ModelSettings(pll="original").config()
    chosen = ModelSettings(pll="within_word_l2r")
    assert chosen.config()["pll"] == "within_word_l2r"
    assert ModelSettings(**chosen.config()) == chosen
    with pytest.raises(
        UsageError, match=r"model\.pll within_word_l2r .* kind seq2seq masks nothing"
    ):
        ModelSettings(kind="seq2seq", pll="within_word_l2r")


def test_the_files_that_are_given() -> None:
    assert SplitFiles(test="t.jsonl", train="a.jsonl").paths == {
        "train": "a.jsonl",
        "test": "t.jsonl",
    }
