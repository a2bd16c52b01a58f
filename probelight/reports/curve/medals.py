"""Medals: full, partial or no success of a model on a probe (Talmor et al. 2020, table 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from probelight.io.documents import STRICT, read_yaml, typed
from probelight.io.errors import ConfigError
from probelight.reports.curve.curves import NO_LANGUAGE, Curve
from probelight.reports.curve.scores import difference, rivals, standard_curves
from probelight.reports.estimates import ABSENT, listed, points
from probelight.reports.table import Cell, Column, Table, framed, table, text
from probelight.results.load import Results

MARKS = {"full": "✓ full", "partial": "~ partial", "none": "✗ none", "not judged": ABSENT}
OPTIONS = {  # of `train.py curve`, by what is lacking
    "a no-language control": "--grid.controls standard,no_language",
    "a baseline": "mlm_baseline, or esim for questions, among its --models",
    "random weights": "--random_weights true",
}
CONDITIONS = ("high", "above_baselines", "needs_language")
RULE_PATH = Path(__file__).with_name("medals.yaml")


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
            f"95% interval above {points(self.above_baselines)} points. Needs language: the "
            "interval of the unclipped LangSense without language is above "
            f"{points(self.lang_sense)} points. Full success meets all three conditions, partial "
            f"success {self.partial} of them. {ABSENT} is not judged; the csv file says what is "
            "missing."
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


def medals_table(results: Results, rule_path: Path | None = None) -> Table | None:
    """Make the table of medals, probes by models, by a file's rule or the shipped one."""
    rule = read_rule(rule_path)
    found = framed(judgements(results, rule))
    if found.empty or (found.medal == "not judged").all():
        return None

    def mark(row: Any) -> Cell:
        met = [name.replace("_", " ") for name in CONDITIONS if getattr(row, name)]
        return Cell(MARKS[row.medal], ", ".join(met))

    return table(
        "curve_medals",
        "Medals",
        f"{rule.words} The paper's own medals (table 12) are missing from its text, so the table "
        "has only ours.",
        found,
        [text("probe", "probe", "split"), text("trained", "mode", "_rate")],
        rows="probe split mode _rate",
        across="model",
        each=[Column("medal", mark, "left")],
        shown=found[found.medal != "not judged"],
        csv=f"probe model split mode learning_rate medal {' '.join(CONDITIONS)} lacking",
    )


def not_judged(results: Results, rule_path: Path | None = None) -> str:
    """Return why no curve has a medal; empty if one has."""
    found = [row["lacking"] for row in judgements(results, read_rule(rule_path))]
    if not all(found):
        return ""
    lacking = dict.fromkeys(name for names in found for name in names.split(", "))
    if not found:
        return ""
    needs = [f"{name} ({OPTIONS[name]})" if name in OPTIONS else name for name in lacking]
    return (
        f"No medals (the paper's verdicts on a skill): a curve needs {listed(needs)}, which these "
        "results do not have."
    )


def judgements(results: Results, rule: MedalRule) -> list[dict[str, Any]]:
    """Return a row for each model on each probe, without curves of the last layer alone."""
    every = standard_curves(results)
    return [
        {**curve.record, **judgement(curve, every, rule)}
        for curve in every
        if curve.role == "model" and curve.mode != "linear"
    ]


def judgement(curve: Curve, others: Sequence[Curve], rule: MedalRule) -> dict[str, Any]:
    """Return a `medal`, the `CONDITIONS` (None if not judged) and what is `lacking` to judge it."""
    chance, weighted, language = curve.chance, curve.weighted_sum, curve.lang_gap(NO_LANGUAGE)
    hurdles = rivals(curve, others)
    roles = [rival.role for rival in hurdles]
    gaps = [difference("weighted_sum", curve, rival) for rival in hurdles]
    margins = [None if gap is None else gap.ci_low for gap in gaps]
    needed = {
        "a no-language control": language is not None,
        "a baseline": not rule.need_baseline or "baseline" in roles,
        "random weights": not rule.need_random or "control" in roles,
        "a chance level": chance is not None,
        "a record of which items were right": weighted is not None and weighted.ci_low is not None,
        "the baselines' curves on the same items and points": None not in margins,
    }
    lacking = [name for name, is_there in needed.items() if not is_there]
    if lacking or weighted is None or weighted.ci_low is None or language is None or chance is None:
        nothing = dict.fromkeys(CONDITIONS)
        return {"medal": "not judged", **nothing, "lacking": ", ".join(lacking)}
    if curve.majority is not None:
        margins.append(weighted.ci_low - curve.majority)
    highest = max(weighted.value, curve.zero_shot.value if curve.zero_shot else 0.0)
    met = (
        (highest - chance) / (1 - chance) >= rule.high,
        all(margin > rule.above_baselines for margin in margins if margin is not None),
        (language.ci_low or 0.0) > rule.lang_sense,
    )
    medal = "full" if all(met) else "partial" if sum(met) >= rule.partial else "none"
    return {"medal": medal, **dict(zip(CONDITIONS, met, strict=True)), "lacking": ""}
