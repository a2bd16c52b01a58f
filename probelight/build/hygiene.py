"""Checks of a probe that need nothing but the items' text, and its sizes."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from probelight.probes.record import MASK, Record, share_choices
from probelight.probes.words import stem_of, stems_in, telling_words

_HEAD = re.compile(r"^(?P<words>.+?)(?: event)?, defined as '")
_MORE = re.compile(r"^(?P<first>.*?)(?: \(or (?P<others>.*)\))?$")
_WORD = re.compile(r"\w+")
_NUM_SHOWN = 3  # findings of each check
_SIGMAS = 5.0  # a fair draw of the positions is this far off once in a million probes


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        check: What was checked, in a few words: findings are counted by it.
        where: The item, or the file.
        text: What was found there.
    """

    check: str
    where: str
    text: str


def check_records(records: Sequence[Record]) -> list[Finding]:
    """Check the text of one split's items: stems, answers in stems, choices, positions.

    Args:
        records: The items of one file.
    """
    findings = [*repeated_questions(records), *unbalanced_positions(records)]
    # Answers that a stem tells nothing of: all stems have them, but they are not always right.
    wrong = {text for record in records for text in record.wrong}
    wrong = wrong.intersection(*(record.choices for record in records))
    everywhere = {text for text in wrong if all(stands_in(text, record.stem) for record in records)}
    for record in records:
        findings += repeated_choices(record)
        if record.gold not in everywhere:
            findings += answer_in_stem(record)
        findings += wrong_answer_in_stem(record)
        findings += asked_word_in_answers(record)
    return findings


def check_splits(splits: Mapping[str, Sequence[Record]]) -> list[Finding]:
    """Find what splits share: questions, golds of an open set, whole sets of distractors.

    A gold that is one of few answers (older or younger) is no leak: golds are compared where most
    of a split's items have a gold of their own, and those that are numbers never.

    Args:
        splits: The items by split.
    """
    findings = list[Finding]()
    for (first, ours), (second, theirs) in combinations(splits.items(), 2):
        where = f"{first} and {second}"
        stems = {plain_words(r.stem) for r in ours} & {plain_words(r.stem) for r in theirs}
        findings += [Finding("question in two splits", where, stem[:80]) for stem in sorted(stems)]
        if _is_open(ours) and _is_open(theirs):
            named = [[r for r in split if not r.gold.isdecimal()] for split in (ours, theirs)]
            golds, other_golds = ({r.gold for r in split} for split in named)
            for gold in sorted(golds & other_golds):
                findings.append(Finding("gold in two splits", where, gold[:80]))
            sets, other_sets = ({frozenset(r.wrong) for r in split} for split in named)
            for wrong in sorted(sorted(one) for one in sets & other_sets):
                text = " | ".join(wrong)[:80]
                findings.append(Finding("distractors in two splits", where, text))
        concepts, other_concepts = ({cluster_of(r) for r in split} for split in (ours, theirs))
        for name in sorted((concepts & other_concepts) - {""}):
            findings.append(Finding("concept in two splits", where, name))
    return findings


def repeated_questions(records: Sequence[Record]) -> list[Finding]:
    """Find items that ask the same of the same choices, and stems with two right answers.

    Several items may share a stem: perturbations of a question differ in their distractors. Then
    the gold has to be the same, or the stem has two answers: "right elsewhere" where the one is
    among the other's wrong choices.
    """
    first: dict[str, Record] = {}
    seen: dict[tuple[str, frozenset[str]], Record] = {}
    findings = []
    for record in records:
        stem = plain_words(record.stem)
        key = stem, frozenset(record.choices)
        other = seen.setdefault(key, record)
        if other is not record and other.gold == record.gold:
            text = f"the same question as {other.where}"
            findings.append(Finding("repeated question", record.where, text))
            continue
        other = other if other is not record else first.setdefault(stem, record)
        if other.gold != record.gold:
            text = f"{other.gold[:60]!r} is right under the same stem in {other.where}"
            check = "right elsewhere" if other.gold in record.wrong else "stem with two answers"
            findings.append(Finding(check, record.where, text))
    return findings


def repeated_choices(record: Record) -> list[Finding]:
    """Find a choice that is there twice, or that names what the gold names."""
    findings = []
    if len({plain_words(text) for text in record.choices}) < len(record.choices):
        findings.append(Finding("repeated choice", record.where, "two choices are the same"))
    golds = answer_words(record.gold)
    for text in record.wrong:
        if shared := golds & answer_words(text):
            problem = f"{sorted(shared)[0]!r} names the gold and a wrong choice"
            findings.append(Finding("synonym of the gold", record.where, problem))
    return findings


def answer_in_stem(record: Record) -> list[Finding]:
    """Find a gold, or a name of it, in a stem that no wrong choice is in as well."""
    stem = record.stem
    if not stands_in(record.gold, stem) or any(stands_in(text, stem) for text in record.wrong):
        return []
    return [Finding("answer in the stem", record.where, f"{record.gold[:60]!r}")]


def wrong_answer_in_stem(record: Record) -> list[Finding]:
    """Find a wrong answer with a gloss whose name is in the stem: "cold snap" of "a cold snap".

    The sentence may say so what the word means there.
    """
    if stands_in(record.gold, record.stem):
        return []
    return [
        Finding("wrong answer in the stem", record.where, f"{text[:60]!r}")
        for text in record.wrong
        if _HEAD.match(text) and stands_in(text, record.stem)
    ]


def asked_word_in_answers(record: Record) -> list[Finding]:
    """Find the word asked about, by stems, in the right answer alone or in wrong ones alone.

    Only of items whose notes name the word, as those of WordNetQA and DictionaryQA do.
    """
    if "surface_form" not in record.meta and "word" not in record.meta:
        return []
    asked = asked_stems(record)
    having = [text for text in record.choices if asked & stems_in(text)]
    if not having or (record.gold in having and len(having) > 1):
        return []
    where = "the right answer" if record.gold in having else "a wrong answer"
    text = f"{', '.join(sorted(asked))}: {having[0][:60]!r}"
    return [Finding(f"asked word in {where}", record.where, text)]


def asked_stems(record: Record) -> frozenset[str]:
    """Return stems of the words that an item asks about: those of its notes that its stem has.

    A `surface_form` has to be there in quotes, as in WordNetQA: that of a synonymy item, where a
    definition is quoted, is not asked about. Function words count only where a name has no other
    words. Without such notes there are none.
    """
    arguments = record.meta.get("arguments")
    named = [record.meta.get("word"), *(arguments if isinstance(arguments, list) else [])]
    surface = record.meta.get("surface_form")
    if f"'{surface}'".lower() in record.stem.lower():
        named.append(surface)
    shown, found = stems_in(record.stem), set[str]()
    for name in named:
        own = set(map(stem_of, telling_words(name))) if isinstance(name, str) else set()
        if own <= shown:
            found |= own
    return frozenset(found)


def unbalanced_positions(records: Sequence[Record]) -> list[Finding]:
    """Find positions that hold the gold far more, or less, often than a fair draw would."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for record in records:
        counts[len(record.choices)][record.answer] += 1
    findings = []
    for num_choices, golds in counts.items():
        total, share = golds.total(), 1 / num_choices
        allowed = _SIGMAS * math.sqrt(total * share * (1 - share))
        for position in range(num_choices):
            if abs(golds[position] - total * share) > allowed:
                text = f"{golds[position]} of {total} golds are at place {position + 1}"
                findings.append(Finding("unbalanced positions", records[0].file or "all", text))
    return findings


def answer_words(text: str) -> set[str]:
    """Return the names in an answer: of "report (or account), defined as '...'" both words.

    An answer without a gloss is one name as a whole.
    """
    head = _HEAD.match(text)
    if head is None:
        return {plain_words(text)}
    parts = _MORE.match(head["words"])
    assert parts is not None  # every text is a first part
    others = (parts["others"] or "").split(", ")
    return {plain_words(word) for word in [parts["first"], *others] if word}


def stands_in(answer: str, stem: str) -> bool:
    """Return whether a name in an answer is in a stem."""
    shown = f" {plain_words(stem)} "
    return any(f" {word} " in shown for word in answer_words(answer) if word)


def plain_words(text: str) -> str:
    """Return a text without case, marks and the mask, to compare texts by."""
    return " ".join(_WORD.findall(text.replace(MASK, "").casefold()))


def _is_open(records: Sequence[Record]) -> bool:
    """Return whether answers are from an open set, not from some words that each item has."""
    golds = {record.gold for record in records}
    return not share_choices(records) and len(golds) > len(records) / 10


def cluster_of(record: Record) -> str:
    """Return the concept that an item is about; "" where it names none."""
    meta = record.meta
    return str(meta.get("cluster") or meta.get("word") or meta.get("gold_synset") or "")


def findings_text(findings: Sequence[Finding]) -> str:
    """Return the number of findings of each check, with the first of each, for a person."""
    counts = Counter(found.check for found in findings)
    lines = []
    for check, count in counts.most_common():
        own = [found for found in findings if found.check == check]
        lines.append(f"{check}: {count:,}")
        lines += [f"  {found.where}: {found.text}" for found in own[:_NUM_SHOWN]]
    return "\n".join(lines)


@dataclass(frozen=True)
class Stats:
    """The sizes of one split, or of all of them together.

    Attributes:
        split: Its name.
        num_questions: Items, each perturbation of a question counted.
        num_unique: Different pairs of stem and right answer.
        num_clusters: Concepts; 0 where items name none.
        num_golds: Different right answers.
        positions: How often each place holds the right answer.
    """

    split: str
    num_questions: int
    num_unique: int
    num_clusters: int
    num_golds: int
    positions: tuple[int, ...]

    @property
    def cluster_size(self) -> float | None:
        """Questions of a concept on average; None where items name none."""
        return self.num_questions / self.num_clusters if self.num_clusters else None


def stats_of(splits: Mapping[str, Sequence[Record]]) -> list[Stats]:
    """Return the sizes of each split, and behind several those of all together."""
    found = [_stats(name, records) for name, records in splits.items()]
    if len(splits) > 1:
        found.append(_stats("all", [one for records in splits.values() for one in records]))
    return found


def stats_table(stats: Sequence[Stats]) -> str:
    """Return the sizes as a table in Markdown, which is readable in a terminal too."""
    head = (
        "split",
        "questions",
        "unique",
        "concepts",
        "per concept",
        "right answers",
        "at place 1, 2, ...",
    )
    rows = [head, tuple("-" * len(name) for name in head)]
    for one in stats:
        size = "" if one.cluster_size is None else f"{one.cluster_size:.1f}"
        numbers = (one.num_questions, one.num_unique, one.num_clusters)
        places = " ".join(f"{count:,}" for count in one.positions)
        rows.append((one.split, *(f"{n:,}" for n in numbers), size, f"{one.num_golds:,}", places))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


def _stats(name: str, records: Sequence[Record]) -> Stats:
    places = [0] * max((len(record.choices) for record in records), default=0)
    for record in records:
        places[record.answer] += 1
    return Stats(
        name,
        len(records),
        len({(record.stem, record.gold) for record in records}),
        len({cluster for record in records if (cluster := cluster_of(record))}),
        len({record.gold for record in records}),
        tuple(places),
    )
