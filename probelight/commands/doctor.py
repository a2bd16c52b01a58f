"""`train.py doctor`: what this machine has for a run, and what is missing."""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

import yaml
from packaging.requirements import Requirement

from probelight.commands.command import Command, command
from probelight.io.download import is_offline
from probelight.io.package import ASSETS, CONFIGS, PACKAGE, cache_folder, checkout, version
from probelight.io.wandb import PENDING, WandbSettings

Rows = Iterator[tuple[str, str]]

# What each package that may be missing is needed for, and the extra that installs it.
OPTIONAL = {
    "ray": ("sweep run", "sweep"),
    "optuna": ("sweeps with search: tpe", "sweep"),
    "nltk": ("building probes from WordNet", "sources"),
    "wordfreq": ("building taxonomy and antonym probes", "sources"),
    "h5py": ("ELMo vectors", "elmo"),
    "wandb_workspaces": ("report --workspace", "wandb"),
    "playwright": ("testing pages in a browser", "browser"),
}


@command(Command(example="train.py doctor"))
def doctor() -> None:
    """Shows versions, devices, folders and accounts, and what is missing for which purpose.

    It reaches no network, and ends with 0 whatever it finds.
    """
    from rich.console import Console
    from rich.table import Table

    sections: tuple[tuple[str, Callable[[], Rows]], ...] = (
        ("program", _program),
        ("packages", _required),
        ("optional packages", _optional),
        ("devices", _devices),
        ("data and models", _folders),
        ("Weights & Biases", _wandb),
    )
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for title, rows in sections:
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(min_width=24)
        table.add_column(overflow="fold")
        try:
            for name, value in rows():
                table.add_row(name, value)
        except Exception as error:  # what is broken on this machine is what it is to show
            table.add_row("broken", f"{type(error).__name__}: {error}")
        console.print(f"{title}:", table, "", markup=False)


def _program() -> Rows:
    yield "probelight", f"{version()} in {PACKAGE}{' (a checkout)' if checkout() else ''}"
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", platform.platform()
    for name, folder in (("configs", CONFIGS), ("assets", ASSETS)):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        state = f"{len(files)} files, intact" if files else "missing"
        if damaged := [path.name for path in files if not _is_readable(path)]:
            state = f"damaged: {', '.join(damaged)}"
        yield f"shipped {name}", f"{folder}: {state}"


def _is_readable(path: Path) -> bool:
    """Return whether a shipped file can be read as what it is."""
    try:
        if path.suffix == ".yaml":
            yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        elif path.suffix == ".gz":
            gzip.decompress(path.read_bytes())
        return path.stat().st_size > 0 or path.suffix in (".yaml", ".gz")
    except (OSError, EOFError, ValueError, yaml.YAMLError):
        return False


def _required() -> Rows:
    """Yield the version of each package that the program cannot do without."""
    try:
        lines = requires("probelight") or []
    except PackageNotFoundError:  # a checkout that is not installed
        lines = ["torch", "transformers", "pytorch-lightning", "numpy", "pandas", "pydantic"]
    for requirement in map(Requirement, lines):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = version_of(requirement.name)
        except PackageNotFoundError:
            yield requirement.name, f"missing: pip install '{requirement}'"
            continue
        fits = requirement.specifier.contains(installed, prereleases=True)
        problem = "" if fits else f", but {requirement.specifier} is needed"
        yield requirement.name, installed + problem


def _optional() -> Rows:
    for name, (purpose, extra) in OPTIONAL.items():
        missing = f"missing, for {purpose}: pip install 'probelight[{extra}]'"
        yield name, missing if find_spec(name) is None else f"installed, for {purpose}"


def _devices() -> Rows:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "CPU cores", f"{cores} for this process, of {os.cpu_count()}"
    with suppress(ValueError, OSError, AttributeError):  # not every system has these names
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        yield "memory", f"{memory / 2**30:.1f} GiB"
    import torch

    if not torch.cuda.is_available():
        yield "CUDA", f"none (PyTorch {torch.__version__})"
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        yield f"CUDA {index}", f"{device.name}, {device.total_memory / 2**30:.1f} GiB"
    yield "MPS", "available" if torch.backends.mps.is_available() else "none"


def _folders() -> Rows:
    cache = cache_folder()
    yield "released probe files", f"{cache}: {_state_of(cache)}"
    home = os.environ.get("HF_HOME") or "~/.cache/huggingface"
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")).expanduser()
    yield "models from the Hub", f"{hub}: {_state_of(hub)}"
    yield "offline mode", "on: only files in these folders are used" if is_offline() else "off"
    from probelight.builders.sources import gcide, wordnet

    for name, path in (("WordNet", wordnet.DEFAULT_DIR), ("GCIDE", gcide.DEFAULT_PATH)):
        yield name, str(path) if path.exists() else f"not at {path}; only needed to build probes"


def _state_of(folder: Path) -> str:
    """Return how large a folder is and whether it can be written to."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return f"cannot be written to ({error.strerror})"
    free = f"{shutil.disk_usage(existing).free / 2**30:.1f} GiB free"
    if existing != folder:
        return f"does not exist yet, {free}"
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
    return f"{size / 2**20:,.1f} MiB, writable, {free}"


def _wandb() -> Rows:
    if find_spec("wandb") is None:
        yield "wandb", "missing: runs are logged only as CSV"
        return
    settings, mode = WandbSettings(project="any"), "online, with an API key"
    if settings.disabled:
        mode = "disabled by WANDB_MODE"
    elif settings.offline():
        mode = "offline; send runs later with `wandb sync`"
    yield "mode of --wandb.project", mode
    pending = {*Path().glob(f"runs/*/runs/*/{PENDING}"), *Path().glob("wandb/offline-run-*")}
    yield "not sent yet", f"{len(pending)} runs under {Path.cwd()}"
