"""Fours of items that share their choices, each of which is right once (see `items_of_four`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import combinations, cycle, permutations
from random import Random
from typing import Any, NamedTuple, TypeVar

from probelight.builders.builder import Builder, BuildSettings, Draft, Probe, Source
from probelight.io.documents import read_yaml
from probelight.io.package import CONFIGS
from probelight.probes.splits import SPLITS

T = TypeVar("T")
_PATTERN = "train test train dev train test train test".split()


class Fact(NamedTuple):
    """Two names that belong together, such as a country and its capital."""

    cluster: str
    name: str
    answer: str
    kind: str = ""  # facts of one kind are easily mixed up


def items_of_four(four: Iterable[tuple[str, str, str]], template: str) -> list[Draft]:
    """Make an item of each stem, answer and cluster; the answers of the others are wrong ones.

    So no rule that sees the choices alone (the longest, the most frequent, the one most like the
    others) is right more than once in four, however alike the choices are.
    """
    rows = list(four)
    drafts = []
    for stem, answer, cluster in rows:
        wrong = tuple(text for _, text, _ in rows if text != answer)
        meta = {"cluster": cluster, "template": template}
        drafts.append(Draft(stem, answer, wrong, cluster, meta))
    return drafts


def comparison_items(
    words: tuple[str, str, str], answers: Sequence[str], between: Sequence[str], template: str
) -> list[Draft]:
    """Ask for four things, the least first, by others that are between two of them.

    `words` are such as "A number", "larger" and "smaller".
    """
    name, more, less = words
    first, second, third = between
    stems = (
        f"{name} that is {less} than {first} is",
        f"{name} that is {more} than {first} and {less} than {second} is",
        f"{name} that is {more} than {second} and {less} than {third} is",
        f"{name} that is {more} than {third} is",
    )
    clusters = [" < ".join(answers)] * len(answers)
    return items_of_four(zip(stems, answers, clusters, strict=True), template)


def in_fours(facts: Sequence[T], distance: Callable[[T, T], int], rng: Random) -> list[list[T]]:
    """Divide facts into fours that are near each other: no exchange of two brings them nearer.

    `distance` is how easily the answer of the second fact is ruled out when the first is asked for.
    Up to three facts are lost.
    """
    distances = [[distance(first, second) for second in facts] for first in facts]
    order = rng.sample(range(len(facts)), len(facts) // 4 * 4)

    def width(index: int) -> int:
        start = index // 4 * 4
        return sum(distances[a][b] for a, b in permutations(order[start : start + 4], 2))

    improves = True
    while improves:
        improves = False
        for first, second in combinations(range(len(order)), 2):
            if first // 4 != second // 4:
                width_before = width(first) + width(second)
                order[first], order[second] = order[second], order[first]
                if width(first) + width(second) < width_before:
                    improves = True
                else:
                    order[first], order[second] = order[second], order[first]
    return [[facts[i] for i in order[n : n + 4]] for n in range(0, len(order), 4)]


def deal(units: Iterable[Sequence[T]]) -> dict[str, list[T]]:
    """Deal units, which no split divides, in their order: 4 of 8 to train, 1 to dev, 3 to test."""
    splits: dict[str, list[T]] = {split: [] for split in SPLITS}
    for split, unit in zip(cycle(_PATTERN), units, strict=False):
        splits[split] += unit
    return splits


def two_way_items(
    facts: Sequence[Fact],
    stems: Mapping[str, str],
    distance: Callable[[Fact, Fact], int],
    rng: Random,
) -> dict[str, list[Draft]]:
    """Ask for the answer of each name, and for the name of each answer; no split shares a choice.

    `stems` are by template, that of the answer first, with {} for what is asked about.
    """
    splits = {}
    for split, facts_of_split in deal(in_fours(facts, distance, rng)).items():
        splits[split] = list[Draft]()
        for template, stem in stems.items():
            for four in in_fours(facts_of_split, distance, rng):
                rows = [(stem.format(fact.name), fact.answer, fact.cluster) for fact in four]
                splits[split] += items_of_four(rows, template)
            facts_of_split = [Fact(f.cluster, f.answer, f.name, f.kind) for f in facts_of_split]
    return splits


def school_builder(
    build: Callable[[BuildSettings], Probe], about: str, package: str = "", licence: str = ""
) -> Builder[BuildSettings]:
    """Return the builder of a shipped probe, which `package` has the facts of.

    `build` is called build_ and the name of the probe.
    """
    name = build.__name__.removeprefix("build_")
    config = read_yaml(CONFIGS / "probe" / f"{name}.yaml")
    description = config.pop("description").removesuffix(" (shipped)")
    config = {key: value for key, value in config.items() if key not in ("base_url", "files")}
    source = Source(package, "", licence, files=lambda path: [])
    sources = {package: source} if package else {}
    return Builder(name, description, BuildSettings, build, sources, about=about, config=config)


def source_package(name: str) -> Any:
    """Import a package that holds facts; a FileNotFoundError says how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise FileNotFoundError(
            f"this probe is built from the package {name}: pip install 'probelight[sources]'"
        ) from error
