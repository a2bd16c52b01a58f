"""The command: folders, columns of a table, a count; what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight import cli
from probelight.commands.forgetting import forgetting
from probelight.io.errors import UsageError
from probelight.reports.build import title
from probelight.reports.forgetting import changed, changes_table
from probelight.reports.sections import filled_sections
from probelight.reports.table import Cell
from probelight.results.frames import items_frame
from probelight.results.load import load_results
from tests.commands.test_compare import leave_inoculation, leave_zero_shot
from tests.fixtures.report import present
from tests.fixtures.rows import read_results


def values(out: Path) -> dict[str, float]:
    return {row["metric"]: float(row["value"]) for row in read_results(out / "results.csv")}


@pytest.mark.thorough
def test_two_runs_by_plain_counting(tmp_path: Path) -> None:
    base, tuned = "1100110011" * 5, "1010110001" * 5
    folders = [
        leave_zero_shot(tmp_path / name, name, right)
        for name, right in (("base", base), ("tuned", tuned))
    ]
    out = tmp_path / "out"
    assert cli.main(["forgetting", *map(str, folders), "--output_dir", str(out)]) == 0
    pairs = list(zip(base, tuned, strict=True))
    lost, gained = pairs.count(("1", "0")), pairs.count(("0", "1"))
    numbers = values(out)
    assert (numbers["lost"], numbers["gained"]) == (lost, gained)
    assert numbers["forgetting"] == pytest.approx(lost / 50)
    wrong_before, wrong_after = base.count("0") / 50, tuned.count("0") / 50
    assert numbers["guessing"] == pytest.approx(wrong_before * wrong_after)  # two choices
    results = load_results(out)
    frame = changed(results)
    assert len(frame) == 1
    items = items_frame(results)
    of_made = items[items.set == "made"]
    assert ((of_made.before == 1) & (of_made.correct == 0)).sum() == lost
    assert filled_sections(results)[0].name == "forgetting"
    # The same command goes on where it stopped.
    assert cli.main(["forgetting", *map(str, folders), "--output_dir", str(out)]) == 0


def test_an_inoculation_is_measured_after_by_what_it_ended_with(tmp_path: Path) -> None:
    base = leave_zero_shot(tmp_path / "base", "m", "1" * 50)
    leave_inoculation(tmp_path / "dose", 100, 1, "1" * 40 + "0" * 10, "1" * 50)
    forgetting([str(base), str(tmp_path / "dose")], tmp_path / "out", ["made"])
    assert values(tmp_path / "out")["lost"] == 10


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("head", "tuned"),
    [
        ("base,tuned,group,num_choices", "tuned"),
        ("Base,tuned,Group,Num_Choices", "Tuned"),  # names are known in any case
    ],
)
def test_columns_of_a_table_with_groups(head: str, tuned: str, tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    rows = [f"{n % 2},{int(n % 3 == 0)},g{n // 2},4" for n in range(100)]
    table.write_text("\n".join([head, *rows]))
    forgetting([f"{table}:base", f"{table}:{tuned}"], tmp_path / "out")
    lost = sum(n % 2 == 1 and n % 3 != 0 for n in range(100))
    [row] = [r for r in read_results(tmp_path / "out" / "results.csv") if r["metric"] == "lost"]
    assert (float(row["value"]), row["num_groups"]) == (lost, "50")


def test_a_count_alone_is_printed_and_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["forgetting", "40,10,6,44", "--num_choices", "5"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "10 / 6 p = 0.329" in printed
    assert "independently before and after (Harmon" in printed
    assert "items of │ items │" in printed  # nothing is known of what was measured before
    assert "nothing was saved" in printed


@pytest.mark.thorough
def test_what_is_forgotten_and_how_far_that_can_be_told(tmp_path: Path) -> None:
    verdicts = {
        "40,8,7,45 --num_choices 5": ("cannot tell", "some 400 items would show that it is"),
        # Where half of the margin seems to be lost, more items may well show a loss.
        "40,10,6,44 --num_choices 5": ("cannot tell", "it may have lost up to 10.7 points"),
        # A half of both were right by guessing, and a model that guesses has nothing to forget.
        "43,32,0,75 --num_choices 2": ("not known before", "not clearly above chance before"),
        "5,0,0,95 --num_choices 4": ("not known before", "not clearly above chance before"),
        "63,32,0,55 --num_choices 2": ("forgot", ""),
        "63,5,0,32 --num_choices 5": ("forgot", ""),
        # Of more items the same share is clear, and so is that it is less than the margin.
        "1900,50,10,40 --num_choices 5": ("forgot", "less than 5 points"),
        "30,0,10,60 --num_choices 5": ("gained", ""),
        "300,9,8,83 --num_choices 4": ("kept", "within 5 points"),
        "300,90,80,230 --num_choices 50": (
            "kept",
            "within 5 points, but 90 lost and 80 gained, more than guessing explains",
        ),
        # The loss itself is near the margin, so that no number of items tells.
        "500,70,60,70 --num_choices 2": ("kept", "within 5 points"),
        "425,100,75,100 --num_choices 2": ("cannot tell", "it may have lost up to 6.7 points"),
        "5,5,5,5 --num_choices 4": ("cannot tell", "fewer than 40 groups"),
    }
    for number, (case, expected) in enumerate(verdicts.items()):
        count, _, choices = case.split()
        forgetting([count], tmp_path / str(number), num_choices=int(choices))
        [row] = changed(load_results(tmp_path / str(number))).itertuples()
        word, reason = expected
        assert (row.verdict, row.reason[: len(reason)]) == (word, reason), case


def test_another_margin_is_another_verdict(tmp_path: Path) -> None:
    for margin, expected in ((5.0, "cannot tell"), (13.0, "kept")):
        folder = tmp_path / f"{margin}"
        forgetting(["40,10,6,44"], folder, num_choices=5, margin=margin)
        [row] = changed(load_results(folder)).itertuples()
        assert (row.verdict, row.margin) == (expected, margin / 100)


def test_the_table_of_a_verdict_has_the_numbers_that_decide_it(tmp_path: Path) -> None:
    forgetting(["63,5,0,32"], tmp_path, num_choices=5)
    table = changes_table(load_results(tmp_path))
    assert table is not None
    cells = {column.label: cell for column, cell in zip(table.columns, table.rows[0], strict=True)}
    assert (cells["lost / gained"].text, cells["lost / gained"].detail) == ("5 / 0", "p = 0.038")
    assert (cells["loss"].text, cells["loss"].detail) == ("+5.0", "+0.3 to +9.8")
    assert cells["above chance before"].text == "+48.0"  # 68 of 100, and 20 by guessing
    assert table.frame.changed_p[0] == pytest.approx(2 / 2**5)
    assert "counted learned" not in title(load_results(tmp_path))


@pytest.mark.thorough
def test_a_number_below_zero_says_what_it_means(tmp_path: Path) -> None:
    def adjusted(count: str, num_choices: int) -> list[Cell]:
        forgetting([count], tmp_path / count, num_choices=num_choices)
        table = present(changes_table(load_results(tmp_path / count)))
        columns = zip(table.columns, table.rows[0], strict=True)
        return [cell for column, cell in columns if column.group == "adjusted, points"]

    # No answer changed. By guessing, 0.95 * 0.95 / 3 of the items would be lost, and gained.
    lost, _, gained = adjusted("5,0,0,95", 4)
    assert lost.text == gained.text == "−30.1"
    assert lost.detail.endswith(" · fewer than by guessing")
    assert gained.detail.endswith(" · fewer than by guessing")
    # 40 of 100 are lost, and 0.45 * 0.2 would be by guessing.
    lost, _, _ = adjusted("40,40,15,5", 2)
    assert lost.text == "+31.0"
    assert "guessing" not in lost.detail


TABLES = {
    "full": "id,base,tuned,num_choices,group\na,1,0,2,x\nb,0,1,2,x\n",
    "turned": "id,tuned\nb,1\na,0\n",
    "twice": "base,base,tuned\n1,1,0\n0,0,1\n",
    "blank": "tuned,group\n1,x\n0,\n",
    "capital": "Id,Base,tuned,num_choices,Group\na,1,0,2,x\nb,0,1,2,x\n",
    "turned_capital": "ID,tuned\nb,1\na,0\n",
    "repeated": "id,base,tuned\na,1,0\nb,0,1\na,1,0\n",
    "both_cases": "ID,id,base,tuned\na,1,1,0\nb,2,0,1\n",
    "underscore": "base,tuned\n1,0\n0_1,1\n",
    "arabic": "base,tuned,num_choices\n1,0,٤\n0,1,٤\n",
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["40,10,6,44"], "with --num_choices K, such as 40,10,6,44"),
        (["0,0,0,0", "--num_choices", "2"], "give counts of 1 to 10,000,000 items in all"),
        (
            ["40000000000,10,6,44", "--num_choices", "5"],
            "40000000000,10,6,44: give counts of 1 to 10,000,000 items",
        ),
        (["{base}"], "give two measurements"),
        (["{csv}:base", "{base}"], "or folders, not both"),
        (["{csv}:base", "{csv}:tunde", "--num_choices", "2"], "did you mean 'tuned'"),
        (["{csv}:base", "{csv}:tuned"], "either --num_choices K or a column num_choices"),
        (["{csv}:base", "{csv}:odd", "--num_choices", "2"], "scores.csv:2: odd is 'x'"),
        (["{base}", "{base}", "--probes", "maed"], "did you mean 'made'"),
        (["{base}", "{other}"], "no set was answered both before and after; it has others"),
        (["{base}", "{base}", "{other}"], "no set was answered both before and after"),
        (["40,10,6", "--num_choices", "2"], "give a count as four whole numbers"),
        (["40", "10", "6", "44", "--num_choices", "2"], "give a count as four whole numbers"),
        (["{csv}", "{csv}"], "scores.csv: give columns of tables, as FILE.csv:COLUMN"),
        (["{csv}:", "{csv}:base"], "scores.csv:: give columns"),
        (["{base}", "{base}", "--num_choices", "4"], "runs record the choices of their items"),
        (["{csv}:base", "{csv}:tuned", "--probes", "made"], "--probes is for folders"),
        (["{full}:base", "{full}:tuned", "--num_choices", "2"], "num_choices, not both"),
        (["{full}:base", "{turned}:tuned"], "turned.csv:2: id is 'b', but 'a' in"),
        (["{full}:base", "{twice}:tuned"], "twice.csv:1: two columns are called 'base'"),
        (["{full}:base", "{turned_capital}:tuned"], "turned_capital.csv:2: id is 'b', but 'a' in"),
        (["{capital}:base", "{turned}:tuned"], "turned.csv:2: id is 'b', but 'a' in"),
        (
            ["{repeated}:base", "{repeated}:tuned", "--num_choices", "2"],
            "repeated.csv:4: the id 'a' is already at",
        ),
        (
            ["{both_cases}:base", "{both_cases}:tuned", "--num_choices", "2"],
            "both_cases.csv:1: two columns are called 'ID' and 'id'",
        ),
        (
            ["{underscore}:base", "{underscore}:tuned", "--num_choices", "2"],
            "underscore.csv:3: base is '0_1'; give a score",
        ),
        (["{arabic}:base", "{arabic}:tuned"], "arabic.csv:2: num_choices is '٤'; give 2 or more"),
        (["٤٠,١٠,٦,٤٤", "--num_choices", "5"], "give a count as four whole numbers"),
        (["1_0,2,3,4", "--num_choices", "5"], "give a count as four whole numbers"),
        (["{full}:base", "{blank}:tuned"], "blank.csv:3: group is '', which must not be empty"),
    ],
)
def test_mistaken_counts_and_folders_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("base,tuned,odd\n1,0,x\n0,1,1\n")
    names = {
        "base": str(leave_zero_shot(tmp_path / "base", "m", "10")),
        "other": str(leave_zero_shot(tmp_path / "other", "m", "10", probe="others")),
        "csv": str(table),
    }
    for name, text in TABLES.items():
        names[name] = str(tmp_path / f"{name}.csv")
        Path(names[name]).write_text(text)
    assert cli.main(["forgetting", *(text.format(**names) for text in options)]) in (1, 2)
    assert message in capsys.readouterr().err


def test_of_several_models_before_one_must_be_the_same(tmp_path: Path) -> None:
    for model, right in (("a", "10"), ("b", "01")):
        leave_zero_shot(tmp_path / "base", model, right)
    tuned = leave_zero_shot(tmp_path / "after", "c", "11")
    with pytest.raises(UsageError, match="several models or settings"):
        forgetting([str(tmp_path / "base"), str(tuned)], tmp_path / "out")
    same = leave_zero_shot(tmp_path / "same", "b", "11")
    forgetting([str(tmp_path / "base"), str(same)], tmp_path / "out")
    assert values(tmp_path / "out")["gained"] == 1
