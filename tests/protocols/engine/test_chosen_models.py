from __future__ import annotations

import json
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.models.checkpoint_files import PretrainedError
from probelight.models.loading import read_config
from probelight.protocols.engine.chosen_models import chosen_models, model_of
from probelight.protocols.engine.settings import ModelSettings
from tests.fixtures.hub_cache import HubCache

BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(BERT))
    return path


def test_names_configs_and_folders_stand_for_models(
    tmp_path: Path, hub_cache: HubCache, capsys: pytest.CaptureFixture[str]
) -> None:
    hub_cache("other/one", {"main": BERT})
    path = tmp_path / "mine.yaml"
    path.write_text("model: {name_or_path: some/model, head: pooler, max_length: 64}\n")
    names = ["dictionary-lm", "bert-base-uncased", str(path), "other/one"]
    expected = [ModelSettings(name) for name in names]
    expected[2] = ModelSettings("some/model", head="pooler", max_length=64)
    assert chosen_models(names, ModelSettings(), False) == expected
    line = "other/one: masked language model (architectures BertForMaskedLM)\n"
    assert capsys.readouterr().out == line  # of what a config says, nothing is found out
    assert chosen_models((), ModelSettings("one"), False) == [ModelSettings("one")]


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
    with pytest.raises(UsageError, match=r"wrong.yaml: `model` model.name some.model is what"):
        model_of(str(path))


def test_folders_of_one_name_are_told_apart_by_path_and_baselines_have_no_random_weights(
    tmp_path: Path,
) -> None:
    one, other = folder(tmp_path / "a" / "best"), folder(tmp_path / "b" / "best")
    models = chosen_models([str(one), str(other), "dictionary-lm", "esim"], ModelSettings(), True)
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

    there = folder(tmp_path / "runs@home" / "model@2")
    assert [m.label for m in chosen_models([str(there)], ModelSettings(), False)] == ["model@2"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("org/name@step2000", "configuration of 'org/name@step2000' .a name on the Hub"),
        ("org/name@", "org/name@: give NAME@REVISION"),
        ("@step1", "@step1: give NAME@REVISION"),
        ("dictionary-lm@step1", "dictionary-lm is not on the Hub, so it has no revisions"),
        ("esim@step1", "esim is not on the Hub, so it has no revisions"),
        ("tests@nowhere/model", "tests is not on the Hub.*a folder with @ in its name must be"),
        ("a@b.yaml", "a@b.yaml: there is no such file"),
    ],
)
def test_a_revision_that_is_not_there_is_named(name: str, said: str, hub_cache: HubCache) -> None:
    hub_cache("org/name", {"step1000": BERT})
    with pytest.raises((UsageError, PretrainedError), match=said):
        chosen_models([name], ModelSettings(), False)


def test_a_revision_of_what_is_not_on_the_hub_is_refused(tmp_path: Path) -> None:
    there = folder(tmp_path / "model")
    for options in ({}, {"name_or_path": str(there)}, {"kind": "esim"}, {"kind": "auto"}):
        with pytest.raises(UsageError, match=r"model\.revision abc: .* not on the Hub.*leave it"):
            chosen_models((), ModelSettings(revision="abc", **options), False)
    with pytest.raises(PretrainedError, match="it is not on the Hub, so it has no revision 'abc'"):
        read_config(str(there), "abc")  # whoever loads it, `fit` too
