from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.reports.numbers import ABSENT
from probelight.reports.table import Cell
from probelight.results.load import RunSet
from tests.fixtures import subsets
from tests.fixtures.report import findings, named, records, tables
from tests.fixtures.results import accuracy, inoculation_rows, write_run


def test_inoculation_row_by_hand(demo_folder: Path) -> None:
    table = tables(demo_folder)["inoculation"]
    row = named(table, 1)
    assert row["probe"] == Cell("hypernymy", "dictionary-lm, original task definitions")
    assert row["setting"] == Cell("rate 2e-5, epoch 3", "no replay, seed 1")
    assert row["cost, points"] == Cell("+3.8", "+0.8 to +6.8")  # (301 - 282) / 500
    assert row["lost / gained"] == Cell("39 / 20", "p < 0.001")
    texts = {label: cell.text for label, cell in row.items()}
    assert texts["k"] == "1,000"
    assert [texts[f"probe %: {time}"] for time in ("before", "after")] == ["29.1", "55.3"]
    assert [texts[f"original task %: {time}"] for time in ("before", "after")] == ["60.2", "56.4"]
    assert texts["both %: average"] == "55.9"  # (55.3 + 56.4) / 2 = 55.85
    clusters = [texts[f"whole clusters %: {name}"] for name in ("before", "after", "n")]
    assert clusters == ["10.0", "25.0", "800"]
    record = records(table)[1]
    assert record["inoculation_cost"] == pytest.approx(0.038)
    assert record["cost_interpretable"] is True


def test_replay_is_shown_beside_the_dose_alone(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    """Two seeds each: costs of 20 and 30 of 500 without replay, of 5 and 10 with it."""
    for extra, correct_by_seed in (("none", (280, 270)), ("x1", (295, 290))):
        for seed, correct in enumerate(correct_by_seed, start=1):
            probe = (200, 440) if extra == "none" else (200, 400)
            columns = {"seed": seed, "extra": extra, "probe_correct": probe}
            inoculated({**columns, "original_correct": (300, correct)})
    table = tables(tmp_path)["replay"]
    alone, replayed = (named(table, index) for index in range(2))
    assert [row["replay"].text for row in (alone, replayed)] == ["none", "x1"]
    assert [row["cost, points"].text for row in (alone, replayed)] == ["+5.0", "+1.5"]
    assert alone["difference from no replay, points: cost"].text == ABSENT
    assert replayed["difference from no replay, points: cost"].text == "−3.5"
    # 240 and 200 of 1,000 items.
    assert [row["gain, points"].text for row in (alone, replayed)] == ["+24.0", "+20.0"]
    assert replayed["difference from no replay, points: gain"].text == "−4.0"


def test_doses_that_were_all_given_alone_have_no_table_of_replay(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    inoculated({"seed": 1}, {"seed": 2})
    assert "replay" not in tables(tmp_path)


def test_cost_at_chance_is_not_interpretable(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    datasets = {"easy": (300, 60, 60), "hard": (200, 40, 38)}
    low = {"original_correct": (100, 98), "datasets": datasets}
    inoculated(*({**low, "seed": seed} for seed in (1, 2)), cost_interpretable=False)
    by_name = tables(tmp_path)
    for name in ("inoculation", "inoculation_seeds", "inoculation_parts"):
        rows = [named(by_name[name], index) for index in range(len(by_name[name].rows))]
        label = "cost, points: mean" if name == "inoculation_seeds" else "cost, points"
        assert {row[label] for row in rows} == {Cell("not interpretable")}, name


def test_seeds_and_unchosen_rates(tmp_path: Path, inoculated: Callable[..., RunSet]) -> None:
    for seed, correct in ((1, 300), (2, 400)):
        for rate, score in ((1e-5, 0.4), (5e-5, 0.3)):
            selection = [(0.2, 0.6), (score, 0.5)]
            columns = {"seed": seed, "learning_rate": rate, "selection": selection}
            inoculated({**columns, "probe_correct": (200, correct)})
    found_tables = tables(tmp_path)
    settings = [row[2].text for row in found_tables["inoculation"].rows]
    assert settings.count("rate 1e-5, epoch 1") == 2
    assert settings.count("rate 5e-5, epoch 1 †") == 2
    table = found_tables["inoculation_seeds"]
    row = named(table, 0)
    assert row["seeds"] == Cell("2")
    assert row["probe %: after"].text == "35.0"
    assert row["probe %: over seeds"] == Cell("30.0–40.0")
    # The runs hold no items, so nothing is known about a mean, such as that of 10 / 500 in both.
    assert row["cost, points: mean"] == Cell("+2.0")
    assert "none if a run" in table.note
    assert row["cost, points: over seeds"] == Cell("+2.0 to +2.0")
    (record,) = records(table)
    assert record["probe_accuracy_median"] == pytest.approx(0.35)
    assert (record["probe_accuracy_min"], record["probe_accuracy_max"]) == (0.3, 0.4)


def test_seeds_are_averaged_on_untouched_items_too(tmp_path: Path) -> None:
    # Of the second dose one seed lacks the rows, so there is no mean.
    for dose, seed, untouched in ((100, 1, 20), (100, 2, 30), (500, 1, 40), (500, 2, None)):
        rows = inoculation_rows(dose=dose, seed=seed)
        untouched_row = {**rows[-1], "subset": subsets.UNTOUCHED, "split": "report"}
        if untouched is not None:
            rows += [
                accuracy(10, 100, **{**untouched_row, "metric": "probe_accuracy_before"}),
                accuracy(untouched, 100, **{**untouched_row, "metric": "probe_accuracy"}),
            ]
        write_run(tmp_path, f"{dose}-{seed}", rows)
    table = tables(tmp_path)["inoculation_seeds"]
    group = "probe, group not in train %"
    assert [c.label for c in table.columns if c.group == group] == ["before", "after", "over seeds"]
    assert "Probe, group not in train: items whose group has no item in the train" in table.note
    first, second = table.rows
    assert first[-3:] == (Cell("10.0"), Cell("25.0"), Cell("20.0–30.0"))
    assert second[-3:] == (Cell("–"), Cell("–"), Cell("–"))
    assert records(table)[0]["probe_accuracy_group_not_in_train"] == pytest.approx(0.25)
    assert records(table)[1]["probe_accuracy_group_not_in_train"] is None


def test_original_task_reports_its_report_split(tmp_path: Path) -> None:
    common = {"protocol": "original", "model": "m", "probe": "science", "epoch": 2, "seed": 1}
    rows = [accuracy(n, 100, **common, split=s) for n, s in ((40, "selection"), (45, "report"))]
    write_run(tmp_path, "a", rows)
    (row,) = tables(tmp_path)["original_task"].rows
    assert row[0] == Cell("science", "report")
    assert row[3].text == "45.0"


def test_large_clusters_are_one_row_of_the_parts(tmp_path: Path) -> None:
    rows = inoculation_rows()
    report = {**rows[-1], "split": "report"}
    for size, start, end, number in ((4, 8, 16, 40), (5, 3, 4, 12), (7, 0, 2, 5), (12, 0, 0, 3)):
        columns = {**report, "subset": subsets.clusters(size)}
        rows += [
            accuracy(start, number, **{**columns, "metric": "strict_cluster_accuracy_before"}),
            accuracy(end, number, **{**columns, "metric": "strict_cluster_accuracy"}),
        ]
    fields = {"original_task": "definitions", "selection": "paper", "report_split": "dev"}
    write_run(tmp_path, "a", rows, **fields)
    table = tables(tmp_path)["inoculation_parts"]
    first, second = table.rows
    detail = "dictionary-lm, original task definitions, chosen on the reported items (dev)"
    assert first[0] == second[0] == Cell("hypernymy", detail)
    assert [cell.text for cell in first[4:]] == ["clusters of 4", "20.0", "40.0", "40"]
    # 3 of 20 before and 6 of 20 after, with Wilson's intervals.
    assert second[4:] == (
        Cell("clusters of 5 or more"),
        Cell("15.0", "5.2–36.0"),
        Cell("30.0", "14.5–51.9"),
        Cell("20"),
    )
    sizes = [record["part"] for record in records(table)]
    assert sizes == [f"clusters of {size}" for size in (4, 5, 7, 12)]


def test_cost_of_a_data_set_is_read_by_its_own_chance(tmp_path: Path) -> None:
    sets = {"easy": (300, 150, 120), "hard": (200, 50, 40), "plain": (100, 20, 10)}
    rows = inoculation_rows(datasets=sets)
    report = {**rows[-1], "split": "report"}
    # 50% and 25% before; of "plain" no chance was written, and the whole task was above its own.
    for name in ("easy", "hard"):
        columns = {"subset": subsets.source_set(name), "metric": "chance_original"}
        rows.append({**report, **columns, "value": 0.25})
    for metric, right in (("probe_accuracy_before", 10), ("probe_accuracy", 20)):
        columns = {"subset": subsets.UNTOUCHED, "metric": metric}
        rows.append(accuracy(right, 100, **{**report, **columns}))
    write_run(tmp_path, "a", rows, cost_interpretable=True)
    table = tables(tmp_path)["inoculation_parts"]
    assert [[cell.text for cell in row[3:]] for row in table.rows] == [
        ["original task", "easy", "50.0", "40.0", "300", "+10.0"],
        ["original task", "hard", "25.0", "20.0", "200", "not interpretable"],
        ["original task", "plain", "20.0", "10.0", "100", "+10.0"],
        ["probe", "group not in train", "10.0", "20.0", "100", "–"],
    ]
    assert [r["cost_interpretable"] for r in records(table)] == [True, False, True, None]


GAIN = {"original_correct": (300, 340)}
ADDED = " with replay x1"


@pytest.mark.parametrize(
    ("run", "is_interpretable", "probe", "original", "added"),
    [
        (
            {"original_correct": (100, 98), "probe_correct": (200, 210)},  # of 500, of 1,000
            False,
            "not clearly above chance",
            "not interpretable, because the model was not above chance before,",
            "",
        ),
        # 10 and 50 of 500, with 3 points of doubt.
        ({"probe_correct": (291, 150)}, True, "below chance", "not clearly different from 0", ""),
        ({"original_correct": (300, 250)}, True, "above chance", "clearly above 0", ""),
        (GAIN, True, "above chance", "clearly below 0, a gain,", ""),
        ({**GAIN, "extra": "x1"}, True, "above chance", "clearly below 0, a gain,", ADDED),
    ],
)
def test_verdicts_on_gain_and_cost(
    tmp_path: Path,
    inoculated: Callable[..., RunSet],
    run: dict[str, object],
    is_interpretable: bool,
    probe: str,
    original: str,
    added: str,
) -> None:
    inoculated(run, cost_interpretable=is_interpretable)
    assert findings(tmp_path) == [
        f"With the most probe examples, accuracy on the probe was {probe} for hypernymy. "
        f"The cost on the original task was {original} for hypernymy{added}."
    ]


def test_seeds_without_their_items_have_no_interval(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    inoculated(*({"seed": seed} for seed in (1, 2)))
    assert findings(tmp_path) == [
        "Means over seeds have no interval, because the runs did not record a score per item, "
        "for hypernymy."
    ]


def test_what_differs_is_in_the_names(tmp_path: Path, inoculated: Callable[..., RunSet]) -> None:
    inoculated({"model": "a"}, {"model": "b"}, original_task="definitions")
    [finding] = findings(tmp_path)
    assert "above chance for hypernymy (a) and hypernymy (b)." in finding


def test_checkpoint_worse_than_the_model_before_is_told(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    # The averages before are 0.40; after 0.39, 0.40 and 0.45.
    selections = {1: (0.30, 0.48), 2: (0.30, 0.50), 3: (0.40, 0.50)}
    inoculated({"seed": 1, "selection": [(0.2, 0.6), selections[1]]})
    verdict = (
        "made the model worse overall (its best checkpoint, by the average of both tasks on the "
        "selection items) for hypernymy."
    )
    assert findings(tmp_path)[0].endswith(f"Fine-tuning {verdict}")
    inoculated(*({"seed": seed, "selection": [(0.2, 0.6), selections[seed]]} for seed in (2, 3)))
    assert findings(tmp_path)[0].endswith(f"In 1 of 3 seeds fine-tuning {verdict}")


def test_many_inoculations_are_told_briefly(
    tmp_path: Path, inoculated: Callable[..., RunSet]
) -> None:
    inoculated(*({"probe": f"p{i}"} for i in range(8)))
    names = ", ".join(f"p{i}" for i in range(5))
    assert f"above chance for {names} and p5." in findings(tmp_path)[0]
    assert findings(tmp_path)[0].endswith("The tables show 2 more.")
