"""What a model's name stands for, and how transformers is asked for it: quietly, never for code."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from probelight.io.files import user_path
from probelight.io.package import ASSETS
from probelight.models.checkpoints.folder import PretrainedError, one_error

EMBEDDED = "embedded"
EMBEDDED_DIR = ASSETS / "dictionary-lm"


def resolve(name_or_path: str) -> str:
    """The folder, or the name on the Hub, that `name_or_path` stands for.

    Raises:
        PretrainedError: If it can only be a folder and is not there.
    """
    if name_or_path == EMBEDDED:
        if not EMBEDDED_DIR.is_dir():
            raise PretrainedError(f"the embedded model is missing: no folder {EMBEDDED_DIR}")
        return str(EMBEDDED_DIR)
    with one_error(name_or_path, "folder"):  # such as a path through a folder that is closed
        path = user_path(name_or_path)
        if path.is_dir():
            return str(path)
        is_there = os.path.lexists(path)
    if is_there:
        what = "a file" if path.is_file() else "neither a folder nor a file"
        raise PretrainedError(f"{path} is {what}; give the folder with its config.json and weights")
    if not re.fullmatch(r"[\w][\w.-]*(/[\w][\w.-]*)?", name_or_path):
        raise PretrainedError(f"no folder {name_or_path}, and it is not a name on the Hub either")
    return name_or_path


def hub_options(revision: str | None) -> dict[str, Any]:
    """What every `from_pretrained` of ours is given."""
    # Said, because where nothing is said a terminal is asked whether somebody's code may run.
    return {"trust_remote_code": False} | ({} if revision is None else {"revision": revision})


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences load reports and progress bars: what matters in them is an error here."""
    # Only here: whoever asks where a model lies should not wait for it.
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
