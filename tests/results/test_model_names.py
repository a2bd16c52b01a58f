from __future__ import annotations

from dataclasses import replace

from probelight.results.load import Run
from probelight.results.model_names import told_apart, with_distinct_models
from probelight.results.record import ModelSource
from probelight.results.row import Row


def run(key: str, model: str, source: str | None) -> Run:
    known = ModelSource(loaded_from=source or "")
    rows = tuple(Row(value=0.5, metric="accuracy", model=name) for name in (model, "published"))
    return Run(path=key, key=key, protocol="zero_shot", model=model, rows=rows, source=known)


def test_the_shortest_end_of_a_path_that_differs() -> None:
    found = told_apart(["runs/a/checkpoints/best", "runs/b/checkpoints/best", "/x/a/other"])
    assert list(found.values()) == ["a/checkpoints/best", "b/checkpoints/best", "x/a/other"]
    assert told_apart(["org/bert", "bert"]) == {"org/bert": "org/bert", "bert": "bert"}
    assert told_apart(["bert@one", "bert@two"]) == {"bert@one": "bert@one", "bert@two": "bert@two"}
    assert told_apart(["a/b", "a/b/"]) == {"a/b": "a/b", "a/b/": "a/b/"}


def test_models_of_one_name_from_two_places_are_two_and_others_stay() -> None:
    runs = [
        run("1", "best", "one/best"),
        run("2", "best", "two/best"),
        run("3", "best", "one/best"),
        run("4", "embedded", "embedded"),
        run("5", "embedded", "embedded"),
        run("6", "best", None),  # made before the place was noted
    ]
    found = with_distinct_models(runs)
    names = ["best (one/best)", "best (two/best)", "best (one/best)", *["embedded"] * 2, "best"]
    assert [one.model for one in found] == names
    assert [[row.model for row in one.rows] for one in found] == [[n, "published"] for n in names]


def test_a_control_is_still_that_of_its_renamed_model() -> None:
    label = "best (random weights)"
    runs = [run(place, "best", f"{place}/best") for place in ("one", "two")]
    own = replace(
        run("3", label, "one/best"), source=ModelSource(loaded_from="one/best", control_of="best")
    )
    *_, control = with_distinct_models([*runs, own])
    assert (control.model, control.source.control_of) == (label, "best (one/best)")
