"""What a job runs under: told to other processes, fixed by its key, kept for the jobs behind it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from probelight.io.errors import UsageError
from probelight.io.wandb import WandbSettings
from probelight.probes.catalog import ProbeConfig, load_probe_config
from probelight.protocols.jobs.context import RunContext, TrainerSettings, kept

CONTEXT = RunContext(
    TrainerSettings(accelerator="cpu", threads=2),
    WandbSettings(project="probes", tags=("a", "b")),
    "file:///mirror",
    {"whales": ProbeConfig("whales", "mc_qa", 3, 0.4, candidates=("a", "b", "c"))},
    {"wordnet": "/somewhere"},
)


def test_another_process_is_told_all_of_it() -> None:
    assert RunContext.from_json(json.loads(json.dumps(CONTEXT.to_json()))) == CONTEXT
    with pytest.raises(KeyError):
        RunContext.from_json({"trainer": {}})


def test_what_a_key_was_made_with_holds() -> None:
    fixed = CONTEXT.fixed_by({"precision": "bf16-mixed", "threads": 1, "seed": 3})
    assert fixed == replace(
        CONTEXT, trainer=replace(CONTEXT.trainer, precision="bf16-mixed", threads=1)
    )
    assert CONTEXT.fixed_by({}) == CONTEXT


def test_a_probe_of_ones_own_is_found_by_its_name() -> None:
    config = load_probe_config("age_small")
    own = RunContext(own={"whales": config})
    assert (own.probe("whales"), own.probe("age_small")) == (config, "age_small")


def test_a_loader_keeps_as_many_values_as_it_says_for_a_command() -> None:
    made: list[int] = []

    @kept(most=1)
    def load(context: RunContext, number: int) -> str:
        made.append(number)
        return f"{number} of {context.mirror}"

    @kept(most=None)
    def load_all(context: RunContext, *, number: int) -> int:
        made.append(-number)
        return number

    context = RunContext(mirror="here")
    assert [load(context, 1) for _ in range(2)] == ["1 of here", "1 of here"]
    assert [load(context.fixed_by({"threads": 2}), number) for number in (1, 2, 1)] == [
        "1 of here",
        "2 of here",
        "1 of here",
    ]
    assert made == [1, 2, 1]
    assert [load_all(context, number=number) for number in (1, 2, 1, 2)] == [1, 2, 1, 2]
    assert made == [1, 2, 1, -1, -2]
    assert load(replace(context, mirror="there"), 1) == "1 of there"
    assert load(RunContext(), 1) == "1 of None"  # another command begins with nothing
    assert context == RunContext(mirror="here")


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    assert TrainerSettings(accumulate=4).micro_batch(16) == 4
    with pytest.raises(UsageError, match=r"batch_size 16 is not a multiple of .*accumulate 3"):
        TrainerSettings(accumulate=3).micro_batch(16)
