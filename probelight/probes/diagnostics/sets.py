"""The diagnostic sets: where their files were released, how one is loaded, and perturbations.

A perturbation leaves less in the contexts: what a model still says tells what it went by (Ettinger
2020). CPRAG-102 (section 7.1, table 4): the words of the first sentence in another order, the
second sentence cut to its last two words, or both. ROLE-88 (section 8.1, table 7): "one" for the
noun behind "which", "other" for the noun behind the following "the", or both.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from probelight.io.files import DataFile, content_sha256
from probelight.probes.catalog import FileSource
from probelight.probes.diagnostics.items import (
    InferenceItem,
    Item,
    Prompt,
    RoleItem,
    read_inference,
    read_natural_negation,
    read_negated_sentences,
    read_negation,
    read_roles,
    read_sentences,
)
from probelight.probes.source import locate

Read = Callable[[Path], tuple[Item, ...]]
_GITHUB = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class SetSource:
    """Where a set comes from, in the words of `probelight.probes.source.Released`.

    Attributes:
        name: Its name in tables of results.
        title: What its paper calls it.
        recorded_as: What files of recorded outputs call it.
        base_url: Address in front of the path.
        mirror_folder: Folder of a mirror that stands for it.
        file: Its file.
        read: Reads that.
        in_lists: Whether outputs on it are recorded as lists of words, in a folder of its own.
    """

    name: str
    title: str
    recorded_as: str
    base_url: str
    mirror_folder: str
    file: FileSource
    read: Read
    in_lists: bool = False
    own_folder: Path | None = None
    get: str = ""


@dataclass(frozen=True)
class DiagnosticSet:
    """A set with its items.

    Attributes:
        source: Where it comes from.
        items: In the order of the file.
        files: The file.
        notices: What a reader of the results should know.
    """

    source: SetSource
    items: tuple[Item, ...]
    files: tuple[DataFile, ...]
    notices: tuple[str, ...] = ()

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """What a model is asked, in the order of recorded outputs."""
        return tuple(prompt for item in self.items for prompt in item.prompts)


# Address and folder of a mirror: of Ettinger (2020), and of Shivagunde et al. (2023).
_ETTINGER = (f"{_GITHUB}/aetting/lm-diagnostics/master", "lm-diagnostics")
_EXTENDED = (
    f"{_GITHUB}/text-machine-lab/extending_psycholinguistic_dataset/main/data",
    "extended-diagnostics",
)
SETS = {
    one.name: one
    for one in (
        SetSource(
            "cprag",
            "CPRAG-102",
            "cprag",
            *_ETTINGER,
            FileSource(
                "datasets/CPRAG-102/CPRAG-102.tsv",
                "d06ea9e3d97f8647839fe69b77817f4554e1fd1c79b8a3074bbfec44bbc05afb",
            ),
            read_inference,
        ),
        SetSource(
            "role",
            "ROLE-88",
            "role",
            *_ETTINGER,
            FileSource(
                "datasets/ROLE-88/ROLE-88.tsv",
                "06a3dfdfbeb3fe0a86fcf4fdbe388c4384c69749b39a8ba3abd6eccf2712915e",
            ),
            read_roles,
        ),
        SetSource(
            "neg_simp",
            "NEG-136-SIMP",
            "negsimp",
            *_ETTINGER,
            FileSource(
                "datasets/NEG-136/NEG-136-SIMP.tsv",
                "3691043f229d247a2d8de572e505e929e17f5726ee58b5ad1c515232ce46e0f0",
            ),
            read_negation,
        ),
        SetSource(
            "neg_nat",
            "NEG-136-NAT",
            "negnat",
            *_ETTINGER,
            FileSource(
                "datasets/NEG-136/NEG-136-NAT.tsv",
                "60c090ed858850ee7eef47956c97db0ffe10e3e4842c0ec1d9094308c3ca67af",
            ),
            read_natural_negation,
        ),
        SetSource(
            "role_1500",
            "ROLE-1500",
            "ROLE-1500",
            *_EXTENDED,
            FileSource(
                "ROLE-1500.txt", "446b77ef5700d8e32981673d38e843506633a92d2808e7cd1561f49bd5fb8165"
            ),
            read_sentences,
            in_lists=True,
        ),
        SetSource(
            "neg_1500_simp_temp",
            "NEG-1500-SIMP-TEMP",
            "NEG-1500-SIMP-TEMP",
            *_EXTENDED,
            FileSource(
                "NEG-1500-SIMP-TEMP.txt",
                "5323328859a10e9f6cc030062fa343eb9b400d02a8d7855c80e02988280cac0a",
            ),
            read_negated_sentences,
            in_lists=True,
        ),
        SetSource(
            "neg_1500_simp_gen",
            "NEG-1500-SIMP-GEN",
            "NEG-1500-SIMP-GEN",
            *_EXTENDED,
            FileSource(
                "NEG-1500-SIMP-GEN.txt",
                "7de18476cafce323bdb8a912170fd52a98b36122ed9fb32800fb6fff196a9c0f",
            ),
            read_negated_sentences,
            in_lists=True,
        ),
    )
}


def load_set(name: str, mirror: str | Path | None = None) -> DiagnosticSet:
    """Load a set from a mirror, or from where it was released.

    Args:
        name: One of `SETS`.
        mirror: See `probelight.probes.source.load_probe`.

    Raises:
        RecordError: If the file is malformed; the message names file and line.
        OSError: If it cannot be had; the message says what to do.
    """
    source = SETS[name]
    path = locate(source, source.file, mirror, None, None).path  # all have checksums
    items, sha256 = source.read(path), content_sha256(path)
    notices: tuple[str, ...] = ()
    if sha256 != source.file.sha256:
        notices = (f"{path} is not the released file: its sha256 is {sha256}",)
    return DiagnosticSet(source, items, (DataFile(str(path), sha256, len(items)),), notices)


KEPT_WORDS = 2  # of the second sentence
OBJECT, SUBJECT = "one", "other"


@dataclass(frozen=True)
class Perturbation:
    """A way to take something out of contexts.

    Attributes:
        name: What tables of results call it.
        context: An item's context without it; the seed decides what is drawn.
        is_drawn: Whether the seed matters.
    """

    name: str
    context: Callable[[Item, int], str]
    is_drawn: bool = False


def perturbations_of(data: DiagnosticSet) -> tuple[Perturbation, ...]:
    """Return the perturbations that apply to a set."""
    return _OF_ITEMS.get(type(data.items[0]), ())


def shuffled(item: InferenceItem, seed: int) -> str:
    """Return the first sentence with its words, between white space, in a random order.

    Each word keeps what is written at it. The order depends on the seed and the sentence alone, and
    may be the old one.
    """
    words = item.first.split()
    random.Random(f"{seed} {item.first}").shuffle(words)
    return " ".join(words)


def truncated(item: InferenceItem) -> str:
    """The last words before the target."""
    return " ".join(item.second.split()[-KEPT_WORDS:])


def _inference(item: Item, seed: int, *, shuffles: bool = False, truncates: bool = False) -> str:
    assert isinstance(item, InferenceItem)
    first = shuffled(item, seed) if shuffles else item.first
    return f"{first} {truncated(item) if truncates else item.second}"


def _roles(item: Item, _: int, *, which: str | None = None, the: str | None = None) -> str:
    assert isinstance(item, RoleItem)
    return item.with_nouns(which, the)


_OF_ITEMS: dict[type[Item], tuple[Perturbation, ...]] = {
    InferenceItem: (
        Perturbation("shuffled", partial(_inference, shuffles=True), is_drawn=True),
        Perturbation("truncated", partial(_inference, truncates=True)),
        Perturbation(
            "shuffled+truncated", partial(_inference, shuffles=True, truncates=True), is_drawn=True
        ),
    ),
    RoleItem: (
        Perturbation("generic_object", partial(_roles, which=OBJECT)),
        Perturbation("generic_subject", partial(_roles, the=SUBJECT)),
        Perturbation("generic_both", partial(_roles, which=OBJECT, the=SUBJECT)),
    ),
}
