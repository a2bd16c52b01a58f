from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from probelight.commands.curve.data import CurveData
from probelight.commands.curve.rows import Measurement, choice_sets, portions, write_point
from probelight.io.settings import typed
from probelight.models.registry import ModelSettings
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.results.measured import Predictions
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder
from tests.fixtures import subsets

SIZES, AGES = ("smaller", "larger"), ("older", "younger")


def record(stem: str, choices: tuple[str, ...], answer: int, template: str) -> Record:
    return Record(stem, stem, choices, answer, {"template": template})


RECORDS = (
    record("a", SIZES, 0, "one"),
    record("b", SIZES, 0, "one"),
    record("A", AGES, 0, "two"),  # the stem of the first but for its case: one group
    record("c", AGES, 1, "two"),
)


def data(train: tuple[Record, ...] = ()) -> CurveData:
    config = ProbeConfig("mixed", "mc_mlm", 2, 0.5, group_by="stem")
    return CurveData(config, config, "mc_mlm", train, RECORDS, "dev", "train of mixed", ())


def predictions(*chosen: int) -> Predictions:
    return Predictions("said", RECORDS, [[float(c == 0), float(c == 1)] for c in chosen])


def leave_point(
    folder: Path, rows: CurveData, measured: Sequence[Measurement], **options: Any
) -> Path:
    run = CommandFolder(folder, {}).run("point", {"a": 1})
    options |= {"mode": "mlp", "size": 62, "dtype": "float32", "fingerprints": {0: "abc"}}
    run.finish(write_point(run, rows, ModelSettings(kind="transformer"), measured, **options))
    return run.path


@pytest.fixture
def result(tmp_path: Path) -> Path:
    measured = [
        Measurement("standard", 3, 4, predictions(0, 1, 0, 1)),  # b is wrong
        Measurement("no_language", 3, 4, predictions(1, 1, 1, 1)),  # only c is right
    ]
    rows = data(train=(record("A ", SIZES, 0, "one"),))
    notices = ["two words unknown"]
    return leave_point(tmp_path / "out", rows, measured, notices=notices, with_levels=True)


def test_rows_of_whole_parts_and_levels(result: Path) -> None:
    cells = json.loads((result / "result.json").read_text())["rows"]
    rows = [typed(Row, row, "row") for row in cells]
    values = {(r.metric, r.control, r.subset_text): (r.value, r.num_items) for r in rows}
    assert len(values) == len(rows)
    assert values == {
        ("accuracy", "standard", ""): (0.75, 4),
        ("accuracy", "standard", "template=one"): (0.5, 2),
        ("accuracy", "standard", "template=two"): (1.0, 2),
        ("accuracy", "standard", "pair=larger/smaller"): (0.5, 2),
        ("accuracy", "standard", "pair=older/younger"): (1.0, 2),
        # a and A are in train
        ("accuracy", "standard", "group not in train"): (0.5, 2),
        ("accuracy", "no_language", ""): (0.25, 4),
        # a and A are right, and not under the control: log2 of e / (e + 1) less that of 1 / (e + 1)
        ("conditional_v_information", "standard", ""): (pytest.approx(2 / math.log(2) / 4), 4),
        ("chance", "standard", ""): (0.5, 4),
        ("tied_share", "standard", ""): (0.0, 4),
        ("tied_share", "no_language", ""): (0.0, 4),
        # The choices are no closed set, and no model sees a position: there is no majority.
    }


def test_hits_and_groups_are_in_the_order_of_the_rows_and_facts_are_kept(result: Path) -> None:
    assert json.loads((result / "hits.json").read_text()) == {
        "groups": [0, 1, 0, 2],
        "hits": {"standard": {"3": "1011"}, "no_language": {"3": "0001"}},
    }
    content = json.loads((result / "result.json").read_text())
    assert (content["hits_file"], content["seeds"]) == ("hits.json", [3])
    assert content["curve"]["train"] == "train of mixed"
    assert content["curve"]["control_words"] == {"no_language": {}}
    assert content["notices"] == ["two words unknown"]


def test_hits_of_ties_are_scores(tmp_path: Path) -> None:
    tied = Predictions("said", RECORDS, [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    path = leave_point(tmp_path / "out", data(), [Measurement("standard", 3, 4, tied)])
    assert json.loads((path / "hits.json").read_text())["hits"] == {
        "standard": {"3": [0.5, 0.0, 1.0, 0.5]}
    }
    content = json.loads((path / "result.json").read_text())
    values = {row["metric"]: row["value"] for row in content["rows"] if not row.get("subset")}
    assert values == {"accuracy": 0.5, "tied_share": 0.5}
    assert content["notices"] == [
        "2 of 4 items of said are ties: n choices share the best score, and the item counts 1/n if "
        "the right one is among them"
    ]


def test_sets_of_many_different_words_are_no_subsets() -> None:
    many = [record(str(i), (f"w{i}", f"v{i}"), 0, "one") for i in range(7)]  # 14 words
    assert set(choice_sets(many)) == {None}
    assert set(choice_sets(many[:6])) == {subsets.choices(f"v{i}", f"w{i}") for i in range(6)}
    assert set(choice_sets(many[:1])) == {None}


def test_the_first_portion_of_900_targets_of_45_classes_and_what_is_sent_by_the_model() -> None:
    classes = tuple(f"c{number}" for number in range(45))
    sample = [Record(f"t{n}", "", classes, n % 45) for n in range(902)]
    sure = [math.log(0.5)] + [math.log(0.5 / 44)] * 44  # the gold of item 900 is class 0
    sent = portions([900, 902], 900, sample, [sure, sure])
    assert [(row.metric, row.num_items) for row in sent] == [
        ("first_bits", 900),
        ("code_bits", 2),
        ("guessed_bits", 2),
    ]
    bits = [900 * math.log2(45), 1 + math.log2(88), 2 * math.log2(45)]
    assert [row.bits for row in sent] == pytest.approx(bits)
    assert [row.metric for row in portions([62, 900, 902], 900, sample, [sure, sure])] == [
        "code_bits",
        "guessed_bits",
    ]
    assert portions([900], 900, sample[:900], []) == []  # a single size sends nothing
    lost = [math.nan] * 45
    assert [row.metric for row in portions([900, 902], 900, sample, [sure, lost])] == ["first_bits"]
