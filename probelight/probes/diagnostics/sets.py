"""The diagnostic sets: where their files were released, how to load one, and perturbations.

A perturbation takes something out of the contexts, to see what a model relied on (Ettinger 2020).
CPRAG-102 (section 7.1, table 4): the words of the first sentence in another order, the second
sentence cut to its last two words, or both. ROLE-88 (section 8.1, table 7): "one" for the noun
after "which", "other" for the noun after the following "the", or both.
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
    NegatedPair,
    Prompt,
    RoleItem,
    read_inference,
    read_negation,
    read_roles,
    read_sentences,
)
from probelight.probes.source import locate

Read = Callable[[Path], tuple[Item, ...]]
_GITHUB = "https://raw.githubusercontent.com"
_SHA256 = {  # of the released files
    "cprag": "d06ea9e3d97f8647839fe69b77817f4554e1fd1c79b8a3074bbfec44bbc05afb",
    "role": "06a3dfdfbeb3fe0a86fcf4fdbe388c4384c69749b39a8ba3abd6eccf2712915e",
    "neg_simp": "3691043f229d247a2d8de572e505e929e17f5726ee58b5ad1c515232ce46e0f0",
    "neg_nat": "60c090ed858850ee7eef47956c97db0ffe10e3e4842c0ec1d9094308c3ca67af",
    "role_1500": "446b77ef5700d8e32981673d38e843506633a92d2808e7cd1561f49bd5fb8165",
    "neg_1500_simp_temp": "5323328859a10e9f6cc030062fa343eb9b400d02a8d7855c80e02988280cac0a",
    "neg_1500_simp_gen": "7de18476cafce323bdb8a912170fd52a98b36122ed9fb32800fb6fff196a9c0f",
}


@dataclass(frozen=True)
class SetSource:
    """Where a set comes from, as `probelight.probes.source.Released`."""

    name: str  # in tables of results
    title: str  # in its paper
    recorded_as: str  # in files of recorded outputs
    base_url: str
    mirror_folder: str
    file: FileSource
    read: Read
    in_lists: bool = False  # outputs are recorded as lists of words, in a folder of its own
    own_folder: Path | None = None
    get: str = ""


@dataclass(frozen=True)
class DiagnosticSet:
    """A set with its items, and notices for a reader of the results."""

    source: SetSource
    items: tuple[Item, ...]
    files: tuple[DataFile, ...]
    notices: tuple[str, ...] = ()

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts of all items, in the order of recorded outputs."""
        return tuple(prompt for item in self.items for prompt in item.prompts)


def _of_ettinger(name: str, title: str, read: Read) -> SetSource:
    folder = title.removesuffix("-SIMP").removesuffix("-NAT")
    file = FileSource(f"datasets/{folder}/{title}.tsv", _SHA256[name])
    address = f"{_GITHUB}/aetting/lm-diagnostics/master"
    return SetSource(name, title, name.replace("_", ""), address, "lm-diagnostics", file, read)


def _of_shivagunde(name: str, read: Read) -> SetSource:
    title = name.upper().replace("_", "-")
    file = FileSource(f"{title}.txt", _SHA256[name])
    address = f"{_GITHUB}/text-machine-lab/extending_psycholinguistic_dataset/main/data"
    return SetSource(name, title, title, address, "extended-diagnostics", file, read, in_lists=True)


SETS = {
    source.name: source
    for source in (
        _of_ettinger("cprag", "CPRAG-102", read_inference),
        _of_ettinger("role", "ROLE-88", read_roles),
        _of_ettinger("neg_simp", "NEG-136-SIMP", read_negation),
        _of_ettinger("neg_nat", "NEG-136-NAT", partial(read_negation, natural=True)),
        _of_shivagunde("role_1500", read_sentences),
        _of_shivagunde("neg_1500_simp_temp", partial(read_sentences, kind=NegatedPair)),
        _of_shivagunde("neg_1500_simp_gen", partial(read_sentences, kind=NegatedPair)),
    )
}


def load_set(name: str, mirror: str | Path | None = None) -> DiagnosticSet:
    """Load a set, one of `SETS`, from a mirror (see `load_probe`) or from where it was released.

    Raises:
        RecordError: If the file is malformed; the message names file and line.
        OSError: If it cannot be found or downloaded; the message says what to do.
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
    """A way to take something out of contexts."""

    name: str  # in tables of results
    context: Callable[[Item, int], str]  # makes an item's context with a seed
    is_drawn: bool = False  # whether the seed matters


def perturbations_of(data: DiagnosticSet) -> tuple[Perturbation, ...]:
    """Return the perturbations that apply to a set."""
    return _OF_ITEMS.get(type(data.items[0]), ())


def shuffled(item: InferenceItem, seed: int) -> str:
    """Return the first sentence with its words, punctuation attached, in a seeded order."""
    words = item.first.split()
    random.Random(f"{seed} {item.first}").shuffle(words)
    return " ".join(words)


def _inference(item: Item, seed: int, *, shuffles: bool = False, truncates: bool = False) -> str:
    assert isinstance(item, InferenceItem)
    first = shuffled(item, seed) if shuffles else item.first
    second = " ".join(item.second.split()[-KEPT_WORDS:]) if truncates else item.second
    return f"{first} {second}"


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
