"""`search: tpe`: what is drawn, from what, and that a cell keeps it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.job import Job, drawn_config
from jobs.queue.entry import COMPLETE, Entry
from jobs.queue.queue import Queue
from jobs.search import draw, objectives_of, sample
from results.record import RunRecord
from results.row import Row
from storage.errors import UsageError
from tests.jobs.harness import planned, queue_of
from tests.jobs.trivial import RUNNER

SPACE = {
    "learning_rate": {"low": 1e-5, "high": 1e-3, "log": True},
    "extra": {"choices": ["none", "x1"]},
}


def trials(num_trials: int, dose: int = 100) -> list[Job]:
    configs = [{"setting": {"dose": dose}, "trial": i} for i in range(num_trials)]
    return [Job(f"trial{i}", config, RUNNER, search=SPACE) for i, config in enumerate(configs)]


def claimed(queue: Queue) -> Entry:
    entry = queue.claim(lambda entry: True)
    assert entry is not None
    return entry


def test_what_was_drawn_is_kept_whatever_happens_to_the_cell(tmp_path: Path) -> None:
    [cell] = trials(1)
    planned(tmp_path, [cell])
    queue, folder = queue_of(tmp_path), tmp_path / "runs" / cell.key
    entry = claimed(queue)
    draw(queue, entry, folder)
    drawn = json.loads((folder / "drawn.json").read_text())
    assert 1e-5 <= drawn["learning_rate"] <= 1e-3
    assert drawn["extra"] in {"none", "x1"}
    queue.fail(entry, "no", max_retries=1)
    again = claimed(queue)
    assert again.drawn == drawn
    draw(queue, again, folder)
    assert json.loads((folder / "drawn.json").read_text()) == drawn
    # Also when the storage is lost and the sweep planned anew.
    (tmp_path / "sweep.db").unlink()
    planned(tmp_path, [cell])
    queue = queue_of(tmp_path)
    anew = claimed(queue)
    draw(queue, anew, folder)
    assert queue.entries()[0].drawn == drawn
    assert anew.token > again.token
    whole = {"setting": {"dose": 100, **drawn}, "trial": 0, "search": SPACE}
    assert drawn_config(cell.config, folder) == whole


def test_a_worker_that_lost_the_cell_does_not_draw_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [cell] = trials(1)
    planned(tmp_path, [cell])
    queue, path = queue_of(tmp_path), tmp_path / "runs" / cell.key / "drawn.json"
    first = {"learning_rate": 5e-4, "extra": "x1"}

    def overtaken(*_: object, **__: object) -> dict[str, object]:
        path.write_text(json.dumps(first))  # of the next worker, while this one was stopped
        return {"learning_rate": 1e-5, "extra": "none"}

    monkeypatch.setattr("jobs.search.sample", overtaken)
    draw(queue, claimed(queue), path.parent)
    assert json.loads(path.read_text()) == first == queue.entries()[0].drawn
    assert [p.name for p in path.parent.glob(".drawn*")] == []


def finish(folder: Path) -> None:
    rows = (
        Row(split="selection", epoch=1, metric=f"{task}_accuracy", value=0.5)
        for task in ("probe", "original")
    )
    record = RunRecord(protocol="inoculation_cell", rows=tuple(rows))
    (folder / "result.json").write_text(json.dumps(record.to_json()))


def test_finished_trials_count_when_the_storage_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *three, last = trials(4)
    stranger, *_ = trials(1, dose=250)
    planned(tmp_path, [stranger, *three])
    queue, runs_dir = queue_of(tmp_path), tmp_path / "runs"
    for cell in [stranger, *three]:
        draw(queue, claimed(queue), runs_dir / cell.key)
        finish(runs_dir / cell.key)
    drawn = [json.loads((runs_dir / c.key / "drawn.json").read_text()) for c in three]
    (runs_dir / three[2].key / "result.json").write_text("[1")  # damaged
    (tmp_path / "sweep.db").unlink()
    planned(tmp_path, [last])
    seen: list[Entry] = []

    def spied(space: object, others: list[Entry], seed: int) -> dict[str, object]:
        seen.extend(others)
        return sample(SPACE, others, seed)

    monkeypatch.setattr("jobs.search.sample", spied)
    queue = queue_of(tmp_path)
    draw(queue, claimed(queue), runs_dir / last.key)
    assert sorted(entry.key for entry in seen) == sorted(cell.key for cell in three[:2])
    assert all(entry.objectives == (0.5, 0.5) and entry.drawn in drawn for entry in seen)
    own = json.loads((runs_dir / last.key / "drawn.json").read_text())
    assert own["learning_rate"] not in [said["learning_rate"] for said in drawn]


def test_trials_of_one_group_are_told_apart_and_groups_too() -> None:
    one, two = trials(2)
    assert one.key != two.key
    assert one.group == two.group != trials(1, dose=250)[0].group


def test_trials_of_another_space_are_other_cells_of_another_group() -> None:
    [cell] = trials(1)
    wider = {**SPACE, "learning_rate": {"low": 1e-6, "high": 1e-3, "log": True}}
    config = {"setting": {"dose": 100}, "trial": 0}
    other, fixed = Job(cell.name, config, RUNNER, search=wider), Job(cell.name, config, RUNNER)
    assert len({cell.key, other.key, fixed.key}) == 3
    assert len({cell.group, other.group}) == 2
    assert fixed.config == config


def entry(number: int, rate: float, objectives: tuple[float, float]) -> Entry:
    drawn = {"learning_rate": rate, "extra": "x1"}
    key = f"trial{number}"
    return Entry(number, number, key, (), COMPLETE, drawn=drawn, objectives=objectives)


def test_the_sampler_goes_where_both_objectives_were_good() -> None:
    # Above 1e-4 both tasks are forgotten, below both are good.
    rates = [10 ** (-5 + i / 10) for i in range(20)]
    others = [
        entry(i, rate, (0.9, 0.8) if rate < 1e-4 else (0.2, 0.2)) for i, rate in enumerate(rates)
    ]
    drawn = [sample(SPACE, others, seed)["learning_rate"] for seed in range(12)]
    assert sum(rate < 1e-4 for rate in drawn) >= 10
    assert len(set(drawn)) == 12


def test_the_first_draws_are_random_and_repeatable() -> None:
    assert sample(SPACE, [], seed=3) == sample(SPACE, [], seed=3)
    assert sample(SPACE, [], seed=3) != sample(SPACE, [], seed=4)


def test_the_objectives_are_those_of_the_epoch_with_the_best_mean(tmp_path: Path) -> None:
    scores = {0: (0.2, 0.9), 1: (0.5, 0.7), 2: (0.6, 0.65), 3: (0.7, 0.5)}
    rows = [
        Row(split="selection", epoch=epoch, metric=f"{task}_accuracy", value=value)
        for epoch, pair in scores.items()
        for task, value in zip(("probe", "original"), pair, strict=True)
    ]
    rows.append(Row(split="report", epoch=3, metric="probe_accuracy", value=1.0))
    path = tmp_path / "result.json"
    path.write_text(json.dumps(RunRecord(protocol="p", rows=tuple(rows)).to_json()))
    assert objectives_of(path) == (0.6, 0.65)  # 0.625; epoch 0 is not a candidate


def test_a_space_of_neither_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="learning_rate needs `low` and `high`"):
        sample({"learning_rate": {"low": 1.0}}, [], seed=0)
