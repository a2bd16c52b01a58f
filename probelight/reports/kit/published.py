"""Numbers that the papers published, one csv file a kind of table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from probelight.reports.kit.published_files import (
    Reader,
    measured_share,
    read_rows,
    share_if_any,
    whole_number,
)

BASELINES = {"mlm_baseline": "mlm_baseline", "esim": "esim_baseline"}  # by kind of model
# Other vectors, other numbers. The papers' are the 50 dimensions of this release.
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


class DiagnosticKey(NamedTuple):
    """One number of Ettinger (2020): what results.csv calls its model, set, metric and so on."""

    model: str
    probe: str
    metric: str
    part: str = ""
    perturbation: str = ""


@lru_cache(maxsize=1)
def published_curves() -> tuple[PublishedCurve, ...]:
    """The learning-curve tables of Talmor et al. 2020.

    Raises:
        PublishedError: If the file is damaged.
    """
    scores: dict[str, Reader] = {key.text: share_if_any for key in SCORES}
    rows = read_rows("talmor2020_curves.csv", num_choices=whole_number, **scores)
    return tuple(
        PublishedCurve(
            row["table"],
            row["probe"],
            row["model"],
            row["num_choices"],
            {key: row[key.text] for key in SCORES if row[key.text] is not None},
        )
        for row in rows
    )


@lru_cache(maxsize=1)
def published_templates() -> tuple[PublishedTemplate, ...]:
    """Table 6 of Talmor et al. 2020.

    Raises:
        PublishedError: If the file is damaged.
    """
    rows = read_rows(
        "talmor2020_templates.csv", template=str, question=str, accuracy=measured_share
    )
    return tuple(PublishedTemplate(**row) for row in rows)


@lru_cache(maxsize=1)
def published_sizes() -> dict[tuple[str, str], str]:
    """Table 4 of Talmor et al. 2020: (first object, second object) to roberta-large's answer.

    Raises:
        PublishedError: If the file is damaged.
    """
    rows = read_rows("talmor2020_sizes.csv", first=str, second=str, prediction=str)
    return {(row["first"], row["second"]): row["prediction"] for row in rows}


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
    rows = read_rows(
        "richardson2020_probes.csv",
        group=str,
        dev_accuracy=share_if_any,
        test_accuracy=share_if_any,
        original_task_change=share_if_any,
    )
    return tuple(PublishedProbe(**row) for row in rows)


@lru_cache(maxsize=1)
def published_diagnostics() -> dict[DiagnosticKey, float]:
    """Tables 4, 5, 7 to 9, 11, 12 and 14 of Ettinger (2020), as fractions.

    Standard deviations over shuffles have `_sd` behind their metric. In the text beside the tables
    stand both polarities of table 14 together, the margin of affirmative statements (table 12: all
    but one of BERT-B), and that all errors of table 11 repeat the subject.

    Raises:
        PublishedError: If the file is damaged.
    """
    texts = dict.fromkeys(("metric", "part", "perturbation"), str)
    rows = read_rows("ettinger2020_diagnostics.csv", share=measured_share, **texts)
    return {
        DiagnosticKey(**{n: row[n] for n in DiagnosticKey._fields}): row["share"] for row in rows
    }


def short_name(label: str) -> str:
    """A model's name as the paper has it, where it has one, for headings and narrow columns."""
    name, space, more = label.partition(" ")
    return SHORT_NAMES.get(name, name) + space + more
