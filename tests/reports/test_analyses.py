from __future__ import annotations

from pathlib import Path
from typing import Any

from probelight.reports.analyses import fits_table, taxonomy_distance_table, unigrams_table
from probelight.reports.sections import printed
from probelight.results.load import Run, RunSet, load_results
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.report import present, records, texts
from tests.fixtures.results import accuracy, write_run


def taxonomy_rows(seed: int | None, chosen: int) -> list[dict[str, Any]]:
    common: dict[str, Any] = {
        "protocol": "taxonomy_distance", "model": "m", "probe": "taxonomy_conjunction",
        "split": "dev", "mode": "mlp", "num_train": 62 if seed else 0, "seed": seed,
    }  # fmt: skip
    return [
        {**accuracy(chosen, 40, **common), "metric": "nearer_chosen"},
        {**common, "metric": "nearer_chosen_by_guessing", "value": 0.4, "num_items": 40},
        accuracy(10, 40, **common, subset=subsets.nearer_distractor(True)),
        accuracy(15, 20, **common, subset=subsets.nearer_distractor(False)),
    ]


def test_each_seed_has_its_share_with_the_papers(tmp_path: Path) -> None:
    write_run(tmp_path, "zero", taxonomy_rows(None, 30))
    write_run(tmp_path, "trained", taxonomy_rows(1, 28) + taxonomy_rows(2, 20))
    table = present(taxonomy_distance_table(load_results(tmp_path)))
    first = ["taxonomy_conjunction", "m"]
    last = ["40.0", "80%", "40", "25.0", "75.0"]
    assert sorted(texts(table)) == [
        [*first, "mlp", "0", "–", "75.0", *last],
        [*first, "mlp", "62", "1", "70.0", *last],
        [*first, "mlp", "62", "2", "50.0", *last],
    ]
    second = next(record for record in records(table) if record["seed"] == 2)
    assert (second["accuracy_with_nearer"], second["accuracy_without"]) == (0.25, 0.75)
    assert (second["by_guessing"], second["num_items"], second["num_train"]) == (0.4, 40, 62)


def test_the_note_has_the_correlation_with_interval_and_p(tmp_path: Path) -> None:
    common = {"protocol": "unigrams", "model": "a against b"}
    rows: list[dict[str, Any]] = [
        {**common, "probe": "p", "subset": subsets.one_model("a"), "num_items": 1200,
         "metric": "mean_log_probability", "value": -8.0},
        {**common, "probe": "p", "metric": "accuracy_difference", "value": -0.25},
        {**common, "probe": "p", "metric": "log_probability_difference", "value": 0.5},
        {**common, "metric": "spearman", "value": -0.4, "ci_low": -0.9, "ci_high": 0.5,
         "num_items": 8},
        {**common, "metric": "spearman_p", "value": 0.33, "num_items": 8},
    ]  # fmt: skip
    details = {"models": ["a", "b"], "measure": "zero_shot"}
    write_run(tmp_path, "unigrams", rows, unigrams=details, probe="")
    results = load_results(tmp_path)
    assert [section.name for section in printed("unigrams", results)] == ["unigrams"]
    assert printed("taxonomy_distance", results) == ()
    table = present(unigrams_table(results))
    assert texts(table) == [["a against b", "p", "−25.0", "+0.500", "1,200"]]
    assert table.rows[0][0].detail == "zero-shot"
    assert "is −0.40 over 8 probes, 95% interval −0.90 to 0.50, permutation p = 0.330" in table.note
    assert "The paper reports 0.22" in table.note


def test_the_last_validation_is_next_to_the_best() -> None:
    common: dict[str, Any] = {"protocol": "fit", "model": "m", "probe": "ages"}
    common |= {"seed": 1, "num_train": 62}
    rows = (
        Row(**common, metric="val/loss", value=0.25, epoch=3, extra="last"),
        Row(**common, metric="val/accuracy", value=0.5, epoch=3, extra="last"),
        Row(**common, metric="val/accuracy", value=0.75, epoch=1, extra="best"),
        Row(**common, metric="train/loss", value=0.1, extra="other"),
    )
    run = Run(protocol="fit", model="m", probe="ages", rows=rows, key="fit-a", path="runs/fit-a")
    table = present(fits_table(RunSet("made", (run,))))
    assert texts(table) == [
        ["m", "ages", "val/loss", "0.25", "3", "–", "–"],
        ["m", "ages", "val/accuracy", "0.5", "3", "0.75", "1"],
    ]
    assert records(table)[1] == {
        "model": "m", "probe": "ages", "mode": "", "num_train": 62, "seed": 1,
        "learning_rate": None, "metric": "val/accuracy", "last": 0.5, "last_epoch": 3,
        "best": 0.75, "best_epoch": 1,
    }  # fmt: skip
    assert table.runs == (("fit-a",), ("fit-a",))
