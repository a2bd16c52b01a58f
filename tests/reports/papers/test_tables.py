from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Cell
from probelight.reports.papers.beside import Beside, Ours, PaperTable, Printed
from probelight.reports.papers.section import PAPERS
from probelight.reports.papers.tables import listed_table, paper_tables, table_of
from probelight.results.load import Results, load_results
from tests.fixtures.curves import shares
from tests.fixtures.report import labels, named


def test_the_demo_has_no_such_section(
    tmp_path: Path, write_curve_runs: Callable[..., None]
) -> None:
    write_curve_runs(tmp_path, shares, probe="age_small")
    made = PAPERS.made(load_results(tmp_path))
    assert (made.tables, made.figures, made.findings) == ((), (), ())
    assert PAPERS.made(Results("empty", ())).tables == ()


def test_the_list_names_what_is_held(tmp_path: Path, write_curve_runs: Callable[..., None]) -> None:
    write_curve_runs(
        tmp_path,
        shares,
        model="roberta-large",
        train="train of age_comparison",
        controls=["standard"],
    )
    results = load_results(tmp_path)
    table = listed_table(results)
    assert table is not None
    [row] = [cells for cells in table.rows if cells[3].text != "–"]
    assert [cell.text for cell in row] == [
        "Talmor et al. 2020", "table 2", "Age comparison", "3 of 40", "paper_talmor2020_table_2",
        "curve",
    ]  # fmt: skip
    # People see that paper's tables; the file has those of all three.
    assert {cells[0].text for cells in table.rows} == {"Talmor et al. 2020"}
    assert {record["paper"] for record in table.records} > {"Ettinger 2020"}
    [beside] = paper_tables(results)
    assert beside.name == "paper_talmor2020_table_2"
    assert beside.title == "Talmor et al. 2020, table 2: Age comparison"


def test_a_row_has_both_numbers_and_what_people_scored(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("always_never", 28, 280, 5, model="roberta-large")
    write_run(tmp_path, "a", found)
    [table] = paper_tables(load_results(tmp_path))
    ours = named(table, 0)
    assert labels(table) == [
        "model", "number", "ours", "paper", "ours − paper, points", "the paper's lies", "people %",
        "n",
    ]  # fmt: skip
    assert [ours[name] for name in labels(table)[3:]] == [
        Cell("14.0"), Cell("−4.0"), Cell("in our interval"), Cell("91.0"), Cell("280"),
    ]  # fmt: skip
    assert ours["ours"].text == "10.0"
    assert named(table, 1)["ours"] == Cell("–")
    assert (len(table.rows), len(table.records)) == (7 + 5, 40)
    assert table.records[0]["ours"] == 0.1
    assert table.records[0]["paper_lies"] == "in our interval"
    assert table.records[1]["difference"] is None


def test_people_see_the_papers_numbers_of_what_is_here(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> None:
    for model, known in (("roberta-base", "roberta-base"), ("mine", None)):
        found = rows.zero_shot("always_never", 28, 280, 5, model=model)
        write_run(tmp_path, model, found, hub_id=known)
    [table] = paper_tables(load_results(tmp_path))
    assert len(table.records) == 40 + 1
    shown = [(row[0].text, row[1].text) for row in table.rows]
    others = ["RoBERTa-L", "BERT-WWM", "BERT-L", "BERT-B"]
    assert shown[:4] == [(model, "zero-shot, %") for model in others]
    assert [model for model, _ in shown[4:11]] == ["RoBERTa-B"] * 7
    assert shown[11:] == [("MLM-baseline", "zero-shot, %"), ("mine", "zero-shot, %")]


def test_numbers_below_zero_have_a_minus() -> None:
    printed = Printed("delta", "bert", -0.155)
    table = table_of(PaperTable("A 2020", "table 1", "x"), [
        Beside("delta", printed, Ours("delta", "m", "bert", Estimate(-0.601))),
    ])  # fmt: skip
    assert table is not None
    assert [cell.text for cell in table.rows[0][2:5]] == ["−60.1", "−15.5", "−44.6"]
    assert table.records[0]["ours"] == -0.601
