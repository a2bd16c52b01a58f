from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.protocols.compare.blocks import blocks_of, named
from probelight.protocols.compare.compare import same_samples
from probelight.protocols.compare.systems import RunScores, System, scores_of, systems_of
from probelight.results.load import UnreadableResultError, load_results
from probelight.results.run_folder import CommandFolder


def read(folder: Path) -> list[RunScores]:
    return list(scores_of(load_results(folder), folder.name))


def test_items_meet_wherever_they_stand_and_however_they_are_padded(
    leave: Any, tmp_path: Path
) -> None:
    [plain] = read(leave.zero_shot(tmp_path / "a", "x", "1002"))
    padded = {"choices": ["larger", "smaller", ""], "scores": [0.0, 1.0, 0.5], "turned": True}
    [other] = read(leave.zero_shot(tmp_path / "b", "y", "0010", **padded))
    assert list(other.scores.values()) == [0.0, 1.0, 0.0, 0.0]
    assert next(iter(other.scores))[0] == "i3"
    [block], said = blocks_of([System((plain,)), System((other,))], across_folders=True)
    assert said == []
    first, second = (system.scores(block.items)[0].tolist() for system in block.systems)
    assert (first, second) == ([1.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0])


def test_an_item_that_is_asked_twice_is_two(leave: Any, tmp_path: Path) -> None:
    [twice] = read(leave.zero_shot(tmp_path / "a", "x", "100", id="same", question="Who?"))
    assert list(twice.scores.values()) == [1.0, 0.0, 0.0]
    assert [item[-1] for item in twice.scores] == [1, 2, 3]


def test_runs_of_one_seed_are_pairs_where_they_have_one_sample(leave: Any, tmp_path: Path) -> None:
    sizes, by_seed = {"a": 62, "b": 62, "c": 125}, {1: "10", 2: "01"}
    curves = [read(leave.curve(tmp_path / n, n, size, by_seed)) for n, size in sizes.items()]
    (one, same, larger), _ = systems_of([run for runs in curves for run in runs])
    assert same_samples(one, same)
    assert not same_samples(one, larger)
    [asked] = read(leave.zero_shot(tmp_path / "d", "d", "10"))
    assert not same_samples(System((asked,)), System((asked,)))


def test_a_run_that_is_there_twice_is_said(leave: Any, tmp_path: Path) -> None:
    [one] = read(leave.zero_shot(tmp_path / "a", "x", "10"))
    other = replace(one, path="runs/other", scores=dict.fromkeys(one.scores, 1.0))
    systems, [said] = systems_of([one, other, replace(one, path="runs/again")])
    assert [system.runs for system in systems] == [(one,)]
    assert said.startswith("a/runs/other: not compared, as runs/zero_shot-x")


def test_names_say_no_more_than_is_needed(leave: Any, tmp_path: Path) -> None:
    [one] = read(leave.zero_shot(tmp_path / "a", "x", "10"))

    def names(*answers: RunScores) -> list[str]:
        systems, _ = systems_of(answers)
        [block], _ = blocks_of(systems, across_folders=False)
        [found] = named([block])
        return list(found)

    causal, there = {"scored by": "causal"}, {"folder": "b", "origin": "other weights"}
    assert names(one, replace(one, model="y")) == ["x", "y"]
    assert names(one, replace(one, **there)) == ["x (a)", "x (b)"]
    assert names(one, replace(one, setting=causal)) == ["x (zero_shot)", "x (causal)"]
    assert names(one, replace(one, setting=causal, **there)) == ["x (a)", "x (b)"]


def test_damage_is_named(leave: Any, tmp_path: Path) -> None:
    folder = leave.zero_shot(tmp_path / "a", "x", "10", scores=[0.0])
    with pytest.raises(UnreadableResultError, match=r"predictions\.jsonl:1: 2 choices, but 1"):
        read(folder)
    assert CommandFolder(folder, {"command": "made"}).finished()
