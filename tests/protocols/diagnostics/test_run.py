from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pytest

from probelight.io.errors import UsageError
from probelight.probes.diagnostics.perturbations import shuffled
from probelight.probes.diagnostics.sets import SETS, load_set
from probelight.protocols.diagnostics.jobs import RECORDED, model_job, recorded_job
from probelight.protocols.diagnostics.run import measure_model, measure_recorded
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.results.importers.recorded import find_recorded
from probelight.results.run_folder import RunFolder
from tests.fixtures.diagnostics import write_recorded, write_released


def planned(tmp_path: Path, **outputs: list[object]) -> tuple[RunFolder, RunContext]:
    mirror = write_released(tmp_path / "mirror")
    write_recorded(tmp_path / "outputs", **outputs)  # type: ignore[arg-type]
    names = [source.recorded_as for source in SETS.values()]
    [one] = find_recorded(tmp_path / "outputs", names)
    job = recorded_job(load_set("cprag", mirror), one)
    context = RunContext(mirror=str(mirror), paths={RECORDED: str(tmp_path / "outputs")})
    return RunFolder(tmp_path / "runs", job.name, job.config), context


def test_the_run_of_a_model(tmp_path: Path) -> None:
    run, context = planned(tmp_path, probabilities=[0.2, "nan", 0.1, 0.5, 0.4, 0.1])
    measure_recorded(run, run.config, context)
    record = run.result()
    assert record is not None
    assert (record.protocol, record.probe, record.model) == ("diagnose", "cprag", "bert")
    assert record.counts == {"items": 2, "prompts": 6}
    assert [use.path for use in record.data] == [
        "CPRAG-102.tsv", "modelpreds-cprag-bert.txt", "modeltgtprobs-cprag-bert.txt",
    ]  # fmt: skip
    assert record.notices[1].startswith("bert on CPRAG-102: 1 of 2 comparisons left out")
    lines = (run.path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert json.loads(lines[0])["expected"] == ["football"]
    assert json.loads(lines[1]) == {
        "context": "He caught the pass. He loved",
        "target": "baseball",
        "expected": [],
        "predictions": ["it", "football"],
        "probability": None,
    }


def test_a_model_of_ours_as_a_plain_loop_measures_it(
    tmp_path: Path, asked_model: Path, plain: Callable[[str], dict[str, float]]
) -> None:
    def right(context: str, words: list[str], k: int) -> bool:
        return any(word in words for word in list(plain(context))[:k])

    mirror = write_released(tmp_path / "mirror")
    model = ModelSettings(name_or_path=str(asked_model))
    context = RunContext(TrainerSettings("cpu", progress_bar=False), mirror=str(mirror))
    found = {}
    for name in ("cprag", "role"):
        job = model_job(load_set(name, mirror), model, context.trainer, shuffles=3)
        run = RunFolder(tmp_path / "runs", job.name, job.config)
        measure_model(run, job.config, context)
        record = run.result()
        assert record is not None
        found[name] = {(r.metric, r.subset_text, r.perturbation): r for r in record.rows}
        assert record.seeds == ((0, 1, 2) if name == "cprag" else ())
        assert (record.model_sha256, record.source.loaded_from) != ("", "")
    waitress, customer, bear, girl = (
        f"the owner forgot which {a} the {b} had" if a in "waitress customer" else
        f"the camper saw which {a} the {b} had"
        for a, b in (("waitress", "customer"), ("customer", "waitress"), ("bear", "girl"),
                     ("girl", "bear"))
    )  # fmt: skip
    # "tipped", behind the first, is no entry.
    asked = [(customer, ["served", "worked"]), (bear, ["seen"]), (girl, ["eaten"])]
    nouns = {
        "": lambda text: text,
        "generic_object": lambda text: re.sub(r"which \w+", "which one", text),
        "generic_subject": lambda text: re.sub(r"the \w+ had", "the other had", text),
        "generic_both": lambda text: re.sub(r"which .* had", "which one the other had", text),
    }
    for k in (1, 5, 10, 20):
        before = [right(text, words, k) for text, words in asked]
        for name, changed in nouns.items():
            after = [right(changed(text), words, k) for text, words in asked]
            row = found["role"][f"accuracy@{k}", "", name]
            assert (row.value, row.num_items) == (pytest.approx(sum(after) / 3), 3)
            if name and any(before):
                kept = [a for a, b in zip(after, before, strict=True) if b]
                row = found["role"][f"survival@{k}", "", name]
                assert row.value == pytest.approx(sum(kept) / len(kept))
    # A verb is more probable in its own context than in the one with the roles reversed.
    better = plain(customer)["served"] > plain(waitress)["served"]
    better += plain(girl)["eaten"] > plain(bear)["eaten"]
    assert found["role"]["sensitivity", "", ""].value == better / 2
    first, second = load_set("cprag", mirror).items
    for k in (5, 20):
        draws = [
            (right(f"{shuffled(first, s)} He loved", ["football"], k)
             + right(f"{shuffled(second, s)} ate the", ["cake"], k)) / 2
            for s in range(3)
        ]  # fmt: skip
        row, sd = (
            found["cprag"][f"accuracy@{k}{end}", "", "shuffled+truncated"] for end in ("", "_sd")
        )
        assert (row.value, sd.value) == pytest.approx((fmean(draws), stdev(draws)))


def test_outputs_that_changed_since_they_were_planned(tmp_path: Path) -> None:
    run, context = planned(tmp_path)
    write_recorded(tmp_path / "outputs", probabilities=[0.1] * 6)
    with pytest.raises(UsageError, match=r"modeltgtprobs-cprag-bert\.txt: changed since"):
        measure_recorded(run, run.config, context)
    write_recorded(tmp_path / "other", model="other")
    gone = RunContext(mirror=context.mirror, paths={RECORDED: str(tmp_path / "other")})
    with pytest.raises(UsageError, match="other: changed since"):
        measure_recorded(run, run.config, gone)
