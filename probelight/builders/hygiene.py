"""Checks of a probe that need only the text of its items, and the table of its sizes."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from probelight.probes.record import MASK, Record, share_choices
from probelight.probes.words import stem_of, stems_in, telling_words

_GLOSSED = re.compile(r"^(?P<first>.+?)(?: \(or (?P<others>.*?)\))?(?: event)?, defined as '")
_WORD = re.compile(r"\w+")
_NUM_SHOWN = 3  # findings of each check
_SIGMAS = 5.0  # a fair draw of the positions is this far off once in a million probes


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    check: str  # in a few words: findings are counted by it
    where: str  # the item, or the file
    text: str  # what was found there


def check_records(records: Sequence[Record]) -> list[Finding]:
    """Check the text of one file's items: stems, answers in stems, choices, positions."""
    findings = [*repeated_questions(records), *unbalanced_positions(records)]
    # Answers that a stem tells nothing of: all stems have them, but they are not always right.
    wrong = {text for record in records for text in record.wrong}
    wrong = wrong.intersection(*(record.choices for record in records))
    everywhere = {text for text in wrong if all(stands_in(text, record.stem) for record in records)}
    for record in records:
        findings += repeated_choices(record)
        findings += answers_in_stem(record, everywhere)
        findings += asked_word_in_answers(record)
    return findings


def check_splits(splits: Mapping[str, Sequence[Record]]) -> list[Finding]:
    """Find what splits share: questions, golds of an open set, whole sets of distractors, concepts.

    A gold from a closed set (older or younger) is no leak: golds are compared only where most of a
    split's items have their own, and numbers never.
    """
    findings = list[Finding]()
    for (first, ours), (second, theirs) in combinations(splits.items(), 2):
        where = f"{first} and {second}"
        stems = {question_words(r) for r in ours} & {question_words(r) for r in theirs}
        findings += [Finding("question in two splits", where, stem[:80]) for stem in sorted(stems)]
        if _is_open(ours) and _is_open(theirs):
            compared = [[r for r in split if not r.gold.isdecimal()] for split in (ours, theirs)]
            golds, other_golds = ({r.gold for r in split} for split in compared)
            for gold in sorted(golds & other_golds):
                findings.append(Finding("gold in two splits", where, gold[:80]))
            sets, other_sets = ({frozenset(r.wrong) for r in split} for split in compared)
            for wrong in sorted(map(sorted, sets & other_sets)):
                text = " | ".join(wrong)[:80]
                findings.append(Finding("distractors in two splits", where, text))
        concepts, other_concepts = ({cluster_of(r) for r in split} for split in (ours, theirs))
        for name in sorted((concepts & other_concepts) - {""}):
            findings.append(Finding("concept in two splits", where, name))
    return findings


def repeated_questions(records: Sequence[Record]) -> Iterator[Finding]:
    """Find repeated questions, and stems with two right answers.

    Items may share a stem, as perturbations of a question do, but then their gold must be the same.
    It is "right elsewhere" where one gold is among the other's wrong choices.
    """
    first: dict[str, Record] = {}
    seen: dict[tuple[str, frozenset[str]], Record] = {}
    for record in records:
        stem = question_words(record)
        key = stem, frozenset(record.choices)
        earlier = seen.setdefault(key, record)
        if earlier is not record and earlier.gold == record.gold:
            text = f"the same question as {earlier.where}"
            yield Finding("repeated question", record.where, text)
            continue
        earlier = earlier if earlier is not record else first.setdefault(stem, record)
        if earlier.gold != record.gold:
            text = f"{earlier.gold[:60]!r} is right for the same stem in {earlier.where}"
            check = "right elsewhere" if earlier.gold in record.wrong else "stem with two answers"
            yield Finding(check, record.where, text)


def repeated_choices(record: Record) -> Iterator[Finding]:
    """Find choices that repeat, or that share a name with the gold."""
    if len({plain_words(text) for text in record.choices}) < len(record.choices):
        yield Finding("repeated choice", record.where, "two choices are the same")
    golds = answer_words(record.gold)
    for text in record.wrong:
        if shared := golds & answer_words(text):
            problem = f"{sorted(shared)[0]!r} is a name of both the gold and a wrong choice"
            yield Finding("synonym of the gold", record.where, problem)


def answers_in_stem(record: Record, everywhere: Collection[str] = ()) -> Iterator[Finding]:
    """Find answers that a stem tells, by a name of the gold, or of a wrong answer with a gloss.

    A gold in the stem tells nothing if a wrong choice is there as well, or if it is one of the
    answers that are `everywhere`, in all stems. A wrong answer such as "cold spell (or cold snap)"
    of "a cold snap" may be what the word means in that sentence.
    """
    wrong = [text for text in record.wrong if stands_in(text, record.stem)]
    if not stands_in(record.gold, record.stem):
        for text in filter(_GLOSSED.match, wrong):
            yield Finding("wrong answer in the stem", record.where, f"{text[:60]!r}")
    elif not wrong and record.gold not in everywhere:
        yield Finding("answer in the stem", record.where, f"{record.gold[:60]!r}")


def asked_word_in_answers(record: Record) -> Iterator[Finding]:
    """Find stems of the asked word in the right answer only, or in wrong ones only.

    Applies to items whose notes name the word, as in WordNetQA and DictionaryQA.
    """
    if "surface_form" in record.meta or "word" in record.meta:
        word_stems = asked_stems(record)
        with_word = [text for text in record.choices if word_stems & stems_in(text)]
        if with_word and (record.gold not in with_word or len(with_word) == 1):
            where = "the right answer" if record.gold in with_word else "a wrong answer"
            text = f"{', '.join(sorted(word_stems))}: {with_word[0][:60]!r}"
            yield Finding(f"asked word in {where}", record.where, text)


def asked_stems(record: Record) -> frozenset[str]:
    """Return the stems of the words an item asks about, by its notes; empty without such notes.

    A `surface_form` must be quoted in the stem, as in WordNetQA: a synonymy item, which quotes a
    definition, does not ask about it. Function words count only in names that have no other words.
    """
    arguments = record.meta.get("arguments")
    names = [record.meta.get("word"), *(arguments if isinstance(arguments, list) else [])]
    surface = record.meta.get("surface_form")
    if f"'{surface}'".lower() in record.stem.lower():
        names.append(surface)
    question_stems, word_stems = stems_in(record.stem), set[str]()
    for name in names:
        stems = set(map(stem_of, telling_words(name))) if isinstance(name, str) else set()
        if stems <= question_stems:
            word_stems |= stems
    return frozenset(word_stems)


def unbalanced_positions(records: Sequence[Record]) -> Iterator[Finding]:
    """Find positions that hold the gold far more, or less, often than a fair draw."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for record in records:
        counts[len(record.choices)][record.answer] += 1
    for num_choices, golds in counts.items():
        total, share = golds.total(), 1 / num_choices
        allowed = _SIGMAS * math.sqrt(total * share * (1 - share))
        for position in range(num_choices):
            if abs(golds[position] - total * share) > allowed:
                text = f"the gold is choice {position + 1} in {golds[position]} of {total} items"
                yield Finding("unbalanced positions", records[0].file or "all", text)


def answer_words(text: str) -> set[str]:
    """Return the names in an answer: both words of "report (or account), defined as '...'".

    An answer without a gloss is one name as a whole.
    """
    glossed = _GLOSSED.match(text)
    if glossed is None:
        return {plain_words(text)}
    alternatives = (glossed["others"] or "").split(", ")
    return {plain_words(word) for word in [glossed["first"], *alternatives] if word}


def stands_in(answer: str, stem: str) -> bool:
    """Return whether a name in an answer is in a stem."""
    stem_text = f" {plain_words(stem)} "
    return any(f" {word} " in stem_text for word in answer_words(answer) if word)


def question_words(record: Record) -> str:
    """Return what two items that ask the same share: the stem, or a pair's right sentence."""
    return plain_words(record.stem if record.stem.strip() else record.gold)


def plain_words(text: str) -> str:
    """Return a text without case, marks and the mask, to compare texts by."""
    return " ".join(_WORD.findall(text.replace(MASK, "").casefold()))


def _is_open(records: Sequence[Record]) -> bool:
    """Return whether answers vary from item to item instead of coming from a closed set."""
    golds = {record.gold for record in records}
    return not share_choices(records) and len(golds) > len(records) / 10


def cluster_of(record: Record) -> str:
    """Return the concept that an item is about; "" if it names none."""
    meta = record.meta
    return str(meta.get("cluster") or meta.get("word") or meta.get("gold_synset") or "")


def findings_text(findings: Sequence[Finding]) -> str:
    """Summarise findings for a person: the number per check, and the first few."""
    counts = Counter(finding.check for finding in findings)
    lines = []
    for check, count in counts.most_common():
        check_findings = [finding for finding in findings if finding.check == check]
        lines.append(f"{check}: {count:,}")
        lines += [f"  {finding.where}: {finding.text}" for finding in check_findings[:_NUM_SHOWN]]
    return "\n".join(lines)


def stats_table(splits: Mapping[str, Sequence[Record]]) -> str:
    """Return the sizes of each split, and of all together, as Markdown that a terminal shows too.

    A question counts with each of its perturbations, as unique once. The last column is how often
    each place holds the right answer.
    """
    records_by_split = dict(splits)
    if len(splits) > 1:
        records_by_split["all"] = [record for records in splits.values() for record in records]
    head = "split,questions,unique,concepts,per concept,right answers".split(",")
    rows = [[*head, "at place 1, 2, ..."]]
    rows.append(["-" * len(name) for name in rows[0]])
    for name, records in records_by_split.items():
        num_unique = len({(record.stem, record.gold) for record in records})
        num_concepts = len({cluster_of(record) for record in records} - {""})
        per_concept = f"{len(records) / num_concepts:.1f}" if num_concepts else ""
        num_golds = len({record.gold for record in records})
        counts = Counter(record.answer for record in records)
        num_positions = max((len(record.choices) for record in records), default=0)
        position_counts = " ".join(f"{counts[position]:,}" for position in range(num_positions))
        sizes = [f"{n:,}" for n in (len(records), num_unique, num_concepts)]
        rows.append([name, *sizes, per_concept, f"{num_golds:,}", position_counts])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )
