from __future__ import annotations

from pathlib import Path

from probelight.reports.curve.figures import bands, control_figures, heading, models_figure
from probelight.reports.curve.scores import standard_curves
from probelight.results.load import Results, load_results
from tests.fixtures.report import present, texts_of
from tests.fixtures.results import curve_rows, write_curve, write_run


def shares(control: str, num_train: int, seed: int) -> float:
    return 0.5 + (0.02 if control == "standard" else 0.01) * len(str(num_train)) * seed


def test_a_models_panel_holds_its_controls_and_what_it_is_held_against(tmp_path: Path) -> None:
    sizes = {"sizes": (0, 62, 125)}
    write_curve(tmp_path, shares, model="roberta-large", **sizes)
    write_curve(tmp_path, shares, model="roberta-large", mode="linear", **sizes)
    write_curve(tmp_path, shares, model="roberta-large (random weights)", **sizes)
    write_curve(tmp_path, shares, model="MLM-baseline (word_vectors)", **sizes)
    (figure,) = control_figures(load_results(tmp_path))
    assert figure.name == "learning_curve"
    said = texts_of(figure)
    lines = ["standard", "no language", "perturbed language", "standard, linear", "random weights"]
    assert {*lines, "MLM-baseline", "chance 50.0", "0", "62", "125"} <= set(said)
    # One panel: the model's. Nothing else has one of its own.
    assert said.count("standard") == 1
    assert "age comparison · MLP · dev · rate 0.001" in said
    assert "what it owes to pre-training, the gap to random weights" in figure.caption
    assert "fill-opacity: 0.13" in figure.svg or "opacity: 0.13" in figure.svg


def test_many_panels_are_a_figure_a_probe(tmp_path: Path) -> None:
    for number in range(7):
        name = f"p{number}"
        write_run(tmp_path, name, curve_rows(name, "standard", {62: [5], 125: [6]}, 10))
    found = control_figures(load_results(tmp_path))
    assert [figure.name for figure in found] == [f"learning_curve_p{n}" for n in range(7)]
    assert found[3].title.endswith("examples: p3")
    assert "the items alone" in found[3].caption  # there are no hits


def test_no_curve_no_figure() -> None:
    assert control_figures(Results("empty", ())) == []


def test_a_control_that_has_no_look_of_its_own_is_drawn_under_its_name(tmp_path: Path) -> None:
    controls = ("standard", "no_language", "word_salad")
    write_curve(tmp_path, shares, controls=controls, sizes=(0, 62))
    [figure] = control_figures(load_results(tmp_path))
    assert {"standard", "no language", "word salad"} <= set(texts_of(figure))


def test_models_stand_side_by_side(tmp_path: Path) -> None:
    for model in ("roberta-large", "dictionary-lm"):
        write_curve(tmp_path, shares, model=model, sizes=(62, 125))
    results = load_results(tmp_path)
    models = present(models_figure(results))
    [controls] = control_figures(results)
    assert (models.name, controls.name) == ("learning_curve_models", "learning_curve")
    said = texts_of(models)
    assert {"RoBERTa-L", "dictionary-lm", "age comparison", "MLP · dev"} <= set(said)
    assert "no language" not in said
    assert {"RoBERTa-L", "dictionary-lm"} <= set(texts_of(controls))


def test_a_heading_leaves_out_what_all_panels_share(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, model="roberta-large", sizes=(0, 62))
    [curve] = standard_curves(load_results(tmp_path))
    where = "MLP · dev · rate 0.001"
    assert heading(curve, "model") == ("RoBERTa-L", f"age comparison · {where}")
    assert heading(curve, "probe") == ("age comparison", f"RoBERTa-L · {where}")
    assert heading(curve, "") == ("age comparison", "MLP · dev")
    assert bands([curve]).endswith("95% intervals from groups of items and seeds.")
