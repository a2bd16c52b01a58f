from __future__ import annotations

from results.load import Run
from results.model_names import told_apart, with_distinct_models
from results.row import Row


def run(key: str, model: str, source: str | None) -> Run:
    facts = {} if source is None else {"model_source": source}
    rows = tuple(Row(value=0.5, metric="accuracy", model=name) for name in (model, "published"))
    return Run(key, key, "zero_shot", model, "p", rows, facts=facts)


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
