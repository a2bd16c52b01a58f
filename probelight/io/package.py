"""The installed package: its folders, its bundled models, its cache, and how it is called."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as metadata_version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CONFIGS = PACKAGE / "configs"
ASSETS = PACKAGE / "assets"
BUNDLED_MODEL = "bookshelf-lm"  # the default
QUESTION_MODEL = "bookshelf-qa"  # the same model, trained to choose definitions: an original task
SMALL_MODEL = "dictionary-lm"  # a smaller one, which the others began with; for quick runs
BUNDLED_MODELS = (BUNDLED_MODEL, QUESTION_MODEL, SMALL_MODEL)

_TYPED = re.compile(r"(?<![\w./-])(?:python )?train\.py(?= [A-Za-z|])")


def checkout() -> Path | None:
    """Return the checkout that the package is imported from; None if it is installed."""
    root = PACKAGE.parent
    is_checkout = (root / "train.py").is_file() and (root / "pyproject.toml").is_file()
    return root if is_checkout else None


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
