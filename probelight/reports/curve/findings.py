"""What learning curves show, in sentences made from the numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import Curve
from probelight.reports.curve.summary import Summary, random_twin, summaries
from probelight.reports.kit.text import between, count, percent, sample, unsigned, with_facts
from probelight.reports.zero_shot.facts import (
    AT_CHANCE,
    NO_BETTER,
    Verdict,
    chance_text,
    verdict_of,
    zero_shots,
)
from probelight.results.load import Results

# A verdict on untrained points as the start of a list, other than that they are above chance.
SAID: dict[Verdict, str] = {
    "not above the majority": NO_BETTER,
    "not distinguishable": AT_CHANCE,
    "below": "below chance",
    "unknown": "without an interval to compare with chance",
}


def knew(results: Results) -> list[str]:
    """A paragraph a model about its untrained points, but where its zero-shot runs tell of them."""
    told = {entry.label for entry in zero_shots(results)}
    found = [s for s in summaries(results) if s.role == "model" and s.zero_shot is not None]
    # The untrained point is the same whatever is trained later.
    once = {(s.curve.model, s.curve.probe, s.curve.split): s for s in reversed(found)}
    by_model: dict[str, list[Summary]] = {}
    for summary in reversed(once.values()):
        if summary.curve.chance is not None and summary.curve.model not in told:
            by_model.setdefault(summary.curve.model, []).append(summary)
    return [_knew(model, own) for model, own in by_model.items() if len(own) > 1]


def learned(results: Results) -> list[str]:
    """A paragraph a curve: models, where there are any, by the mode that LangSense is from."""
    found = summaries(results)
    shown = [s for s in found if s.role == "model"] or list(found)
    main = [s for s in shown if s.curve.mode != "linear"] or shown
    return [_learned(summary, found) for summary in main]


def _knew(model: str, found: Sequence[Summary]) -> str:
    by_verdict: dict[Verdict, list[Summary]] = {}
    for summary in found:
        by_verdict.setdefault(_verdict(summary.curve, 0), []).append(summary)
    above = by_verdict.get("above", [])
    number = "all" if len(above) == len(found) else f"{len(above)} of" if above else "none of"
    text = f"Before any training, {model} was above chance on {number} {len(found)} probes"
    sentences = [f"{text}: {_listed(above)}." if above else f"{text}."]
    for verdict, side in SAID.items():
        if own := by_verdict.get(verdict):
            sentences.append(f"{side[0].upper()}{side[1:]}: {_listed(own)}.")
    return " ".join(sentences)


def _verdict(curve: Curve, num_train: int) -> Verdict:
    return verdict_of(curve.interval(STANDARD, num_train), curve.chance, curve.majority)


def _listed(found: Sequence[Summary]) -> str:
    texts = []
    for summary in found:
        curve = summary.curve
        first = curve.points[STANDARD][0]
        facts = [between(*curve.interval(STANDARD, 0)), sample(first.num_items, curve.num_groups)]
        facts.append(f"chance {chance_text(curve.scored_chance, curve.chance)}")
        if _verdict(curve, 0) == "not above the majority":
            facts.append(f"most frequent answer {percent(curve.majority)}%")
        texts.append(f"{curve.probe} {with_facts(first.mean, *facts)}")
    return "; ".join(texts)


def _learned(summary: Summary, found: Sequence[Summary]) -> str:
    curve = summary.curve
    last = curve.points[STANDARD][-1]
    low, high = curve.interval(STANDARD, last.num_train)
    facts = [f"95% interval {between(low, high)}" if low is not None else ""]
    facts.append(sample(last.num_items, curve.num_groups))
    facts.append("one seed" if len(last.values) == 1 else f"mean of {len(last.values)} seeds")
    level = chance_text(curve.scored_chance, curve.chance)
    facts.append("" if curve.chance is None else f"chance {level}")
    text = (
        f"Trained on {count(last.num_train)} examples of {curve.probe} ({curve.mode}), "
        f"{curve.model} scored {with_facts(last.mean, *facts)}"
    )
    verdict = _verdict(curve, last.num_train)
    text += {"below": ", which is below chance", "not distinguishable": f", {AT_CHANCE}"}.get(
        verdict, ""
    )
    if verdict == "not above the majority":
        text += f", {NO_BETTER} ({percent(curve.majority)}%)"
    first = curve.at(STANDARD, 0)
    text += f", from {percent(first.mean)}% untrained." if first and last.num_train else "."
    told = [text, *(_controlled(curve, c, last.num_train) for c in curve.controls)]
    return " ".join(filter(None, (*told, _random(summary, found))))


def _controlled(curve: Curve, control: str, num_train: int) -> str:
    """Standard minus control at the largest size, said with what the seeds allow."""
    point, gap = curve.at(control, num_train), curve.difference(control, num_train)
    if point is None or gap is None:
        return ""
    name = control.replace("_", " ")
    text = f"Its {name} control scored {percent(point.mean)}%, a difference of {unsigned(gap.mean)}"
    if gap.num_seeds == 1:
        return f"{text} points in one seed."
    low, high = gap.interval
    if low is not None and high is not None:
        said = f"{text} points (95% interval {unsigned(low)} to {unsigned(high)})"
        return f"{said}, not distinguishable from none." if low <= 0 <= high else f"{said}."
    seeds = f"{unsigned(gap.low)} to {unsigned(gap.high)} over {gap.num_seeds} seeds"
    verdict = "" if gap.low > 0 else ", so not in every seed above it"
    return f"{text} points ({seeds}){verdict}."


def _random(summary: Summary, found: Sequence[Summary]) -> str:
    """The same architecture with random weights at the same size."""
    twin = random_twin(summary, found)
    size = summary.curve.points[STANDARD][-1].num_train
    point = twin.curve.at(STANDARD, size) if twin else None
    if point is None:
        return ""
    return f"The same architecture with random weights scored {percent(point.mean)}%."


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    return " ".join([*knew(results), *learned(results)])
