"""Tables without choices, of other programs: what they become, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from pathlib import Path

import pytest

from probelight import cli
from probelight.reports.inoculation.figures import keeping_figure
from probelight.reports.inoculation.training import data_map_figure, dose_items
from probelight.results.load import load_results
from tests.fixtures.rows import read_predictions, read_results

SUITES = "suite,item,correct\nagreement,1,1\nagreement,2,False\nnpi,1,1\nnpi,2,yes\n"
LATER = "suite,item,correct\nagreement,1,1\nagreement,2,1\nnpi,1,0\nnpi,2,1\n"
LEARNED = """\
{"guid": "50n", "identity": 0, "confidence": 0.71, "variability": 0.21, "correctness": 5}
{"guid": 7, "identity": 1, "confidence": 0.21, "variability": 0.31, "correctness": 0}
{"guid": "8", "identity": 2, "confidence": 0.97, "variability": 0.02, "correctness": 6}
"""
TRAININGS = """method,strength,seed,gain,loss
none,,1,0.30,0.20
none,,2,0.32,0.22
ewc,0.5,1,0.25,0.05
ewc,0.5,2,0.27,0.07
ewc,1.0,1,0.10,0.01
ewc,1.0,2,0.12,0.01
"""
COUNTS = "model,n11,n10,n01,n00\nbert,40,10,6,44\ngpt,50,3,7,40\n"
N_COLUMNS = "both=n11,lost=n10,gained=n01,neither=n00"
Import = Callable[..., dict[tuple[str, str], float]]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """Imports a text as a table into the folder `name`; its numbers by model or subset."""

    def run(text: str, columns: str, name: str = "out", ending: str = "csv") -> dict[str, float]:
        path, out = tmp_path / f"{name}.{ending}", tmp_path / name
        path.write_text(text)
        options = ["--columns", columns] if columns else []
        line = ["import", "table", f"{path}=bert", "--data.name", "made", *options]
        assert cli.main([*line, "--output_dir", str(out)]) == 0
        assert cli.main([*line, "--output_dir", str(out)]) == 0  # it is complete
        rows = read_results(out / "results.csv")
        return {(row["metric"], row["subset"] or row["model"]): float(row["value"]) for row in rows}

    return run  # type: ignore[return-value]


@pytest.mark.thorough
def test_right_or_wrong_in_suites(imported: Import, tmp_path: Path) -> None:
    numbers = imported(SUITES, "id=item,num_choices=4", "before")
    assert numbers["accuracy", "bert"] == 3 / 4
    assert numbers["accuracy", "UID=agreement"] == 1 / 2
    assert numbers["accuracy", "UID=npi"] == 1
    assert numbers["chance", "bert"] == 1 / 4
    lines = {line["id"]: line["correct"] for line in read_predictions(tmp_path / "before")}
    assert lines == {"agreement/1": 1, "agreement/2": 0, "npi/1": 1, "npi/2": 1}

    imported(LATER, "id=item,num_choices=4", "after")
    folders = [str(tmp_path / name) for name in ("before", "after", "lost")]
    assert cli.main(["forgetting", *folders[:2], "--output_dir", folders[2]]) == 0
    rows = read_results(tmp_path / "lost" / "results.csv")
    changes = {row["metric"]: float(row["value"]) for row in rows}
    assert (changes["lost"], changes["gained"]) == (1, 1)
    assert changes["guessing"] == pytest.approx(1 / 4 * 1 / 4 / 3)  # of four choices


def test_entropies_are_known_as_information(imported: Import) -> None:
    text = "sentence,null_ent,cond_ent\na,1.0,0.25\nb,1.0,1.5\n"
    numbers = imported(text, "null_entropy=null_ent,conditional_entropy=cond_ent")
    assert numbers["v_information", "bert"] == (0.75 - 0.5) / 2


def test_a_data_map_is_drawn_as_a_dose_is(imported: Import, tmp_path: Path) -> None:
    numbers = imported(LEARNED, "id=guid,epochs=6", ending="jsonl")
    assert numbers["dose_confidence", "bert"] == pytest.approx((0.71 + 0.21 + 0.97) / 3)
    assert numbers["dose_variability", "bert"] == pytest.approx((0.21 + 0.31 + 0.02) / 3)
    assert numbers["dose_correctness", "bert"] == pytest.approx((5 / 6 + 0 + 1) / 3)
    results = load_results(tmp_path / "out")
    points = dose_items(results)[["variability", "confidence", "correctness"]]
    assert points.to_numpy().tolist() == [[0.21, 0.71, 5 / 6], [0.31, 0.21, 0.0], [0.02, 0.97, 1.0]]
    figure = data_map_figure(results)
    assert figure is not None
    [axis] = figure.canvas.axes
    assert axis.get_title(loc="left") == "made, imported"
    drawn = {line.get_marker(): line.get_xydata().round(9).tolist() for line in axis.lines}
    assert drawn == {"x": [[31, 21]], "s": [[21, 71]], "o": [[2, 97]]}
    assert [line["id"] for line in read_predictions(tmp_path / "out")] == ["50n", "7", "8"]
    assert cli.main(["report", str(tmp_path / "out")]) == 0


def test_methods_are_compared_at_equal_gain_without_items(imported: Import, tmp_path: Path) -> None:
    imported(TRAININGS, "")
    out = tmp_path / "out"
    assert cli.main(["report", str(out)]) == 0
    [table] = out.glob("**/keeping.csv")
    methods = {row["method"]: row for row in read_results(table)}
    # none: its means, 0.31 and 0.21, on the line from 0; ewc has a setting with this gain.
    assert float(methods["none"]["cost"]) == pytest.approx(0.21 * 0.26 / 0.31)
    assert float(methods["ewc"]["cost"]) == pytest.approx(0.06)
    assert float(methods["ewc"]["cost_more"]) == pytest.approx(0.06 - 0.21 * 0.26 / 0.31)
    assert [row["compared_gain"][:6] for row in methods.values()] == ["0.26", "0.26"]
    assert [row["num_seeds"] for row in methods.values()] == ["2", "2"]
    assert methods["ewc"]["cost_ci_low"] == ""
    figure = keeping_figure(load_results(out))
    assert figure is not None
    lines = [line.get_xydata().round(6).tolist() for line in figure.canvas.axes[0].lines]
    assert [[0, 0], [11, 1], [26, 6]] in lines  # the stronger one is nearer to 0
    assert [[0, 0], [31, 21]] in lines


def test_counts_have_the_numbers_of_forgetting(imported: Import, tmp_path: Path) -> None:
    numbers = imported(COUNTS, f"{N_COLUMNS},num_choices=5")
    assert (numbers["lost", "bert"], numbers["gained", "bert"]) == (10, 6)
    assert numbers["guessing", "bert"] == pytest.approx(0.5 * 0.54 / 4)
    assert numbers["adjusted_forgetting", "bert"] == pytest.approx(0.1 - 0.0675)
    exact = 2 * sum(comb(16, gained) for gained in range(7)) / 2**16  # McNemar's test, 6 of 16
    assert numbers["changed_p", "bert"] == pytest.approx(exact)
    assert numbers["net_loss", "gpt"] == pytest.approx(0.53 - 0.57)
    line = ["forgetting", "50,3,7,40", "--num_choices", "5", "--output_dir", str(tmp_path / "f")]
    assert cli.main(line) == 0
    for row in read_results(tmp_path / "f" / "results.csv"):
        assert numbers[row["metric"], "gpt"] == float(row["value"])


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (LEARNED, "", ":1: 'id' is missing (did you mean 'guid'?); name it as --columns id=THEIRS"),
        (LEARNED, "id=giud", ":1: no column 'giud' (did you mean 'guid'?), which --columns names"),
        (LEARNED, "id=guid", ":1: correctness is 5; give a share of the epochs, or their number"),
        (LEARNED, "id=guid,epochs=0", ":1: `epochs` is 0: give a number from 1 to"),
        (LEARNED, "id=identity,variability=guid", ":1: `variability` must be a number, not '50n'"),
        (LEARNED.replace('"8"', '"7"'), "id=guid,epochs=6", ":3: id 7 is already at "),
        (LEARNED.replace("0.31", "0.61"), "id=guid,epochs=6", ":2: `variability` is 0.61: give"),
        (SUITES, "id=item", ":2: 'num_choices' is missing; name it as --columns num_choices=THEIRS,"
         " or a number for all rows"),
        (SUITES, "id=item,num_choices=1", ":2: `num_choices` is 1: give a number from 2 to"),
        (SUITES, "id=correct,correct=item,num_choices=2", ":3: correct is 2; give 1, true, yes"),
        (SUITES + "npi,2,0\n", "id=item,num_choices=2", ":6: suite npi, id 2 is already at "),
        (TRAININGS + "ewc,1,2,0,0\n", "", ":8: method ewc, strength 1.0, seed 2 is already"),
        (TRAININGS.replace("strength", "strenght"), "", "is already at {}:4; columns not read: "
         "strenght"),
        (TRAININGS + "ewc,1,3,30,0\n", "", ":8: `gain` is 30: give a number from -1 to 1"),
        (TRAININGS[:66], "", "there are not two methods to compare"),
        (COUNTS, "", "fit no kind of table; say which it is"),
        (COUNTS, N_COLUMNS, ":2: 'num_choices' is missing"),
        (COUNTS + "t5,0,0,0,0\n", f"{N_COLUMNS},num_choices=2", ":4: 0 items in all; give 1 to"),
        (COUNTS.replace("40,10", "40.5,10"), f"{N_COLUMNS},num_choices=2", ":2: `both` must be"),
        ("both,lost,gained,neither,num_choices,method,gain,loss\n1,2,3,4,5,a,0,0\n", "",
         "fit trade_off and counts alike; say which it is, as one of import trade_off, counts"),
        ("id,confidence,variability,correctness,correct,num_choices\n1,1,0,1,1,2\n", "",
         "fit correct and data_map alike; say which it is"),
        (TRAININGS[:30], "", "a header and rows are needed"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(
    text: str, columns: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("table.jsonl" if text.startswith("{") else "table.csv")
    path.write_text(text)
    options = ["--columns", columns] if columns else []
    line = ["import", "table", f"{path}=m", *options, "--output_dir", str(tmp_path / "out")]
    assert cli.main(line) in (1, 2)
    assert message.format(path) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_kind_that_is_named_is_read(tmp_path: Path) -> None:
    path, out = tmp_path / "both.csv", tmp_path / "out"
    path.write_text("both,lost,gained,neither,num_choices,method,gain,loss\n1,2,3,4,5,a,0,0\n")
    assert cli.main(["import", "counts", str(path), "--output_dir", str(out)]) == 0
    assert {row["protocol"] for row in read_results(out / "results.csv")} == {"forgetting"}


@pytest.mark.parametrize("option", [["--probe", "age_small"], ["--scores", "logarithm"]])
def test_options_of_choices_are_refused(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "suites.csv"
    path.write_text(SUITES)
    line = ["import", "table", f"{path}=m", "--columns", "id=item,num_choices=2", *option]
    assert cli.main([*line, "--output_dir", str(tmp_path / "out")]) == 2
    assert "correct files have their own items; leave out --probe" in capsys.readouterr().err


def test_a_table_with_a_run_in_each_row_has_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probelight.commands.imports.tables.MOST_RUNS", 5)
    path = tmp_path / "trainings.csv"
    path.write_text(TRAININGS)
    assert cli.main(["import", "table", str(path), "--output_dir", str(tmp_path / "out")]) == 1
    assert "trainings.csv: 6 rows; such a file can have at most 5" in capsys.readouterr().err
