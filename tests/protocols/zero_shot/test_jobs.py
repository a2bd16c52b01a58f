"""The jobs of zero-shot: what their keys are made of."""

from __future__ import annotations

from dataclasses import replace

from probelight.protocols.engine.settings import FileSettings, ModelSettings
from probelight.protocols.jobs.job import TrainerSettings
from probelight.protocols.zero_shot.command import load_sets, zero_shot_jobs

MODEL = ModelSettings("somewhere/bert")


def test_what_decides_the_numbers_is_in_the_config_and_nothing_else_is() -> None:
    [one] = load_sets(["age_small"], FileSettings(), None, None)
    job = zero_shot_jobs([one], [MODEL], TrainerSettings(max_eval_tokens=64))[0]
    assert job.config == {
        "protocol": "zero_shot",
        "model": MODEL.config(),
        "probe": "age_small",
        "split": "dev",
        "data": [one.data.files[0].sha256],
        "precision": "32-true",
    }
    assert job.key.startswith("zero-shot-age_small-bert-")
    assert zero_shot_jobs([one], [MODEL], TrainerSettings())[0].key == job.key
    other = [
        zero_shot_jobs([one], [MODEL], TrainerSettings(), ranks=True)[0],
        zero_shot_jobs([one], [MODEL], TrainerSettings(precision="bf16-mixed"))[0],
        zero_shot_jobs([one._replace(split="test")], [MODEL], TrainerSettings())[0],
        zero_shot_jobs([one], [MODEL], TrainerSettings(), rules=["sum"])[0],
    ]
    assert len({job.key, *(one.key for one in other)}) == 5


def test_the_domain_stem_decides_numbers_where_it_is_asked_for() -> None:
    [one] = load_sets(["age_small"], FileSettings(), None, None)
    job = zero_shot_jobs([one], [MODEL], TrainerSettings(), rules=["sum", "pmi"])[0]
    assert (job.config["scoring"], job.config["domain_stem"]) == (["sum", "pmi"], "[MASK] .")
    config = replace(one.data.config, domain_stem="Older is [MASK] .")
    own = one._replace(data=replace(one.data, config=config))
    assert zero_shot_jobs([own], [MODEL], TrainerSettings(), rules=["sum", "pmi"])[0].key != job.key
    without = [
        zero_shot_jobs([this], [MODEL], TrainerSettings(), rules=["sum"])[0] for this in (one, own)
    ]
    assert without[0].key == without[1].key
