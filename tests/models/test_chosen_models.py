"""Models by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probelight import cli
from probelight.commands.inoculation.settings import InoculatedProbe, OriginalTask
from probelight.commands.inoculation.sweep import SweepGrid, SweepRow, sweep_jobs
from probelight.io.errors import UsageError
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.chosen_models import (
    chosen_models,
    model_of,
)
from probelight.models.loading import read_config
from probelight.models.registry import AUTO, TRANSFORMER, ModelSettings
from probelight.runs.context import RunContext
from tests.fixtures.hub_cache import HubCache
from tests.fixtures.tiny import Refused

BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}


def folder(path: Path, config: dict[str, Any] = BERT) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_names_configs_and_folders_stand_for_models(
    tmp_path: Path, hub_cache: HubCache, capsys: pytest.CaptureFixture[str]
) -> None:
    hub_cache("other/one", {"main": BERT})
    path = tmp_path / "mine.yaml"
    path.write_text("model: {name_or_path: some/model, head: pooler, kind: transformer}\n")
    names = ["dictionary-lm", "bert-base-uncased", str(path), "other/one"]
    expected = [ModelSettings(name, kind=TRANSFORMER) for name in names]
    expected[2] = ModelSettings("some/model", head="pooler", kind=TRANSFORMER)
    assert chosen_models(names, ModelSettings(), False) == expected
    line = "other/one: masked language model (architectures BertForMaskedLM)\n"
    assert capsys.readouterr().out == line  # of what a config says, nothing is found out
    one = ModelSettings("one", kind=TRANSFORMER)
    assert chosen_models((), one, False) == [one]


def test_what_else_is_said_of_the_model_holds_for_all_that_are_named() -> None:
    shared = ModelSettings(multi_token="skip", max_length=64, vectors="v.txt")
    bundled, esim = chosen_models(["dictionary-lm", "esim"], shared, False)
    assert (bundled.multi_token, bundled.max_length, bundled.vectors) == ("skip", 64, "embedded")
    assert (esim.kind, esim.max_length, esim.vectors) == ("esim", 64, "v.txt")


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    for field, value in (("name_or_path", "x"), ("random_weights", True), ("kind", "causal")):
        with pytest.raises(UsageError, match=rf"either --models a,b or --model\.{field}, not both"):
            chosen_models(["dictionary-lm"], ModelSettings(**{field: value}), False)
    with pytest.raises(UsageError, match="two models are called 'dictionary-lm'"):
        chosen_models(["dictionary-lm", "dictionary-lm"], ModelSettings(), False)
    with pytest.raises(UsageError, match=r"none\.yaml: there is no such file"):
        model_of(str(tmp_path / "none.yaml"))
    path = tmp_path / "wrong.yaml"
    path.write_text("model: {name: some/model}\n")
    with pytest.raises(
        UsageError, match=r"wrong.yaml: `model` model.name some.model is only the name in tables"
    ):
        model_of(str(path))


def test_folders_of_one_name_are_told_apart_by_path_and_baselines_have_no_random_weights(
    tmp_path: Path,
) -> None:
    a, b = folder(tmp_path / "a" / "best"), folder(tmp_path / "b" / "best")
    models = chosen_models([str(a), str(b), "dictionary-lm", "esim"], ModelSettings(), True)
    names = ["a/best", "b/best", "dictionary-lm"]
    controls = [f"{name} (random weights)" for name in names]
    assert [m.label for m in models] == [*names, "ESIM (word_vectors)", *controls]
    assert models[2].name is None


def test_revisions_of_a_model_are_models_with_names_of_their_own(
    tmp_path: Path, hub_cache: HubCache
) -> None:
    revisions = {"step1000": BERT, "main": BERT, "refs/pr/1": BERT}
    hub_cache("org/name", revisions)
    hub_cache("copy/name", revisions)
    names = "org/name@step1000,org/name,org/name@main,org/name@refs/pr/1"
    models = chosen_models(names.split(","), ModelSettings(), True)[:4]
    assert [m.label for m in models] == ["name@step1000", "name", "name@main", "name@refs/pr/1"]
    assert [m.revision for m in models] == ["step1000", None, "main", "refs/pr/1"]
    assert {m.name_or_path for m in models} == {"org/name"}

    models = chosen_models(["org/name@step1000", "copy/name@step1000"], ModelSettings(), True)
    assert models[0].label == "org/name@step1000"
    assert models[3].label == "copy/name@step1000 (random weights)"

    preset = model_of("bert-base-uncased@abc")  # of a config as of a bare name
    assert (preset.name_or_path, preset.revision) == ("bert-base-uncased", "abc")

    path = folder(tmp_path / "runs@home" / "model@2")
    assert [m.label for m in chosen_models([str(path)], ModelSettings(), False)] == ["model@2"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("org/name@step2000", "no folder 'org/name@step2000', and the Hub cannot be reached"),
        ("org/name@", "org/name@: give NAME@REVISION"),
        ("@step1", "@step1: give NAME@REVISION"),
        ("dictionary-lm@step1", "dictionary-lm is not on the Hub, so it has no revisions"),
        ("esim@step1", "esim is not on the Hub, so it has no revisions"),
        ("tests@nowhere/model", "tests is not on the Hub.*a folder with @ in its name, it does"),
        ("a@b.yaml", "a@b.yaml: there is no such file"),
    ],
)
def test_a_revision_that_is_not_there_is_named(name: str, error: str, hub_cache: HubCache) -> None:
    hub_cache("org/name", {"step1000": BERT})
    with pytest.raises((UsageError, PretrainedError), match=error):
        chosen_models([name], ModelSettings(), False)


def test_a_revision_of_what_is_not_on_the_hub_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "model")
    for options in ({}, {"name_or_path": str(path)}, {"kind": "esim"}, {"kind": "auto"}):
        with pytest.raises(UsageError, match=r"model\.revision abc: .* not on the Hub.*leave it"):
            chosen_models((), ModelSettings(revision="abc", **options), False)
    with pytest.raises(PretrainedError, match="it is not on the Hub, so it has no revision 'abc'"):
        read_config(CheckpointRef(str(path), "abc"))  # whoever loads it, `fit` too


def test_models_of_a_sweep_are_found_out_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ModelSettings(str(folder(tmp_path / "model", GPT2)), kind=AUTO)
    task = OriginalTask("a", ["definitions_small"])
    probe = InoculatedProbe("hypernymy_small")
    rows = [SweepRow("one", "a", probe, seeds=[seed]) for seed in (0, 1)]
    grid = SweepGrid({"one": model}, {"a": task}, rows)
    with pytest.raises(PretrainedError, match=r"rows: number 1: models\.one: .* has no tokenizer"):
        sweep_jobs(grid, RunContext())
    assert capsys.readouterr().out.count("causal language model") == 1


TASK = "--original.name=a --original.sets=definitions_small"
COMMANDS = [
    "zero-shot --probes=age_small",
    "curve --probes=age_small",
    f"original {TASK}",
    f"inoculate {TASK} --probe.name=hypernymy_small",
    "grid",
    "diagnose",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_begins_with_a_model_of_another_type(
    command: str, refused: Refused, tmp_path: Path
) -> None:
    model = f"--model.name_or_path={folder(tmp_path / 'model', GPT2)}"
    out = f"--output_dir={tmp_path / 'out'}"
    line = refused([*command.split(), model, out, "--model.kind=transformer"], cli.FAILURE)
    assert "(model.kind transformer); give model.kind causal" in line
    if "original" in command:
        line = refused([*command.split(), model, out], cli.FAILURE)
        assert "has no tokenizer" in line  # that it is causal is no reason
    assert not (tmp_path / "out").exists()
