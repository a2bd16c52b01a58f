"""What hangs on the rule by which the choices of an untrained model are scored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from probelight.io.escaping import visible
from probelight.metrics.scoring_rules import RULES
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    field,
    fields,
    prose,
    share,
    text,
    whole,
)
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import ABSENT, BY_GROUPS, INTERVAL
from probelight.reports.zero_shot.facts import ZeroShot, zero_shots
from probelight.results.load import Results, UnreadableResultError
from probelight.results.predictions import PREDICTIONS, ItemLine, read_item_lines
from probelight.results.row import Row

OWN = "own score"  # what the accuracies of all other tables go by
MOST_EXAMPLES = 20


@dataclass(frozen=True)
class ByRule:
    """One model on one probe by one rule.

    Attributes:
        entry: The model and the probe.
        rule: One of `RULES`, or `OWN`.
        accuracy: The row of its accuracy.
        flipped: That of the share of items which `OWN` answers otherwise; none of `OWN` itself.
    """

    entry: ZeroShot
    rule: str
    accuracy: Row
    flipped: Row | None = None


@dataclass(frozen=True)
class Answered:
    """One item by every rule.

    Attributes:
        entry: The model and the probe.
        line: Its line of predictions.jsonl.
        best: Of each rule, `OWN` first, the indices of the choices that it answers with.
    """

    entry: ZeroShot
    line: ItemLine
    best: dict[str, tuple[int, ...]]

    @property
    def is_flipped(self) -> bool:
        """Whether two rules answer it differently."""
        return len({*self.best.values()}) > 1

    def answer(self, rule: str) -> str:
        """What a rule answers, several choices if they tie."""
        return ", ".join(self.line.choices[i] for i in self.best[rule]) or ABSENT


@dataclass(frozen=True)
class Flips:
    """How many items of an entry two rules answer differently."""

    entry: ZeroShot
    first: str
    second: str
    num_flipped: int
    num_items: int


def unread(results: Results) -> list[str]:
    """A sentence about each run whose answers by rule cannot be read."""
    return _answered(results)[1]


@lru_cache(maxsize=2)
def _answered(results: Results) -> tuple[list[list[Answered]], list[str]]:
    """The items of each entry by every rule, where its predictions are there; what is damaged."""
    found, damaged = list[list[Answered]](), list[str]()
    for entry in zero_shots(results):
        try:
            items = _items(results, entry) if entry.flipped else []
        except UnreadableResultError as error:
            damaged.append(f"Not shown by rule: {visible(results.below(str(error)))}.")
            continue
        found += [items] if items else []
    return found, damaged


def _items(results: Results, entry: ZeroShot) -> list[Answered]:
    found = list[Answered]()
    for number, line in enumerate(read_item_lines(results, entry.run), start=1):
        place = f"{entry.run.path}/{PREDICTIONS}:{number}"
        if line.best is None or line.by_rule is None:
            raise UnreadableResultError(f"{place}: it lacks `best` or `by_rule`")
        best = {OWN: line.best, **{rule: one.best for rule, one in line.by_rule.items()}}
        indices = range(len(line.choices))
        if any(choice not in indices for one in best.values() for choice in one):
            raise UnreadableResultError(f"{place}: a rule's best is none of the choices")
        if found and found[0].best.keys() != best.keys():
            raise UnreadableResultError(f"{place}: it has other rules than the first line")
        found.append(Answered(entry, line, best))
    return found


def rules_table(results: Results) -> Table | None:
    """Accuracy by rule: rows are probes and models, columns are rules."""
    found = [one for entry in zero_shots(results) if entry.flipped for one in _by_rule(entry)]

    def of_rule(rule: str) -> list[Column[ByRule]]:
        measured: Column[ByRule] = accuracy("accuracy %", lambda e: e.accuracy, ACCURACY, rule)
        flipped: Column[ByRule] = share("flipped %", _flipped, "flipped_share", rule)
        return [measured] if rule == OWN else [measured, flipped]

    return Declared[ByRule](
        "zero_shot_rules",
        "Does it hang on how choices are scored?",
        f"The same log-likelihoods by several rules. {INTERVAL} ({BY_GROUPS}). Flipped: items that "
        "the rule answers otherwise than the model's own score, by which all other tables go. "
        "mean_token, mean_char: the sum divided by the tokens, by the characters. pmi: less what "
        "the same choice has behind a stem that names no more than the kind of answer (Holtzman et "
        "al. 2021). calibrated: probabilities divided by their mean over stems without content "
        "(Zhao et al. 2021). A rule that is the same as one before it by construction is not "
        "listed. To take the best of them on these very items is a selection: decide on a rule "
        "beforehand, or on other items.",
        [
            text("probe", lambda e: e.entry.probe, "probe", lambda e: e.entry.accuracy.split),
            text("model", lambda e: e.entry.label, "model"),
            share("chance", lambda e: e.entry.floor, "chance"),
            attributes(f"split {SIZE}", lambda e: e.accuracy),
            field("rule", lambda e: e.rule),
        ],
        Across(
            lambda e: e.rule,
            lambda e: _place(e.entry),
            of_rule,
            _in_order({one.rule for one in found}),
        ),
        f"model probe split rule {ACCURACY} {SIZE} chance flipped_share",
    ).of(found)


def _place(entry: ZeroShot) -> tuple[str, str, str]:
    return entry.probe, entry.accuracy.split, entry.label


def _in_order(rules: Collection[str]) -> list[str]:
    return [rule for rule in (OWN, *RULES) if rule in rules]


def _flipped(one: ByRule) -> float | None:
    return None if one.flipped is None else one.flipped.value


def _by_rule(entry: ZeroShot) -> list[ByRule]:
    rows = {row.scoring: row for row in entry.by_rule}
    flipped = {row.scoring: row for row in entry.flipped}
    others = [ByRule(entry, rule, rows[rule], flipped.get(rule)) for rule in RULES if rule in rows]
    return [ByRule(entry, OWN, entry.accuracy), *others]


def flips_table(results: Results) -> Table | None:
    """On how many items two rules differ: rows and columns are rules, for each probe and model."""
    found = [flips for items in _answered(results)[0] for flips in _pairs(items)]
    both = [*found, *(replace(f, first=f.second, second=f.first) for f in found)]
    rules = _in_order({flips.first for flips in both})
    both.sort(key=lambda f: (*_place(f.entry), rules.index(f.first)))
    return Declared[Flips](
        "zero_shot_flips",
        "Items whose answer hangs on the rule",
        "How many of the n items two rules, that of the row and that of the column, answer "
        "differently, right or wrong.",
        [
            text("probe", lambda f: f.entry.probe, "probe", lambda f: f.entry.accuracy.split),
            text("model", lambda f: f.entry.label, "model"),
            whole("n", lambda f: f.num_items, "num_items"),
            text("by", lambda f: f.first, "rule"),
            field("other_rule", lambda f: f.second),
        ],
        Across(
            lambda f: f.second,
            lambda f: (*_place(f.entry), f.first),
            lambda rule: [whole(rule, lambda f: f.num_flipped, "num_flipped")],
            rules,
        ),
        "model probe rule other_rule num_flipped num_items",
    ).of(found, both)


def _pairs(items: Sequence[Answered]) -> list[Flips]:
    return [
        Flips(
            items[0].entry, first, second, sum(i.best[first] != i.best[second] for i in items),
            len(items),
        )
        for first, second in combinations(items[0].best, 2)
    ]  # fmt: skip


def flipped_items_table(results: Results) -> Table | None:
    """The first items of each probe and model that two rules answer differently."""
    flipped = [[i for i in items if i.is_flipped] for items in _answered(results)[0]]
    flipped = [items for items in flipped if items]
    of_each = max(1, MOST_EXAMPLES // max(1, len(flipped)))
    shown = [item for items in flipped for item in items[:of_each]][:MOST_EXAMPLES]
    rules = _in_order({rule for item in shown for rule in item.best})
    return Declared[Answered](
        "zero_shot_flipped_items",
        "Some items whose answer hangs on the rule",
        f"The first of them, at most {MOST_EXAMPLES} over all probes and models; all stand in "
        "predictions.jsonl of each run, with every rule's scores.",
        [
            text("probe", lambda i: i.entry.probe, "probe", lambda i: i.entry.label),
            prose("question", lambda i: i.line.question or ABSENT, "question"),
            text("right answer", lambda i: i.line.choices[i.line.answer], "right_answer"),
            *(_answer(rule) for rule in rules),
            fields(lambda i: {"model": i.entry.label, "id": i.line.id}),
        ],
        order="model probe id question right_answer",
    ).of(shown)


def _answer(rule: str) -> Column[Answered]:
    def cell(item: Answered) -> Cell:
        if rule not in item.best:
            return Cell(ABSENT)
        return Cell(item.answer(rule), "right" if item.best[rule] == (item.line.answer,) else "")

    name = rule.replace(" ", "_")
    return Column(
        Heading(rule, "left"),
        cell,
        lambda item: {name: item.answer(rule)} if rule in item.best else {},
    )
