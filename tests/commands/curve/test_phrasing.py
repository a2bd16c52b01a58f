from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight import cli
from probelight.commands.curve import phrasing as curve_phrasing
from probelight.commands.curve.phrasing import best_phrasing
from probelight.evaluation.evaluate import Evaluation
from probelight.io.errors import UsageError
from probelight.models.registry import ModelSettings
from probelight.probes.source import ProbeData
from probelight.results.measured import Predictions
from probelight.results.run_folder import CommandFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from tests.commands.curve.conftest import curve_command
from tests.fixtures.rows import read_results

FIRST, SECOND = (
    ModelSettings(name_or_path="first", kind="transformer"),
    ModelSettings(name_or_path="second", kind="transformer"),
)
# hits of each model on the 40 train rows of `pairs` and of its other wording
HITS = {("first", "pairs"): 30, ("first", "asked_otherwise"): 24}
HITS |= {("second", "pairs"): 10, ("second", "asked_otherwise"): 20}


@pytest.fixture
def wordings(curve_probes: Path, tmp_path: Path) -> list[str]:
    """Two configs of the same train rows."""
    paths = [tmp_path / "pairs.yaml", tmp_path / "asked_otherwise.yaml"]
    for path in paths:
        path.write_text((curve_probes / "pairs.yaml").read_text())
    return [str(path) for path in paths]


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Answers with as many hits as `HITS` says, and records what was scored."""
    calls = []

    def evaluate(scorer: Any, probe: ProbeData, trainer: TrainerSettings) -> Evaluation:
        name = probe.config.name
        calls.append((scorer.name, name))
        right = HITS[scorer.name, name]
        scores = [
            [float((choice == record.answer) == (index < right)) for choice in (0, 1)]
            for index, record in enumerate(probe.records)
        ]
        return Evaluation.of(probe, Predictions(name, probe.records, scores), scorer.mode)

    def scorer_of(context: RunContext, model: ModelSettings, setup: str) -> Any:
        name = model.name_or_path
        question = SimpleNamespace(encoder=None)  # without a tokenizer
        return SimpleNamespace(
            name=name,
            mode="zero_shot",
            dtype="float32",
            fingerprint=lambda: name,
            choice_scores=lambda: question,
        )

    monkeypatch.setattr(curve_phrasing, "evaluate", evaluate)
    monkeypatch.setattr(curve_phrasing, "loaded_scorer", scorer_of)
    return calls


def test_the_best_mean_over_the_models_is_kept_and_all_are_reported(
    wordings: list[str], canned: list[tuple[str, str]], context: RunContext, tmp_path: Path
) -> None:
    folder = CommandFolder(tmp_path / "out", {})
    models = [FIRST, SECOND, ModelSettings(kind="mlm_baseline")]
    arguments = (wordings, models, "train", context)
    # means over both models: 20 of 40 hits, and 22 of 40
    assert best_phrasing(folder, *arguments) == wordings[1]
    rows = read_results(folder.path / "results.csv")
    accuracies = [r for r in rows if r["metric"] == "accuracy"]
    shares = {(r["model"], r["probe"]): float(r["value"]) for r in accuracies}
    assert shares == {key: hits / 40 for key, hits in HITS.items()}
    assert {(r["split"], r["num_train"], r["mode"]) for r in rows} == {("train", "0", "zero_shot")}
    assert len(canned) == 4
    assert best_phrasing(folder, *arguments) == wordings[1]
    assert len(canned) == 4  # nothing is scored twice


def test_what_has_no_say_or_no_mask_is_refused(
    wordings: list[str], curve_probes: Path, context: RunContext, tmp_path: Path
) -> None:
    folder, esim = CommandFolder(tmp_path / "out", {}), [ModelSettings(kind="esim")]
    with pytest.raises(UsageError, match="none of the models is a pre-trained language model"):
        best_phrasing(folder, wordings, esim, "train", context)
    paths = [str(curve_probes / "asked.yaml")]
    with pytest.raises(UsageError, match="asked is not an mc_mlm probe"):
        best_phrasing(folder, paths, [FIRST], "train", context)


def test_the_kept_phrasing_gets_the_curve(
    wordings: list[str], curve_probes: Path, curve_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    options = [f"--phrasings={','.join(wordings)}", f"--models={curve_model}", "--grid.sizes=[8]"]
    options += ["--grid.seeds=[1]", "--grid.modes=[linear]", "--grid.controls=[standard]"]
    assert cli.main(curve_command(curve_probes, folder, *options)) == 0
    rows = [r for r in read_results(folder / "results.csv") if r["metric"] == "accuracy"]
    # both wordings are the same here, so the first one is kept
    assert sorted({(r["probe"], r["split"]) for r in rows}) == [
        ("asked_otherwise", "train"),
        ("pairs", "dev"),
        ("pairs", "train"),
    ]
