"""Each model type becomes its module, a saved folder what it was; the rest is refused by name."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import torch
import yaml

from probelight import cli
from probelight.evaluation.scorers import check_records, posable, source_of
from probelight.io.errors import RecordError, UsageError
from probelight.lightning_modules.inoculation import Inoculation
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.registry import (
    MODEL_TYPES,
    TRANSFORMER,
    ModelSettings,
    ModelType,
    module_of,
)
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record, Setup
from probelight.runs.context import RunContext
from probelight.training.fit import compile_transformers
from probelight.training.modules import check_module, check_questions, module_for
from tests.fixtures.architectures import ref_of
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.fixtures.snippets import add_module, register
from tests.fixtures.tiny import Refused

MLM, PAIRS = ModelSettings(kind="mlm_baseline"), ModelSettings(kind="esim", max_length=40)


@pytest.mark.parametrize(
    ("model", "setup", "message"),
    [
        (PAIRS, "mc_mlm", r"give model\.kind mlm_baseline"),
        (MLM, "mc_qa", r"give model\.kind esim"),
        (ModelSettings(kind="esim", random_weights=True), "mc_qa", "random_weights"),
    ],
)
def test_a_type_that_is_not_trained_for_a_setup_says_what_to_choose(
    model: ModelSettings, setup: Setup, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        module_for(model, setup)


@pytest.mark.parametrize("kind", ["mlm_baseline", "esim"])
def test_the_presets_are_the_kinds(kind: str) -> None:
    path = ROOT / "configs" / "model" / f"{kind}.yaml"
    settings = ModelSettings(**yaml.safe_load(path.read_text())["model"])
    assert settings == ModelSettings(kind=kind)


SPLIT = Record("7", "A cat is [MASK].", ("zzyzxian", "small"), 0)


def test_models_are_checked_without_their_weights() -> None:
    skipping = ModelSettings(multi_token="skip", name="mine", kind="transformer")
    records = [SPLIT, replace(SPLIT, choices=("large", "small"))]
    assert list(posable(RunContext(), skipping, "mc_mlm")(records)) == [1]
    with pytest.raises(RecordError, match=r"^bookshelf-lm: 7@0: the candidate 'zzyzxian' is"):
        check_records(RunContext(), ModelSettings(kind="transformer"), "mc_mlm", [records])
    check_records(RunContext(), ModelSettings(kind="transformer"), "mc_qa", [records])
    check_module(ModelSettings(kind="transformer"), "mc_qa")
    check_module(PAIRS, "mc_qa")
    nowhere = ModelSettings("./nowhere", kind="transformer")
    with pytest.raises(PretrainedError, match="no folder"):
        check_records(RunContext(), nowhere, "mc_qa", [records])
    with pytest.raises(PretrainedError, match="no folder"):
        check_module(nowhere, "mc_qa")


def test_a_folder_has_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("roberta-large", "FacebookAI/roberta-large"):
        assert source_of(ModelSettings(name, kind="transformer")).hub_id == name
    (tmp_path / "local").mkdir()
    control = ModelSettings("roberta-large", random_weights=True, kind="transformer")
    for model in (
        control,
        PAIRS,
        ModelSettings(kind="transformer"),
        ModelSettings("local", kind="transformer"),
    ):
        assert source_of(model).hub_id is None


def test_a_control_names_the_model_that_it_is_of_and_a_baseline_its_vectors() -> None:
    control = source_of(
        ModelSettings("bert-base-uncased", "abc", random_weights=True, kind="transformer")
    )
    assert (control.loaded_from, control.revision) == ("bert-base-uncased@abc", "abc")
    assert (control.control_of, control.hub_id) == ("bert-base-uncased", None)
    baseline = source_of(ModelSettings(kind="esim", vectors="/x/glove.6B.50d.txt"))
    assert (baseline.loaded_from, baseline.vectors) == ("/x/glove.6B.50d.txt", "glove.6B.50d")


QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
ADVICE = {
    "choice_only": "`train.py curve --models choice_only --setup mc_qa --probes ...`",
    "mlm_baseline": "`train.py curve --models mlm_baseline --probes ...`",
    "esim": "`train.py curve --models esim --setup mc_qa --probes ...`",
}


PRESET = f"--config={ROOT}/configs/model/{{kind}}.yaml"


@pytest.mark.parametrize("kind", ADVICE)
@pytest.mark.parametrize(
    "command",
    [
        f"zero-shot --probes=age_small,definitions_small {PRESET}",
        f"zero-shot --probes=definitions_small --ranks=true {PRESET}",
        f"grid --grid.panels=[A] {PRESET}",
        "grid --models=dictionary-lm,{kind}",
        "demo --plan.model.kind={kind}",
    ],
)
def test_a_baseline_is_refused_where_nothing_is_trained(
    kind: str, command: str, refused: Refused, tmp_path: Path
) -> None:
    line = refused(f"{command.format(kind=kind)} --output_dir={tmp_path / 'out'}")
    assert f"model.kind {kind}" in line
    assert ADVICE[kind] in line
    assert not (tmp_path / "out").exists()


NOT_FINE_TUNED = {
    "mlm_baseline": "model.kind mlm_baseline fills masks .* give model.kind esim",
    "vec_similarity": "model.kind vec_similarity cannot be trained, .* give model.kind esim",
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


def test_a_checkpoint_is_called_what_it_is(tmp_path: Path) -> None:
    pairs = ModelSettings(kind="esim")
    folder = str(tmp_path / "esim")
    module_for(pairs, "mc_qa").save_pretrained(folder)
    check_questions(pairs, ref_of(folder))
    with pytest.raises(UsageError, match=r"kind esim.*called bookshelf-lm.*kind esim"):
        check_questions(ModelSettings(kind="transformer"), ref_of(folder))
    (tmp_path / "transformer").mkdir()
    check_questions(ModelSettings(kind="transformer"), ref_of(tmp_path / "transformer"))
    with pytest.raises(UsageError, match=r"kind transformer.*called ESIM"):
        check_questions(pairs, ref_of(tmp_path / "transformer"))


@pytest.fixture
def unigrams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A new kind of model: its file and its line in the registry, as CONTRIBUTING.md has them."""
    add_module("probelight/models/unigrams.py", monkeypatch)
    register(monkeypatch, MODEL_TYPES, "MODEL_TYPES", "unigrams", ModelType=ModelType)
    (tmp_path / "counted.txt").write_text("red red blue . ?", encoding="utf-8")
    return ["--model.kind=unigrams", f"--model.name_or_path={tmp_path / 'counted.txt'}", *QUIET]


@pytest.mark.parametrize(
    ("setup", "stem", "choices"),
    [
        ("mc_mlm", "Blood is [MASK] .", ("red", "blue")),
        ("mc_qa", "Which colour has blood?", ("red red", "red blue")),
        ("minimal_pair", "", ("red is red .", "red is blue .")),
    ],
)
def test_a_new_kind_is_a_file_and_a_line_for_every_setup(
    setup: Setup, stem: str, choices: tuple[str, ...], unigrams: list[str], tmp_path: Path
) -> None:
    path, out = tmp_path / "asked.jsonl", tmp_path / "out"
    if setup == "minimal_pair":
        pairs = [{"sentence_good": choices[n], "sentence_bad": choices[1 - n]} for n in (0, 1, 0)]
        path.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs), encoding="utf-8")
    else:
        write_ai2(path, [Record(f"{n}", stem, choices, n % 2) for n in range(3)])
    command = ["zero-shot", *unigrams, f"--data.path={path}", f"--data.setup={setup}"]
    assert cli.main([*command, f"--output_dir={out}"]) == 0
    rows = [row for row in read_results(out / "results.csv") if row["metric"] == "accuracy"]
    overall = [row for row in rows if not row["scoring"]]
    assert [(row["mode"], float(row["value"])) for row in overall] == [("unigrams", 2 / 3)]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("zero-shot --ranks=true", "Unigrams (mode unigrams) cannot compute log-probabilities"),
        ("curve", "cannot be trained, but the probes are mc_mlm"),
        ("zero-shot --model.kind=elmo", "--model.kind elmo: give one of transformer, causal, mlm_"),
        ("zero-shot --model.kind=atuo", "auto"),
    ],
)
def test_what_a_model_type_cannot_do_is_refused_by_name(
    command: str, message: str, unigrams: list[str], refused: Refused, tmp_path: Path
) -> None:
    name, *more = command.split()
    options = [*unigrams, "--probes=age_small", *more, f"--output_dir={tmp_path / 'out'}"]
    assert message in refused([name, *options])


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
    assert all(
        isinstance(resolve_name(f"probelight.lightning_modules.{trained.made_by}"), type)
        for trained in setups.values()
    )
    if name != TRANSFORMER:
        assert all(
            hasattr(resolve_name(f"probelight.lightning_modules.{trained.made_by}"), "from_folder")
            for trained in setups.values()
        )


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({}, "bookshelf-lm"),
        ({"name_or_path": "group/bert/"}, "bert"),
        ({"name_or_path": "a/b", "random_weights": True}, "b (random weights)"),
        ({"name": " mine ", "random_weights": True}, "mine (random weights)"),
        ({"kind": "esim"}, "ESIM (word_vectors)"),
        ({"kind": "esim", "name": "mine"}, "mine"),
        (
            {"kind": "mlm_baseline", "vectors": "d/glove.6B.50d.txt.gz"},
            "MLM-baseline (glove.6B.50d)",
        ),
        ({"kind": "esim", "vectors": "x/glove.6B.zip:glove.6B.50d.txt"}, "ESIM (glove.6B.50d)"),
    ],
)
def test_what_tables_call_a_model(settings: dict[str, Any], label: str) -> None:
    assert ModelSettings(**{"kind": "transformer", **settings}).label == label


def test_the_config_of_a_run_has_all_settings_of_its_model() -> None:
    assert ModelSettings(kind="transformer").config().keys() == {
        field.name for field in fields(ModelSettings)
    }
    chosen = ModelSettings("a", name="mine", pll="within_word_l2r", kind="transformer")
    assert ModelSettings(**chosen.config()) == chosen
    with pytest.raises(UsageError, match=r"model\.pll within_word_l2r .* kind seq2seq masks"):
        ModelSettings(kind="seq2seq", pll="within_word_l2r")


PRESETS = sorted((ROOT / "configs" / "trainer").glob("*.yaml"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_trainer_preset_goes_behind_an_experiment(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = ROOT / "configs" / "experiment" / "inoculate_hypernymy.yaml"
    with pytest.raises(SystemExit, match="0"):
        cli.main(["inoculate", f"--config={experiment}", f"--config={path}", "--print_config"])
    printed = yaml.safe_load(capsys.readouterr().out)
    preset = yaml.safe_load(path.read_text())["trainer"]
    assert {name: printed["trainer"][name] for name in preset} == preset
    assert printed["probe"]["name"] == "hypernymy"


def test_a_model_is_written_from_gathered_weights(tiny_model: Path, tmp_path: Path) -> None:
    source = SentenceChoice(str(tiny_model), max_length=32, seed=1)
    gathered = {f"task.{n}": v.clone() for n, v in source.state_dict().items()}
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.zero_()  # as empty as a shard that another process holds
    Inoculation(source).save_pretrained(tmp_path / "model", state_dict=gathered)
    again = SentenceChoice.from_folder(tmp_path / "model").state_dict()
    assert again.keys() == {name.removeprefix("task.") for name in gathered}
    assert all(torch.equal(again[name.removeprefix("task.")], v) for name, v in gathered.items())


@pytest.mark.slow
def test_a_compiled_transformer_gives_the_same_and_keeps_its_names(tiny_model: Path) -> None:
    module: Any = SentenceChoice(str(tiny_model), max_length=32)
    names = list(module.state_dict())
    batch = {
        "input_ids": torch.arange(5, 17).view(2, 6),
        "attention_mask": torch.ones(2, 6, dtype=torch.long),
        "token_type_ids": torch.zeros(2, 6, dtype=torch.long),
        "pair_index": torch.tensor([[0, 1]]),
        "choice_mask": torch.ones(1, 2, dtype=torch.bool),
    }
    with torch.no_grad():
        plain = module(batch)
        compile_transformers(module)
        assert torch.allclose(module(batch), plain, atol=1e-6)
    assert list(module.state_dict()) == names
