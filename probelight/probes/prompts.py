"""Items as prompts that ask for the letter of a choice (Robinson et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from string import Formatter, ascii_uppercase
from typing import ClassVar, Literal

from probelight.io import ranges
from probelight.io.documents import STRICT, read_yaml, typed
from probelight.io.errors import ConfigError, RecordError, UsageError
from probelight.probes.record import MASK, Record, Setup

Orders = Literal["one", "cyclic", "all"]
Order = tuple[int, ...]  # the index of the choice at each label
BLANK = "____"
LABELS = ascii_uppercase
MOST_PERMUTED = 4  # choices, in 24 orders


@dataclass(frozen=True)
class LetterSettings(ranges.Settings):
    """How the rule `letter` asks.

    Args:
        orders: Orders of the choices: "one", that of the file; "cyclic", in which each choice has
            each label once; "all", of up to 4 choices.
        prompts: File of the texts around an item.
    """

    orders: Orders = "one"
    prompts: ranges.PathText = "configs/prompt/letters.yaml"


@dataclass(frozen=True, kw_only=True)
class LetterTemplates:
    """The texts around an item and its choices, see configs/prompt/letters.yaml."""

    __pydantic_config__: ClassVar = STRICT

    choice: str
    mc_qa: str
    mc_mlm: str
    minimal_pair: str

    @classmethod
    def read(cls, path: str | Path) -> LetterTemplates:
        """Read templates from a file.

        Raises:
            ConfigError: If it cannot be read, or a template lacks a place or has an unknown one.
        """
        found = typed(cls, read_yaml(path), str(path), ConfigError)
        needed = {
            "choice": {"label", "text"},
            "mc_qa": {"question", "choices"},
            "mc_mlm": {"question", "choices"},
            "minimal_pair": {"choices"},
        }
        for name, places in needed.items():
            try:
                given = {field for _, field, _, _ in Formatter().parse(getattr(found, name))}
            except ValueError as error:
                raise ConfigError(f"{path}: `{name}`: {error}; write a brace as {{{{") from None
            if (given - {None}) != places:
                wanted = " and ".join(f"{{{place}}}" for place in sorted(places))
                raise ConfigError(f"{path}: `{name}` must have {wanted}, and no other place")
        return found

    def prompt(self, record: Record, setup: Setup, order: Order) -> Record:
        """Return a sentence whose blank is at its end and takes a label; choices are in `order`.

        Raises:
            RecordError: If the item has more choices than there are letters.
        """
        if len(order) > len(LABELS):
            most = len(LABELS)
            raise RecordError(f"{record.where}: {len(order)} choices; letters are for {most}")
        labels = tuple(LABELS[: len(order)])
        texts = [record.choices[place].strip() for place in order]
        listed = [
            self.choice.format(label=label, text=text)
            for label, text in zip(labels, texts, strict=True)
        ]
        template: str = getattr(self, setup)
        stem = template.format(
            question=record.stem.replace(MASK, BLANK).strip(), choices="\n".join(listed)
        )
        name = f"{record.name} in the order {' '.join(str(place + 1) for place in order)}"
        return Record(name, f"{stem} {MASK}", labels, order.index(record.answer), file=record.file)


def orders_of(record: Record, orders: Orders) -> list[Order]:
    """Return the orders in which an item's choices are shown, that of its file first.

    Raises:
        UsageError: If all orders are asked for of an item with more choices than `MOST_PERMUTED`.
    """
    places = tuple(range(len(record.choices)))
    if orders == "one":
        return [places]
    if orders == "cyclic":
        return [places[first:] + places[:first] for first in places]
    if len(places) > MOST_PERMUTED:
        raise UsageError(
            f"--letters.orders all: {record.where} has {len(places)} choices, and all orders are "
            f"for {MOST_PERMUTED} at most; give --letters.orders cyclic"
        )
    return list(permutations(places))


def by_choice(scores: Sequence[float], order: Order) -> list[float]:
    """Return the scores of labels (K,) in the order of the item's choices."""
    found = [0.0] * len(order)
    for place, score in zip(order, scores, strict=True):
        found[place] = score
    return found
