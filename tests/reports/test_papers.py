from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import pytest

from probelight import cli
from probelight.io.files import DataFile
from probelight.probes.catalog import load_probe_config
from probelight.reports.papers import PEOPLE, listed_table, paper_list, paper_tables, papers_summary
from probelight.reports.published import published, published_scores
from probelight.reports.table import Table
from probelight.results.load import Run, RunSet, load_results
from probelight.results.record import ModelSource
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.curves import shares
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.grids import OBJECTS, always_smaller, write_grid
from tests.fixtures.report import labels, present, records, texts
from tests.fixtures.results import (
    accuracy,
    inoculation_rows,
    write_curve,
    write_run,
    zero_shot_rows,
)

TALMOR, RICHARDSON, ETTINGER = "Talmor et al. 2020", "Richardson & Sabharwal 2020", "Ettinger 2020"
Found = list[dict[str, Any]]
AGES: dict[str, Any] = {"model": "roberta-large", "train": "train of age_comparison"}
BERT: dict[str, Any] = {"model": "bert-base-uncased"}


def tables_of(results: RunSet) -> dict[str, Table]:
    return {table.name.removeprefix("paper_"): table for table in paper_tables(results) if table}


def pairs(rows: Found) -> Found:
    return [row for row in rows if row["ours"] is not None]


def talmor(folder: Path, number: int) -> Found:
    """The rows of a table, none where it is not there."""
    table = tables_of(load_results(folder)).get(f"talmor2020_table_{number}")
    return records(table) if table else []


def shown_in(results: RunSet) -> dict[str, str]:
    """Which of our tables shows each of the papers' that the results hold."""
    table = listed_table(results)
    return {row["place"]: row["shown"] for row in records(table) if row["shown"]} if table else {}


def by_number(rows: Found, model: str = "RoBERTa-L") -> dict[str, dict[str, Any]]:
    return {row["number"]: row for row in rows if row["model"] == model}


# The list of tables.


def test_every_table_of_the_papers_is_listed_once() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for table in paper_list():
        kind, _, numbers_text = table.place.partition(" ")
        if kind == "table":
            numbers[table.paper].append(int(numbers_text.partition(",")[0]))
    assert numbers[TALMOR] == list(range(1, 13))
    assert numbers[RICHARDSON] == [1, 2, 3, 4, 5, 6, 7, 7, 8]
    assert numbers[ETTINGER] == list(range(1, 16))
    assert len({(table.paper, table.place) for table in paper_list()}) == len(paper_list())
    for table in paper_list():
        assert bool(table.command) == bool(table.note or table.our_table)
        assert bool(table.our_table) == bool(table.probes)
        assert not table.maker or callable(resolve_name(f"probelight.reports.{table.maker}"))


def test_what_has_published_numbers_is_shown_with_them() -> None:
    numbers = {(table.paper, int(table.place.split()[1].strip(",")))
               for table in paper_list() if table.note}  # fmt: skip
    published_tables = set(zip(published().paper, published().table, strict=True))
    # Shown by other tables: what people score, the grid of sizes, templates.
    assert published_tables - numbers == {(TALMOR, 1), (TALMOR, 4), (TALMOR, 6)}
    assert numbers <= published_tables
    lists = [{*table.probes} for table in paper_list() if len(table.probes) > 1]
    inoculated = {*published()[published().group == "inoculated"].probe}
    of_talmor = [probes for probes in lists if probes != inoculated]
    assert (len(lists), [len(probes) for probes in of_talmor]) == (6, [8, 8, 8])
    assert all(published_scores(probe) for probes in of_talmor for probe in probes)


def test_the_demo_has_no_such_section(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, probe="age_small")
    results = load_results(tmp_path)
    assert (listed_table(results), paper_tables(results), papers_summary(results)) == (None, [], "")


def test_the_list_names_what_is_held(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, **AGES, controls=["standard"])
    results = load_results(tmp_path)
    table, name = present(listed_table(results)), "paper_talmor2020_table_2"
    assert [row for row in texts(table) if row[3] != "–"] == [
        [TALMOR, "table 2", "Age comparison", "3 of 40", name, "curve"]
    ]
    # People see that paper's tables; the file has those of all three.
    assert {row[0] for row in texts(table)} == {TALMOR}
    assert {record["paper"] for record in records(table)} > {ETTINGER}
    # No curve is judged without a baseline, so there is no table of medals.
    assert shown_in(results) == {"table 2": name, "figure 4": "learning_curve"}
    [compared] = tables_of(results).values()
    assert (compared.name, compared.title) == (name, f"{TALMOR}, table 2: Age comparison")


@pytest.mark.parametrize(
    ("grid", "model", "places"),
    [
        ("A", "roberta-large", {"figure 3": "grid"}),
        ("A", "bert-base-uncased", {"figure 3": "grid"}),  # the zero-shot accuracy of table 2
        ("B", "bert-base-uncased", {}),  # the paper has none of its panels
        ("sizes", "roberta-large", {"table 4": "sizes_grid"}),
        ("sizes", "bert-base-uncased", {}),
    ],
)
def test_grids_of_models_that_the_paper_has_are_listed(
    grid: str, model: str, places: dict[str, str], tmp_path: Path
) -> None:
    values = OBJECTS if grid == "sizes" else [20, 30]
    write_grid(tmp_path, grid, values, always_smaller, model=model)
    assert shown_in(load_results(tmp_path)) == places


# Learning curves and zero-shot accuracy (Talmor et al. 2020).


def test_a_row_has_both_numbers_and_what_people_scored(tmp_path: Path) -> None:
    rows = zero_shot_rows("always_never", 28, 280, 5, model="roberta-large")
    write_run(tmp_path, "a", rows)
    [table] = tables_of(load_results(tmp_path)).values()
    assert labels(table) == [
        "model", "number", "ours", "paper", "ours − paper, points", "the paper's is", "people %",
        "ours − people, points", "n",
    ]  # fmt: skip
    ours, papers_row = texts(table, first=2)[:2]
    assert ours == ["10.0", "14.0", "−4.0", "in our interval", "91.0", "−81.0", "280"]
    assert papers_row[0] == "–"
    assert (len(table.rows), len(records(table))) == (7 + 5, 40)
    first, second = records(table)[:2]
    assert (first["ours"], first["paper_lies"]) == (0.1, "in our interval")
    # The paper does not say on how many items.
    assert first["difference_ci_low"] is second["difference"] is None
    assert [len(runs) for runs in table.runs[:2]] == [1, 0]


def test_people_see_the_papers_numbers_of_what_is_here(tmp_path: Path) -> None:
    for model, hub_id in (("roberta-base", "roberta-base"), ("mine", None)):
        zero_shot = zero_shot_rows("always_never", 28, 280, 5, model=model)
        write_run(tmp_path, model, zero_shot, hub_id=hub_id)
    [table] = tables_of(load_results(tmp_path)).values()
    assert len(records(table)) == 40 + 1
    rows = texts(table)
    encoders = ["RoBERTa-L", "BERT-WWM", "BERT-L", "BERT-B"]
    assert [row[0] for row in rows] == [*encoders, *["RoBERTa-B"] * 7, "MLM-baseline", "mine"]
    assert {row[1] for row in rows if row[0] != "RoBERTa-B"} == {"zero-shot, %"}


def test_a_curve_is_compared_with_table_2(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, **AGES)
    [table] = tables_of(load_results(tmp_path)).values()
    # Five models of seven numbers, the baseline of five: it has no linear head.
    assert len(records(table)) == 5 * 7 + 5
    # People are next to accuracies, not next to what a language costs.
    people = {(row["number"][-1], row["people"]) for row in records(table)}
    assert people == {("%", 1.0), ("s", None)}
    by_column = by_number(records(table))
    assert {name: row["difference"] for name, row in by_column.items()} == {
        "zero-shot, %": pytest.approx(0.5 - 0.98),
        "MLP WS, %": pytest.approx(0.9 - 0.98),
        "MLP MAX, %": pytest.approx(0.9 - 1.0),
        "linear WS, %": None,
        "linear MAX, %": None,
        "LangSense pert, points": pytest.approx(0.0 - 0.31),  # 0.9 against 0.95, clipped
        "LangSense nolang, points": pytest.approx(0.4 - 0.51),
    }
    assert len(pairs(records(table))) == 5
    start = by_column["zero-shot, %"]
    assert (start["paper_lies"], start["num_items"]) == ("above it", 120)
    assert by_column["MLP WS, %"]["about"] == "rate 0.001"
    assert by_number(records(table), "BERT-B")["linear WS, %"]["paper"] == 0.5
    # They lead to the runs of the curve.
    assert [len(runs) for runs in table.runs if runs] == [8] * 5


def test_another_model_is_alone_whatever_it_is_called(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, **AGES, hub_id=None)
    rows = talmor(tmp_path, 2)
    assert len(rows) == 5 * 7 + 5 + 5
    assert {row["paper"] for row in pairs(rows)} == {None}
    assert {row["difference"] for row in rows} == {None}
    assert papers_summary(load_results(tmp_path)) == ""


def test_sums_over_fewer_points_are_not_compared(tmp_path: Path) -> None:
    write_curve(tmp_path, shares, **AGES, sizes=(0, 62, 125))
    assert [row["number"] for row in pairs(talmor(tmp_path, 2))] == ["zero-shot, %"]


@pytest.mark.parametrize(
    "changed",
    [
        {"data": [DataFile(path="age_comparison_dev.jsonl.gz", sha256="0" * 64)]},
        {"split": "test"},
        {"probe": "age_small"},
        {"model": "roberta-large (random weights)"},
    ],
)
def test_other_items_and_random_weights_have_no_table(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    write_curve(tmp_path, shares, **{**AGES, **changed})
    assert talmor(tmp_path, 2) == []


@pytest.mark.parametrize(
    ("probe", "table", "size", "other_files"),
    [
        ("always_never", 5, 280, []),
        # A file that was read too does not make a part the whole.
        ("multihop_composition", 11, 500, [DataFile(path="x", sha256="0", num_items=100)]),
    ],
)
def test_a_part_of_the_released_items_is_not_the_papers(
    probe: str, table: int, size: int, other_files: list[DataFile], tmp_path: Path
) -> None:
    rows = zero_shot_rows(probe, 10, 100, 5, model="bert-base-uncased")
    released = load_probe_config(probe).files["dev"].sha256 or ""
    used = [DataFile(path="dev.jsonl", sha256=released, num_items=size), *other_files]
    write_run(tmp_path, "a", rows, data=used, counts={"items": 100, "scored": 100})
    assert talmor(tmp_path, table) == []


def test_other_scores_than_at_the_mask_are_alone(tmp_path: Path) -> None:
    rows = zero_shot_rows("always_never", 28, 280, 5, model="bert-base-uncased")
    write_run(tmp_path, "a", [{**row, "mode": "pseudo_log_likelihood"} for row in rows])
    [row] = pairs(talmor(tmp_path, 5))
    assert (row["paper"], row["model"]) == (None, "bert-base-uncased")
    assert row["about"] == "by pseudo log likelihood"


# Diagnostics (Ettinger 2020).


def test_table_4_with_a_model_of_ours(tmp_path: Path) -> None:
    shuffled = {**BERT, "perturbation": "shuffled"}
    rows = [
        share(9, 34, **BERT),
        share(5, 34, **shuffled) | {"value": 0.15, "ci_low": None, "ci_high": None},
        share(5, 34, "accuracy@1_sd", **shuffled) | {"value": 0.03},
    ]
    table = records(tables_of(results_of(tmp_path, rows))["ettinger2020_table_4"])
    assert len(table) == 24
    # The paper says 34 contexts; of a mean over shuffles it gives no such number.
    assert [
        (row["number"], row["difference"], row["difference_ci_low"] is None) for row in pairs(table)
    ] == [
        ("k = 1, %", pytest.approx(9 / 34 - 0.235), False),
        ("1st sentence shuffled, k = 1, %", pytest.approx(0.009), True),
        ("1st sentence shuffled, k = 1, sd over shuffles, points", pytest.approx(-0.001), True),
    ]
    assert {row["model"] for row in table} == {"BERT-B", "BERT-L"}


def test_statements_of_table_12_have_rows_each(tmp_path: Path) -> None:
    columns = {**BERT, "probe": "neg_simp"}
    rows = [
        share(18, 36, "sensitivity", **columns),
        share(17, 18, "sensitivity", **columns, subset=subsets.statements("affirmative")),
    ]
    [row] = pairs(records(tables_of(results_of(tmp_path, rows))["ettinger2020_table_12"]))
    assert (row["number"], row["paper"]) == ("affirmative, prefers the good one, %", 1.0)


def test_another_set_of_that_name_has_no_table(tmp_path: Path) -> None:
    data = [DataFile(path="CPRAG-102.tsv", sha256="0" * 64)]
    write_run(tmp_path, "a", [share(9, 34, **BERT)], data=data)
    assert paper_tables(load_results(tmp_path)) == []


@pytest.mark.paper_data
def test_released_recordings_give_the_published_numbers(tmp_path: Path, data_mirror: Path) -> None:
    recorded = data_mirror / "lm-diagnostics/recorded"
    folder = tmp_path / "out"
    command = ["diagnose", f"--recorded={recorded}", f"--mirror={data_mirror}"]
    assert cli.main([*command, f"--output_dir={folder}"]) == 0
    results = load_results(folder)
    printed = published()
    printed = printed[(printed.paper == ETTINGER) & (printed.model == BERT["model"])]
    tables = tables_of(results)
    for table in (4, 5, 11, 12):
        rows_held = pairs(records(tables[f"ettinger2020_table_{table}"]))
        published_values = printed[(printed.table == table) & (printed.perturbation == "")].value
        assert [round(row["ours"], 3) for row in rows_held] == pytest.approx(list(published_values))
        assert {row["paper_lies"] for row in rows_held} == {"in our interval"}
        assert all(abs(row["difference"]) < 0.0005 for row in rows_held)
    assert tables.keys().isdisjoint(f"ettinger2020_table_{table}" for table in (7, 8, 9, 14))


# Baselines, science models and whole clusters (Richardson & Sabharwal 2020).


def audit(hub_id: str | None = "roberta-large", **columns: Any) -> RunSet:
    """An audit of definitions: 140 of 500 right from the choices alone."""
    common = {"protocol": "audit", "model": "roberta-large", "probe": "definitions"}
    seen = {"split": "test", "control": "choice_only", "role": "baseline", "kind": "transformer"}
    row = accuracy(140, 500, **common, **seen, seed=1) | columns
    run = Run(
        **common,
        rows=(Row(**row),),
        source=ModelSource(hub_id=hub_id),
        data=(DataFile(path="test.jsonl", sha256="0" * 64, num_items=500),),
    )
    return RunSet("x", (run,))


def test_the_papers_encoders_are_compared_with_group_1() -> None:
    bert, roberta = records(tables_of(audit())["richardson2020_table_7_groups_1_and_2"])
    values = [bert[name] for name in ("model", "paper", "ours")]
    assert values == ["Choice-only, BERT", pytest.approx(0.232), None]
    assert roberta["model"] == "Choice-only, RoBERTa"
    assert roberta["about"] == "roberta-large, seed 1"
    assert (roberta["number"], roberta["paper_lies"]) == ("definitions, test, %", "in our interval")
    assert roberta["difference"] == pytest.approx(0.28 - 0.286)
    assert roberta["people"] == 0.912


@pytest.mark.parametrize(
    "changed",
    [
        {"hub_id": None},
        {"control": "standard"},
        {"split": "part of train"},
        {"num_items": 400},
    ],
)
def test_other_baselines_are_in_the_audits_own_table_alone(changed: dict[str, Any]) -> None:
    results = audit(**changed)
    assert shown_in(results) == {"table 7, groups 1 and 2": "audit"}
    assert paper_tables(results) == []


def test_an_encoder_that_the_paper_does_not_have_is_alone() -> None:
    [table] = tables_of(audit(hub_id="roberta-base")).values()
    assert [row["paper"] for row in pairs(records(table))] == [None]


WWM = "bert-large-uncased-whole-word-masking"
SETS = ["arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"]
HYPERNYMY = load_probe_config("hypernymy").files["test"].sha256 or ""
OTHER_FILE = [DataFile(path="test.jsonl", sha256="0" * 64)]  # of hypernymy the checksum is known
WHOLE: dict[str, Any] = {
    "original_task": "science",
    "selection": "train",
    "report_split": "test",
    "report_items": None,
    "cost_interpretable": True,
    "hub_id": WWM,
    "original_parts": {"sets": SETS, "train_items": None},
    "data": [DataFile(path="dev.jsonl", sha256="0"), DataFile(path="x.jsonl", sha256=HYPERNYMY)],
}
SCIENCE, CLUSTERS = "table_7_groups_3_and_4", "table_8"


@pytest.fixture
def inoculated(tmp_path: Path) -> Callable[..., dict[str, Found]]:
    """The tables of a run that went from 500 to 900 of 1,000, and has 200 of 800 concepts whole."""

    def build(
        dose: int = 3000, probe: str = "hypernymy", model: str = WWM, **fields: Any
    ) -> dict[str, Found]:
        settings = {"probe_correct": (500, 900), "original_correct": (300, 295)}
        rows = inoculation_rows(dose=dose, probe=probe, model=model, **settings)
        write_run(tmp_path, "a", rows, **{**WHOLE, **fields})
        tables = tables_of(load_results(tmp_path))
        return {name.partition("_")[2]: records(table) for name, table in tables.items()}

    return build


def test_science_models_are_compared_before_and_after(
    inoculated: Callable[..., dict[str, Found]], tmp_path: Path
) -> None:
    table_rows = inoculated()[SCIENCE]
    assert [row["model"] for row in table_rows] == [
        *["ESIM, GloVe"] * 3, "ESIM, ELMo", *["BERT (large, whole-word masking)"] * 3,
        *["RoBERTa (large)"] * 3,
    ]  # fmt: skip
    ours = pd.DataFrame(pairs(table_rows), index=["before", "after", "change"])
    # The paper has 51.0 before, 82.7 after and -0.49 on its original task.
    assert [*ours.number] == [
        "hypernymy, test, before, %", "hypernymy, test, inoculated, %",
        "hypernymy, original task, points",
    ]  # fmt: skip
    assert [*ours.ours] == pytest.approx([0.5, 0.9, -5 / 500])
    assert [*ours.difference] == pytest.approx([-0.01, 0.9 - 0.827, -5 / 500 + 0.0049])
    assert [*ours.paper_lies] == ["in our interval", "below it", "in our interval"]
    assert ours.ci_low["change"] == pytest.approx(-5 / 500 - 0.03)
    assert [*ours.num_items] == [1000, 1000, 500]
    assert [*ours.about[:2]] == [f"{WWM}, test", f"{WWM}, k = 3,000, test"]
    # People have 96% of a test set that people filtered: the paper says no number of questions.
    assert [*ours.people[:2], *ours.ours_minus_people[:2]] == pytest.approx(
        [0.96, 0.96, -0.46, -0.06]
    )
    assert pd.isna(ours.people["change"])
    assert pd.isna(ours.people_ci_low["after"])
    results = load_results(tmp_path)
    assert papers_summary(results) == (
        "3 numbers are for the same model and items as in Richardson & Sabharwal 2020; 2 of 3 "
        "intervals include the paper's. The largest difference is +7.3 points (table 7, groups 3 "
        "and 4: BERT (large, whole-word masking), hypernymy, test, inoculated, %)."
    )
    name = f"paper_richardson2020_{SCIENCE}"
    assert shown_in(results) == {"table 7, groups 3 and 4": name, "figure 4": "inoculation"}


def test_dev_is_compared_with_dev(inoculated: Callable[..., dict[str, Found]]) -> None:
    tables = inoculated(report_split="dev")
    # The paper has 43.2 before and 73.8 after; it asked people about test sets alone.
    start, end, _ = pairs(tables[SCIENCE])
    assert start["difference"] == pytest.approx(0.5 - 0.432)
    assert end["difference"] == pytest.approx(0.9 - 0.738)
    assert {row["people"] for row in tables[SCIENCE]} == {None}
    # Of its concepts 49.0% are whole, 24.8 points less than its accuracy.
    assert [row["number"] for row in tables[CLUSTERS]] == [
        "hypernymy, strict, %", "hypernymy, minus accuracy, points",
    ] * 4  # fmt: skip
    strict, delta = pairs(tables[CLUSTERS])
    assert (strict["model"], strict["num_items"]) == ("BERT (large, whole-word masking)", 800)
    gaps = [row["difference"] for row in (strict, delta)]
    assert gaps == pytest.approx([0.25 - 0.49, (0.25 - 0.9) + 0.248])


def test_people_who_were_asked_so_many_questions_have_an_interval(
    inoculated: Callable[..., dict[str, Found]],
) -> None:
    _, end, _ = pairs(inoculated(probe="definitions", data=OTHER_FILE)[SCIENCE])
    # Newcombe's of 900 of 1,000 against 456 of 500, each with Wilson's interval.
    low = -0.012 - ((0.9 - 0.87984) ** 2 + (0.93374 - 0.912) ** 2) ** 0.5
    high = -0.012 + ((0.91708 - 0.9) ** 2 + (0.912 - 0.88396) ** 2) ** 0.5
    values = [end[name] for name in PEOPLE.split()]
    assert values == pytest.approx([-0.012, low, high], abs=1e-4)


def test_another_dose_is_compared_before_it_alone(
    inoculated: Callable[..., dict[str, Found]],
) -> None:
    tables = inoculated(dose=1000, report_split="dev")
    start, *ends = pairs(tables[SCIENCE])
    assert start["difference"] == pytest.approx(0.5 - 0.432)
    papers = [(row["model"], row["paper"]) for row in [*ends, *pairs(tables[CLUSTERS])]]
    assert papers == [(WWM, None)] * 4


def test_a_cost_that_cannot_be_read_is_not_compared(
    inoculated: Callable[..., dict[str, Found]],
) -> None:
    *_, change = pairs(inoculated(cost_interpretable=False)[SCIENCE])
    assert (change["model"], change["difference"]) == (WWM, None)
    assert change["about"] == "k = 3,000, test, not interpretable"


@pytest.mark.parametrize(
    "change",
    [
        # a folder that is called as the paper's model is, and a task that is called science
        {"hub_id": None},
        {"original_parts": {"sets": SETS[:3], "train_items": None}},
        {"original_parts": None},
        {"hub_id": None, "model": "ESIM (glove.6B.50d)"},
    ],
)
def test_other_inoculations_are_only_set_next_to_the_papers(
    change: dict[str, Any], inoculated: Callable[..., dict[str, Found]]
) -> None:
    tables = inoculated(**change, report_split="dev")
    ours = [*pairs(tables[SCIENCE]), *pairs(tables[CLUSTERS])]
    assert [(row["model"], row["paper"]) for row in ours] == [(change.get("model", WWM), None)] * 5
    assert {"original task science" in row["about"] for row in ours} == {"original_parts" in change}


@pytest.mark.parametrize(
    "changed",
    [
        {"report_split": ""},
        {"report_items": 500},
        {"probe": "hypernymy_small"},
        {"data": OTHER_FILE},
    ],
)
def test_inoculations_on_other_items_have_no_table(
    changed: dict[str, Any], inoculated: Callable[..., dict[str, Found]]
) -> None:
    assert inoculated(**changed) == {}
