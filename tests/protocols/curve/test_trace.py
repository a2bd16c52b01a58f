"""What is checked, and said, before the first point of a curve is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.protocols.curve.command import trace_curves
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.results.run_folder import CommandFolder

FIT = FitSettings(epochs=1, batch_size=4)
SETTINGS = CurveSettings(
    sizes=[4], seeds=[1], modes=["mlp"], controls=["standard"], epochs=1, full=FIT, esim=FIT
)


@pytest.fixture
def folder(tmp_path: Path) -> CommandFolder:
    return CommandFolder(tmp_path / "out", {})


@pytest.fixture
def context(curve_probes: Path) -> RunContext:
    quiet = TrainerSettings(accelerator="cpu", progress_bar=False)
    return RunContext(quiet, mirror=str(curve_probes / "mirror"))


def test_a_first_stage_without_questions_to_answer_is_refused_at_once(
    curve_model: Path, curve_probes: Path, folder: CommandFolder, context: RunContext
) -> None:
    options = ProbeOptions(first_stage=f"{curve_probes / 'asked.yaml'}:dev")
    models, probes = [ModelSettings(str(curve_model))], [str(curve_probes / "pairs.yaml")]
    with pytest.raises(UsageError, match="--first_stage: none of the probes is posed as questions"):
        trace_curves(folder, probes, models, SETTINGS, options, context)
    assert list(folder.runs_dir.iterdir()) == []


def test_what_is_not_computed_is_said_and_states_that_were_left_are_removed(
    curve_model: Path,
    curve_probes: Path,
    folder: CommandFolder,
    context: RunContext,
    capsys: pytest.CaptureFixture[str],
) -> None:
    models = [ModelSettings(str(curve_model), name="tiny"), ModelSettings(kind="esim")]
    probes = [str(curve_probes / f"{name}.yaml") for name in ("pairs", "asked")]
    trace_curves(folder, probes, models, SETTINGS, ProbeOptions(), context)
    said = capsys.readouterr().out
    assert "pairs: ESIM (word_vectors) does not answer mc_mlm probes; --setup mc_qa" in said
    assert "complete" not in said
    points = list(folder.runs_dir.glob("curve-asked-full-4-*"))
    assert len(points) == 2  # of each model one; of pairs N = 0 and 4
    assert len(list(folder.runs_dir.iterdir())) == 4
    # A start was killed behind a point's result.
    left = points[0] / "checkpoints" / "last.ckpt"
    left.parent.mkdir()
    left.touch()
    trace_curves(folder, probes, models, SETTINGS, ProbeOptions(), context)
    said = capsys.readouterr().out
    assert "pairs: curve of tiny complete\n" in said
    assert "asked: curve of ESIM (word_vectors) complete\n" in said
    assert not left.parent.exists()
