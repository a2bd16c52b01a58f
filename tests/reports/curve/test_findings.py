from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from reports.curve.findings import knew, learned
from reports.page.findings import findings
from results.load import load_results

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def line(untrained: float, standard: float, control: float) -> Callable[[str, int, int], float]:
    def shares(name: str, num_train: int, seed: int) -> float:
        return untrained if num_train == 0 else standard if name == "standard" else control

    return shares


def test_what_a_model_knew_untrained(tmp_path: Path, write_curve_runs: Write) -> None:
    sizes = {"sizes": (0, 62)}
    write_curve_runs(tmp_path, line(0.8, 0.9, 0.5), probe="known", **sizes)
    write_curve_runs(tmp_path, line(0.8, 0.9, 0.5), probe="known", mode="linear", **sizes)
    write_curve_runs(tmp_path, line(0.5, 0.9, 0.5), probe="new", **sizes)
    write_curve_runs(tmp_path, line(0.2, 0.9, 0.5), probe="wrong", **sizes)
    random = {"model": "embedded (random weights)"}
    write_curve_runs(tmp_path, line(0.9, 0.6, 0.5), probe="new", **sizes, **random)
    results = load_results(tmp_path)
    (said,) = knew(results, [])
    assert said.startswith(
        "Before any training, embedded was above chance on 1 of 3 probes: known 80.0% ("
    )
    assert ". Not distinguishable from chance: new 50.0% (" in said
    assert ". Below chance: wrong 20.0% (" in said
    assert knew(results, ["embedded"]) == []
    assert findings(results)[0] == said


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
    (said,) = knew(load_results(tmp_path), [])
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
