"""What the oLMpics builders share: sizes of splits, words, sentences (Talmor et al. 2020)."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

from probelight.builders.builder import BuildSettings, Draft
from probelight.io.errors import UsageError
from probelight.io.ranges import NumItems, Within
from probelight.probes.splits import SPLITS

T = TypeVar("T")
_LEAST = 1 / 4  # of all names for a split: the choices of a small one must find each other too
NumItemsOrNone = Annotated[int, Within(0, 10_000_000)]


@dataclass(frozen=True)
class OlmpicsSettings(BuildSettings):
    """Settings of a probe of oLMpics.

    Args:
        num_train: Largest number of train items: the largest training set of learning curves.
        num_dev: Largest number of dev items.
        num_test: Largest number of test items; 0 for none, as in the paper.
    """

    num_train: NumItems = 4_000
    num_dev: NumItems = 500
    num_test: NumItemsOrNone = 0

    @property
    def train(self) -> dict[str, int]:
        """Items of the training split."""
        return {"train": self.num_train}

    @property
    def evaluation(self) -> dict[str, int]:
        """Items of the evaluation splits, those to report on first: items may run out."""
        return {k: n for k, n in (("test", self.num_test), ("dev", self.num_dev)) if n}


def at_most(sizes: Mapping[str, int], num_items: int) -> dict[str, int]:
    """Cut the sizes of splits to a total; the last ones get what is left.

    A UsageError says that nothing is left for one of them.
    """
    cut = dict[str, int]()
    for name, size in sizes.items():
        cut[name] = min(size, num_items - sum(cut.values()))
        if cut[name] < 1:
            full = " and ".join(f"--num_{split}" for split in cut if split != name)
            after = f" after {full}" if full else ""
            raise UsageError(f"--num_{name} {size}: none of {num_items:,} items are left{after}")
    return cut


def in_order(splits: Mapping[str, list[T]]) -> dict[str, list[T]]:
    """Return the splits in the order of their files: train, dev, test."""
    return {name: splits[name] for name in SPLITS if name in splits}


def masked(num_choices: int, **further_keys: Any) -> Mapping[str, Any]:
    """Return the config of a probe that fills a mask."""
    sizes = {"num_choices": num_choices, "chance": round(1 / num_choices, 4)}
    return {"licence": "Apache-2.0", "setup": "mc_mlm", **sizes, **further_keys}


def article(word: str) -> str:
    """Return "a" or "an" as pronounced, also for numbers: "an 18", "a euro", "an hour"."""
    lower = word.lower()
    if lower[:1].isdigit():
        return "an" if lower.startswith("8") or lower in {"11", "18"} else "a"
    if lower.startswith(("hour", "honest", "honor", "honour", "heir")):
        return "an"
    if lower.startswith(("uni", "eu", "use", "usu", "uti", "ura", "ure", "uter", "one", "once")):
        return "an" if lower.startswith(("unin", "unim", "unid")) else "a"
    return "an" if lower[:1] in "aeiou" else "a"


def with_articles(stem: str) -> str:
    """Correct "a" and "an"; the released sentences have "a" before every value."""

    def with_article(match: re.Match[str]) -> str:
        letter, word = match.groups()
        fitting = article(word)
        return f"{fitting.capitalize() if letter.isupper() else fitting} {word}"

    return re.sub(r"\b([Aa])n? (\w+)", with_article, stem)


def deal_names(
    names: Sequence[str], sizes: Mapping[str, int], rng: random.Random
) -> dict[str, list[str]]:
    """Deal names to splits in proportion to their items, at least a fourth to each.

    `names` must be in a reproducible order; the first split gets what the others leave.
    """
    order = rng.sample(names, len(names))
    total, names_by_split = max(1, sum(sizes.values())), dict[str, list[str]]()
    for split in reversed(list(sizes)):
        share = 1.0 if len(names_by_split) + 1 == len(sizes) else max(_LEAST, sizes[split] / total)
        count = round(share * len(names))
        names_by_split[split], order = order[:count], order[count:]
    return names_by_split


def first_drafts(drafts: Iterable[Draft], size: int, subject: str, advice: str) -> list[Draft]:
    """Take the first `size` drafts; a UsageError with `advice` says that there are fewer."""
    chosen = list(islice(drafts, size))
    if len(chosen) < size:
        count = f"{len(chosen):,} of {size:,}"
        raise UsageError(f"{subject}: the source has only {count} items; {advice}")
    return chosen


@cache
def frequent_words(count: int) -> frozenset[str]:
    """Return the most frequent English words, by `wordfreq`'s large list.

    A FileNotFoundError says how to get a missing package.
    """
    try:
        from wordfreq import top_n_list
    except ModuleNotFoundError as error:
        raise FileNotFoundError(
            "word frequencies need the package wordfreq: pip install 'probelight[sources]'"
        ) from error
    return frozenset(top_n_list("en", count, wordlist="large"))


def read_vocabulary(path: Path) -> frozenset[str]:
    """Read a model's pieces from vocab.txt or tokenizer.json, or from a folder with either."""
    path = Path(path)
    candidates = [path / "vocab.txt", path / "tokenizer.json"] if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.is_file():
            text = candidate.read_text(encoding="utf-8")
            if candidate.suffix == ".json":
                return frozenset(json.loads(text)["model"]["vocab"])
            return frozenset(text.splitlines())
    raise FileNotFoundError(f"{path}: no vocab.txt or tokenizer.json of a model found")
