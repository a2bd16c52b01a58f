"""The tables of an audit: what baselines score without the question, and what gives it away."""

from __future__ import annotations

from probelight.reports.audit.facts import LEAK, Entry, Rule, Told, entries, rules, told
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    field,
    number,
    share,
    size,
    text,
)
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import ABSENT, BY_GROUPS, INTERVAL, percent, points
from probelight.results.load import Results

_SHOWN = 4  # words of either end that people see; the csv file has more
_LONG = 40  # characters of an answer that people see


def audit_table(results: Results) -> Table | None:
    """Groups 1 and 2 of table 7 of Richardson & Sabharwal 2020, theirs and ours."""
    found = entries(results)
    with_clean = any(entry.untouched for entry in found)
    clean: Column[Entry] = accuracy(
        "without relatives in train %", lambda e: e.untouched, "untouched"
    )
    return Declared[Entry](
        "audit",
        "Can the probe be answered without its question?",
        f"{INTERVAL} ({BY_GROUPS}). Rows marked as the paper's are those of Richardson & "
        "Sabharwal 2020, table 7, groups 1 and 2: their vectors and encoders are others, and so "
        "are the items of a probe that was built here, so they are set side by side, not compared. "
        f"A probe gives itself away where what sees the choices alone is more than {100 * LEAK:g} "
        "points over chance with its whole interval; where its interval is above chance alone, it "
        "may." + " Relatives: items of a group that train items are of." * with_clean,
        [
            text("probe", lambda e: e.probe, "probe", lambda e: e.split),
            field("split", lambda e: e.split),
            text("sees", lambda e: e.group, "group"),
            text("model", lambda e: e.model, "model", lambda e: "" if e.ours else e.source),
            field("source", lambda e: e.source),
            accuracy("accuracy %", lambda e: e.value, ACCURACY),
            share("chance", lambda e: e.chance, "chance"),
            number("over chance, points", lambda e: e.over, points, "over_chance"),
            text("verdict", lambda e: e.verdict or ("" if e.ours else ABSENT), "verdict"),
            clean if with_clean else clean.hidden,
            size("n", lambda e: e.value if e.ours else None, SIZE),
        ],
    ).of(found)


def rules_table(results: Results) -> Table | None:
    """What rules score that go by looks, and by words of the question in the answers."""

    def of_split(split: str) -> list[Column[Rule]]:
        return [
            accuracy("accuracy %", lambda rule: rule.value, ACCURACY, split),
            share("chance", lambda rule: rule.chance, "chance", split),
            text("verdict", lambda rule: rule.verdict, "verdict", group=split),
            size("n", lambda rule: rule.value, SIZE, split),
        ]

    return Declared[Rule](
        "audit_rules",
        "What simple rules give away",
        f"Accuracy of always choosing so. {INTERVAL} ({BY_GROUPS}). Ties count 1/n. Far below "
        "chance gives away as much as far above it. Words are common by the frequency of English "
        "where `wordfreq` is installed, else by train items; a glossed answer goes by its names. "
        "Words of the question are found by Snowball's English stems, which do not know irregular "
        "forms. The asked word is what an item's notes name (`surface_form`, `word`, `arguments`).",
        [
            text("probe", lambda rule: rule.probe, "probe"),
            text("choose", lambda rule: rule.value.scoring, "rule"),
            field("split", lambda rule: rule.split),
        ],
        Across(lambda rule: rule.split, lambda rule: (rule.probe, rule.value.scoring), of_split),
    ).of(rules(results))


def words_table(results: Results) -> Table | None:
    """Words, and whole answers, that go with being right or wrong; people see the strongest."""
    found = told(results)
    ends = {(one.probe, one.what["of"], one.pmi > 0): list[Told]() for one in found}
    for one in sorted(found, key=lambda one: -abs(one.pmi)):
        ends[one.probe, one.what["of"], one.pmi > 0].append(one)
    shown = [one for end in ends.values() for one in end[:_SHOWN]]
    return Declared[Told](
        "audit_words",
        "Which words and answers go with being right",
        "Of the items, all splits together, of which some choices have the word (or are the "
        "answer) and others not: how often the right one does, and by chance would. "
        f"{INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}), of this one alone: it is among "
        "the most telling of all. PMI in bits, smoothed by 10 items at chance.",
        [
            text("probe", lambda one: one.probe, "probe"),
            text("part", lambda one: one.what["of"], "of"),
            text("text", lambda one: _cut(one.what["part"])),
            field("text", lambda one: one.what["part"]),
            number("PMI", lambda one: one.pmi, lambda bits: f"{bits:+.2f}", "pmi"),
            accuracy("right %", lambda one: one.value, "right_share ci_low ci_high"),
            number("by chance %", lambda one: one.chance, percent, "chance"),
            size("n", lambda one: one.value, SIZE),
        ],
    ).of(found, [one for one in found if one in shown])


def _cut(answer: str) -> str:
    """The beginning of a long answer."""
    return answer if len(answer) <= _LONG else f"{answer[: _LONG - 1]}…"
