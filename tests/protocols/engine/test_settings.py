"""A baseline is never replaced by a transformer, nor measured before it is trained."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean

import pytest

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
from tests.protocols.conftest import Refused

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
    kind: str, command: list[str], refused: Refused, tmp_path: Path
) -> None:
    preset = ["--config", str(ROOT / "configs" / "model" / f"{kind}.yaml")]
    given = [f"--plan.model.kind={kind}"] if command == ["demo"] else preset
    folder = tmp_path / "out"
    line = refused([*command, *given, f"--output_dir={folder}"])
    assert f"model.kind {kind}" in line
    assert ADVICE[kind] in line
    assert not folder.exists()


def test_a_grid_of_several_models_computes_none_before_it_refuses_one(
    refused: Refused, tmp_path: Path
) -> None:
    refused(f"grid --models=dictionary-lm,mlm_baseline --output_dir={tmp_path / 'out'}")
    assert not (tmp_path / "out").exists()


NOT_FINE_TUNED = {
    "mlm_baseline": "model.kind mlm_baseline fills the mask .* choose model.kind esim",
    "vec_similarity": "model.kind vec_similarity is not trained here, .* choose model.kind esim",
    "causal": "model.kind causal is not trained here.* give a model of kind transformer",
    "seq2seq": "model.kind seq2seq is not trained here.* give a model of kind transformer",
}


@pytest.mark.parametrize("kind", NOT_FINE_TUNED)
@pytest.mark.parametrize("command", ["inoculate --probe.name=hypernymy_small", "original"])
def test_what_is_not_fine_tuned_is_no_original_task_model(
    command: str, kind: str, refused: Refused, tmp_path: Path
) -> None:
    task = "--original.name=task --original.sets=definitions_small"
    line = refused(f"{command} {task} --model.kind={kind} --output_dir={tmp_path / 'out'}")
    assert re.search(NOT_FINE_TUNED[kind], line)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", NOT_FINE_TUNED)
def test_a_sweep_refuses_it_when_it_is_planned(kind: str) -> None:
    grid = SweepGrid(
        {"mine": ModelSettings(kind=kind)},
        {"task": OriginalTask("task", ["definitions_small"])},
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


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "zero-shot --ranks=true",
            "LetterCounter (mode counted) gives no log-probabilities over a vocabulary",
        ),
        ("curve", "is not trained here, and the probes are mc_mlm"),
        (
            "zero-shot --model.kind=elmo",
            "--model.kind elmo: give one of transformer, causal, mlm_baseline, esim",
        ),
        ("zero-shot --model.kind=atuo", "auto"),
    ],
)
def test_what_a_model_type_cannot_do_is_refused_by_name(
    command: str, message: str, letters: list[str], refused: Refused, tmp_path: Path
) -> None:
    name, *more = command.split()
    out = f"--output_dir={tmp_path}"
    assert message in refused([name, *letters, "--probes=age_small", *more, out])


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
        (ModelSettings("a/best", name="mine", random_weights=True), "mine (random weights)"),
        (ModelSettings(kind="esim"), "ESIM (word_vectors)"),
        (ModelSettings(kind="esim", name="mine"), "mine"),
        (
            ModelSettings(kind="mlm_baseline", vectors="d/glove.6B.50d.txt.gz"),
            "MLM-baseline (glove.6B.50d)",
        ),
        (
            ModelSettings(kind="esim", vectors="x/glove.6B.zip:glove.6B.50d.txt"),
            "ESIM (glove.6B.50d)",
        ),
    ],
)
def test_what_tables_call_a_model(model: ModelSettings, label: str) -> None:
    assert model.label == label


def test_a_name_that_looks_like_a_model_to_load_is_refused() -> None:
    with pytest.raises(UsageError, match=r"give the folder or Hub name .* as model\.name_or_path"):
        ModelSettings(name="group/bert")


def test_the_config_that_names_a_run_has_a_name_and_a_pll_only_if_they_are_chosen() -> None:
    assert not {"name", "pll"} & ModelSettings(pll="original").config().keys()
    chosen = ModelSettings("a", name="mine", pll="within_word_l2r")
    assert (chosen.config()["name"], chosen.config()["pll"]) == ("mine", "within_word_l2r")
    assert ModelSettings(**chosen.config()) == chosen
    with pytest.raises(UsageError, match=r"model\.pll within_word_l2r .* kind seq2seq masks"):
        ModelSettings(kind="seq2seq", pll="within_word_l2r")


def test_the_files_that_are_given() -> None:
    assert SplitFiles(test="t.jsonl", train="a.jsonl").paths == {
        "train": "a.jsonl",
        "test": "t.jsonl",
    }
