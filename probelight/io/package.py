"""The installed package: its folders, its cache, and its names in this and earlier versions.

Users' files name classes (`class_path`, `_class_path` in configs and checkpoints) and functions
(a sweep's plan) by the modules of the version that wrote them.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as metadata_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
CONFIGS = PACKAGE / "configs"
ASSETS = PACKAGE / "assets"
BUNDLED_MODEL = "bookshelf-lm"  # the default
QUESTION_MODEL = "bookshelf-qa"  # the same model, trained to choose definitions: an original task
SMALL_MODEL = "dictionary-lm"  # the one before; tests, and results of before, are its own
BUNDLED_MODELS = (BUNDLED_MODEL, QUESTION_MODEL, SMALL_MODEL)
FORMER_NAME = "embedded"  # of the small model, in configs, run folders and checkpoints before

_TYPED = re.compile(r"(?<![\w./-])(?:python )?train\.py(?= [A-Za-z|])")


def checkout() -> Path | None:
    """Return the checkout that the package is imported from; None if it is installed."""
    root = PACKAGE.parent
    there = (root / "train.py").is_file() and (root / "pyproject.toml").is_file()
    return root if there else None


def version() -> str:
    """Return the version of the package, from the checkout's pyproject.toml where there is one."""
    if root := checkout():
        with (root / "pyproject.toml").open("rb") as file:
            return str(tomllib.load(file)["project"]["version"])
    try:
        return metadata_version("probelight")
    except PackageNotFoundError:  # copied somewhere, not installed
        return "unknown"


def program() -> str:
    """Return the word that runs a command: "probelight", or "train.py" in a checkout."""
    started = Path(sys.argv[0])
    installed = started.stem == "probelight" or started.resolve() == PACKAGE / "__main__.py"
    return "probelight" if installed or checkout() is None else "train.py"


def as_typed(text: str) -> str:
    """Replace `train.py` before a command in a text for people by the `program` of this process."""
    return text if program() == "train.py" else _TYPED.sub(program(), text)


def shipped_path(path: str) -> str:
    """Return the path of a shipped file if the path has none: configs/... works in any folder."""
    relative = Path(path)
    if relative.parts[:1] in {("configs",), ("assets",)} and ".." not in relative.parts:
        shipped = PACKAGE / relative
        if shipped.exists() and not relative.exists():
            return str(shipped)
    return path


def cache_folder(cache_dir: str | Path | None = None) -> Path:
    """Return the folder, or $PROBELIGHT_CACHE, or ~/.cache/probelight."""
    chosen = cache_dir or os.environ.get("PROBELIGHT_CACHE") or "~/.cache/probelight"
    return Path(chosen).expanduser()


def current_model(name: str) -> str:
    """Return a model's name or label with the small model's present name."""
    return re.sub(rf"^{FORMER_NAME}(?=$| \(random weights\)$)", SMALL_MODEL, name)


# Old module, the module below `probelight` now ("=" the same), the names that moved there.
_MOVED = """
callbacks.agreed_stop                      callbacks.last_state            AgreedStop
callbacks.aggregate_checkpoint             =                               AggregateCheckpoint
callbacks.checkpoint_io                    callbacks.last_state            AtomicCheckpointIO
callbacks.inoculation_cost                 callbacks.run_metrics           InoculationCost
callbacks.last_state                       =                               LastState
callbacks.learning_curve                   callbacks.run_metrics           LearningCurve
callbacks.patience                         callbacks.aggregate_checkpoint  Patience
callbacks.predictions.writer               callbacks.prediction_writer     PredictionWriter
callbacks.run_metrics                      =                               RunMetrics StepMetrics
callbacks.step_seed                        callbacks.last_state            StepSeed
callbacks.wandb.guard                      callbacks.wandb_logger          WandbGuard
datamodules.choices                        =                               ChoiceDataModule
datamodules.pretraining.dictionary_text    protocols.pretraining           DictionaryText
datamodules.probe                          =                               ProbeDataModule
lightning_modules.baselines.esim           =                               ESIM
lightning_modules.baselines.mlm_baseline   =                               MLMBaseline
lightning_modules.baselines.partial_input  =                               ChoiceOnly ChoiceToChoice
lightning_modules.baselines.partial_input  =                               QuestionToChoice
lightning_modules.inoculation              =                               Inoculation
lightning_modules.masked_choice            =                               MaskedChoice
lightning_modules.pretraining.masked_lm    lightning_modules.masked_lm     MaskedLanguageModel
lightning_modules.sentence_choice          =                               SentenceChoice
protocols.analyses.corpus_unigrams         protocols.analyses.unigrams     compare_words
protocols.analyses.prediction_grid         protocols.analyses.grid         fill_grid
protocols.analyses.taxonomy_distance       =                               measure_distances
protocols.audit.counted                    protocols.audit.audit           count_giveaways
protocols.audit.run                        protocols.audit.audit           ask_baseline
protocols.curve.phrasing                   =                               score_phrasing
protocols.curve.runs                       protocols.curve.command         run_job
protocols.diagnostics.run                  protocols.diagnostics.diagnose  measure_model
protocols.diagnostics.run                  protocols.diagnostics.diagnose  measure_recorded
protocols.inoculation.jobs                 protocols.inoculation.command   run_job
protocols.inoculation.runs                 protocols.inoculation.command   run_job
protocols.zero_shot.run                    protocols.zero_shot.command     score_set
"""
ALIASES = {
    (old, name): f"probelight.{old if new == '=' else new}"
    for old, new, *names in map(str.split, _MOVED.strip().splitlines())
    for name in names
}


def current_runner(runner: str) -> str:
    """Return the present "module:function" of a function in a plan."""
    module, _, name = runner.partition(":")
    return f"{ALIASES.get((module, name), module)}:{name}"


def current_class_path(class_path: str) -> str:
    """Return the present path of a class; a user's own module of the old name comes first."""
    module, _, name = class_path.rpartition(".")
    old = module.removeprefix("probelight."), name  # some moved within the package since
    if old not in ALIASES or _is_the_users(module):
        return class_path
    return f"{ALIASES[old]}.{name}"


def with_current_class_paths(config: Any) -> Any:
    """Return a copy of a parsed config in which each `class_path` is current."""
    if isinstance(config, list):
        return [with_current_class_paths(part) for part in config]
    if not isinstance(config, Mapping):
        return config
    return {
        key: current_class_path(value)
        if key in {"class_path", "_class_path"} and isinstance(value, str)
        else with_current_class_paths(value)
        for key, value in config.items()
    }


def _is_the_users(module: str) -> bool:
    """Return whether a module can be imported that is not ours, as from a user's folder."""
    room = module.partition(".")[0]
    found = find_spec(room)
    if found is None:
        return False
    # In a checkout the rooms lie at its top, where a bare name finds them too.
    places = [Path(place).resolve() for place in found.submodule_search_locations or ()]
    if (PACKAGE / room).resolve() in places:
        return False
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
