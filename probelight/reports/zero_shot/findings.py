"""What models knew before any training, in sentences made from the numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

from probelight.reports.kit.text import between, listed, percent, sample, with_facts
from probelight.reports.zero_shot.facts import (
    AT_CHANCE,
    NO_BETTER,
    ZeroShot,
    chance_text,
    zero_shots,
)
from probelight.results.load import Results
from probelight.results.row import Row

IMPORTED = "imported"  # the kind of a model whose answers come from another program's file
STUCK = 0.95  # share of one answer from which a model is said to give it whatever is asked


def imported(results: Results) -> list[str]:
    """Which numbers another program measured, in one sentence; nothing where none are."""
    probes: dict[str, list[str]] = {}
    for entry in zero_shots(results):
        if entry.run.kind == IMPORTED:
            probes.setdefault(entry.label, []).append(entry.probe)
    if not probes:
        return []
    found = "; ".join(f"{model} on {listed(own)}" for model, own in probes.items())
    return [
        f"Imported, not measured here: {found}. Whether these models were trained on anything of "
        "the kind before is not known."
    ]


def before_training(results: Results) -> list[str]:
    """A paragraph a model."""
    found = zero_shots(results)
    models = dict.fromkeys(entry.label for entry in found)
    return [_before_training(model, [e for e in found if e.label == model]) for model in models]


def _before_training(model: str, entries: list[ZeroShot]) -> str:
    """One paragraph about a model: above chance, not distinguishable from it, below it."""
    when = _when(entries)
    ordered = sorted(entries, key=lambda e: -(e.accuracy.value - (e.floor or 0)))
    above = [entry for entry in ordered if entry.verdict == "above"]
    if len(above) == 1 or len(entries) == 1:
        sentences = [_one(model, (above or ordered)[0])]
        told = (above or ordered)[:1]
    elif above:
        whole = "all" if len(above) == len(entries) else f"{len(above)} of"
        start = f"{when}, {model} was above chance on {whole} {len(entries)} probes"
        sentences, told = [f"{start}: {_listed(above)}."], above
    else:
        both = any(entry.verdict == "not above the majority" for entry in entries)
        level = "chance and the most frequent answer" if both else "chance"
        start = f"{when}, {model} was not above {level} on any of its"
        sentences, told = [f"{start} {len(entries)} probes."], []
    for verdict, start in (
        ("not above the majority", NO_BETTER),
        ("not distinguishable", AT_CHANCE),
        ("below", "below chance"),
        ("unknown", "without a chance level or an interval to compare with"),
    ):
        rest = [entry for entry in ordered if entry.verdict == verdict and entry not in told]
        if rest:
            sentences.append(f"{start[0].upper()}{start[1:]}: {_listed(rest)}.")
    if stuck := [text for entry in ordered if (text := _stuck(entry))]:
        sentences.append(f"It said almost always the same: {', '.join(stuck)}.")
    return " ".join(sentences)


def _when(entries: Sequence[ZeroShot]) -> str:
    is_imported = any(entry.run.kind == IMPORTED for entry in entries)
    return "As imported" if is_imported else "Before any training"


def _stuck(entry: ZeroShot) -> str:
    """The answer given to nearly every item of a probe, empty where there is none."""
    most = max(entry.shares, key=lambda share: share.value, default=None)
    if most is None or most.value < STUCK:
        return ""
    return f"{most.subset_text} on {entry.probe} ({percent(most.value)}% of its answers)"


def _one(model: str, entry: ZeroShot) -> str:
    chose = "word" if entry.accuracy.mode in ("", "zero_shot") else "answer"
    level = chance_text(entry.chance, entry.floor)
    chance = "" if entry.floor is None else f"chance {level}"
    closing = {
        "above": f" ({chance})",
        "not above the majority": (f" ({chance}), {NO_BETTER} ({percent(entry.majority)}%)"),
        "not distinguishable": f", {AT_CHANCE} ({level})",
        "below": f", which is below chance ({level})",
        "unknown": f" ({chance})" if chance else "",
    }[entry.verdict]
    return (
        f"{_when([entry])}, {model} chose the right {chose} on {_measured(entry.accuracy)} "
        f"of {entry.probe}{closing}."
    )


def _listed(entries: Sequence[ZeroShot]) -> str:
    texts = []
    for entry in entries:
        several = sum(other.probe == entry.probe for other in entries) > 1
        split = f" ({entry.accuracy.split})" if several else ""
        row = entry.accuracy
        facts = [between(row.ci_low, row.ci_high), sample(row.num_items, row.num_groups)]
        level = chance_text(entry.chance, entry.floor)
        facts.append("" if entry.floor is None else f"chance {level}")
        if entry.verdict == "not above the majority":
            facts.append(f"most frequent answer {percent(entry.majority)}%")
        texts.append(f"{entry.probe}{split} {with_facts(row.value, *facts)}")
    return "; ".join(texts)


def _measured(row: Row) -> str:
    interval = between(row.ci_low, row.ci_high)
    said = f"95% interval {interval}" if interval else ""
    return with_facts(row.value, said, sample(row.num_items, row.num_groups))
