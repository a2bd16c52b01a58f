"""Making records of questions and answers: gold positions, ids and splits that share no group."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from probelight.probes.record import MASK, Record, validate

SPLITS = ("train", "dev", "test")
Probe = dict[str, list[Record]]


@dataclass(frozen=True)
class Draft:
    """An item whose choices have no order yet.

    Attributes:
        stem: Question or sentence.
        gold: The right answer.
        distractors: The wrong ones.
        group: Items of one group never lie in two splits.
        meta: Fields of `Record.meta`.
    """

    stem: str
    gold: str
    distractors: tuple[str, ...]
    group: Hashable
    meta: Mapping[str, Any] = field(default_factory=dict)


def split_groups(
    drafts: Iterable[Draft], sizes: Mapping[str, int], rng: random.Random
) -> dict[str, list[Draft]]:
    """Deal whole groups to the splits in the order of `sizes`.

    A split takes groups in a random order until it is full; what a last group has too much is
    left out. Items are kept once per stem.

    Raises:
        ValueError: If there are fewer items than asked for.
    """
    groups: dict[Hashable, list[Draft]] = {}
    stems = set[str]()
    for draft in drafts:
        if draft.stem not in stems:
            stems.add(draft.stem)
            groups.setdefault(draft.group, []).append(draft)
    order = list(groups.values())
    rng.shuffle(order)
    splits: dict[str, list[Draft]] = {}
    for name, size in sizes.items():
        splits[name] = []
        while len(splits[name]) < size:
            if not order:
                raise ValueError(f"only {len(splits[name])} items are left for {name}, not {size}")
            splits[name] += order.pop()[: size - len(splits[name])]
    return splits


def finish(name: str, splits: Mapping[str, Sequence[Draft]], rng: random.Random) -> Probe:
    """Shuffle items and choices; each split's gold positions are as even as they can be."""
    probe: Probe = {}
    for split, drafts in splits.items():
        probe[split] = []
        order = rng.sample(list(drafts), len(drafts))
        positions = balanced([len(draft.distractors) + 1 for draft in order], rng)
        for number, (draft, position) in enumerate(zip(order, positions, strict=True), start=1):
            choices = rng.sample(draft.distractors, len(draft.distractors))
            choices.insert(position, draft.gold)
            id, meta = f"{name}-{split}-{number}", dict(draft.meta)
            record = Record(id, draft.stem, tuple(choices), position, meta)
            probe[split].append(validate(record, "mc_mlm" if MASK in draft.stem else "mc_qa"))
    return probe


def balanced(num_choices: Sequence[int], rng: random.Random) -> list[int]:
    """Draw a position for each item, every position equally often (give or take one)."""
    positions = [0] * len(num_choices)
    by_size: dict[int, list[int]] = {}
    for number, k in enumerate(num_choices):
        by_size.setdefault(k, []).append(number)
    for k, numbers in by_size.items():
        values = [place % k for place in range(len(numbers))]
        rng.shuffle(values)
        for number, value in zip(numbers, values, strict=True):
            positions[number] = value
    return positions


def pick_distractors(
    pool: Sequence[str], gold: str, count: int, rng: random.Random
) -> tuple[str, ...]:
    """Pick distractors so that the gold answer's rank in length says nothing about it.

    A number of longer distractors is drawn evenly from 0..count; where the pool has too few on
    one side, the other side fills up. The pool must not hold the gold answer.

    Raises:
        ValueError: If the pool has fewer than `count` distinct answers.
    """
    candidates = list(dict.fromkeys(pool))
    if len(candidates) < count:
        raise ValueError(f"{len(candidates)} distractors for {gold!r}, {count} are needed")
    rng.shuffle(candidates)
    longer = [text for text in candidates if len(text) > len(gold)]
    shorter = [text for text in candidates if len(text) <= len(gold)]
    num_longer = min(rng.randint(0, count), len(longer))
    num_longer = max(num_longer, count - len(shorter))
    chosen = longer[:num_longer] + shorter[: count - num_longer]
    return tuple(rng.sample(chosen, count))


def article(word: str) -> str:
    """Return "a" or "an" as the word is said, also for numbers: "an 18", "a euro", "an hour"."""
    lower = word.lower()
    if lower[:1].isdigit():
        return "an" if lower.startswith("8") or lower in {"11", "18"} else "a"
    if lower.startswith(("hour", "honest", "honor", "honour", "heir")):
        return "an"
    if lower.startswith(("uni", "eu", "use", "usu", "uti", "ura", "ure", "uter", "one", "once")):
        return "an" if lower.startswith(("unin", "unim", "unid")) else "a"
    return "an" if lower[:1] in "aeiou" else "a"
