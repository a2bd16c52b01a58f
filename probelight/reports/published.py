"""Numbers that papers published, and which runs measured the same, by checksums and ids.

The numbers are in `published.csv`, in per cent or points as the paper printed them.

Of Ettinger 2020 some are in the text, not in the tables: both polarities of table 14 together, the
margin of affirmative statements (table 12: all but one of BERT-B), and that all errors of table 11
repeat the subject.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple

import pandas as pd

from probelight.io.errors import ProbelightError
from probelight.io.files import DataFile
from probelight.metrics.intervals import Interval, wilson
from probelight.probes.catalog import EMBEDDED, FileSource, load_probe_config, probe_names
from probelight.reports.numbers import Estimate, missing
from probelight.results.details import OriginalParts
from probelight.results.load import Run

PUBLISHED = Path(__file__).with_name("published.csv")
COLUMNS: Mapping[str, str] = {
    "paper": "Authors and year.",
    "table": "Number of the table in the paper.",
    "group": "Group of rows of the table, if it has groups.",
    "model": "A checkpoint, a baseline, `random` or `human`.",
    "name": "Name of the model in the paper's rows of our tables.",
    "hub_id": "Id of the checkpoint on the Hub, if there is one.",
    "probe": "Name of the probe or diagnostic set, as in the catalog.",
    "split": "Split of the probe; empty if there is none, or the paper does not say.",
    "num_choices": "Number of choices of each question, if the table has it.",
    "mode": "What was trained: `mlp`, `linear`, or `full` for the whole network.",
    "dose": "Examples of inoculation.",
    "metric": "As in results.csv (a standard deviation over shuffles ends in `_sd`), or `ws`, "
    "`max` and `langsense_*` of a curve.",
    "part": "Part of the set, named as in results.csv.",
    "perturbation": "As in results.csv.",
    "item": "The question, if the number is for one question only.",
    "number": "Name of the number in our tables, with its unit, if they show ours next to it.",
    "value": "The number; a fraction in the frame, per cent in the file.",
    "n": "Number of items measured, if the paper says so.",
}
COUNTS = ("table", "num_choices", "dose", "n")
NOT_IN_KEY = ("name", "hub_id", "num_choices", "number", "value", "n")


class PublishedError(ProbelightError, ValueError):
    """A file of published numbers is damaged; the message names the line."""


class ScoreKey(NamedTuple):
    """Name of a curve's number, and the mode of training if it has one."""

    name: str
    mode: str = ""


class NumberKey(NamedTuple):
    """What a number of a model measures; the fields are columns of `published`."""

    probe: str
    metric: str
    split: str = ""
    mode: str = ""
    part: str = ""
    perturbation: str = ""


@lru_cache(maxsize=2)
def published(path: Path = PUBLISHED) -> pd.DataFrame:
    """Return all numbers, with the columns of `COLUMNS`; counts that a paper lacks are NaN."""
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:  # the second of the encoding, and of pandas
        raise PublishedError(f"{path}: cannot be read ({error})") from error
    if list(rows.columns) != list(COLUMNS):
        raise PublishedError(f"{path}:1: the columns are not {', '.join(COLUMNS)}")
    if rows.empty:
        raise PublishedError(f"{path}: the file has no rows")
    key = [name for name in COLUMNS if name not in NOT_IN_KEY]
    numbers = rows[[*COUNTS, "value"]].apply(pd.to_numeric, errors="coerce")
    problems = {
        "an earlier row has the same key": rows.duplicated(key),
        "table is missing": rows.table == "",
        "value is not a percentage": ~(numbers.value.abs() <= 100),
    }
    for name in COUNTS:
        problems[f"{name} is not a whole number"] = ~rows[name].str.fullmatch("[0-9]*")
    for problem, is_wrong in problems.items():
        if is_wrong.any():
            line = is_wrong.idxmax()
            raise PublishedError(f"{path}:{line + 2}: {problem}: {', '.join(rows.loc[line])}")
    return rows.assign(**numbers[[*COUNTS]], value=rows.value.astype(float) / 100)


def difference(ours: Estimate, paper: float, num_items: float | None = None) -> Estimate:
    """Return our number minus the paper's.

    If the paper gives its number of items, the interval is that of two independent proportions
    (Newcombe 1998).
    """
    gap = Estimate(ours.value - paper)
    if num_items is None or missing(num_items) or ours.ci_low is None or ours.ci_high is None:
        return gap
    from probelight.metrics.comparisons import independent_difference

    theirs = Interval(paper, *wilson(paper * num_items, num_items))
    mine = Interval(ours.value, ours.ci_low, ours.ci_high)
    return Estimate(*independent_difference(mine, theirs))


def lies(ours: Estimate, paper: float) -> str | None:
    """Return where the paper's number lies relative to our interval; None without one."""
    if ours.ci_low is None or ours.ci_high is None:
        return None
    if paper < ours.ci_low:
        return "below it"
    return "above it" if paper > ours.ci_high else "in our interval"


@lru_cache(maxsize=16)
def published_scores(probe: str) -> dict[str, dict[ScoreKey, float]]:
    """Return the numbers of a probe's learning curves in Talmor et al. 2020, by model.

    They are `zero_shot`, and by mode `ws`, `max`, `langsense_pert` and `langsense_nolang`; the mode
    `full` is MC-QA, where the whole network is trained.
    """
    rows = published().query("paper == 'Talmor et al. 2020' and probe == @probe and item == ''")
    return {
        model: {ScoreKey(row.metric, row.mode): row.value for row in of_model.itertuples()}
        for model, of_model in rows[rows.model != "human"].groupby("model", sort=False)
    }


@lru_cache(maxsize=1)
def published_size_errors() -> frozenset[tuple[str, str]]:
    """Return the pairs of objects that roberta-large got wrong (Talmor et al. 2020, table 4)."""
    rows = published().query("paper == 'Talmor et al. 2020' and table == 4")
    pairs = rows["item"].str.split("/", expand=True)
    rank = {name: size for size, name in enumerate(pairs[0].unique())}  # small to large
    is_larger = pairs[0].map(rank) > pairs[1].map(rank)
    wrong = pairs[is_larger != (rows.value == 1)]
    return frozenset(wrong.itertuples(index=False, name=None))


@lru_cache(maxsize=256)
def short_name(label: str) -> str:
    """Return the paper's short name of a model, for narrow columns; its own if there is none."""
    rows = published().query("paper == 'Talmor et al. 2020' and model != 'human'")
    names: dict[str, str] = dict(zip(rows.model, rows.name, strict=True))
    name, space, more = label.partition(" ")
    return names.get(name, name) + space + more


# Outputs that were released with Ettinger (2020), by what the files hold.
RECORDINGS = {
    "7a52da21f2031323a72282d62956026e49840f52851511548a59b96430bde67a": "bert-base-uncased",
    "dcd218b323d5e932461b1a5cd1b25ca43367508479e08a1498ca73b4597dfc1f": "bert-base-uncased",
}
RECORDED = "recorded"  # model type of another program's outputs
BASELINES = {"mlm_baseline": "mlm_baseline", "esim": "esim_baseline"}  # by model type
PAPER_VECTORS = "glove.6B.50d"
COMMIT = re.compile("[0-9a-f]{40}")
# The science collection of Richardson & Sabharwal 2020; MCQL is what was reserved of it.
SCIENCE = frozenset({"arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"})
RESERVED = "mcql"
PAPER_DOSE = 3000  # examples of inoculation in that paper


def paper_model(run: Run) -> str | None:
    """Return which of the papers' models a run's model is, or None.

    A checkpoint is known by its id on the Hub, of the main branch or a commit; a recording by the
    checksum of what was released; a baseline by the paper's vectors.
    """
    source = run.source
    if run.role == "control":
        return None
    if run.role == "baseline":
        return BASELINES.get(run.kind) if source.vectors.startswith(PAPER_VECTORS) else None
    if run.kind == RECORDED:
        return next((RECORDINGS[f.sha256] for f in run.data if f.sha256 in RECORDINGS), None)
    return hub_model(run)


def hub_model(run: Run) -> str | None:
    """Return which of the papers' checkpoints a run began with, or None."""
    source = run.source
    pinned = source.revision in (None, "main") or bool(COMMIT.fullmatch(source.revision))
    return _hub_names().get(source.hub_id or "") if pinned and not source.control_of else None


@lru_cache(maxsize=1)
def _hub_names() -> dict[str, str]:
    """Return the papers' checkpoints by id, with and without their owner."""
    names = {hub_id: hub_id.partition("/")[2] for hub_id in published().hub_id.unique() if hub_id}
    return {**names, **{name: name for name in names.values()}}


def on_paper_task(run: Run) -> bool:
    """Whether a run's original task is the paper's: the same data sets, and all their questions."""
    trained_on = run.detail(OriginalParts)
    if trained_on is None or trained_on.train_items is not None:
        return False
    return set(trained_on.sets) - {RESERVED} == SCIENCE


def released_file(run: Run, split: str = "") -> DataFile | None:
    """Return the released file of a split if the run read it, by its checksum or else its name."""
    source = _source(run.probe, split)
    if source is None:
        return None
    if source.sha256 is not None:
        return next((file for file in run.data if file.sha256 == source.sha256), None)
    return next((file for file in run.data if _plain(file.path) == _plain(source.path)), None)


@lru_cache(maxsize=64)
def _source(probe: str, split: str) -> FileSource | None:
    if probe in probe_names():
        config = load_probe_config(probe)
        return None if config.base_url == EMBEDDED else config.files.get(split)
    from probelight.probes.diagnostics.sets import SETS

    return SETS[probe].file if probe in SETS else None


def _plain(path: str) -> str:
    return PurePath(path).name.removesuffix(".gz")
