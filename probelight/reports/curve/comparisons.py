"""Which learning curves are compared, with rivals or the paper's numbers, and medals for the best.

A medal is full, partial or no success of a model on a probe (Talmor et al. 2020, table 12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from probelight.io.documents import read_yaml
from probelight.io.errors import ConfigError
from probelight.io.settings import STRICT, typed
from probelight.metrics.learning_curve import is_complete
from probelight.reports import numbers
from probelight.reports.curve.curves import (
    LANGUAGE,
    MODES,
    NO_LANGUAGE,
    ProbeCurve,
    curves,
    score,
)
from probelight.reports.numbers import ABSENT, VERDICTS, verdict_of
from probelight.reports.published import ScoreKey, published_scores, released_file
from probelight.reports.table import Cell, Column, Table, framed, table, text
from probelight.reports.zero_shot.scores import MOST_MODELS, zero_shots
from probelight.results.load import RunSet

PAPER_SPLIT = "dev"
IN_TWO_STAGES = {"encyclopedic_composition"}  # trained on single-hop facts first (section 4.5)
MARKS = {"full": "✓ full", "partial": "~ partial", "none": "✗ none", "not judged": ABSENT}
OPTIONS = {  # of `train.py curve`, by what is lacking
    "a no-language control": "--grid.controls standard,no_language",
    "a baseline": "mlm_baseline, or esim for questions, among its --models",
    "random weights": "--random_weights true",
}
CONDITIONS = ("high", "above_baselines", "needs_language")
RULE_PATH = Path(__file__).with_name("medals.yaml")


@lru_cache(maxsize=2)
def standard_curves(results: RunSet) -> tuple[ProbeCurve, ...]:
    """Return the curves that have a standard line, by probe; models first, then the baselines."""

    def order(curve: ProbeCurve) -> tuple[object, ...]:
        rank = MODES.index(curve.mode) if curve.mode in MODES else len(MODES)
        return (curve.probe, curve.role == "baseline", curve.model, rank)

    return tuple(sorted((curve for curve in curves(results) if curve.line()), key=order))


def rivals(curve: ProbeCurve, candidates: Sequence[ProbeCurve]) -> list[ProbeCurve]:
    """Return what a model must be better than: random weights, then the baselines.

    They have the same train rows, mode and stages. A baseline has a hidden layer to train, so it is
    a rival of `mlp` and `full` alone.
    """
    settings = (curve.source, curve.mode)
    comparable = [c for c in candidates if (c.source, c.mode) == settings]
    comparable = [rival for rival in comparable if rival.model != curve.model]
    random_twins = [c for c in comparable if c.runs[0].source.control_of == curve.model]
    return [*random_twins[:1], *(rival for rival in comparable if rival.role == "baseline")]


def is_alike(curve: ProbeCurve, key: ScoreKey) -> bool:
    """Return whether the paper has a number that was measured in the same way.

    That is on the whole released set; trained on the released train file, in the paper's stages, at
    all seven points (for LangSense those of the control too). The paper's LangSense is that of
    `mlp`, or of `full` where the whole network is trained.
    """
    paper_scores = published_scores(curve.probe)
    if not paper_scores or curve.split != PAPER_SPLIT:
        return False
    for run in curve.runs:
        sizes = [file.num_items for file in run.data]  # where no file is recorded it is whole
        is_all = not sizes or run.counts.get("evaluation") in (None, *sizes)
        if not (is_all and released_file(run, curve.split)):
            return False
    if control := LANGUAGE.get(key.name):
        is_printed = any(ScoreKey("ws", curve.mode) in scores for scores in paper_scores.values())
        if curve.mode == "linear" or not (is_printed and is_complete(curve.line(control))):
            return False
    return key.name == "zero_shot" or (
        is_complete(curve.line())
        and curve.train in ("", f"train of {curve.probe}")
        and curve.first_stage == (curve.probe in IN_TWO_STAGES)
    )


def curve_sentences(results: RunSet) -> str:
    """Return what models knew untrained, what they learned, and whether from the language."""
    all_curves = standard_curves(results)
    judged = [curve for curve in all_curves if curve.role == "model"] or all_curves
    judged = [curve for curve in judged if curve.mode != "linear"] or judged
    models = list(dict.fromkeys(curve.model for curve in judged))
    repeats = Counter((curve.model, curve.probe) for curve in judged)
    zero_shot = {*zero_shots(results).name}  # what these knew is in the paragraph of zero-shot runs
    rows = []
    for curve in judged:
        name = curve.probe
        if repeats[curve.model, name] > 1:
            name += f" ({curve.mode}, {curve.where}, rate {numbers.rate(curve.learning_rate)})"
        if 0 in curve.line() and curve.model not in zero_shot:
            rows.append((curve.model, "Before any training", _verdict_in_words(curve, 0), name))
        if last := max(curve.line()):
            when = "With the most training examples"
            rows.append((curve.model, when, _verdict_in_words(curve, last), name))
    frame = pd.DataFrame(rows, columns=["model", "when", "verdict", "name"])
    sentences = []
    for (model, when), verdicts in frame.groupby(["model", "when"], sort=False):
        by_verdict = verdicts.groupby("verdict", sort=False).name.agg(list).items()
        clauses = "; ".join(f"{verdict} on {numbers.listed(n)}" for verdict, n in by_verdict)
        sentences += [f"{when}, {model} was {clauses}."] if model in models[:MOST_MODELS] else []
    if (num_more := len(models) - MOST_MODELS) > 0:
        sentences.append(f"The tables have {num_more} more models.")
    return " ".join(sentences)


def _verdict_in_words(curve: ProbeCurve, size: int) -> str:
    """Compare a point with chance and, if it was trained, with its controls."""
    bounds = curve.line()[size].estimate.bounds
    verdicts = [VERDICTS[verdict_of(bounds, curve.chance, curve.majority)]]
    for control in curve.controls if size else ():
        gap = curve.difference(control, size)
        low, high = gap.span if gap else (None, None)
        if low is not None and high is not None:
            side = "above" if low > 0 else "below" if high < 0 else "not clearly different from"
            verdicts.append(f"{side} its {control.replace('_', ' ')} control")
    return numbers.listed(verdicts)


@dataclass(frozen=True)
class MedalRule:
    """What makes a success. Accuracies and differences are fractions.

    Args:
        high: How far zero-shot or WS must be on the way from chance (0) to perfect (1).
        above_baselines: The 95% interval of WS minus that of each baseline, of random weights and
            of the most frequent answer must lie above this.
        lang_sense: The interval of the unclipped LangSense without language must lie above this.
        partial: How many of the three conditions make a partial success.
        need_baseline: Not judged without a baseline over word vectors.
        need_random: Not judged without the same architecture with random weights.
    """

    __pydantic_config__: ClassVar = STRICT

    high: float = 0.5
    above_baselines: float = 0.0
    lang_sense: float = 0.02
    partial: int = 2
    need_baseline: bool = True
    need_random: bool = False

    @property
    def words(self) -> str:
        """The rule in words."""
        return (
            f"High: zero-shot accuracy or WS is at least {100 * self.high:.0f}% of the way from "
            "chance to 100%. Above baselines: WS minus that of every baseline, of the same "
            "architecture with random weights and of always giving the most frequent answer has a "
            f"95% interval above {numbers.points(self.above_baselines)} points. Needs language: "
            "the interval of the unclipped LangSense without language is above "
            f"{numbers.points(self.lang_sense)} points. Full success meets all three conditions, "
            f"partial success {self.partial} of them. {ABSENT} is not judged; the csv file says "
            "what is missing."
        )


def read_rule(path: Path | None = None) -> MedalRule:
    """Read a rule, the shipped one for None; missing keys keep their defaults.

    Raises:
        ConfigError: If the file is no YAML mapping, or a key or value is not valid.
    """
    path = path or RULE_PATH
    rule = typed(MedalRule, read_yaml(path), str(path), ConfigError)
    if not (0 <= rule.high <= 1 and 1 <= rule.partial <= len(CONDITIONS)):
        raise ConfigError(f"{path}: high must be in 0..1 and partial in 1..{len(CONDITIONS)}")
    return rule


def medals_table(results: RunSet, rule_path: Path | None = None) -> Table | None:
    """Make the table of medals, probes by models, by a file's rule or the shipped one."""
    rule = read_rule(rule_path)
    medals = framed(judgements(results, rule))
    if medals.empty or (medals.medal == "not judged").all():
        return None

    def mark(row: Any) -> Cell:
        met = [name.replace("_", " ") for name in CONDITIONS if getattr(row, name)]
        return Cell(MARKS[row.medal], ", ".join(met))

    return table(
        "curve_medals",
        "Medals",
        f"{rule.words} The paper's own medals (table 12) are missing from its text, so the table "
        "has only ours.",
        medals,
        [text("probe", "probe", "split"), text("trained", "mode", "_rate")],
        rows="probe split mode _rate",
        across="model",
        each=[Column("medal", mark, "left")],
        visible=medals[medals.medal != "not judged"],
        csv=f"probe model split mode learning_rate medal {' '.join(CONDITIONS)} lacking",
    )


def not_judged_sentence(results: RunSet, rule_path: Path | None = None) -> str:
    """Return why no curve has a medal; empty if one has."""
    reasons = [row["lacking"] for row in judgements(results, read_rule(rule_path))]
    if not all(reasons):
        return ""
    lacking = dict.fromkeys(name for names in reasons for name in names.split(", "))
    if not reasons:
        return ""
    needs = [f"{name} ({OPTIONS[name]})" if name in OPTIONS else name for name in lacking]
    return (
        "No medals (the paper's verdicts on a skill): a curve needs "
        f"{numbers.listed(needs)}, which these results do not have."
    )


def judgements(results: RunSet, rule: MedalRule) -> list[dict[str, Any]]:
    """Return a row for each model on each probe, without curves of the last layer alone."""
    candidates = standard_curves(results)
    return [
        {**curve.record, **judgement(curve, candidates, rule)}
        for curve in candidates
        if curve.role == "model" and curve.mode != "linear"
    ]


def judgement(
    curve: ProbeCurve, candidates: Sequence[ProbeCurve], rule: MedalRule
) -> dict[str, Any]:
    """Return a `medal`, the `CONDITIONS` (None if not judged) and what is `lacking` to judge it."""
    chance, language = curve.chance, curve.lang_gap(NO_LANGUAGE)
    weighted, zero_shot = (score(name, curve.line()) for name in ("weighted_sum", "zero_shot"))
    hurdles = rivals(curve, candidates)
    roles = [rival.role for rival in hurdles]
    gaps = [score("weighted_sum", curve.line(), rival.line()) for rival in hurdles]
    margins = [None if gap is None else gap.ci_low for gap in gaps]
    requirements = {
        "a no-language control": language is not None,
        "a baseline": not rule.need_baseline or "baseline" in roles,
        "random weights": not rule.need_random or "control" in roles,
        "a chance level": chance is not None,
        "a record of which items were right": weighted is not None and weighted.ci_low is not None,
        "the baselines' curves on the same items and points": None not in margins,
    }
    lacking = [name for name, is_met in requirements.items() if not is_met]
    if lacking or weighted is None or weighted.ci_low is None or language is None or chance is None:
        unknown = dict.fromkeys(CONDITIONS)
        return {"medal": "not judged", **unknown, "lacking": ", ".join(lacking)}
    if curve.majority is not None:
        margins.append(weighted.ci_low - curve.majority)
    highest = max(weighted.value, zero_shot.value if zero_shot else 0.0)
    met = (
        (highest - chance) / (1 - chance) >= rule.high,
        all(margin > rule.above_baselines for margin in margins if margin is not None),
        (language.ci_low or 0.0) > rule.lang_sense,
    )
    medal = "full" if all(met) else "partial" if sum(met) >= rule.partial else "none"
    return {"medal": medal, **dict(zip(CONDITIONS, met, strict=True)), "lacking": ""}
