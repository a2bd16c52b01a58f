from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from probelight.io.errors import UsageError
from probelight.protocols import cli
from probelight.protocols.compare.compare import compare
from probelight.reports.sections import made_sections
from probelight.results.details import ComparisonDetails
from probelight.results.load import load_results
from probelight.results.row import Row

FIRST = "1111111111110000"
SECOND = "1110000000001000"


RowsOf = Callable[..., list[Row]]


def values(rows: list[Row]) -> dict[tuple[str, str], float]:
    return {(row.metric, row.subset_text): row.value for row in rows}


def test_two_folders_from_the_command_line(
    leave: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = leave.zero_shot(tmp_path / "a", "bert", FIRST)
    other = leave.zero_shot(tmp_path / "b", "roberta", SECOND)
    leave.zero_shot(tmp_path / "b", "roberta", SECOND, probe="lonely")
    out = tmp_path / "out"
    assert cli.main(["compare", str(one), str(other), "--output_dir", str(out)]) == 0
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "compared with nothing: lonely (test, zero shot) in b" in printed
    assert "page: " in printed
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Systems on the same items" in page
    found = values(load_results(out).rows)
    p_value = float(binomtest(1, 10).pvalue)
    pair = "bert − roberta"
    assert found["difference", pair] == pytest.approx(0.5)
    assert found["accuracy", "bert"] == 0.75
    for metric in ("mcnemar_p", "p_value", "adjusted_p_value"):
        assert found[metric, pair] == pytest.approx(p_value)
    # A report of the folder, made from its files alone, shows it again.
    made = made_sections(load_results(out))
    assert {table.name for one in made for table in one.tables} >= {"compared", "compared_systems"}


@pytest.fixture
def rows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RowsOf:
    """`rows_of(out, *folders, **more)`: the rows of a comparison, of which no page is made."""
    build = "probelight.reports.build.build_report"
    monkeypatch.setattr(build, lambda folder: folder / "report.html")

    def compared(out: str, *folders: str, **more: Any) -> list[Row]:
        compare([tmp_path / name for name in folders], tmp_path / out, **more)
        return load_results(tmp_path / out).rows

    return compared


def subsets(rows: list[Row], kind: str) -> set[str]:
    return {row.subset_text for row in rows if row.subset and row.subset.kind == kind}


def test_p_values_are_adjusted_over_all_comparisons(
    leave: Any, tmp_path: Path, rows_of: RowsOf
) -> None:
    rights = {"x": "1" * 10 + "0" * 10, "y": "0" * 20, "z": "1" * 4 + "0" * 16}
    for model, right in rights.items():
        leave.zero_shot(tmp_path / "a", model, right)
        leave.zero_shot(tmp_path / "a", model, right[::-1], probe="turned")
    rows = rows_of("out", "a")
    assert rows_of("out", "a") == rows  # the same command goes on
    raw = [row.value for row in rows if row.metric == "p_value"]
    mine = [row.value for row in rows if row.metric == "adjusted_p_value"]
    assert sorted(raw) == pytest.approx([2 / 2**10] * 2 + [2 / 2**6] * 2 + [2 / 2**4] * 2)
    # The i-th of six by size, times 6 / i, but never above the next one: by hand 6/2, 6/4, 6/6.
    hand = {2 / 2**10: 3 * 2 / 2**10, 2 / 2**6: 1.5 * 2 / 2**6, 2 / 2**4: 2 / 2**4}
    assert mine == pytest.approx([hand[p] for p in raw])
    assert {row.num_items for row in rows} == {20}


def test_curves_meet_at_each_size_with_all_seeds(
    leave: Any, tmp_path: Path, rows_of: RowsOf
) -> None:
    for model, shift in (("x", 3), ("y", 0)):
        for size in (62, 1000):
            rights = {seed: "1" * (4 + seed + shift) + "0" * (16 - seed - shift) for seed in (1, 2)}
            leave.curve(tmp_path / model, model, size, rights, groups=[i // 2 for i in range(20)])
    leave.curve(tmp_path / "y", "y", 125, {1: "1" * 20})
    rows = rows_of("out", "x", "y")
    runs = load_results(tmp_path / "out").of("compare")
    facts = [run.detail(ComparisonDetails) for run in runs]
    settings = ["mlp, 1,000 examples", "mlp, 62 examples"]
    assert sorted(one.setting for one in facts if one) == settings
    assert all(one and one.num_runs == {"x": 2, "y": 2} and one.num_pairs == 2 for one in facts)
    difference = next(row for row in rows if row.metric == "difference")
    assert difference.value == pytest.approx(3 / 20)
    assert (difference.num_items, difference.num_groups) == (20, 10)
    assert any("mlp, 125 examples in y" in notice for run in runs for notice in run.notices)


def test_settings_of_one_model_are_compared_where_nothing_else_is(
    leave: Any, tmp_path: Path, rows_of: RowsOf
) -> None:
    for dose, right in ((50, "1100"), (1000, "1110")):
        for seed in (1, 2):
            leave.inoculation(tmp_path / "a", dose, seed, right, "1000")
    rows = rows_of("out", "a", probes="task")
    assert len(subsets(rows, "versus")) == 1
    assert subsets(rows, "model") == {"m (50 examples)", "m (1,000 examples)"}
    assert {row.probe for row in rows} == {"task"}


def test_a_model_in_two_folders_is_called_by_them_too(
    leave: Any, tmp_path: Path, rows_of: RowsOf
) -> None:
    for place, after in (("a", "1100"), ("b", "1110")):
        leave.inoculation(tmp_path / place, 50, 1, after, "1000")
    rows = rows_of("out", "a", "b")
    assert subsets(rows, "model") == {"m (a)", "m (b)"}
    runs = load_results(tmp_path / "out").of("compare")
    details = {run.probe: run.detail(ComparisonDetails) for run in runs}
    answered = {probe: one.answered for probe, one in details.items() if one}
    assert answered == {"made": "inoculated", "task": "inoculated"}
    # What was inoculated is one model, which said the same in both before.
    assert any("counted once: 2 of 8 systems" in notice for notice in runs[0].notices)


def test_what_is_said_of_groups(leave: Any, tmp_path: Path, rows_of: RowsOf) -> None:
    leave.zero_shot(tmp_path / "a", "x", "110011", num_groups=3)
    leave.zero_shot(tmp_path / "b", "y", "110000")
    leave.zero_shot(tmp_path / "a", "x", "110011", probe="p", groups=[0, 0, 1, 1, 2, 2])
    leave.zero_shot(tmp_path / "b", "y", "110000", probe="p", groups=[0, 0, 0, 0, 1, 1])
    rows = rows_of("out", "a", "b")
    said = [notice for run in load_results(tmp_path / "out").runs for notice in run.notices]
    assert len([one for one in said if "before groups of items were recorded" in one]) == 1
    assert len([one for one in said if "grouped in several ways" in one]) == 1
    assert {(row.probe, row.num_groups) for row in rows} == {("made", 6), ("p", 2)}


@pytest.mark.parametrize(
    ("right", "more", "words"),
    [
        ("1010", {}, "4 are in both, 2 in a (x) alone; 0 in b; have all items answered by both"),
        ("101010", {"word": "was"}, "0 are in both, 6 in a; 6 in b (y); in the same words"),
        ("10101011", {}, "6 are in both, 0 in a; 2 in b; 'Item 6 is [MASK].'"),
    ],
)
def test_other_items_are_refused_with_their_number(
    leave: Any, tmp_path: Path, right: str, more: dict[str, Any], words: str
) -> None:
    leave.zero_shot(tmp_path / "a", "x", "110011")
    leave.zero_shot(tmp_path / "b", "y", right, **more)
    with pytest.raises(UsageError) as caught:
        compare([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert [part for part in words.split("; ") if part not in str(caught.value)] == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("folders", "more", "words"),
    [
        ("a b", {}, "a: made (test, zero shot)"),
        ("a b a/", {}, "is given twice"),
        ("a b", {"probes": "mad"}, "did you mean 'made'?"),
        ("a b", {"output_dir": None}, "--output_dir"),
        ("a c", {}, "there is no such folder"),
        ("many", {}, "9 systems, which is too many"),
    ],
)
def test_what_cannot_be_compared(
    leave: Any, tmp_path: Path, folders: str, more: dict[str, Any], words: str
) -> None:
    leave.zero_shot(tmp_path / "a", "x", "110011")
    for model, right in (("y", "110011"), ("z", "110010")):  # z is there for nobody
        leave.zero_shot(tmp_path / "b", model, right, probe="other")
    for model in "abcdefghi":
        leave.zero_shot(tmp_path / "many", model, "110011")
    paths = [tmp_path / name for name in folders.split()]
    with pytest.raises((UsageError, FileNotFoundError), match=re.escape(words)):
        compare(**{"folders": paths, "output_dir": tmp_path / "out", **more})


def test_what_is_in_two_folders_counts_once(leave: Any, tmp_path: Path, rows_of: RowsOf) -> None:
    for place, models in (("a", {"x": "1101"}), ("b", {"x": "1101", "y": "1000"})):
        for model, right in models.items():
            leave.zero_shot(tmp_path / place, model, right)
    for folders in ("ab", "ba"):
        assert subsets(rows_of(f"out {folders}", *folders), "versus") == {"x − y"}
    [run] = load_results(tmp_path / "out ba").of("compare")
    assert "counted once: 1 of 3 systems" in run.notices[0]
    copy = leave.zero_shot(tmp_path / "c", "x", "1101")
    with pytest.raises(UsageError, match="counted once: 1 of 2 systems"):
        compare([tmp_path / "a", copy], tmp_path / "none")
