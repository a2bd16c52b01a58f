"""Number probes: age comparison with its perturbations, and its multi-hop form.

Talmor et al. 2020, sections 4.1 and 4.5. Training and evaluation values do not overlap, so a
number's own answer cannot be learned by heart.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from probelight.build.builder import Builder
from probelight.build.drafts import Draft, Probe, article, finish, split_groups
from probelight.build.olmpics.frame import OlmpicsSettings, at_most, in_order, masked, with_articles
from probelight.build.prediction_grids import Wording, grid_of
from probelight.probes.record import MASK

TRAIN_AGES, EVALUATION_AGES = range(43, 121), range(15, 39)
TRAIN_YEARS, EVALUATION_YEARS = range(1920, 1977), range(1977, 2001)
ORDINALS = ("first", "second", "third")


@dataclass(frozen=True)
class AgeSettings(OlmpicsSettings):
    """Settings of age_comparison.

    Args:
        num_train: Items of train at most; ages give 6,006, birth years 3,192.
        num_dev: Items of dev at most; dev and test share 552.
        num_test: Items of test at most; 0 for none, as in the paper.
        perturbation: Panel of figure 3: A ages, B birth years in the birth-year sentence, C birth
            years in the age sentence, D ages in the birth-year sentence.
        wording: Of the age sentence: as it is released, or as the paper has it.
    """

    perturbation: Literal["A", "B", "C", "D"] = "A"
    wording: Wording = "released"


@dataclass(frozen=True)
class MultihopSettings(OlmpicsSettings):
    """Settings of multihop_composition.

    Args:
        num_train: Items of train at most; there are 76,076 triples of ages.
        num_dev: Items of dev at most; dev and test share 2,024.
        num_test: Items of test at most; 0 for none, as in the paper.
    """


def build_ages(settings: AgeSettings) -> Probe:
    """Which of two ages is older, or who of two that were born in two years?

    Every pair of values comes in both orders, so both answers are equally frequent, also for each
    pair. Both orders lie in the same split.

    Raises:
        UsageError: If no item is left for a split.
    """
    rng = random.Random(f"age_comparison:{settings.seed}")
    by_year = settings.perturbation in "BC"
    values = (TRAIN_YEARS, EVALUATION_YEARS) if by_year else (TRAIN_AGES, EVALUATION_AGES)
    splits = dict[str, list[Draft]]()
    for sizes, numbers in zip((settings.train, settings.evaluation), values, strict=True):
        drafts = _pair_drafts(settings, numbers)
        splits |= split_groups(drafts, at_most(sizes, len(drafts)), rng)
    return finish("age_comparison", in_order(splits), rng)


def build_multihop(settings: MultihopSettings) -> Probe:
    """Which of three ages is the oldest?

    "When comparing a 23 year old, a 38 year old and a 31 year old, the [MASK] is oldest": each
    unordered triple of ages is used once; the three answers are equally frequent.

    Raises:
        UsageError: If no item is left for a split.
    """
    rng = random.Random(f"multihop_composition:{settings.seed}")
    evaluation = dict(sorted(settings.evaluation.items()))
    splits = {
        **_triple_drafts(TRAIN_AGES, settings.train, rng),
        **_triple_drafts(EVALUATION_AGES, evaluation, rng),
    }
    return finish("multihop_composition", splits, rng)


def _pair_drafts(settings: AgeSettings, values: Sequence[int]) -> list[Draft]:
    return [
        Draft(
            with_articles(record.stem),
            record.gold,
            record.wrong,
            frozenset(record.meta["arguments"]),
            record.meta,
        )
        for record in grid_of(settings.perturbation, values, settings.wording).records
    ]


def _triple_drafts(
    ages: Sequence[int], sizes: Mapping[str, int], rng: random.Random
) -> dict[str, list[Draft]]:
    triples = list(itertools.combinations(ages, 3))
    sizes = at_most(sizes, len(triples))
    drafts = []
    for number, triple in enumerate(rng.sample(triples, sum(sizes.values()))):
        oldest, *others = sorted(triple, reverse=True)
        order = rng.sample(others, 2)
        order.insert(number % 3, oldest)
        a, b, c = (f"{article(str(age))} {age} year old" for age in order)
        gold = ORDINALS[number % 3]
        distractors = tuple(word for word in ORDINALS if word != gold)
        stem = f"When comparing {a}, {b} and {c}, the {MASK} is oldest"
        drafts.append(Draft(stem, gold, distractors, triple, {"arguments": order}))
    # The answers take turns in the list, so each part of it is as balanced as the whole.
    rest = iter(drafts)
    return {name: list(itertools.islice(rest, size)) for name, size in sizes.items()}


_AGE_PATTERNS = {
    "age": (
        r"An? (\d+) year old person (?:age )?is \[MASK\] than "
        r"(?:an? (\d+) year old person|me in age, If I am an? (\d+) year old person) ?\."
    ),
    "birth_year": (r"A person born in (\d+) is \[MASK\] than me in age, If i was born in (\d+)\."),
}
_ABOUT_AGES = """\
Built as Talmor et al. (2020, section 4.1 and figure 3) describe it, in the released wording ("an"
where it is said). Ages: 43 to 120 in train, 15 to 38 in the other splits; birth years: 1920 to 1976
and 1977 to 2000, a division of ours, as the paper trains on ages only. The right answer is what
the sentence says, also where values are in the other's sentence. Each pair of values is asked in
both orders, which lie in one split. Where values give fewer sentences than asked for, all are
there."""
_ABOUT_MULTIHOP = """\
Built as Talmor et al. (2020, section 4.5) describe it, in the released wording ("an" where it is
said). Ages: 43 to 120 in train, 15 to 38 in the other splits. No three ages are asked twice, and no
two of them are the same, as in some released items that have two right answers."""

AGE_COMPARISON = Builder(
    "age_comparison",
    "Which of two ages is older?",
    AgeSettings,
    build_ages,
    about=_ABOUT_AGES,
    config=masked(
        2,
        group_by="arguments",
        candidates=["younger", "older"],
        arguments=_AGE_PATTERNS,
        key_words=["age", "than"],
        nonsense={"younger": "ya", "older": "blah"},
    ),
)
MULTIHOP_COMPOSITION = Builder(
    "multihop_composition",
    "Which of three ages is the oldest?",
    MultihopSettings,
    build_multihop,
    about=_ABOUT_MULTIHOP,
    config=masked(
        3,
        group_by="arguments",
        candidates=list(ORDINALS),
        arguments=(
            r"When comparing an? (\d+) year old, an? (\d+) year old and an? (\d+) year old, "
            r"the \[MASK\] is oldest"
        ),
        key_words=["comparing", "oldest"],
        nonsense={"first": "blah", "second": "ya", "third": "foo"},
    ),
)
