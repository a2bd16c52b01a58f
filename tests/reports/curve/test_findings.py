from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.curve.findings import knew, learned
from probelight.results.load import load_results
from tests.fixtures.report import findings

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def line(untrained: float, standard: float, control: float) -> Callable[[str, int, int], float]:
    def shares(name: str, num_train: int, seed: int) -> float:
        return untrained if num_train == 0 else standard if name == "standard" else control

    return shares


def test_what_a_model_knew_untrained(
    tmp_path: Path, write_curve_runs: Write, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    sizes = {"sizes": (0, 62)}
    write_curve_runs(tmp_path, line(0.8, 0.9, 0.5), probe="known", **sizes)
    write_curve_runs(tmp_path, line(0.8, 0.9, 0.5), probe="known", mode="linear", **sizes)
    write_curve_runs(tmp_path, line(0.5, 0.9, 0.5), probe="new", **sizes)
    write_curve_runs(tmp_path, line(0.2, 0.9, 0.5), probe="wrong", **sizes)
    random = {"model": "embedded (random weights)"}
    write_curve_runs(tmp_path, line(0.9, 0.6, 0.5), probe="new", **sizes, **random)
    results = load_results(tmp_path)
    (said,) = knew(results)
    assert said.startswith(
        "Before any training, embedded was above chance on 1 of 3 probes: known 80.0% ("
    )
    assert ". Not distinguishable from chance: new 50.0% (" in said
    assert ". Below chance: wrong 20.0% (" in said
    assert findings(tmp_path)[0] == said
    # What the zero-shot runs tell of a model is not told again.
    write_run(tmp_path, "zero", rows.zero_shot("other", 30, 60, 2))
    assert knew(load_results(tmp_path)) == []


def test_what_it_learned_and_from_what(tmp_path: Path, write_curve_runs: Write) -> None:
    sizes = {"sizes": (0, 62)}
    write_curve_runs(tmp_path, line(0.5, 0.9, 0.5), controls=("standard", "no_language"), **sizes)
    write_curve_runs(tmp_path, line(0.5, 0.9, 0.5), mode="linear", **sizes)
    for model in ("embedded (random weights)", "MLM-baseline (word_vectors)"):
        write_curve_runs(tmp_path, line(0.5, 0.6, 0.5), model=model, **sizes)
    (said,) = learned(load_results(tmp_path))
    assert said.startswith("Trained on 62 examples of age_comparison (mlp), embedded scored 90.0%")
    assert "Its no language control scored 50.0%, a difference of 40.0 points (95% int" in said
    assert said.endswith(" The same architecture with random weights scored 60.0%.")


def test_trained_to_below_chance_or_to_the_majority_alone(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    write_curve_runs(tmp_path, line(0.5, 0.2, 0.5), probe="wrong", sizes=(62,))
    # A majority of 52% is within the interval of 65%; chance is below it.
    facts = {"sizes": (0, 62), "num_items": 240, "chance": 0.5}
    write_curve_runs(tmp_path, line(0.63, 0.9, 0.5), probe="frequent", **facts)
    for path in tmp_path.glob("runs/curve-frequent*/result.json"):
        text = path.read_text().replace('"value": 0.52', '"value": 0.62')
        path.write_text(text)
    wrong = next(text for text in learned(load_results(tmp_path)) if "of wrong" in text)
    assert ", chance 50.0%), which is below chance." in wrong
    write_curve_runs(tmp_path, line(0.8, 0.9, 0.5), probe="known", sizes=(0, 62))
    (said,) = knew(load_results(tmp_path))
    assert "above chance on 1 of 2 probes: known 80.0%" in said
    assert ". No better than always giving the most frequent answer: frequent 62.9% (" in said


def test_a_difference_that_may_be_none_says_so(tmp_path: Path, write_curve_runs: Write) -> None:
    def shares(control: str, num_train: int, seed: int) -> float:
        return 0.6 + 0.05 * (seed - 2) * (1 if control == "standard" else -1)

    write_curve_runs(tmp_path, shares, controls=("standard", "no_language"), sizes=(62,))
    (said,) = learned(load_results(tmp_path))
    assert said.endswith("), not distinguishable from none.")


def test_baselines_alone_are_told_too(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.curve("p", "standard", {62: [50, 60]}, 100, model="MLM-baseline (x)")
    write_run(tmp_path, "a", found)
    (said,) = learned(load_results(tmp_path))
    assert "MLM-baseline (x) scored 55.0%" in said


def test_curve_is_told_with_its_control(demo_folder: Path) -> None:
    said = findings(demo_folder)[1]
    # (420 + 431) / 1000 and (302 + 321) / 1000; seed by seed 118 and 110 of 500.
    assert said.startswith("Trained on 500 examples of age_comparison (mlp), embedded scored 85.1%")
    assert "mean of 2 seeds, chance 50.0%), from 48.6% untrained." in said
    assert said.endswith(
        "Its no language control scored 62.3%, a difference of 22.8 points (22.0 to 23.6 over 2 "
        "seeds)."
    )


def test_curve_that_stays_at_chance_or_at_its_control(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.curve("p", "standard", {62: [51, 52]}, 100))
    write_run(tmp_path, "b", rows.curve("p", "no_language", {62: [52, 50]}, 100))
    write_run(tmp_path, "c", rows.zero_shot("p", 60, 100, 2))
    said = findings(tmp_path)[1]
    assert "chance 50.0%), not distinguishable from chance." in said
    assert said.endswith("0.5 points (−1.0 to 2.0 over 2 seeds), so not in every seed above it.")
