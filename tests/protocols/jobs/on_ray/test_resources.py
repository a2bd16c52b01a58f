from __future__ import annotations

import pytest

from probelight.io.errors import UsageError
from probelight.protocols.jobs.job import RaySettings, TrainerSettings
from probelight.protocols.jobs.on_ray.cluster import Resources


@pytest.mark.parametrize(
    ("trainer", "has_gpus", "cpus", "gpus"),
    [
        ({}, False, 1, 0),
        ({"threads": 2, "devices": 2, "accelerator": "cpu"}, True, 4, 0),
        ({}, True, 1, 1),
        ({"accelerator": "gpu"}, False, 1, 1),
        ({"accelerator": "cuda", "devices": 2, "threads": 8}, True, 16, 2),
    ],
)
def test_what_is_not_said_follows_from_the_trainer(
    trainer: dict[str, object], has_gpus: bool, cpus: float, gpus: float
) -> None:
    settings = TrainerSettings(**trainer)  # type: ignore[arg-type]
    assert Resources.of(RaySettings(), settings, has_gpus) == Resources(cpus, gpus)


def test_what_is_said_holds() -> None:
    engine = RaySettings(cpus_per_cell=0.5, gpus_per_cell=0, memory_per_cell=1.5)
    found = Resources.of(engine, TrainerSettings(threads=8, accelerator="gpu"), has_gpus=True)
    assert found == Resources(0.5, 0, 1_500_000_000)
    assert found.options() == {"num_cpus": 0.5, "num_gpus": 0, "memory": 1_500_000_000}
    assert Resources(2).options() == {"num_cpus": 2, "num_gpus": 0.0}
    assert str(found) == "0.5 CPUs, 0 GPUs, 1.5 GB of memory"
    assert str(Resources(1, 1)) == "1 CPU, 1 GPU"


TWO_NODES = [{"CPU": 8.0, "GPU": 2.0, "memory": 32e9}, {"CPU": 3.0, "memory": 16e9}]


@pytest.mark.parametrize(
    ("wanted", "fit"),
    [
        (Resources(2), 4 + 1),
        (Resources(0.5), 16 + 6),
        (Resources(1, 0.5), 4),
        (Resources(4, 1), 2),
        (Resources(1, 0, 10 * 10**9), 3 + 1),
    ],
)
def test_so_many_fit_at_once(wanted: Resources, fit: int) -> None:
    assert wanted.check(TWO_NODES) == fit


@pytest.mark.parametrize(
    ("wanted", "taken", "most", "option"),
    [
        (Resources(9), "9 CPUs", "8 CPUs", "cpus"),
        (Resources(1, 3), "3 GPUs", "2 GPUs", "gpus"),
        (Resources(1, 0, 64 * 10**9), "64 GB of memory", "32 GB of memory", "memory"),
    ],
)
def test_what_no_node_has_is_refused_by_name(
    wanted: Resources, taken: str, most: str, option: str
) -> None:
    said = f"takes {taken}, and no node of Ray has more than {most}; set --engine.{option}_per_cell"
    with pytest.raises(UsageError, match=said):
        wanted.check(TWO_NODES)


def test_what_nodes_have_but_none_at_once_is_refused() -> None:
    nodes = [{"CPU": 8.0}, {"CPU": 1.0, "GPU": 1.0}]
    with pytest.raises(UsageError, match=r"no node of Ray has all .* at once: 4 CPUs, 1 GPU"):
        Resources(4, 1).check(nodes)
    with pytest.raises(UsageError, match="more than 0 CPUs"):
        Resources(1).check([])
