"""The words and probabilities of a language model after contexts, recorded by any program."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from probelight.io.documents import number_of
from probelight.io.errors import RecordError, UsageError
from probelight.io.escaping import visible
from probelight.io.files import DataFile, content_sha256, read_lines


@dataclass(frozen=True)
class ModelOutputs:
    """Outputs for each prompt, in the order of the prompts.

    The probability of a prompt's target is over the whole vocabulary; None if it is not one word.
    """

    predictions: tuple[tuple[str, ...], ...]  # the most probable words, best first
    depth: int  # at most how many were recorded; a list is shorter where pieces make no word
    probabilities: tuple[float | None, ...] | None = None  # None where none were recorded
    split: frozenset[str] = frozenset()  # known to be several tokens; never among predictions


Value = TypeVar("Value")
PREDICTIONS, PROBABILITIES, SPLIT = "modelpreds", "modeltgtprobs", "modelsplit"
KINDS = (PREDICTIONS, PROBABILITIES, SPLIT)
LISTS = ("contextlist", "targetlist")


@dataclass(frozen=True)
class Recorded:
    """The files of one model on one set."""

    recorded_as: str  # the set, as the files call it
    model: str  # likewise
    predictions: Path  # file of its best words
    probabilities: Path | None = None  # file of the targets' probabilities, where the form has one
    lists: tuple[Path, ...] = ()  # files of the contexts and of the targets, those that are there
    split: Path | None = None  # file of the words that the vocabulary splits, where there is one

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that the numbers come from."""
        return tuple(
            DataFile(str(path), content_sha256(path), sum(1 for _ in read_lines(path)))
            for path in filter(None, (self.predictions, self.probabilities, self.split))
        )


def find_recorded(folder: Path, sets: Sequence[str]) -> list[Recorded]:
    """Return the outputs in a folder, by set and model, in the forms of two papers.

    These are one folder (Ettinger 2020) and a folder for each set (Shivagunde et al. 2023).

    Raises:
        UsageError: If there is no such folder, it holds no outputs, or one of two files is missing.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder of recorded outputs")
    files = _files(folder, sets)
    in_folders = (
        Recorded(name, visible(path.name.removesuffix(".txt")), path)
        for name in sets
        if (folder / name).is_dir()
        for path in sorted((folder / name).iterdir())
        if path.is_file() and not path.name.startswith(".")
    )
    recorded: dict[tuple[str, str], Recorded] = {}
    for outputs in (*_in_one_folder(folder, files), *in_folders):
        first = recorded.setdefault((outputs.recorded_as, outputs.model), outputs)
        if first is not outputs:
            raise UsageError(
                f"{outputs.predictions}: {outputs.model} on {outputs.recorded_as} is in "
                f"{first.predictions} too; keep one of them"
            )
    if not recorded:
        raise UsageError(
            f"{folder}: it has no recorded outputs; it needs {PREDICTIONS}-SET-MODEL with "
            f"{PROBABILITIES}-SET-MODEL, or SET/MODEL.txt, where SET is {', '.join(sets)}"
        )
    for (kind, name, model), path in files.items():
        if kind == SPLIT:
            key = name, visible(model)
            if key not in recorded:
                raise UsageError(f"{path}: the outputs of {model} on {name} are missing")
            recorded[key] = replace(recorded[key], split=path)
    order = list(sets)
    return sorted(
        recorded.values(), key=lambda outputs: (order.index(outputs.recorded_as), outputs.model)
    )


def read_recorded(outputs: Recorded, prompts: Sequence[tuple[str, str]]) -> ModelOutputs:
    """Read a model's outputs for prompts of a context and a target each.

    Raises:
        RecordError: If a file has another number of lines, a line is malformed, or the contexts or
            targets differ; the message names file and line, and what is expected.
    """
    for path in outputs.lists:
        column = LISTS.index(path.name.removesuffix(".txt").rpartition("-")[2])
        lines = _lines(path, outputs, len(prompts))
        for number, (text, expected) in enumerate(zip(lines, prompts, strict=True), start=1):
            if _plain(text) != _plain(expected[column]):
                raise RecordError(
                    f"{path}:{number}: {text!r} instead of {expected[column]!r}: the lines must be "
                    f"those of {outputs.recorded_as}, in the same order"
                )
    parse = _words if outputs.probabilities else _python_list
    lists = _read(outputs.predictions, outputs, len(prompts), parse)
    depth = max(map(len, lists), default=0)
    split_lines = read_lines(outputs.split) if outputs.split else ()
    split = frozenset(text for _, text in split_lines if text)
    if outputs.probabilities is None:
        words = (line[1:] if line and not line[0] else line for line in lists)
        return ModelOutputs(tuple(words), depth, split=split)
    probabilities = _read(outputs.probabilities, outputs, len(prompts), _probability)
    return ModelOutputs(lists, depth, probabilities, split)


def _files(folder: Path, sets: Sequence[str]) -> dict[tuple[str, ...], Path]:
    """Return the files of the first form by what they hold, set and model."""
    pattern = rf"({'|'.join(KINDS)})-({'|'.join(map(re.escape, sets))})-(.+)"
    paths: dict[tuple[str, ...], Path] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(tuple(f"{kind}-" for kind in KINDS)):
            match = re.fullmatch(pattern, path.name.removesuffix(".txt"))
            if match is None:
                raise UsageError(
                    f"{path}: its name does not tell the set and the model; it must end in "
                    f"-SET-MODEL, where SET is one of {', '.join(sets)}"
                )
            first = paths.setdefault(match.groups(), path)
            if first is not path:
                raise UsageError(f"{path}: {first.name} exists too; keep one of them")
    return paths


def _in_one_folder(folder: Path, paths: Mapping[tuple[str, ...], Path]) -> Iterator[Recorded]:
    for (kind, name, model), path in paths.items():
        if kind == SPLIT:
            continue
        lacking = PROBABILITIES if kind == PREDICTIONS else PREDICTIONS
        fellow = paths.get((lacking, name, model))
        if fellow is None:
            raise UsageError(
                f"{path.with_name(path.name.replace(kind, lacking, 1))}: missing; put it next to "
                f"{path.name}, with one line per context and target of {name}"
            )
        if kind == PREDICTIONS:
            lists = (folder / f"{name}-{kind}{end}" for kind in LISTS for end in ("", ".txt"))
            list_paths = tuple(path for path in lists if path.is_file())
            yield Recorded(name, visible(model), path, fellow, list_paths)


def _read(
    path: Path, outputs: Recorded, num_lines: int, parse: Callable[[str], Value]
) -> tuple[Value, ...]:
    values = []
    for number, text in enumerate(_lines(path, outputs, num_lines), start=1):
        try:
            values.append(parse(text))
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
    return tuple(values)


def _lines(path: Path, outputs: Recorded, num_lines: int) -> list[str]:
    """Return the lines of a file; empty ones at its end do not count."""
    lines = [text.strip() for _, text in read_lines(path)]
    while lines and not lines[-1] and len(lines) > num_lines:
        lines.pop()
    if len(lines) != num_lines:
        raise RecordError(
            f"{path}: {len(lines)} lines instead of {num_lines}, one per context and target of "
            f"{outputs.recorded_as}"
        )
    return lines


def _plain(text: str) -> list[str]:
    """Strip quotes, white space and masks, in which lists of words differ."""
    return re.findall(r"\w+", text.replace("[MASK]", " ").casefold())


def _words(text: str) -> tuple[str, ...]:
    if not text:
        raise ValueError("empty; write the model's best words, with spaces between them")
    return tuple(text.split())


def _python_list(text: str) -> tuple[str, ...]:
    try:
        words = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("not a list of words; write it as ['dog', 'cat']")
    return tuple(words)


def _probability(text: str) -> float | None:
    """Parse a probability; None for "nan", a target outside the model's vocabulary."""
    if text.casefold() == "nan":
        return None
    value = number_of(text)
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is not a probability from 0 to 1, nor nan")
    return value
