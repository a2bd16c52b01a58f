"""A baseline is never replaced by a transformer, nor measured before it is trained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean
from typing import Any

import pytest

from probelight.io.errors import UsageError
from probelight.probes.source import load_probe
from probelight.protocols import cli
from probelight.protocols.engine.models import check_questions, module_for, module_of
from probelight.protocols.engine.settings import MODEL_TYPES, TRANSFORMER, ModelSettings, ModelType
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.protocols.conftest import Refused

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
        item_scores = []
        for record in load_probe(probe, "dev").records:
            lengths = [len(choice) for choice in record.choices]
            is_longest = lengths[record.answer] == max(lengths)
            item_scores.append(is_longest / lengths.count(max(lengths)))
        where = {"probe": probe, "metric": "accuracy", "subset": ""}
        [row] = [row for row in rows if where.items() <= row.items()]
        assert float(row["value"]) == pytest.approx(fmean(item_scores))
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/result.json")]
    assert len(results) == 2
    assert all("letters were counted" in result["notices"] for result in results)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("zero-shot --ranks=true", "LetterCounter (mode counted) gives no log-probabilities"),
        ("curve", "is not trained here, and the probes are mc_mlm"),
        ("zero-shot --model.kind=elmo", "--model.kind elmo: give one of transformer, causal, mlm_"),
        ("zero-shot --model.kind=atuo", "auto"),
    ],
)
def test_what_a_model_type_cannot_do_is_refused_by_name(
    command: str, message: str, letters: list[str], refused: Refused, tmp_path: Path
) -> None:
    name, *more = command.split()
    given = [*letters, "--probes=age_small", *more, f"--output_dir={tmp_path}"]
    assert message in refused([name, *given])


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
    ("settings", "label"),
    [
        ({}, "dictionary-lm"),
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
    assert ModelSettings(**settings).label == label


def test_the_config_that_names_a_run_has_a_name_and_a_pll_only_if_they_are_chosen() -> None:
    assert not {"name", "pll"} & ModelSettings(pll="original").config().keys()
    chosen = ModelSettings("a", name="mine", pll="within_word_l2r")
    assert (chosen.config()["name"], chosen.config()["pll"]) == ("mine", "within_word_l2r")
    assert ModelSettings(**chosen.config()) == chosen
    with pytest.raises(UsageError, match=r"model\.pll within_word_l2r .* kind seq2seq masks"):
        ModelSettings(kind="seq2seq", pll="within_word_l2r")
