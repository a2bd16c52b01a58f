from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probelight.results.details import (
    ComparisonDetails,
    CurveDetails,
    InoculationDetails,
    OriginalParts,
    UnigramDetails,
)
from probelight.results.provenance import DataUse
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Row
from tests.fixtures import subsets

WHOLE = RunRecord(
    protocol="inoculation",
    model="m",
    rows=(Row(metric="a", value=0.5, subset=subsets.clusters(4)), Row(metric="b", value=1)),
    counts={"train": 3},
    notices=("one", "two"),
    seeds=(0, 1),
    data=(DataUse(path="a.jsonl", sha256="ab", num_items=3), DataUse(path="b", sha256="cd")),
    source=ModelSource(loaded_from="x", hub_id="x"),
    seconds=1.5,
    details=(
        OriginalParts(sets=("arc", "sciq"), train_items=100),
        CurveDetails(train="train of p", control_words={"no_language": {"a": "foo"}}),
        InoculationDetails(
            original_task="arc",
            report_split=None,
            setting={"dose": 3},
            history=({"epoch": 1.0}, {"epoch": 2.0}),
            cost_interpretable=False,
            candidates=("k1",),
        ),
        UnigramDetails(models=("a", "b"), measure="max"),
        ComparisonDetails(answered="zero shot", setting="", num_runs={"a": 1}, num_pairs=1),
    ),
    facts={"anything": [1, None]},
    key="k",
    files={"config.yaml": {"size": 3, "sha256": "ef"}},
)


def test_a_record_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(WHOLE.to_json()))
    assert RunRecord.read(path) == WHOLE
    bare = RunRecord(protocol="p")
    assert RunRecord.from_json(json.loads(json.dumps(bare.to_json())), "r") == bare


def test_rules_that_older_files_have_as_modes_are_read_as_scoring() -> None:
    """Every other column stays, and newer files are read as they are."""
    told = {"protocol": "zero_shot", "metric": "accuracy"}
    part = {"kind": "paradigm", "name": "order"}
    written: list[dict[str, Any]] = [
        {**told, "mode": "pseudo_log_likelihood", "value": 0.5},
        {**told, "mode": "pseudo_log_likelihood", "value": 0.25, "subset": part},
        {**told, "mode": "mean_token", "value": 0.75, "num_items": 4},
        {**told, "mode": "mean_token", "value": 1.0, "subset": part},
        {**told, "mode": "pmi", "metric": "flipped_share", "value": 0.125},
    ]
    record = RunRecord.from_json({"format": 2, "protocol": "zero_shot", "rows": written}, "r")
    assert {row.mode for row in record.rows} == {"pseudo_log_likelihood"}
    assert [row.scoring for row in record.rows] == ["", "", "mean_token", "mean_token", "pmi"]
    as_before = [
        {**{k: v for k, v in row.to_json().items() if k != "scoring"}, "mode": old["mode"]}
        for row, old in zip(record.rows, written, strict=True)
    ]
    assert as_before == written
    assert RunRecord.from_json(record.to_json(), "r") == record


def test_rules_that_an_older_audit_counted_are_read_as_scoring() -> None:
    counted = {"protocol": "audit", "metric": "accuracy", "value": 0.5}
    rules = [{**counted, "mode": "the longest answer"}, {**counted, "mode": "sum"}]
    baseline = {**counted, "kind": "choice_only", "mode": "fine_tuned"}
    written = {"format": 2, "protocol": "audit", "rows": [*rules, baseline]}
    record = RunRecord.from_json(written, "r")
    assert [(row.mode, row.scoring) for row in record.rows] == [
        *(("", "the longest answer"), ("", "sum"), ("fine_tuned", "")),
    ]
    assert RunRecord.from_json(record.to_json(), "r") == record


def test_what_is_as_it_is_without_being_said_is_not_written() -> None:
    written = RunRecord(protocol="p", details=(CurveDetails(train="t"),)).to_json()
    assert {"seconds", "key", "source", "inoculation"}.isdisjoint(written)
    assert "first_stage" not in written["curve"]
    assert {"python", "torch"} <= written["versions"].keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "^r: written by another version of Probelight"),
        ({"format": None}, "^r: written by another version of Probelight"),
        ({"seeds": [0, "x"]}, r"^r: `seeds\[1\]` must be a whole number, not 'x'"),
        ({"seeds": 7}, "^r: `seeds` must be a list, not 7"),
        ({"counts": []}, r"^r: `counts` must be a mapping, not \[\]"),
        (
            {"rows": [{"value": 1}, {"value": "x"}]},
            r"^r: `rows\[1\].value` must be a number, not 'x'",
        ),
        ({"data": [{"path": "a"}]}, r"^r: `data\[0\].sha256` is missing"),
        ({"curve": {"trian": "t"}}, r"^r: `curve.trian` is no key \(did you mean 'train'\?\)"),
        ({"model": 3}, "^r: `model` must be text in quotes, not 3"),
        ({"seconds": "1"}, "^r: `seconds` must be a number, not '1'"),
    ],
)
def test_what_is_not_as_it_should_be_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunRecord.from_json({**WHOLE.to_json(), **change}, "r")


@pytest.mark.parametrize("counts", [{"items": "many"}, {"items": None}, {"items": [3]}])
def test_a_count_that_is_no_number_is_named(counts: dict[str, Any]) -> None:
    written = {**RunRecord(protocol="zero_shot").to_json(), "counts": counts}
    with pytest.raises(ValueError, match=r"x\.json: `counts\.items` must be a whole"):
        RunRecord.from_json(written, "x.json")
