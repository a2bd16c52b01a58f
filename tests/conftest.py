"""One small, quiet, offline world for all tests, set up before anything heavy is imported."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

MIRROR_VARIABLE = "PROBELIGHT_DATA_MIRROR"
DECODER_VARIABLE = "PROBELIGHT_REAL_MODEL"

pytest_plugins = [  # what others import comes first
    "tests.fixtures.results",
    "tests.fixtures.causal",
    "tests.fixtures.hub_cache",
    "tests.fixtures.inoculations",
    "tests.fixtures.items",
    "tests.fixtures.concepts",
    "tests.fixtures.small_disk",
    "tests.fixtures.tiny",
    "tests.fixtures.training",
    "tests.fixtures.wordnet",
]

# Threads change the order of sums, and two test processes with all cores each are slower than one.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["MPLBACKEND"] = "Agg"
os.environ["WANDB_MODE"] = "disabled"
os.environ["WANDB_SILENT"] = "true"
# Not forced: `HF_HUB_OFFLINE=0 pytest -m network` is how the network tests run.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Inside a cluster job Lightning would take the scheduler's word for the number of processes.
for _name in [name for name in os.environ if name.startswith("SLURM_")]:
    del os.environ[_name]
# What a script starts behind & ignores Ctrl-C, and so would what tests start, and stop with it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of tests/golden; here, so that it is known wherever pytest starts."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the numbers of tests/golden anew"
    )


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this session: no test sees, or leaves, anything in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBELIGHT_CACHE", str(tmp_path_factory.mktemp("probelight-cache")))
        yield


@pytest.fixture(scope="session")
def real_decoder() -> Path:
    """The folder of SmolLM2 or another real decoder; tests that ask for it carry `real`."""
    if folder := os.environ.get(DECODER_VARIABLE):
        return Path(folder)
    from probelight.models.checkpoint_errors import PretrainedError
    from probelight.models.chosen_models import model_of

    try:
        return model_of("smollm2").checkpoint.folder
    except PretrainedError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def data_mirror() -> Path:
    """The folder with the released files; tests that ask for it carry `paper_data`."""
    folder = os.environ.get(MIRROR_VARIABLE)
    if not folder:
        pytest.skip(f"{MIRROR_VARIABLE} is not set")
    return Path(folder).resolve()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get(MIRROR_VARIABLE):
        return
    skip = pytest.mark.skip(reason=f"{MIRROR_VARIABLE} is not set")
    for item in items:
        if "paper_data" in item.keywords:
            item.add_marker(skip)
