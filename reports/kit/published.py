"""Numbers that the papers published, one csv file a kind of table, checked when they are read."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

PUBLISHED_DIR = Path(__file__).with_name("published")
BASELINES = {"mlm_baseline": "mlm_baseline", "esim": "esim_baseline"}  # by kind of model
# Other vectors, other numbers (SPEC E10). The papers' are the 50 dimensions of this release.
PAPER_VECTORS = "glove.6B.50d"
SHORT_NAMES = {
    "roberta-large": "RoBERTa-L",
    "roberta-base": "RoBERTa-B",
    "bert-large-uncased-whole-word-masking": "BERT-WWM",
    "bert-large-uncased": "BERT-L",
    "bert-base-uncased": "BERT-B",
    "mlm_baseline": "MLM-baseline",
    "esim_baseline": "ESIM-baseline",
}


class ScoreKey(NamedTuple):
    """One number of a curve: what it is, and the mode of training where it has one."""

    name: str
    mode: str = ""

    @property
    def text(self) -> str:
        """How the file of published numbers calls it."""
        return f"{self.mode}_{self.name}" if self.mode else self.name


SCORES = (
    ScoreKey("zero_shot"),
    *(ScoreKey(name, mode) for mode in ("mlp", "linear", "full") for name in ("ws", "max")),
    ScoreKey("langsense_pert"),
    ScoreKey("langsense_nolang"),
)


class PublishedError(ValueError):
    """A file of published numbers that is not what it should be; the message names the line."""


@dataclass(frozen=True)
class PublishedCurve:
    """One row of Talmor et al. 2020, tables 2, 3, 5 and 7 to 11.

    Attributes:
        model: Name of the checkpoint, `mlm_baseline` or `esim_baseline`.
        scores: Fractions by the keys of `SCORES`, those that the table has. `full` is MC-QA,
            where the whole network is trained; LangSense belongs to `mlp`, or to `full`.
    """

    table: int
    probe: str
    model: str
    num_choices: int
    scores: Mapping[ScoreKey, float]

    @property
    def short_name(self) -> str:
        """What the paper calls the model."""
        return SHORT_NAMES.get(self.model, self.model)


@dataclass(frozen=True)
class PublishedTemplate:
    """One row of Talmor et al. 2020, table 6: accuracy on the items of a template.

    Attributes:
        template: What the probe's config calls it; two of the paper's may share one of ours.
        accuracy: A fraction.
    """

    table: int
    probe: str
    model: str
    template: str
    question: str
    accuracy: float


@dataclass(frozen=True)
class PublishedProbe:
    """One row of Richardson & Sabharwal 2020, table 7.

    Attributes:
        dev_accuracy: A fraction, None where the table has none.
        test_accuracy: The same on the test set.
        original_task_change: Points that the original task gained, as a fraction.
    """

    table: int
    group: str
    model: str
    probe: str
    dev_accuracy: float | None
    test_accuracy: float | None
    original_task_change: float | None


@lru_cache(maxsize=1)
def published_curves() -> tuple[PublishedCurve, ...]:
    """The learning-curve tables of Talmor et al. 2020.

    Raises:
        PublishedError: If the file is damaged.
    """
    found = []
    for place, row in _read(
        "talmor2020_curves.csv", f"num_choices {' '.join(key.text for key in SCORES)}"
    ):
        scores = {key: _fraction(row[key.text], place, key.text) for key in SCORES}
        found.append(
            PublishedCurve(
                table=_whole(row["table"], place),
                probe=row["probe"],
                model=row["model"],
                num_choices=_whole(row["num_choices"], place),
                scores={key: value for key, value in scores.items() if value is not None},
            )
        )
    return tuple(found)


@lru_cache(maxsize=1)
def published_templates() -> tuple[PublishedTemplate, ...]:
    """Table 6 of Talmor et al. 2020.

    Raises:
        PublishedError: If the file is damaged.
    """
    found = []
    for place, row in _read("talmor2020_templates.csv", "template question accuracy"):
        accuracy = _fraction(row["accuracy"], place, "accuracy")
        if accuracy is None:
            raise PublishedError(f"{place}: accuracy is empty")
        found.append(
            PublishedTemplate(
                table=_whole(row["table"], place),
                probe=row["probe"],
                model=row["model"],
                template=row["template"],
                question=row["question"],
                accuracy=accuracy,
            )
        )
    return tuple(found)


@lru_cache(maxsize=1)
def published_sizes() -> dict[tuple[str, str], str]:
    """Table 4 of Talmor et al. 2020: (first object, second object) to roberta-large's answer.

    Raises:
        PublishedError: If the file is damaged.
    """
    rows = _read("talmor2020_sizes.csv", "first second prediction")
    return {(row["first"], row["second"]): row["prediction"] for _, row in rows}


def published_size_errors() -> frozenset[tuple[str, str]]:
    """The pairs of table 4 that roberta-large got wrong; objects stand from small to large."""
    order = list(dict.fromkeys(first for first, _ in published_sizes()))
    return frozenset(
        pair
        for pair, said in published_sizes().items()
        if (order.index(pair[0]) > order.index(pair[1])) != (said == "larger")
    )


@lru_cache(maxsize=1)
def published_probes() -> tuple[PublishedProbe, ...]:
    """Table 7 of Richardson & Sabharwal 2020.

    Raises:
        PublishedError: If the file is damaged.
    """
    return tuple(
        PublishedProbe(
            table=_whole(row["table"], place),
            group=row["group"],
            model=row["model"],
            probe=row["probe"],
            dev_accuracy=_fraction(row["dev_accuracy"], place, "dev_accuracy"),
            test_accuracy=_fraction(row["test_accuracy"], place, "test_accuracy"),
            original_task_change=_fraction(
                row["original_task_change"], place, "original_task_change"
            ),
        )
        for place, row in _read(
            "richardson2020_probes.csv",
            "group dev_accuracy test_accuracy original_task_change",
        )
    )


def short_name(label: str) -> str:
    """A model's name as the paper has it, where it has one, for headings and narrow columns."""
    name, space, more = label.partition(" ")
    return SHORT_NAMES.get(name, name) + space + more


def _read(name: str, columns: str) -> list[tuple[str, dict[str, str]]]:
    """Rows by column with the place of each; every row is as long as the header.

    Args:
        name: The file.
        columns: What it must have besides table, probe and model, divided by blanks.
    """
    path = PUBLISHED_DIR / name
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            if missing := {"table", "probe", "model", *columns.split()} - set(header):
                raise PublishedError(f"{path}:1: no column {', '.join(sorted(missing))}")
            found = []
            for cells in lines:
                place = f"{path}:{lines.line_num}"
                if len(cells) != len(header):
                    raise PublishedError(f"{place}: {len(cells)} cells, the header {len(header)}")
                found.append((place, dict(zip(header, cells, strict=True))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PublishedError(f"{path}: cannot be read ({error})") from error
    if not found:
        raise PublishedError(f"{path}: no row is there")
    return found


def _fraction(text: str, place: str, name: str) -> float | None:
    """Per cent as a fraction; None where the table has no number."""
    if text == "":
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= 100:
        raise PublishedError(f"{place}: {name} is {text!r}, not a number of per cent")
    return value / 100


def _whole(text: str, place: str) -> int:
    if not text.isdecimal():
        raise PublishedError(f"{place}: {text!r} is not a whole number")
    return int(text)
