from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.zero_shot.facts import against, chance_levels, verdict_of, zero_shots
from probelight.results.load import Row, load_results

WriteRun = Callable[..., Path]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.51, 0.6, "above"),
        (0.5, 0.6, "not distinguishable"),
        (0.4, 0.5, "not distinguishable"),
        (0.3, 0.49, "below"),
        (None, 0.49, "unknown"),
    ],
)
def test_verdict_is_where_the_interval_lies(low: float | None, high: float, verdict: str) -> None:
    row = Row(value=0.5, metric="accuracy", ci_low=low, ci_high=high)
    assert against(row, 0.5) == verdict
    assert against(row, None) == "unknown"


def test_demo_is_gathered(demo_folder: Path) -> None:
    found = {entry.probe: entry for entry in zero_shots(load_results(demo_folder))}
    taxonomy = found["taxonomy_conjunction"]
    assert taxonomy.accuracy.value == 367 / 599
    assert taxonomy.chance == pytest.approx(1 / 3)
    assert taxonomy.macro == pytest.approx(367 / 599 - 0.004)
    assert [share.subset_text for share in taxonomy.shares] == ["choice 1", "choice 2", "choice 3"]
    assert [row.subset_text for row in taxonomy.parts] == ["template=both are a"]
    assert found["always_never"].majority == 101 / 280
    verdicts = {probe: entry.verdict for probe, entry in found.items()}
    assert verdicts == {
        "age_comparison": "not distinguishable",
        "always_never": "not above the majority",
        "antonym_negation": "not distinguishable",
        "multihop_composition": "not distinguishable",
        "objects_comparison": "below",
        "taxonomy_conjunction": "above",
    }


@pytest.mark.parametrize(
    ("interval", "majority", "verdict"),
    [
        ((0.51, 0.6), 0.5, "above"),
        ((0.51, 0.6), 0.51, "not above the majority"),
        ((0.51, 0.6), 0.7, "not above the majority"),
        ((0.45, 0.6), 0.7, "not distinguishable"),
        ((0.4, 0.49), 0.7, "below"),
        ((None, None), 0.4, "unknown"),
    ],
)
def test_above_chance_is_above_the_majority_too(
    interval: tuple[float | None, float | None], majority: float, verdict: str
) -> None:
    assert verdict_of(interval, 0.5, majority) == verdict


def test_two_models_of_one_name_are_told_apart_by_weights(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for sha in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
        write_run(tmp_path, sha, rows.zero_shot("p", 5, 10, 2), model_sha256=sha)
    labels = [entry.label for entry in zero_shots(load_results(tmp_path))]
    assert labels == ["embedded (aaaaaaaa)", "embedded (bbbbbbbb)"]


def test_two_settings_of_one_model_are_told_apart_by_run(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    paths = [write_run(tmp_path, name, rows.zero_shot("p", 5, 10, 2)) for name in ("x", "y")]
    labels = [entry.label for entry in zero_shots(load_results(tmp_path))]
    assert labels == [f"embedded ({path.name})" for path in paths]


def test_perturbed_variants_are_parts(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    whole = rows.zero_shot("p", 5, 10, 2)
    variant = {**whole[0], "perturbation": "birth years", "value": 0.1}
    write_run(tmp_path, "one", [variant, *whole])
    (entry,) = zero_shots(load_results(tmp_path))
    assert entry.accuracy.value == 0.5
    assert [row.perturbation for row in entry.parts] == ["birth years"]


def test_chance_comes_from_whatever_run_recorded_it(demo_folder: Path) -> None:
    levels = chance_levels(load_results(demo_folder))
    assert levels["hypernymy"] == 0.2  # only inoculated
    assert levels["age_comparison"] == 0.5
