from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.context import RunContext
from protocols.inoculation.data import (
    add_some,
    dose_of,
    original_splits,
    probe_splits,
)
from protocols.inoculation.settings import InoculatedProbe, OriginalTask
from storage.errors import UsageError


@pytest.fixture
def task(tiny_probes: Path) -> OriginalTask:
    return OriginalTask(
        "first",
        [str(tiny_probes / "first.yaml")],
        report_share=0.2,
        selection_share=0.1,
        reserved_share=0.3,
    )


@pytest.fixture
def context(tiny_probes: Path) -> RunContext:
    return RunContext(mirror=str(tiny_probes / "mirror"))


def test_the_parts_of_the_original_task_share_no_cluster(
    task: OriginalTask, context: RunContext
) -> None:
    splits = original_splits(task, context)
    parts = (splits.train, splits.selection, splits.reserved, splits.report)
    assert [len(part) for part in parts] == [32, 8, 24, 16]  # 40, 10, 30 and 20% of 80
    clusters = [{record.meta["cluster"] for record in part} for part in parts]
    assert sum(map(len, clusters)) == len(set.union(*clusters)) == 40


def test_doses_are_nested_and_leave_the_selection_alone(
    tiny_probes: Path, context: RunContext
) -> None:
    probe = InoculatedProbe(str(tiny_probes / "second.yaml"), selection_items=20)
    splits = probe_splits(probe, context)
    small, large = dose_of(splits, 10, 0), dose_of(splits, 30, 0)
    assert large[:10] == small
    selected = {record.meta["cluster"] for record in splits.selection}
    assert len(splits.selection) == 20
    assert not selected & {record.meta["cluster"] for record in splits.train}
    assert dose_of(splits, 10, 1) != small
    with pytest.raises(UsageError, match="--dose 61: only 60 probe examples"):
        dose_of(splits, 61, 0)


def test_paper_selection_chooses_on_what_it_reports(tiny_probes: Path, context: RunContext) -> None:
    probe = InoculatedProbe(str(tiny_probes / "second.yaml"), selection="paper")
    splits = probe_splits(probe, context)
    assert splits.selection == splits.report
    assert len(splits.train) == 80


def test_a_probe_without_a_report_file_keeps_whole_clusters_of_its_train_file(
    tiny_probes: Path, context: RunContext
) -> None:
    name = str(tiny_probes / "second.yaml")
    probe = InoculatedProbe(name, report_split=None, report_share=0.25, selection_items=20)
    splits = probe_splits(probe, context)
    parts = (splits.report, splits.selection, splits.train)
    assert [len(part) for part in parts] == [20, 20, 40]
    clusters = [{record.meta["cluster"] for record in part} for part in parts]
    assert sum(map(len, clusters)) == len(set.union(*clusters)) == 40


def test_reserved_sets_are_kept_for_add_some_as_a_whole(
    task: OriginalTask, tiny_probes: Path, context: RunContext
) -> None:
    other = replace(task, reserved_sets=[str(tiny_probes / "second.yaml")])
    splits = original_splits(other, context)
    # The share of 30% stays with the training items: 80 - 16 reported - 8 selected.
    assert [len(splits.train), len(splits.reserved)] == [56, 80]
    assert {r.meta["source_set"] for r in splits.reserved} == {"second"}


def test_groups_are_those_that_splits_keep_together(
    task: OriginalTask, context: RunContext
) -> None:
    splits = original_splits(task, context)
    groups = splits.groups(splits.report)
    assert groups == [f"first: {record.meta['cluster']}" for record in splits.report]
    assert len(set(groups)) == len(groups) / 2  # two questions a cluster, none parted


def test_add_some_takes_reserved_items(task: OriginalTask, context: RunContext) -> None:
    splits = original_splits(task, context)
    assert add_some(splits, 10, "none", 0) == []
    assert {r.id for r in add_some(splits, 12, "x2", 0)} == {r.id for r in splits.reserved}
    assert len(add_some(splits, 10, "x1", 0)) == 10
    with pytest.raises(UsageError, match="needs 26 reserved"):
        add_some(splits, 13, "x2", 0)


def test_overlap_with_the_train_file_is_by_group(tiny_probes: Path, context: RunContext) -> None:
    probe = InoculatedProbe(str(tiny_probes / "second.yaml"), selection_items=20)
    splits = probe_splits(probe, context)
    assert [len(files) for files in (splits.train_files, splits.report_files)] == [1, 1]
    assert not any(splits.not_in_train(splits.train + splits.selection))
    assert all(splits.not_in_train(splits.report))
    (relative,) = splits.report[:1]
    known = {**relative.meta, "cluster": splits.train[0].meta["cluster"]}
    assert splits.not_in_train([replace(relative, meta=known)]) == [False]


def test_overlap_with_the_file_of_another_set_is_by_stem(
    tiny_probes: Path, context: RunContext
) -> None:
    sets = [str(tiny_probes / f"{name}.yaml") for name in ("first", "second")]
    splits = original_splits(OriginalTask("both", sets, report_sets=sets), context)
    first, second = splits.report[0], splits.report[-1]
    assert (first.meta["source_set"], second.meta["source_set"]) == ("first", "second")
    assert splits.not_in_train([first, second]) == [True, True]
    (foreign,) = [r for r in splits.train if r.meta["source_set"] == "second"][:1]
    assert splits.not_in_train([replace(first, stem=foreign.stem.upper())]) == [False]
    own = {**first.meta, "cluster": foreign.meta["cluster"]}  # another set's clusters are no kin
    assert splits.not_in_train([replace(first, meta=own)]) == [True]
