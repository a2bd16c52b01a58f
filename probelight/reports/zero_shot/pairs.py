"""Minimal pairs by paradigm: the table, and which paradigms stand out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from probelight.metrics.scoring_rules import RULES
from probelight.reports.kit.columns import ACCURACY, SIZE, accuracy, attributes, field, size, text
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import BY_GROUPS, INTERVAL, percent
from probelight.reports.zero_shot.facts import ZeroShot, against, zero_shots
from probelight.results.load import Results
from probelight.results.row import Row, Subset

WHOLE = "all"
RULES_BESIDE = tuple(rule for rule in RULES if rule != "sum")  # by which all pairs go anyway
MIN_PARADIGMS = 4  # with fewer, the table says it all
NUM_NAMED = 3


@dataclass(frozen=True)
class PairPart:
    """One model on all minimal pairs of a probe, or on those of one paradigm.

    Attributes:
        entry: The model and the probe.
        name: The paradigm, or `WHOLE`.
        summed: Accuracy by the sums of the tokens' log-probabilities.
        by_rule: Accuracy by the other rules that were asked for.
    """

    entry: ZeroShot
    name: str
    summed: Row
    by_rule: Mapping[str, Row]


def paradigms_table(results: Results) -> Table | None:
    """Accuracy of minimal pairs by paradigm: rows are paradigms, columns are models."""
    found = [part for entry in zero_shots(results) for part in _parts(entry)]
    given = any(part.summed.mode.startswith("imported") for part in found)
    beside = [rule for rule in RULES_BESIDE if any(rule in part.by_rule for part in found)]

    def of_rule(rule: str, model: str) -> Column[PairPart]:
        names = " ".join(f"{rule}_{name}" for name in ACCURACY.split())
        return accuracy(f"{rule} %", lambda part: part.by_rule.get(rule), names, model)

    def of_model(model: str) -> list[Column[PairPart]]:
        own: Column[PairPart] = accuracy("accuracy %", lambda p: p.summed, ACCURACY, model)
        return [own, *(of_rule(rule, model) for rule in beside)]

    return Declared[PairPart](
        "minimal_pairs",
        "Minimal pairs by UID",
        f"{INTERVAL} ({BY_GROUPS}); n is the number of pairs. A sentence's score is the sum of "
        "its tokens' log-probabilities; mean_token, mean_char: divided by its tokens or "
        "characters, so that the shorter sentence is not preferred."
        + " Imported scores are as their files have them."
        * given,
        [
            field("model", lambda part: part.entry.label),
            # First, as a narrow terminal repeats this column alone.
            text("UID", lambda part: part.name, "uid", _where),
            field("probe", lambda part: part.entry.probe),
            size("n", lambda part: part.summed, SIZE),
            attributes("split mode", lambda part: part.summed),
        ],
        Across(
            lambda part: part.entry.label,
            lambda part: (part.entry.probe, part.summed.split, part.name),
            of_model,
        ),
        f"model probe split mode uid {ACCURACY} {SIZE}",
    ).of(found)


def by_paradigm(results: Results) -> list[str]:
    """A sentence a model and probe: how many paradigms it masters or gets wrong, and which most."""
    found = [(entry, list(_parts(entry))[1:]) for entry in zero_shots(results)]
    return [_told(entry, parts) for entry, parts in found if len(parts) >= MIN_PARADIGMS]


def _parts(entry: ZeroShot) -> Iterable[PairPart]:
    """All pairs, then each paradigm by name; nothing where none is named."""
    if not entry.paradigms:
        return
    rows: dict[Subset | None, dict[str, Row]] = {}
    for row in entry.paradigms + entry.by_rule:
        rows.setdefault(row.subset, {})[row.scoring] = row
    yield PairPart(entry, WHOLE, entry.accuracy, rows.get(None, {}))
    for row in sorted(entry.paradigms, key=lambda row: row.subset_text):
        if row.subset and row.subset.kind == "paradigm" and not row.scoring:
            yield PairPart(entry, row.subset["name"], row, rows[row.subset])


def _where(part: PairPart) -> str:
    return ", ".join(filter(None, (part.entry.probe, part.summed.split)))


def _told(entry: ZeroShot, parts: Sequence[PairPart]) -> str:
    ordered = sorted(parts, key=lambda part: part.summed.value)
    above = [part for part in ordered[::-1] if against(part.summed, entry.chance) == "above"]
    below = [part for part in ordered if against(part.summed, entry.chance) == "below"]
    return (
        f"Of the {len(parts)} kinds of minimal pairs of {entry.probe}, {entry.label} is above "
        f"chance on {_named('highest', above)} and below it on {_named('lowest', below)}."
    )


def _named(which: str, parts: Sequence[PairPart]) -> str:
    """How many there are, and the first of them."""
    named = ", ".join(f"{p.name} {percent(p.summed.value)}%" for p in parts[:NUM_NAMED])
    return f"{len(parts)} ({which}: {named})" if parts else "none"
