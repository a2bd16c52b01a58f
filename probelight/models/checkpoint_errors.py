"""What goes wrong with a checkpoint, said in one line that names it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from probelight.io.bounded import BoundedError
from probelight.io.errors import ProbelightError, nearest
from probelight.io.package import BUNDLED_MODELS, CONFIGS

_MOST_WEIGHTS_A_BYTE = 4  # quantised to four bits: two


class PretrainedError(ProbelightError, RuntimeError):
    """A checkpoint that cannot be used; the message names it and what is wrong."""


@contextmanager
def one_error(source: str | Path, subject: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign checkpoint raises into one line that names it.

    Libraries raise anything from OSError to KeyError, with up to a hundred lines of text. The first
    line says enough; the rest stays in the chain, which PROBELIGHT_DEBUG shows.
    """
    try:
        yield
    except PretrainedError:
        raise
    except BaseException as error:
        # Rust's panics (tokenizers, safetensors) are no Exceptions.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if "trust_remote_code" in str(error):
            raise PretrainedError(
                f"{source}: transformers can read it only by Python code that comes with it, which "
                "Probelight never runs; give a model of a family that transformers has, or load "
                "this one yourself and pass it on in Python: probelight.zero_shot((model, "
                "tokenizer), probes)"
            ) from error
        is_path = os.path.exists(source)  # noqa: PTH110 - a path of any kind, which never raises
        where = f"{str(source)!r} (a name on the Hub)"
        if is_path:
            where = f"{'folder' if Path(source).is_dir() else 'file'} {source}"
        hint = ""
        if not is_path:
            hint = f"; if you meant a folder, it does not exist{similar_names(str(source))}"
            if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
                hint += "; HF_HUB_OFFLINE is set, so only folders and cached models can be used"
        raise PretrainedError(
            f"cannot load the {subject} of {where}: {cause_of(error)}{hint}"
        ) from error


def check_size(
    source: str | Path, num_weights: int, num_bytes: int | None, bytes_per_weight: int = 4
) -> None:
    """Refuse settings of a model that its files cannot hold, before memory is taken for it.

    `num_bytes` are those of the files; None for fresh weights, which need no file.
    """
    if num_bytes is not None and num_weights > _MOST_WEIGHTS_A_BYTE * num_bytes:
        raise PretrainedError(
            f"folder {source}: its settings describe a model of {num_weights:,} weights, but its "
            f"weight files have {num_bytes:,} bytes, so they do not belong together"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if (needed := bytes_per_weight * num_weights) > memory:
        precision = {4: "single precision", 2: "half precision", 1: "eight bits"}[bytes_per_weight]
        raise PretrainedError(
            f"{source}: its settings describe a model of {num_weights:,} weights, "
            f"{needed:,} bytes in {precision}, but this machine has only {memory:,}"
        )


def cause_of(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first.endswith(":") and len(lines) > 1:
        first = f"{first} {lines[1]}"  # a heading alone does not say what is wrong
    kind = "" if isinstance(error, BoundedError) else f"{type(error).__name__}: "
    return f"{kind}{first[:300].rstrip('.')}"


def similar_names(name: str) -> str:
    """Suggest a folder or a preset for a name that is neither; "" without a similar one."""
    folders = [str(path) for path in Path(name).parent.glob("*/")]
    presets = [path.stem for path in (CONFIGS / "model").glob("*.yaml")]
    return "" if name in presets else nearest(name, [*folders, *presets, *BUNDLED_MODELS])


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence load reports and progress bars: what matters in them is an error here."""
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
