"""The jobs of zero-shot: what their keys are made of."""

from __future__ import annotations

from jobs.context import TrainerSettings
from protocols.engine.settings import FileSettings, ModelSettings
from protocols.zero_shot.data import load_sets
from protocols.zero_shot.jobs import zero_shot_job

MODEL = ModelSettings("somewhere/bert")


def test_what_decides_the_numbers_is_in_the_config_and_nothing_else_is() -> None:
    [one] = load_sets("age_small", FileSettings(), None, None)
    job = zero_shot_job(MODEL, one, TrainerSettings(max_eval_tokens=64))
    assert job.config == {
        "protocol": "zero_shot",
        "model": MODEL.config(),
        "probe": "age_small",
        "split": "dev",
        "data": [one.data.files[0].sha256],
        "precision": "32-true",
    }
    assert job.key.startswith("zero-shot-age_small-bert-")
    assert zero_shot_job(MODEL, one, TrainerSettings()).key == job.key
    other = [
        zero_shot_job(MODEL, one, TrainerSettings(), ranks=True),
        zero_shot_job(MODEL, one, TrainerSettings(precision="bf16-mixed")),
        zero_shot_job(MODEL, one._replace(split="test"), TrainerSettings()),
    ]
    assert len({job.key, *(one.key for one in other)}) == 4
